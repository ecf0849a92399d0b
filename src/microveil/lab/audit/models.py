"""What a table should publish: the distribution of every cluster's masked value.

The audit draws from it with a generator and arithmetic of its own, so that what `core.noise` does
wrong shows as a difference.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import CategorySettings, NumericSettings
from microveil.core.categories import leaders
from microveil.core.isotonic import isotonic, penalised_isotonic
from microveil.core.mask import publish
from microveil.core.noise import CUT_OFF
from microveil.types import Integers, Reals

Published = NDArray[Any]
"""Numbers, or codes of categories."""

CERTAIN = 1_000.0
"""A logarithm beyond any that a run could tell from infinity."""

_FAR = 2.0  # in scales: Laplace noise is beyond with probability exp(−2)


class Model(Protocol):
    """The distribution of what the clusters of an attribute publish, each by itself."""

    def draw(self, runs: int, clusters: Integers, random: np.random.Generator) -> Published:
        """Draw what some clusters publish; one row per run."""

    def log_likelihood(self, published: Published, clusters: Integers) -> Reals:
        """Logarithm of the probability of each published value."""

    def alike(self, clusters: Integers) -> bool:
        """Whether these clusters all publish alike."""

    def divergence(self, other: Any) -> Reals:  # noqa: ANN401 - a model of the same kind
        """How well each cluster tells two tables apart: Kullback and Leibler's, both ways."""

    def statistics(self, published: Published, clusters: Integers) -> dict[str, Reals]:
        """Compute per run what noise in these clusters gives away."""


@dataclass(frozen=True, eq=False)
class NumericModel:
    """Centroids with discrete Laplace noise, in grid steps, and the range of the data.

    `single_precision` columns publish what a float of 32 bits can hold.
    """

    settings: NumericSettings
    centroids: Integers
    scales: Integers
    observed: tuple[float, float]
    single_precision: bool

    def draw(self, runs: int, clusters: Integers, random: np.random.Generator) -> Published:
        """Draw what some clusters publish; one row per run.

        The whole part of an exponential variable of mean t is geometric, and the difference of two
        of these is discrete Laplace of scale t.
        """
        if self.settings.post == "none":
            return self._publish(self._mask(clusters, runs, random))
        every = np.arange(len(self.scales))
        masked = (self._mask(every, 1, random)[0] for _ in range(runs))
        return self._publish(np.stack([self._regress(values)[clusters] for values in masked]))

    def _mask(self, clusters: Integers, runs: int, random: np.random.Generator) -> Reals:
        scales = self.scales[clusters].astype(np.float64)
        up, down = (np.floor(random.exponential(scales, (runs, len(clusters)))) for _ in range(2))
        units = np.clip(self.centroids[clusters] + (up - down), -CUT_OFF, CUT_OFF)
        return self.settings.grid.to_values(units)

    def _regress(self, values: Reals) -> Reals:
        settings = self.settings
        regression = isotonic if settings.post == "isotonic" else penalised_isotonic
        widths = settings.grid.to_widths(self.scales)
        return regression(values, widths, settings.published_lower, settings.published_upper)

    def _publish(self, values: Reals) -> Reals:
        published = publish(values, self.settings)
        return published.astype(np.float32).astype(float) if self.single_precision else published

    def log_likelihood(self, published: Published, clusters: Integers) -> Reals:
        """Logarithm of the probability of each published value, without post-processing."""
        centre, scale = self._in_values(clusters)
        half, settings = self._width / 2, self.settings
        low = np.where(published <= settings.published_lower, -np.inf, published - half)
        high = np.where(published >= settings.published_upper, np.inf, published + half)
        with np.errstate(divide="ignore", invalid="ignore"):
            return _log_mass((low - centre) / scale, (high - centre) / scale)

    def alike(self, clusters: Integers) -> bool:
        """Whether these clusters all have one centroid and one scale."""
        return all(len(np.unique(of[clusters])) < 2 for of in (self.centroids, self.scales))

    def divergence(self, other: "NumericModel") -> Reals:
        """How well each cluster tells two tables apart: Kullback and Leibler's, both ways."""
        every = np.arange(len(self.scales))
        (here, b), (there, c) = self._in_values(every), other._in_values(every)
        b, c, moved = np.maximum(b, self._width / 4), np.maximum(c, self._width / 4), here - there
        ways = (
            np.log(second / first) - 1
            + (first * np.exp(-np.abs(moved) / first) + np.abs(moved)) / second
            for first, second in ((b, c), (c, b))
        )  # fmt: skip
        both: Reals = np.minimum(sum(ways), CERTAIN)
        return both

    def statistics(self, published: Published, clusters: Integers) -> dict[str, Reals]:
        """Compute per run what noise in these clusters gives away."""
        centre, scale = self._in_values(clusters)
        noisy = scale > 0
        smallest, largest = self.observed
        found = {"outside": np.sum((published < smallest) | (published > largest), axis=1)}
        if noisy.any():
            seen, centre, scale = published[:, noisy], centre[noisy], scale[noisy]
            away = (seen - centre) / scale
            found |= {
                "size": np.abs(away).mean(axis=1),
                "tail": np.mean(np.abs(away) > _FAR, axis=1),
                "sign": np.abs(np.sign(away).mean(axis=1)),
                "exact": np.sum(seen == self._publish(centre), axis=1),
                "first": away[:, 0],
            }
        return {name: values.astype(np.float64) for name, values in found.items()}

    def _in_values(self, clusters: Integers) -> tuple[Reals, Reals]:
        grid = self.settings.grid
        return grid.to_values(self.centroids[clusters]), grid.to_widths(self.scales[clusters])

    @property
    def _width(self) -> float:
        """The distance of published values next to each other."""
        if self.settings.kind == "integer":
            return self.settings.quantum
        decimals = self.settings.decimals
        return self.settings.grid.step if decimals is None else 10.0**-decimals


@dataclass(frozen=True, eq=False)
class CategoryModel:
    """Probabilities of every category, as logarithms, one row per cluster."""

    settings: CategorySettings
    logarithms: Reals
    scores: Integers
    as_is: NDArray[np.bool_]

    def draw(self, runs: int, clusters: Integers, random: np.random.Generator) -> Published:
        """Draw what some clusters publish; one row per run."""
        below = np.cumsum(np.exp(self.logarithms[clusters, :-1]), axis=1)
        uniform = random.random((runs, len(clusters), 1))
        return np.asarray(np.sum(uniform >= below, axis=2))

    def log_likelihood(self, published: Published, clusters: Integers) -> Reals:
        """Logarithm of the probability of each published category."""
        return np.maximum(self.logarithms[clusters, published], -CERTAIN)

    def alike(self, clusters: Integers) -> bool:
        """Whether these clusters all choose with the same probabilities."""
        return len(np.unique(self.logarithms[clusters], axis=0)) < 2

    def divergence(self, other: "CategoryModel") -> Reals:
        """How well each cluster tells two tables apart: Kullback and Leibler's, both ways."""
        here, there = (np.maximum(model.logarithms, -CERTAIN) for model in (self, other))
        both: Reals = np.sum((np.exp(here) - np.exp(there)) * (here - there), axis=1)
        return both

    def statistics(self, published: Published, clusters: Integers) -> dict[str, Reals]:
        """Compute per run what the choices in these clusters give away."""
        noisy = ~self.as_is[clusters]
        if not noisy.any():
            return {}
        leads = published[:, noisy] == leaders(self.scores[clusters[noisy]])
        return {"size": leads.mean(axis=1), "first": leads[:, 0].astype(np.float64)}


def fingerprints(published: Published) -> NDArray[np.uint64]:
    """Return a number per run that only the same published values have, in any order."""
    bits = (published + 0.0).view(np.uint64)  # adding turns −0 into 0
    for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53), (32, 1)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    total: NDArray[np.uint64] = bits.sum(axis=1, dtype=np.uint64)
    return total


def _log_mass(low: Reals, high: Reals) -> Reals:
    """Logarithm of the probability that Laplace noise of scale 1 lies between two ends."""
    above = low + high > 0
    low, high = np.where(above, -high, low), np.where(above, -low, high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        beside = np.log(0.5) + high + np.log(-np.expm1(low - high))
        around = np.log(-0.5 * (np.expm1(low) + np.expm1(-high)))
    mass = np.where(high <= 0, beside, around)
    likely: Reals = np.maximum(np.nan_to_num(mass, nan=-CERTAIN, neginf=-CERTAIN), -CERTAIN)
    return likely
