"""The straight line: read → settle → cluster → summarise → sensitivity → noise → spread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl

from microveil.categories import mask_categories, released_as_is, respond
from microveil.certificate import certify
from microveil.describe import (
    describe_category_clusters,
    describe_category_losses,
    describe_clusters,
    describe_losses,
    describe_responses,
)
from microveil.engines.base import Engine
from microveil.engines.memory import MemoryEngine
from microveil.errors import PlanError
from microveil.formats import TableMeta, load
from microveil.joint import check_anonymity, cluster_groups
from microveil.masking import CategoryMasking, Masking, NumericMasking
from microveil.mechanism import calibrate, mask, no_finite_result
from microveil.noise import WordSource, open_words
from microveil.partition import cutter
from microveil.plan import Plan
from microveil.prepare import prepare
from microveil.release import Detail, Release

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and how much there is."""

Keep = Callable[[pl.DataFrame], pl.DataFrame]


def protect(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Protect a table of people.

    Guarantee
    ---------
    With clusters and noise scales held, the masked values of a table and of any neighbour are
    within a factor exp(ε) of each other in probability: attribute a pays its share ε_a, and the
    shares add up to ε. The certificate says what happens when clusters are formed again, and what
    the released table shows besides.

    Parameters
    ----------
    data
        A Polars or pandas DataFrame, a PyArrow Table, a Spark DataFrame, the path of a file, or a
        `Source` that says how to read one. A pandas index is left behind.
    plan
        What to do with each attribute.
    seed
        For experiments only: repeatable noise. The certificate then says «not for publication».
    progress
        Called after every attribute.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> release = protect(people, plan)
    >>> release.data["age"].n_unique() <= 2
    True
    >>> release.certificate.attributes[0].epsilon
    1.0
    """
    if not isinstance(plan, Plan):
        raise PlanError(
            f"plan must be a microveil.Plan, got {type(plan).__name__}; "
            "Plan.read reads one from a TOML file"
        )
    if type(data).__module__.startswith("pyspark."):
        from microveil.engines.spark.line import protect_spark

        return protect_spark(data, plan, seed=seed, progress=progress)
    table = load(data, verbatim=plan.verbatim)
    return release_of(plan, MemoryEngine(table.data), table.meta, seed=seed, progress=progress)


def release_of(
    plan: Plan,
    engine: Engine,
    meta: TableMeta,
    *,
    seed: int | None,
    progress: Progress | None,
    keep: Keep = lambda clusters: clusters,
) -> Release:
    """Walk the line with any engine; `keep` says what becomes of the description of clusters."""
    settled = prepare(plan, engine)
    groups = cluster_groups(settled, engine, open_words(seed, "ties"))
    clusters, losses = [], []
    with ThreadPoolExecutor(engine.threads) as threads:
        outcomes = threads.map(lambda m: _mask(engine, m, seed), settled.maskings)
        for done, (described, lost) in enumerate(outcomes, start=1):
            clusters.append(keep(described))
            losses.append(lost)
            if progress:
                progress(f"masking {settled.maskings[done - 1].name}", done, len(settled.maskings))
    smallest = check_anonymity(groups, engine)
    _derive(plan, engine)
    return Release(
        data=engine.finish(list(settled.columns)),
        certificate=certify(
            settled,
            records=engine.records,
            seeded=seed is not None,
            groups=tuple(zip(groups, smallest, strict=True)),
        ),
        detail=Detail(pl.concat(clusters), pl.concat(losses), engine.positions),
        plan=plan,
        meta=meta,
        seed=seed,
    )


def _mask(engine: Engine, masking: Masking, seed: int | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Mask one attribute; describe its clusters and losses."""
    words = open_words(seed, f"attribute {masking.name}")
    ties = open_words(seed, f"ties {masking.name}")
    if isinstance(masking, CategoryMasking):
        return _mask_categories(engine, masking, words, ties)
    return _mask_numbers(engine, masking, words, ties)


def _mask_numbers(
    engine: Engine, masking: NumericMasking, words: WordSource, ties: WordSource
) -> tuple[pl.DataFrame, pl.DataFrame]:
    summary = engine.summarise(masking.name, masking.grid, cutter(masking), ties)
    scales = calibrate(summary, masking)
    engine.spread(masking.name, mask(summary, scales, masking, words))
    return (
        describe_clusters(summary, masking, scales),
        describe_losses(summary, masking, scales),
    )


def _mask_categories(
    engine: Engine, masking: CategoryMasking, words: WordSource, ties: WordSource
) -> tuple[pl.DataFrame, pl.DataFrame]:
    name, categories, cut = masking.name, masking.categories, cutter(masking)
    if cut is None:
        codes = engine.codes(name, categories)
        engine.spread_categories(name, respond(codes, masking, words), categories)
        return describe_responses(masking), describe_category_losses(masking, masking.records)
    summary = engine.summarise_categories(name, categories, cut, ties)
    as_is = released_as_is(summary, masking)
    masked = mask_categories(summary, as_is, masking, words)
    engine.spread_categories(name, masked, categories)
    return (
        describe_category_clusters(summary, masking, as_is),
        describe_category_losses(masking, int(np.count_nonzero(~as_is))),
    )


def _derive(plan: Plan, engine: Engine) -> None:
    for name in plan.derivation_order:
        undefined = engine.derive(name, plan.derived[name])
        if undefined:
            raise no_finite_result(name, undefined, engine.records)
