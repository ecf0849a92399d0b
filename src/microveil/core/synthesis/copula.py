"""A Gaussian copula from noisy sums of products of bounded scores."""

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np

from microveil.core.synthesis.margins import Margin
from microveil.types import Integers, Reals

GRID = 32
"""CellScores are whole numbers; those of a record have at most this length."""

_SLOPE = 3.0
_MOST_INDICATORS = 32
_TERMS = 41
_FLOOR, _ROUNDS = 1e-3, 50

_NODES = np.linspace(-6, 6, 4001)
_PHI = np.array([0.5 * (1 + erf(z / sqrt(2))) for z in _NODES])
_RANGE = np.linspace(-0.995, 0.995, 399)


def normal_ranks(z: Reals) -> Reals:
    """Return the share of a normal distribution below each number."""
    return np.asarray(np.interp(z, _NODES, _PHI))


def _hermite() -> Reals:
    """Orthonormal Hermite polynomials, times what a node stands for."""
    density = np.exp(-(_NODES**2) / 2) / sqrt(2 * np.pi) * (_NODES[1] - _NODES[0])
    found = [np.ones_like(_NODES), _NODES]
    for k in range(2, _TERMS):
        found.append((_NODES * found[-1] - sqrt(k - 1) * found[-2]) / sqrt(k))
    return np.asarray(np.array(found) * density)


_HERMITE = _hermite()


class CellScores:
    """The scores of an attribute's cells: by rank, or an indicator of each larger category.

    `table` has whole numbers of at most GRID in length for each cell.
    """

    def __init__(self, margin: Margin) -> None:
        self.margin = margin
        self.indicators = not (margin.ordered or margin.binary)
        if self.indicators:
            self.group = _groups(margin.chances)
            self.table = GRID * np.eye(int(self.group.max()) + 1, dtype=np.int64)[self.group]
        else:
            self.table = np.rint(GRID * self._of_cells()).astype(np.int64)[:, None]

    @property
    def width(self) -> int:
        """How many scores a record has."""
        return int(self.table.shape[1])

    @property
    def means(self) -> Reals:
        """The mean of each score, as the distribution has it."""
        return self.margin.chances @ (self.table / GRID)

    @property
    def weights(self) -> Reals:
        """How scores add up to one of ordered categories."""
        if not self.indicators:
            return np.ones(1)
        middles, chances = _ranked(self.margin), self.margin.chances
        mass = np.bincount(self.group, chances)
        return np.bincount(self.group, chances * middles) / np.maximum(mass, 1e-300)

    @property
    def series(self) -> Reals:
        """The score of a record as a series of Hermite polynomials of its normal number."""
        cells = self.margin.cell(np.clip(_PHI, 0, 1 - 1e-12))
        scores = self.weights[self.group] if self.indicators else self.table[:, 0] / GRID
        return np.asarray(_HERMITE @ scores[cells])

    def _of_cells(self) -> Reals:
        if self.margin.binary:
            return np.array([-1.0, 1.0])
        scores = _ranked(self.margin)
        if self.margin.cells.missing:
            scores[-1] = 0.0  # which says nothing of other attributes
        return scores

    def order_by(self, centred: Reals, deviation: float) -> None:
        """Order categories by what they go with."""
        root = 1 / np.sqrt(np.bincount(self.group, self.margin.chances) + 2 * deviation)
        left = np.linalg.svd(centred * root[:, None])[0][:, 0]
        self.margin.arrange(np.argsort((left * root)[self.group], kind="stable"))


def _ranked(margin: Margin) -> Reals:
    return np.clip(_SLOPE * (2 * margin.middles - 1), -1, 1)


def _groups(chances: Reals) -> Integers:
    """Give each category a number; beyond some, the smallest share the last one."""
    if len(chances) <= _MOST_INDICATORS:
        return np.arange(len(chances))
    place = np.empty(len(chances), np.int64)
    place[np.argsort(-chances, kind="stable")] = np.arange(len(chances))
    return np.minimum(place, _MOST_INDICATORS - 1)


def estimate_copula(sums: Reals, scores: Sequence[CellScores], deviation: float) -> Reals:
    """Return the correlations of the copula from mean products of scores, and order categories.

    `sums` is symmetric, and `deviation` that of its noise.
    """
    start = np.concatenate([[0], np.cumsum([one.width for one in scores])])
    block = [slice(start[i], start[i + 1]) for i in range(len(scores))]
    means = np.concatenate([one.means for one in scores])
    centred = sums - np.outer(means, means)
    for one, own in zip(scores, block, strict=True):
        if one.indicators and len(scores) > 1:
            others = np.delete(np.arange(len(means)), own)
            one.order_by(centred[own][:, others], deviation)
    weights, series = [one.weights for one in scores], [one.series for one in scores]
    lengths = [float(np.linalg.norm(one)) for one in weights]
    found = np.eye(len(scores))
    for i in range(len(scores)):
        for j in range(i):
            moment = float(weights[i] @ centred[block[i], block[j]] @ weights[j])
            spread = deviation * lengths[i] * lengths[j]
            found[i, j] = found[j, i] = _correlation(moment, spread, series[i], series[j])
    return nearest_correlation(found)


def _correlation(moment: float, deviation: float, first: Reals, second: Reals) -> float:
    """Return the correlation that gives this moment, less what noise explains."""
    terms = first[1:] * second[1:]
    moments = (_RANGE[:, None] ** np.arange(1, len(first)) * terms).sum(axis=1)
    rises = moments[-1] >= moments[0]
    moments = (np.maximum if rises else np.minimum).accumulate(moments)
    found = float(_RANGE[np.argmin(np.abs(moments - moment))])
    noise = deviation / max(abs(float(terms[0])), 1e-3)
    return found * max(0.0, 1 - noise**2 / max(found**2, 1e-12))


def nearest_correlation(matrix: Reals) -> Reals:
    """Return correlations near these that normal numbers can have."""
    found = matrix.copy()
    for _ in range(_ROUNDS):
        values, vectors = np.linalg.eigh(found)
        if values[0] >= _FLOOR:
            break
        found = (vectors * np.maximum(values, _FLOOR * 1.5)) @ vectors.T
        scale = 1 / np.sqrt(np.diag(found))
        found = found * scale[:, None] * scale
    return found
