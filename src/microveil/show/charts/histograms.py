"""How often values occur before and after: one rule for bins, one for categories.

Charts hold these shares, never the records themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from microveil.core.grid import observed_decimals
from microveil.types import Integers, Reals

Clock = Literal["date", "datetime", "time"]

MOST_BINS = 40
MOST_DRAWN = 20
_TAIL = 0.001
_MOST_DECIMALS, _LARGEST = 6, 2.0**53


@dataclass(frozen=True)
class Shares:
    """An attribute before and after.

    Attributes
    ----------
    name
        The attribute.
    before, after
        The share of the values there are in each bin or category; empty if there are none.
    edges
        Of the bins of numbers, dates and times, these in milliseconds since 1970; of categories
        empty.
    labels
        Of categories; of numbers empty.
    clock
        What kind of dates or times these are, if they are.
    outside
        How many values before and after lie outside the bins.
    """

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    edges: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    clock: Clock | None = None
    outside: tuple[int, int] = (0, 0)

    @property
    def note(self) -> str:
        """What a chart does not show, if there is anything."""
        before, after = self.outside
        if not before and not after:
            return ""
        return f"Values outside the chart: {before:,} before, {after:,} after."


def shares_of_numbers(
    name: str,
    before: Reals,
    after: Reals,
    *,
    clock: Clock | None = None,
    milliseconds: float = 1.0,
) -> Shares:
    """Count values in bins. Of dates and times, 1 is so many milliseconds.

    Examples
    --------
    >>> shares = shares_of_numbers("a", np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0]))
    >>> shares.edges, [round(share, 2) for share in shares.after]
    ((0.5, 1.5, 2.5), [0.33, 0.67])
    """
    edges = bin_edges(before, after)
    if not len(edges):
        return Shares(name, (), (), clock=clock)
    counts = [np.histogram(values, edges)[0] for values in (before, after)]
    return Shares(
        name,
        _shares(counts[0], len(before)),
        _shares(counts[1], len(after)),
        edges=tuple(float(edge) * milliseconds for edge in edges),
        clock=clock,
        outside=(len(before) - int(counts[0].sum()), len(after) - int(counts[1].sum())),
    )


def bin_edges(before: Reals, after: Reals) -> Reals:
    """Cut the range of both into bins, each of as many steps of the original values.

    A bin holds one step if these are few. Bins that are no multiple of the step would hold now one
    value more and now one less, which looks like holes. The outermost thousandth at either end
    stays outside, so that a few far values do not leave everything else in one bin. Empty where one
    of them has no values.

    Examples
    --------
    >>> bin_edges(np.array([2.0, 2.5, 4.0]), np.array([2.5, 3.5])).tolist()
    [1.75, 2.25, 2.75, 3.25, 3.75, 4.25]
    """
    if not len(before) or not len(after):
        return np.empty(0)
    both = np.concatenate([before, after])
    low, high = np.quantile(both, [_TAIL, 1 - _TAIL], method="inverted_cdf")
    if low == high:
        low, high = both.min(), both.max()
    if high - low <= MOST_BINS * np.spacing(max(abs(low), abs(high))):  # too close to be cut
        margin = 0.5 if low == np.round(low) else max(abs(low), 1.0) / 2
        return np.array([low - margin, low + margin])
    bins = int(min(MOST_BINS, max(5, np.ceil(2 * min(len(before), len(after)) ** (1 / 3)))))
    step = _step_of(before)
    if not step:
        return np.linspace(low, high, bins + 1)
    start = before[0] + step * (np.round((low - before[0]) / step) - 0.5)
    steps = int(np.floor((high - start) / step)) + 1
    each = 1 if steps <= MOST_BINS else int(np.ceil(steps / bins))
    edges: Reals = start + step * each * np.arange(np.ceil(steps / each) + 1)
    return edges


def _step_of(values: Reals) -> float:
    """Return the largest step that all values are whole numbers of from each other; 0 if none."""
    decimals = observed_decimals(values)
    if decimals > _MOST_DECIMALS or np.abs(values).max() > _LARGEST / 10**decimals:
        return 0.0
    whole = np.round(values * 10**decimals).astype(np.int64)
    return int(np.gcd.reduce(whole - whole[0])) / 10.0**decimals


def shares_of_categories(
    name: str, labels: Sequence[str], before: Integers, after: Integers, *, ordered: bool
) -> Shares:
    """Count categories that occur, given as places in `labels`; beyond the most frequent, together.

    Ordered ones stay in their order if there are few enough; others are the most frequent first.

    Examples
    --------
    >>> codes = np.array([0, 1, 1]), np.array([1, 1, 1])
    >>> shares_of_categories("a", ["x", "y", "z"], *codes, ordered=False)
    Shares(name='a', before=(0.6666666666666666, 0.3333333333333333), after=(1.0, 0.0), edges=(),\
 labels=('y', 'x'), clock=None, outside=(0, 0))
    """
    counts = [np.bincount(codes, minlength=len(labels)) for codes in (before, after)]
    both = counts[0] + counts[1]
    seen = np.flatnonzero(both)
    if not ordered or len(seen) > MOST_DRAWN:
        seen = seen[np.argsort(-both[seen], kind="stable")]
    shown, rest = seen[:MOST_DRAWN], seen[MOST_DRAWN:]
    names = [labels[code] for code in shown]
    bars = [count[shown] for count in counts]
    if len(rest):
        names.append(f"… {len(rest):,} more categories")
        bars = [np.append(count[shown], count[rest].sum()) for count in counts]
    return Shares(
        name, _shares(bars[0], len(before)), _shares(bars[1], len(after)), labels=tuple(names)
    )


def _shares(counts: Integers, total: int) -> tuple[float, ...]:
    return tuple(float(count) / max(total, 1) for count in counts)
