"""Estimates that a table is used for, from an original and from its release, group by group."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from microveil.compare.estimates import (
    Estimate,
    Interval,
    estimate_of_mean,
    estimate_of_quantile,
    estimate_of_total,
    overlap,
)
from microveil.compare.paired_columns import MISSING, Categories, Numbers
from microveil.compare.use_columns import Grouped, UseColumns
from microveil.measures.regressions import linear_regression, logistic_regression
from microveil.plan.uses import Use
from microveil.types import Integers, Reals

FEWEST = 30
"""Original records in a group whose mean, share or quantile is compared: with fewer the interval,
which takes estimates for normal, says little.
"""

MOST_GROUPS = 200
MOST_TERMS = 60

_WITHIN_ERROR = 20.0


@dataclass(frozen=True)
class SideBySide:
    """One estimate from both tables; of the release None where it has none."""

    group: str
    original: Estimate
    released: Estimate | None

    @property
    def moved(self) -> float:
        """How far the release is off, as a share of the original's estimate.

        Where that is small against its uncertainty, as a share of twenty times the reach of its 95%
        confidence interval, so that what lies in it has moved by 5% at most. Of an estimate without
        uncertainty, such as a count of 0, the release's interval counts.

        Examples
        --------
        >>> from microveil.compare.estimates import Interval
        >>> def of(value, reach):
        ...     return Estimate(value, Interval(value - reach, value + reach))
        >>> SideBySide("", of(100.0, 1.0), of(104.0, 1.0)).moved
        0.04
        >>> SideBySide("", of(0.0, 1.0), of(1.0, 1.0)).moved
        0.05
        """
        if self.released is None:
            return 1.0
        difference = abs(self.released.value - self.original.value)
        reach = self.original.interval.reach or self.released.interval.reach
        scale = max(abs(self.original.value), _WITHIN_ERROR * reach)
        return difference / scale if scale else float(difference > 0)

    @property
    def overlap(self) -> float:
        """How far the two confidence intervals overlap."""
        if self.released is None:
            return 0.0
        return overlap(self.original.interval, self.released.interval)


@dataclass(frozen=True, eq=False)
class _Sample:
    """What is estimated from: values, the group of each, weights, and how many records there are.

    `times` is what totals are multiplied with, where the records were drawn.
    """

    values: Reals
    groups: Integers
    weights: Reals
    times: float

    def estimates(self, of: "_Estimator", fewest: int) -> dict[int, Estimate]:
        """Estimate in every group that has so many records."""
        order = np.argsort(self.groups, kind="stable")
        ends = np.cumsum(np.bincount(self.groups))
        rows = np.split(order, ends[:-1])
        return {
            group: of(self, each) for group, each in enumerate(rows) if len(each) >= max(1, fewest)
        }


_Estimator = Callable[[_Sample, Integers], Estimate]


def _mean(sample: _Sample, rows: Integers) -> Estimate:
    return estimate_of_mean(sample.values[rows], sample.weights[rows])


def _total(sample: _Sample, rows: Integers) -> Estimate:
    values, weights = sample.values[rows], sample.weights[rows]
    return estimate_of_total(values, weights, len(sample.values)).times(sample.times)


def _quantile(at: float) -> _Estimator:
    def estimate(sample: _Sample, rows: Integers) -> Estimate:
        return estimate_of_quantile(sample.values[rows], sample.weights[rows], at)

    return estimate


def side_by_side(
    use: Use, columns: UseColumns, times: tuple[float, float]
) -> Iterator[SideBySide] | str:
    """Estimate what a use asks for from both tables, or return the reason why that cannot be.

    Parameters
    ----------
    use
        Any but a model.
    columns
        The columns of both tables.
    times
        What totals of each table are multiplied with, where its records were drawn.
    """
    if use.kind == "regression":
        return _regressed(use, columns)
    groups = columns.groups(use)
    if len(groups.labels) > MOST_GROUPS:
        return "too_many_groups"
    if use.kind == "share":
        return _shares(use, columns, groups, times)
    values = _values(use, columns)
    if use.kind in ("total", "table"):
        return _in_groups(values, groups, columns, times, _total, 0)
    of = _mean if use.kind == "mean" else _quantile(use.at or 0.5)
    return _in_groups(values, groups, columns, times, of, FEWEST)


def _values(use: Use, columns: UseColumns) -> tuple[Reals, Reals]:
    """Return what is counted or averaged; of a table each record once."""
    if use.of is None:
        return np.ones(len(columns.weights[0])), np.ones(len(columns.weights[1]))
    found = columns.numbers(use.of)
    return found.original, found.released


def _in_groups(
    values: tuple[Reals, Reals],
    groups: Grouped,
    columns: UseColumns,
    times: tuple[float, float],
    of: _Estimator,
    fewest: int,
) -> Iterator[SideBySide]:
    samples = map(_present, values, groups[:2], columns.weights, times)
    before, after = (
        sample.estimates(of, least)
        for sample, least in zip(samples, (fewest, min(2, fewest)), strict=True)
    )
    empty = None if fewest else Estimate(0.0, Interval(0.0, 0.0))
    for place, label in enumerate(groups.labels):
        original = before.get(place, empty)
        if original is not None:
            yield SideBySide(label, original, after.get(place, empty))


def _present(values: Reals, groups: Integers, weights: Reals, times: float) -> _Sample:
    known = ~np.isnan(values) & (groups != MISSING)
    return _Sample(values[known], groups[known], weights[known], times)


def _shares(
    use: Use, columns: UseColumns, groups: Grouped, times: tuple[float, float]
) -> Iterator[SideBySide]:
    """Estimate the share of each category, or of the one that is asked for."""
    found = columns.grouped(use.of or "", None)
    wanted = use.category or ("true" if set(found.labels) <= {"true", "false"} else None)
    for place, label in enumerate(found.labels):
        if wanted not in (None, label):
            continue
        values = _is(found.original, place), _is(found.released, place)
        about = label if wanted is None else ""
        for each in _in_groups(values, groups, columns, times, _mean, FEWEST):
            named = ", ".join(part for part in (each.group, about) if part)
            yield SideBySide(named, each.original, each.released)


Terms = Mapping[str, tuple[Reals, Reals]]
"""Of every term of a regression its values in both tables, NaN where one is missing."""


def _regressed(use: Use, columns: UseColumns) -> Iterator[SideBySide] | str:
    """Regress in both tables; a term that the release does not determine is lost."""
    target = columns.either(use.of or "")
    if isinstance(target, Categories) and len(_seen(target)) != 2:
        return "regressed_on_two"
    terms = {name: both for each in use.predictors for name, both in _terms(each, columns)}
    if not terms or len(terms) > MOST_TERMS:
        return "too_many_terms" if terms else "regression_undetermined"
    before, after = (_coefficients(terms, target, columns, table) for table in (0, 1))
    if before is None:
        return "regression_undetermined"
    return (SideBySide(name, each, (after or {}).get(name)) for name, each in before.items())


def _terms(name: str, columns: UseColumns) -> Iterator[tuple[str, tuple[Reals, Reals]]]:
    """Make a term of a column of numbers, and of each category but the most frequent."""
    found = columns.either(name)
    if not isinstance(found, Categories):
        yield name, (found.original, found.released)
        return
    codes = _seen(found)
    most = max(codes, key=lambda code: np.count_nonzero(found.original == code), default=None)
    for code in codes:
        if code != most:
            yield (
                f"{name} = {found.labels[code]}",
                (_is(found.original, code), _is(found.released, code)),
            )


def _seen(found: Categories) -> list[int]:
    """Return the categories in the original, in their order."""
    return [int(code) for code in np.unique(found.original) if code != MISSING]


def _is(codes: Integers, code: int) -> Reals:
    return np.where(codes == MISSING, np.nan, codes == code)


def _coefficients(
    terms: Terms, target: Numbers | Categories, columns: UseColumns, table: int
) -> dict[str, Estimate] | None:
    """Regress in one table, on the terms that vary in it; None if they determine nothing."""
    if isinstance(target, Categories):
        wanted = _is((target.original, target.released)[table], _seen(target)[1])
    else:
        wanted = (target.original, target.released)[table]
    values = np.column_stack([wanted, *(both[table] for both in terms.values())])
    known = ~np.isnan(values).any(axis=1)
    values, weights = values[known], columns.weights[table][known]
    if not len(values) or not np.ptp(values[:, 1:], axis=0).any():
        return None
    varying = np.ptp(values[:, 1:], axis=0) > 0
    regress = logistic_regression if isinstance(target, Categories) else linear_regression
    found = regress(values[:, 1:][:, varying], values[:, 0], weights)
    names = [name for name, varies in zip(terms, varying, strict=True) if varies]
    return None if found is None else dict(zip(names, found.estimates, strict=True))
