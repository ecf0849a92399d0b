"""The straight line: read → settle → cluster → summarise → sensitivity → noise → spread."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from microveil.accounting import held_loss, reclustered_loss
from microveil.certificate import certify
from microveil.clusters import ClusterSummary
from microveil.engines.base import Engine
from microveil.engines.memory import MemoryEngine
from microveil.errors import PlanError
from microveil.formats import read_table
from microveil.grid import Integers
from microveil.mechanism import calibrate, describe, mask, no_finite_result
from microveil.noise import open_words, random_order
from microveil.partition import cutter
from microveil.plan import Plan
from microveil.prepare import prepare
from microveil.release import Detail, Release
from microveil.settle import Masking

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done and how much there is."""


_LOSSES = {
    "attribute": pl.String,
    "epsilon": pl.Float64,
    "fixed_clusters": pl.Float64,
    "re_clustered": pl.Float64,
}


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
        A Polars or pandas DataFrame, a PyArrow Table, a Spark DataFrame, or the path of a CSV or
        Parquet file. A pandas index is left behind.
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
    source = Path(data) if isinstance(data, str | Path) else None
    engine: Engine = MemoryEngine(
        data if source is None else read_table(source, verbatim=plan.names("kept"))
    )
    settled = prepare(plan, engine)
    engine.break_ties_by(random_order(engine.records, open_words(seed, "ties")))
    clusters, losses = [], []
    for done, masking in enumerate(settled.maskings, start=1):
        summary = engine.summarise(masking.name, masking.grid, cutter(masking))
        scales = calibrate(summary, masking)
        words = open_words(seed, f"attribute {masking.name}")
        engine.spread(masking.name, mask(summary, scales, masking, words))
        clusters.append(describe(summary, masking, scales))
        losses.append(_losses(summary, masking, scales))
        if progress:
            progress(f"masking {masking.name}", done, len(settled.maskings))
    _derive(plan, engine)
    return Release(
        data=engine.finish(list(settled.columns)),
        certificate=certify(settled, records=engine.records, seeded=seed is not None),
        detail=Detail(
            pl.concat(clusters),
            pl.DataFrame(losses, schema_overrides={"re_clustered": pl.Float64}),
            engine.positions,
        ),
        plan=plan,
        source=source,
        seed=seed,
    )


def _derive(plan: Plan, engine: Engine) -> None:
    for name in plan.derivation_order:
        undefined = engine.derive(name, plan.derived[name])
        if undefined:
            raise no_finite_result(name, undefined, engine.records)


def _losses(
    summary: ClusterSummary, masking: Masking, scales: Integers
) -> dict[str, str | float | None]:
    """Compute what one record can lose in this table, exactly."""
    case = masking.method, summary, masking.domain_units, scales
    return {
        "attribute": masking.name,
        "epsilon": masking.epsilon_per_record,
        "fixed_clusters": held_loss(*case),
        "re_clustered": None if masking.chosen_from_data else reclustered_loss(*case),
    }
