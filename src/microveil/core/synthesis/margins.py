"""One-way distributions, estimated from noisy counts."""

from collections.abc import Sequence

import numpy as np

from microveil.core.synthesis.cells import BRANCH, AnyCells, CategoryCells, NumberCells
from microveil.types import Booleans, Integers, Reals

_CLEAR, _KEPT = 1.25, 0.9
_CLEAR_SINGLE = 2.0
_NUMBER_FLOOR, _CATEGORY_FLOOR = 1e-12, 1e-6
_CLOSED = -1e15


class Margin:
    """The estimated distribution of an attribute over its cells, which stand in an order.

    A record of an attribute is a number from 0 to 1: its rank, as the distribution has it.
    """

    def __init__(self, cells: AnyCells, counts: Reals) -> None:
        self.cells = cells
        floor = _NUMBER_FLOOR if isinstance(cells, NumberCells) else _CATEGORY_FLOOR
        chances = np.maximum(counts, 0) + floor * max(float(counts.sum()), 1.0)
        self.chances: Reals = chances / chances.sum()
        self.arrange(cells.order)

    @property
    def binary(self) -> bool:
        """Whether there are two categories, and no missing values."""
        return isinstance(self.cells, CategoryCells) and self.cells.size == 2

    @property
    def ordered(self) -> bool:
        """Whether cells have an order of their own."""
        return isinstance(self.cells, NumberCells) or self.cells.ordered

    def arrange(self, order: Integers) -> None:
        """Put the cells in an order."""
        self.order = order
        self.edges = np.concatenate([[0.0], np.cumsum(self.chances[order])])
        self.edges /= self.edges[-1]
        self.places = np.empty_like(order)
        self.places[order] = np.arange(len(order))

    @property
    def middles(self) -> Reals:
        """The rank of the middle of each cell."""
        return np.asarray((self.edges[self.places] + self.edges[self.places + 1]) / 2)

    def cell(self, ranks: Reals) -> Integers:
        """Return the cells of records of these ranks."""
        at = np.searchsorted(self.edges, ranks, side="right") - 1
        return self.order[np.clip(at, 0, len(self.order) - 1)]


def number_counts(cells: NumberCells, groups: Sequence[Reals], variance: float, n: float) -> Reals:
    """Return consistent counts of cells from noisy counts of every level and of single values.

    `groups` are the levels, the widest cells first, and last the single values.
    """
    *levels, singles = groups
    singles = np.where(singles < _CLEAR_SINGLE * np.sqrt(variance), 0.0, singles)
    singles *= min(1.0, n / max(float(singles.sum()), 1e-9))
    body = tree_counts(levels, variance, n - float(singles.sum()), cells.open)
    return np.concatenate([body, singles])


def tree_counts(levels: Sequence[Reals], variance: float, total: float, closed_from: int) -> Reals:
    """Make counts of all levels consistent and not negative (Hay et al. 2010); return the finest.

    AnyCells from `closed_from` on are known to be empty.
    """
    best, variances = list(levels), [variance] * len(levels)
    for i in range(len(levels) - 2, -1, -1):
        below, variance_below = (
            best[i + 1].reshape(-1, BRANCH).sum(axis=1),
            BRANCH * variances[i + 1],
        )
        weight = variance_below / (variance_below + variance)
        best[i] = weight * levels[i] + (1 - weight) * below
        variances[i] = weight * variance
    leaves, inside = np.array([total]), np.ones(1, np.bool_)
    for number, (counts, spread) in enumerate(zip(best, variances, strict=True)):
        finer = BRANCH ** (len(best) - 1 - number)
        inside = np.repeat(inside, BRANCH) & (np.arange(len(counts)) * finer < closed_from)
        leaves = divide(counts, leaves, spread, inside)
        leaves, inside = _without_noise(leaves, inside, spread, total)
    return leaves


def divide(counts: Reals, totals: Reals, variance: float, inside: Booleans) -> Reals:
    """Divide each total as its four counts say, so far as noise does not explain them."""
    rows, within = counts.reshape(len(totals), -1), inside.reshape(len(totals), -1)
    parts = np.maximum(within.sum(axis=1, keepdims=True), 1)
    away = np.where(within, rows - np.where(within, rows, 0).sum(axis=1, keepdims=True) / parts, 0)
    seen = np.maximum((away**2).sum(axis=1, keepdims=True), 1e-9)
    kept = np.maximum(1 - (parts - 1) * variance / seen, 0)
    wanted = np.where(within, totals[:, None] / parts + kept * away, _CLOSED)
    return (to_totals(wanted, totals) * within).ravel()


def to_totals(rows: Reals, totals: Reals) -> Reals:
    """Return the nearest rows without negative numbers that have these totals."""
    falling = -np.sort(-rows, axis=1)
    over = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, rows.shape[1] + 1)
    last = np.maximum((falling > over).sum(axis=1), 1) - 1
    return np.maximum(rows - np.take_along_axis(over, last[:, None], 1), 0)


def _without_noise(
    leaves: Reals, inside: Booleans, variance: float, total: float
) -> tuple[Reals, Booleans]:
    """Take cells that are small, and stand beside a small one, for empty, if most is left."""
    small = np.pad(leaves < _CLEAR * np.sqrt(variance), 1, constant_values=True)
    alone = small[1:-1] & (small[:-2] | small[2:])
    left = float(leaves[~alone].sum())
    if left <= _KEPT * total or left <= 0:
        return leaves, inside
    inside = inside & ~alone
    return np.where(inside, leaves, 0) * (total / left), inside
