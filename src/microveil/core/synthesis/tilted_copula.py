"""A Gaussian copula whose records are weighed so that counted pairs come out as counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from microveil.core.synthesis.coded_records import PairKey
from microveil.core.synthesis.copula import normal_ranks
from microveil.core.synthesis.margins import Margin
from microveil.types import Integers, Reals

SUPPORT = 60_000
"""Draws by which a model is fitted."""

_PRIOR, _LIMIT = 0.1, 6.0
_SEEN = 10
_NEWTON, _CLOSE, _JITTER = 30, 1e-4, 1e-9
_FEW, _DRAWS_OF_FEW, _DRAWS = 100_000, 8, 3
_RAREST = 0.9999
_SORTED_BY = 3


@dataclass
class _Factor:
    """What the weights of records are multiplied by in each cell of a pair: exp(theta)."""

    pair: PairKey
    counts: Reals
    variance: float
    theta: Reals


class TiltedCopula:
    """Draws records: their cells, as correlated normal numbers and counted pairs say.

    `bins` are those of each attribute's cells that pairs were counted in.
    """

    def __init__(
        self,
        margins: Sequence[Margin],
        bins: Sequence[Integers],
        correlations: Reals,
        n: float,
        rng: np.random.Generator,
        support: int = SUPPORT,
    ) -> None:
        self.margins, self.bins, self._n, self._support = margins, bins, n, support
        self._sizes = [int(of_cells.max()) + 1 for of_cells in bins]
        jitter = _JITTER * np.eye(len(correlations))
        self._root = np.linalg.cholesky(correlations + jitter).T
        self._factors: list[_Factor] = []
        self._codes = self._binned(self._ranks(support, rng))
        self._log_weights = np.zeros(support)
        related = np.argsort(np.abs(correlations).sum(axis=1), kind="stable")
        self._sorted_by = related[-_SORTED_BY:].tolist()

    def table(self, pair: PairKey) -> Reals:
        """Return how many records the model has in each cell of a pair of bins."""
        i, j = pair
        size = self._sizes[i] * self._sizes[j]
        counts = np.bincount(self._key(pair, self._codes), np.exp(self._log_weights), size)
        return np.asarray(counts * (self._n / counts.sum()))

    def add(self, pair: PairKey, counts: Reals, variance: float) -> None:
        """Take counts of a pair into account, and how large their noise is."""
        self._factors.append(_Factor(pair, counts, variance, np.zeros(len(counts))))

    def fit(self, sweeps: int) -> None:
        """Weigh records anew, one pair after the other."""
        for _ in range(sweeps):
            for factor in self._factors:
                self._fit(factor)
            self._log_weights -= np.log(np.exp(self._log_weights).mean())

    def _fit(self, factor: _Factor) -> None:
        key = self._key(factor.pair, self._codes)
        without = self._log_weights - factor.theta[key]
        mass = np.asarray(np.bincount(key, np.exp(without), len(factor.theta)), np.float64)
        mass *= self._n / (mass * np.exp(factor.theta)).sum()
        theta = _tilt(factor.counts, mass, factor.variance)
        seen = np.bincount(key, minlength=len(theta))
        factor.theta = np.where(seen < _SEEN, np.minimum(theta, 0), theta)
        self._log_weights = without + factor.theta[key]

    def draw(self, size: int, rng: np.random.Generator) -> list[Integers]:
        """Draw records: the cell of each in each attribute."""
        ranks = self._ranks(size, rng) if not self._factors else self._tilted(size, rng)
        return [margin.cell(of_one) for margin, of_one in zip(self.margins, ranks.T, strict=True)]

    def _tilted(self, size: int, rng: np.random.Generator) -> Reals:
        """Draw more than are needed, and take each with a chance that follows its weight."""
        times = _DRAWS_OF_FEW if size < _FEW else _DRAWS
        ranks = self._ranks(max(times * size, self._support), rng)
        codes = self._binned(ranks)
        known = np.quantile(self._tilts(self._codes), _RAREST)
        weights = np.exp(np.minimum(self._tilts(codes) - known, 0))
        order = np.lexsort([codes[k] for k in self._sorted_by])
        ends = np.cumsum(weights[order])
        wanted = (np.arange(size) + rng.random()) / size * ends[-1]
        taken = order[np.searchsorted(ends, wanted).clip(0, len(order) - 1)]
        return ranks[rng.permutation(taken)]

    def _tilts(self, codes: Sequence[Integers]) -> Reals:
        tilts = np.zeros(len(codes[0]))
        for factor in self._factors:
            tilts += factor.theta[self._key(factor.pair, codes)]
        return tilts

    def _ranks(self, size: int, rng: np.random.Generator) -> Reals:
        normal = rng.standard_normal((size, len(self.margins))) @ self._root
        return np.clip(normal_ranks(normal), 0, 1 - 1e-12)

    def _binned(self, ranks: Reals) -> list[Integers]:
        return [
            bins[margin.cell(of_one)]
            for margin, bins, of_one in zip(self.margins, self.bins, ranks.T, strict=True)
        ]

    def _key(self, pair: PairKey, codes: Sequence[Integers]) -> Integers:
        i, j = pair
        return np.asarray(codes[i] * self._sizes[j] + codes[j])


def _tilt(counts: Reals, mass: Reals, variance: float) -> Reals:
    """Return theta with prior·variance·theta = counts − mass·exp(theta), cell by cell."""
    prior, theta = max(_PRIOR * variance, 0.5), np.zeros_like(mass)
    for _ in range(_NEWTON):
        expected = mass * np.exp(theta)
        step = (prior * theta + expected - counts) / (prior + expected)
        theta = np.clip(theta - np.clip(step, -1, 1), -_LIMIT, _LIMIT)
        if np.abs(step).max() < _CLOSE:
            break
    return theta
