"""Estimates of a population from a sample, by design weights; without weights all are alike.

Every function takes values without missing ones, and a weight above 0 for each record. Multiplying
all weights by a number changes nothing but totals, and equal weights give what NumPy gives.
"""

from typing import NamedTuple

import numpy as np

from microveil.types import Integers, Reals

LARGEST = 1e150
"""Squares of larger numbers do not fit double precision."""

_DEVIATIONS_OF_95_PERCENT = 1.959963984540054


class Weights(NamedTuple):
    """The sampling weights of two tables, one for each record."""

    original: Reals
    released: Reals


class Interval(NamedTuple):
    """A confidence interval."""

    lower: float
    upper: float

    @property
    def reach(self) -> float:
        """How far it reaches to either side."""
        return (self.upper - self.lower) / 2


class Estimate(NamedTuple):
    """A figure of the population, and its 95% confidence interval."""

    value: float
    interval: Interval

    def times(self, factor: float) -> "Estimate":
        """Multiply both."""
        return Estimate(factor * self.value, Interval(*(factor * end for end in self.interval)))


def means(table: Reals, weights: Reals) -> Reals:
    """Weighted mean of each attribute, Σ w·x / Σ w.

    Examples
    --------
    >>> means(np.array([[1.0], [4.0]]), np.array([2.0, 1.0]))
    array([2.])
    """
    found: Reals = weights @ table / weights.sum()
    return found


def variances(table: Reals, weights: Reals) -> Reals:
    """Weighted variance of each attribute, Σ w·(x − x̄)² / Σ w · n/(n − 1)."""
    records = len(table)
    found: Reals = means((table - means(table, weights)) ** 2, weights) * records / (records - 1)
    return found


def quantiles(column: Reals, weights: Reals, shares: tuple[float, ...]) -> Reals:
    """Weighted quantiles of an attribute, with linear interpolation as NumPy has it.

    The k-th smallest of n values stands at (k − 1)·w_k + (n − 1)·Σ w of those below it, of
    (n − 1)·Σ w: at (k − 1)/(n − 1) where all weights are alike.

    Examples
    --------
    >>> quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), (0.5,))
    array([2.])
    """
    order = np.argsort(column, kind="stable")
    weight, last = weights[order], len(column) - 1
    below = np.cumsum(weight) - weight
    places = np.arange(len(column)) * weight + last * below
    found: Reals = np.interp(np.array(shares) * last * weight.sum(), places, column[order])
    return found


def weighted_correlations(table: Reals, weights: Reals) -> Reals:
    """Weighted Pearson correlation of every pair of attributes, as a matrix."""
    centred = (table - means(table, weights)) / np.sqrt(variances(table, weights))
    products = (weights[:, np.newaxis] * centred).T @ centred
    spread = np.sqrt(np.diag(products))
    found: Reals = products / np.outer(spread, spread)
    return found


def weighted_ranks(table: Reals, weights: Reals) -> Reals:
    """Weight of the records below, within each attribute, and half of that of equal ones."""
    return np.column_stack([_ranks(column, weights) for column in table.T])


def _ranks(column: Reals, weights: Reals) -> Reals:
    _, place = np.unique(column, return_inverse=True)
    together = np.bincount(place, weights)
    found: Reals = (np.cumsum(together) - together / 2)[place]
    return found


def weighted_shares(codes: Integers, weights: Reals, categories: int) -> Reals:
    """Weighted share of every category."""
    found: Reals = np.bincount(codes, weights, minlength=categories) / weights.sum()
    return found


def estimate_of_total(column: Reals, weights: Reals, records: int) -> Estimate:
    """Weighted total of a group, for records drawn with replacement.

    Of `records` records, those outside the group count as 0, so that its size is uncertain too:
    n/(n − 1)·Σ (w·x − mean of w·x)² is the variance of Σ w·x.

    Examples
    --------
    >>> total = estimate_of_total(np.ones(50), np.ones(50), 100)  # 50 of 100 records
    >>> total.value, round(float(total.interval.reach) / 1.96, 2)
    (50.0, 5.03)
    """
    products = weights * column
    total = float(products.sum())
    squares = max(0.0, float(products @ products) - total**2 / records)
    return Estimate(total, _around(total, np.sqrt(squares * records / (records - 1))))


def estimate_of_quantile(column: Reals, weights: Reals, share: float) -> Estimate:
    """Weighted quantile; its interval holds the quantiles of the share's interval (Woodruff 1952).

    Examples
    --------
    >>> found = estimate_of_quantile(np.arange(101.0), np.ones(101), 0.5)
    >>> found.value, [round(float(end), 1) for end in found.interval]
    (50.0, [40.2, 59.8])
    """
    effective = float(weights.sum()) ** 2 / float(weights @ weights)
    lower, upper = _around(share, np.sqrt(share * (1 - share) / effective))
    ends = (max(0.0, lower), share, min(1.0, upper))
    low, middle, high = (float(value) for value in quantiles(column, weights, ends))
    return Estimate(middle, Interval(low, high))


def estimate_of_mean(column: Reals, weights: Reals) -> Estimate:
    """Weighted mean, with its interval."""
    interval = interval_of_mean(column, weights)
    return Estimate((interval.lower + interval.upper) / 2, interval)


def interval_of_mean(column: Reals, weights: Reals) -> Interval:
    """95% confidence interval of the mean, for records drawn with replacement.

    The variance of the mean is n/(n − 1)·Σ w²·(x − x̄)² / (Σ w)², by linearisation: s²/n where all
    weights are alike. Strata and clusters of the design are not taken into account.
    """
    mean = float(weights @ column / weights.sum())
    squares = float(np.sum((weights * (column - mean)) ** 2)) * len(column) / (len(column) - 1)
    return _around(mean, np.sqrt(squares) / float(weights.sum()))


def intervals_of_shares(codes: Integers, weights: Reals, categories: int) -> list[Interval]:
    """95% confidence interval of the share of every category, as that of a mean of zeros and ones.

    Examples
    --------
    >>> ones = np.ones(4)
    >>> intervals_of_shares(np.array([0, 0, 0, 1]), ones, 2)[1] == interval_of_mean(
    ...     np.array([0.0, 0, 0, 1]), ones)
    True
    """
    found = weighted_shares(codes, weights, categories)
    squares = np.bincount(codes, weights**2, minlength=categories)
    others = float(np.sum(weights**2)) - squares
    spread = (squares * (1 - found) ** 2 + others * found**2) * len(codes) / (len(codes) - 1)
    errors = np.sqrt(spread) / weights.sum()
    return [_around(float(share), float(error)) for share, error in zip(found, errors, strict=True)]


def around(value: float, error: float) -> Estimate:
    """Return an estimate with a standard error."""
    return Estimate(value, _around(value, error))


def _around(estimate: float, error: float) -> Interval:
    reach = _DEVIATIONS_OF_95_PERCENT * error
    return Interval(estimate - reach, estimate + reach)


def overlap(one: Interval, other: Interval) -> float:
    """Mean share of two intervals that both have in common (Karr et al. 2006); 0 if nothing.

    Examples
    --------
    >>> overlap(Interval(0, 4), Interval(2, 4)), overlap(Interval(0, 1), Interval(2, 3))
    (0.75, 0.0)
    """
    common = Interval(max(one.lower, other.lower), min(one.upper, other.upper))
    if common.upper < common.lower:
        return 0.0
    return (_share(common, one) + _share(common, other)) / 2


def _share(common: Interval, whole: Interval) -> float:
    width = whole.upper - whole.lower
    return (common.upper - common.lower) / width if width else 1.0


def standard_deviations(original: Reals, weights: Reals | None = None) -> Reals:
    """Each attribute's standard deviation; exactly 0 where it is constant."""
    varies = original.max(axis=0) > original.min(axis=0)
    deviations = np.zeros(original.shape[1])
    if varies.any():
        deviations[varies] = np.sqrt(
            original[:, varies].var(axis=0, ddof=1)
            if weights is None
            else variances(original[:, varies], weights)
        )
    return deviations
