"""Measures of a release against its original: utility, risk and learning."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from microveil.core.tables import UserTable
from microveil.errors import DataError
from microveil.evaluation.category_figures import category_figures, unchanged_figures
from microveil.evaluation.known import scenarios_of
from microveil.evaluation.learning import F_MEASURES, learning_figures
from microveil.evaluation.pairing import NOT_ALIGNED, Pair, complete_in, pair_up, without_constants
from microveil.evaluation.pooling_figures import pooling_figures
from microveil.evaluation.result import (
    LINKAGE,
    MEASURES,
    Evaluation,
    Figure,
    Items,
    NotComputed,
    in_order,
)
from microveil.evaluation.risk_figures import (
    class_figures,
    cluster_figures,
    combination_figures,
    disclosure_figures,
    kept_figures,
    linkage_figures,
)
from microveil.evaluation.unit_figures import stratum_figures, unit_figures
from microveil.evaluation.unit_linkage import link_units, linked_units_figure
from microveil.evaluation.utility import Scale
from microveil.evaluation.utility_figures import (
    distribution_figures,
    error_figures,
    propensity_figures,
)
from microveil.release.detail import Detail
from microveil.release.release import Release

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
        A Polars or pandas DataFrame, a PyArrow Table, or the path of a CSV or Parquet file.
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
    name = target if isinstance(target, str) else None
    given = pair_up(
        original,
        release,
        detail=detail,
        aligned=aligned,
        attributes=[attributes] if isinstance(attributes, str) else attributes,
        target=name,
    )
    if isinstance(quasi_identifiers, str):
        quasi_identifiers = [quasi_identifiers]
    scenarios = scenarios_of(given, known, people)
    pair, left_out = without_constants(given)

    def items() -> Items:
        yield from given.left_out
        yield from left_out
        yield from class_figures(pair, quasi_identifiers)
        yield from kept_figures(pair, sample=linkage_sample, seed=seed)
        yield from combination_figures(pair)
        yield from pooling_figures(pair)
        if not pair.attributes:
            return
        yield from distribution_figures(pair)
        yield from category_figures(pair)
        yield from unit_figures(pair)
        yield from stratum_figures(pair)
        yield from propensity_figures(pair)
        yield from cluster_figures(pair)
        if pair.positions is None:
            yield NotComputed(LINKAGE, f"attacks could not be scored: {NOT_ALIGNED}")
            yield NotComputed(ONE_BY_ONE, NOT_ALIGNED)
        else:
            yield from error_figures(pair, scale)
            yield from unchanged_figures(pair)
            yield from linkage_figures(pair, sample=linkage_sample, seed=seed)
            for scenario in scenarios:
                yield from linkage_figures(
                    given, sample=linkage_sample, seed=seed, scenario=scenario
                )
            yield from (linked_units_figure(x) for x in [link_units(pair)] if x)
            yield from disclosure_figures(pair, rank_percent=rank_percent, deviations=deviations)
        if target is None:
            yield NotComputed(F_MEASURES, "no target was named")
        else:
            yield from learning_figures(pair, target, estimator=estimator, train=train, seed=seed)

    found = list(items())
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
    if pair.positions is None:
        raise DataError(NOT_ALIGNED)
    new = [x for x in scenarios_of(pair, known, people) if x.label not in tried]
    found = [f for x in new for f in linkage_figures(pair, sample=10_000, seed=0, scenario=x)]
    found += class_figures(pair, quasi_identifiers)
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
