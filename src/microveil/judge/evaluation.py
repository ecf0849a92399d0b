"""Measures of a release against its original: utility, risk and learning."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from microveil.attacks.known import EVERYTHING, scenarios_of
from microveil.attacks.linkage import Linked
from microveil.attacks.risk_figures import (
    class_figures,
    combination_figures,
    kept_figures,
    linkage_figures,
    nearest_of,
)
from microveil.attacks.whole_units import unit_linkage_figures
from microveil.compare.figures import LINKAGE, MEASURES, Figure, Items, NotComputed, in_order
from microveil.compare.pairing import NOT_ALIGNED, Pair, complete_in, pair_up, without_constants
from microveil.engines.classes import Count, quasi_identifier_classes
from microveil.errors import DataError
from microveil.judge.evaluated import Evaluation
from microveil.judge.glance import Glance, of_drawn
from microveil.judge.large import Large, opened_if_large
from microveil.judge.next_step import next_step
from microveil.judge.sampled import (
    SAMPLED,
    Attacks,
    Measured,
    check_target,
    classes_of,
    figures_of_sample,
    notes_on,
)
from microveil.measures.distances import Scale
from microveil.measures.learning import F_MEASURES, learning_figures, scikit_learn
from microveil.measures.pooling_figures import pooling_figures
from microveil.plan.scenarios import Scenario
from microveil.release.detail import Detail
from microveil.release.release import Release
from microveil.types import Progress, UserTable

ONE_BY_ONE = (
    "utility.mean_sse", "utility.sse_sst", "utility.il1s", "utility.unchanged",
    "risk.rank_disclosure", "risk.value_disclosure",
)  # fmt: skip
"""What compares records one by one, besides linkage."""

__all__ = ["MEASURES", "Evaluation", "Figure", "NotComputed", "also_known", "evaluate"]


def evaluate(
    original: UserTable,
    release: Release | UserTable,
    *,
    target: Any = None,  # noqa: ANN401 - a name, or classes of any kind
    detail: Detail | str | Path | None = None,
    aligned: bool = False,
    attributes: Sequence[str] | None = None,
    quasi_identifiers: Sequence[str] = (),
    known: Sequence[str] = (),
    people: float = 1.0,
    scale: Scale = "std",
    rank_percent: float = 1.0,
    deviations: float = 0.1,
    linkage_sample: int | None = 10_000,
    estimator: Any = None,  # noqa: ANN401 - scikit-learn has no types
    train: float = 0.66,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure how useful and how risky a release is, against its original.

    The figures are functions of the data that ε does not cover: do not publish them. What needs
    to know which record is whose is computed from a `Release`, with `detail`, or with `aligned`;
    otherwise the result says that it is not. A measure of one attribute uses the records in which
    it is present; a measure of several uses complete records. Numbers that are constant in the
    original are left out, and the result says so.

    Dates and times are numbers. Errors, correlations, interval disclosure and cluster widths are
    those of numbers; shares unchanged, total variation and Cramér's V those of categories; pMSE,
    learning and record linkage take both: see `encoding` and `linkage` for how.

    Parameters
    ----------
    original
        A Polars or pandas DataFrame, a PyArrow Table, or the path of a CSV or Parquet file. Of
        files larger than memory, and of a release on Spark, 100,000 records are drawn, and their
        people are looked for among all released records; every figure says so.
    release
        A `Release`, or a protected table or the path of one.
    target
        For learning: the name of a column of the original that holds classes, or the classes
        themselves, one for each original record. Both models are given the original's classes.
    detail
        The private detail that was written with the protected table, or its path.
    aligned
        The protected table has its rows in the order of the original.
    attributes
        What to compare; by default the plan's confidential attributes, or without a plan all
        columns that both tables have: numbers, dates and times, and as categories text and
        true/false values with no more than 100 different ones. Codes that are numbers are
        categories only if the plan says so.
    quasi_identifiers
        Columns of the release that others may know of a person.
    known, people
        An intruder to try besides one who knows all masked attributes of everybody: someone who
        knows these columns only, or only this share of the people. A kept column is known exactly.
        The plan's scenarios are tried too.
    scale
        Of mean SSE: ``"std"``, or ``"variance"`` as the paper prints it.
    rank_percent, deviations
        How close a value must be to its masked value to count as disclosed: in percent of ranks,
        and in standard deviations.
    linkage_sample
        How many records to try to link, chosen at random, each among all masked records; None
        tries every one.
    estimator, train
        A scikit-learn classifier (by default a random forest), and the share of records, the first
        ones, that train it; the others test it.
    seed
        Of the choice of records to link and of the random forest.
    progress
        Called while people are looked for in a release that is larger than memory.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> evaluation = evaluate(people, protect(people, plan, seed=1))
    >>> round(evaluation.value("risk.width_median", "age"), 3)
    0.505
    """
    if isinstance(quasi_identifiers, str):
        quasi_identifiers = [quasi_identifiers]
    attributes = [attributes] if isinstance(attributes, str) else attributes
    if target is not None:
        scikit_learn()  # says what to install, before any work is done
    measured = Measured(scale, rank_percent, deviations)
    asked = _Asked(measured, quasi_identifiers, known, people, linkage_sample, seed)
    learn = None if target is None else partial(
        learning_figures, target=target, estimator=estimator, train=train, seed=seed
    )  # fmt: skip
    with opened_if_large(
        original, release, detail=detail, aligned=aligned, progress=progress
    ) as large:
        if large is not None:
            return _evaluate_sample(large, attributes, check_target(target), asked, learn)
    name = target if isinstance(target, str) else None
    given = pair_up(
        original, release, detail=detail, aligned=aligned, attributes=attributes, target=name
    )
    return _evaluate_whole(given, asked, learn)


@dataclass(frozen=True)
class _Asked:
    """What to measure, and whom to look for."""

    measured: Measured
    quasi_identifiers: Sequence[str]
    known: Sequence[str]
    people: float
    linkage_sample: int | None
    seed: int


def _evaluate_whole(
    given: Pair, asked: _Asked, learn: Callable[[Pair], Items] | None
) -> Evaluation:
    """Measure two tables that are in memory."""
    scenarios = scenarios_of(given, asked.known, asked.people)
    pair, left_out = without_constants(given)
    drawn: dict[str, Any] = {"sample": asked.linkage_sample, "seed": asked.seed}
    figures = _figures(
        pair,
        asked,
        learn,
        count=partial(quasi_identifier_classes, pair.table.to_native()),
        nearest=partial(nearest_of, pair, **drawn),
        values=asked.measured.figures(pair),
        attacks=chain(
            linkage_figures(pair, **drawn),
            *(linkage_figures(given, scenario=scenario, **drawn) for scenario in scenarios),
            unit_linkage_figures(pair),
        ),
    )
    found = [*given.left_out, *left_out, *figures]
    return Evaluation(
        records=len(pair.original),
        released=len(pair.released),
        attributes=given.attributes,
        figures=in_order(item for item in found if isinstance(item, Figure)),
        not_computed=tuple(item for item in found if isinstance(item, NotComputed)),
        notes=tuple(_notes(pair)),
        pair=given,
        scenarios=scenarios,
    )


def _evaluate_sample(
    large: Large,
    attributes: Sequence[str] | None,
    target: str | None,
    asked: _Asked,
    learn: Callable[[Pair], Items] | None,
) -> Evaluation:
    """Measure records that were drawn, and look for their people in the whole release."""
    beside, random = large.beside, np.random.default_rng(asked.seed)
    unit = None if large.plan is None else large.plan.unit
    original, released = beside.draw(SAMPLED, random, unit)
    few = None if large.detail is None else of_drawn(large.detail, beside, len(released))
    given = pair_up(
        original, released, detail=few, aligned=large.aligned and few is None,
        attributes=attributes, target=target,
    )  # fmt: skip
    if beside.records == len(given.released):
        return _evaluate_whole(given, asked, learn)
    scenarios = scenarios_of(given, asked.known, asked.people)
    pair, left_out = without_constants(given)
    look = None if large.plan is None else Glance(beside, large.plan, original, released, pair)
    attacks = Attacks(look, asked.linkage_sample, random)
    figures = _figures(
        pair,
        asked,
        learn,
        count=partial(classes_of, beside),
        nearest=attacks.nearest,
        values=figures_of_sample(pair, asked.measured, beside.records, random),
        attacks=chain(*map(attacks.figures, (EVERYTHING, *scenarios)), unit_linkage_figures(pair)),
    )
    found = [*given.left_out, *left_out, *figures]
    computed = in_order(item for item in found if isinstance(item, Figure))
    step = None if look is None else next_step(look, computed, scenarios, seed=asked.seed)
    return Evaluation(
        records=beside.originals,
        released=beside.records,
        attributes=given.attributes,
        figures=computed,
        not_computed=tuple(item for item in found if isinstance(item, NotComputed)),
        notes=(*notes_on(beside, len(pair.released)), *_notes(pair)),
        pair=given,
        scenarios=scenarios,
        drawn=len(pair.released),
        change=step,
    )


def _figures(
    pair: Pair,
    asked: _Asked,
    learn: Callable[[Pair], Items] | None,
    *,
    count: Count,
    nearest: Callable[[Scenario], Linked],
    values: Items,
    attacks: Iterable[Figure | NotComputed],
) -> Items:
    """Measure two tables in every respect."""
    yield from class_figures(count, asked.quasi_identifiers)
    yield from kept_figures(pair, count, nearest)
    yield from combination_figures(pair, count)
    yield from pooling_figures(pair, count)
    if not pair.attributes:
        return
    yield from values
    if pair.positions is None:
        yield NotComputed(LINKAGE, f"attacks could not be scored: {NOT_ALIGNED}")
        yield NotComputed(ONE_BY_ONE, NOT_ALIGNED)
    else:
        yield from attacks
    if learn is None:
        yield NotComputed(F_MEASURES, "no target was named")
    else:
        yield from learn(pair)


def also_known(
    evaluation: Evaluation,
    known: Sequence[str] = (),
    people: float = 1.0,
    quasi_identifiers: Sequence[str] = (),
) -> Evaluation:
    """Try one more intruder on what was evaluated: one who knows these columns of so many people.

    Quasi-identifiers are counted in the release as `evaluate` does.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58], "sex": list("ffmmff")})
    >>> plan = Plan(epsilon=1.0, k=3, attributes={"age": "confidential", "sex": "kept"})
    >>> evaluation = evaluate(people, protect(people, plan, seed=1))
    >>> round(also_known(evaluation, ["sex"]).value("linkage.nearest", "knows sex"), 3)
    0.333
    """
    pair, tried = evaluation.pair, {scenario.label for scenario in evaluation.scenarios}
    if evaluation.drawn is not None:
        raise DataError(
            "people are looked for among all released records, which an evaluation of drawn ones "
            "does not hold; evaluate again with known and people"
        )
    if pair.positions is None:
        raise DataError(NOT_ALIGNED)
    new = [x for x in scenarios_of(pair, known, people) if x.label not in tried]
    found = [f for x in new for f in linkage_figures(pair, sample=10_000, seed=0, scenario=x)]
    count = partial(quasi_identifier_classes, pair.table.to_native())
    found += class_figures(count, quasi_identifiers)
    figures = (*evaluation.figures, *(f for f in found if isinstance(f, Figure)))
    return replace(evaluation, figures=in_order(figures), scenarios=(*evaluation.scenarios, *new))


def _notes(pair: Pair) -> Iterator[str]:
    left_out = len(pair.original) - len(pair.released)
    if left_out:
        yield f"{left_out:,} of {len(pair.original):,} original records are not in the release."
    for where, complete in zip(("original", "release"), complete_in(pair), strict=True):
        incomplete = int(np.count_nonzero(~complete))
        if incomplete:
            yield (
                f"{incomplete:,} of {len(complete):,} records of the {where} have missing values; "
                "measures of several attributes leave them out."
            )
