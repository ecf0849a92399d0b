"""Tell two tables apart by what the mechanism publishes of them, and how surely that is so."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.random_words import WordSource
from microveil.lab.audit.models import Published
from microveil.lab.audit.targets import Neighbour, Targets
from microveil.types import Reals

ALL = "all together"

Samples = tuple[Reals, Reals]
"""Statistics of runs on a table and on a neighbour, one row each, one column per run."""

_THRESHOLDS = 50


class Distinguisher:
    """Samples of the statistics from both tables, for some targets and one neighbour.

    Of targets and neighbour it keeps what can tell the tables apart.
    """

    def __init__(self, targets: Targets, neighbour: Neighbour) -> None:
        pairs = zip(targets, neighbour.summaries, strict=True)
        watched = [target.watching(summary) for target, summary in pairs]
        self.targets = [target for target, _ in watched]
        self.summaries = [summary for _, summary in watched]
        self.loss = neighbour.loss
        self._here: list[Reals] = []
        self._there: list[Reals] = []

    def sample(self, published_here: Sequence[Published], source: WordSource) -> None:
        """Add one batch of runs; those on the table as it is may be shared between attacks."""
        totals = np.zeros((2, 4, len(published_here[0])))
        for target, summary, seen in zip(self.targets, self.summaries, published_here, strict=True):
            other = target.run(summary, len(seen), source)
            totals += np.stack([target.statistics(summary, rows) for rows in (seen, other)])
        self._here.append(totals[0])
        self._there.append(totals[1])

    @property
    def samples(self) -> Samples:
        """The statistics so far."""
        return np.concatenate(self._here, axis=1), np.concatenate(self._there, axis=1)


def halves(samples: Samples) -> tuple[Samples, Samples]:
    """Split runs into those an attack is chosen on and those it is tried on."""
    here, there = samples
    half = here.shape[1] // 2
    return (here[:, :half], there[:, :half]), (here[:, half:], there[:, half:])


def lower_bound(attacks: Sequence[tuple[Samples, Samples]], doubt: float) -> float:
    """Bound the loss from below by the most telling of some attacks.

    The bound is wrong with probability `doubt` at most. Neighbour, statistic, threshold and
    direction are chosen on the first samples; the bound comes from the second ones alone, by
    Clopper and Pearson's intervals for the two probabilities.
    """
    best, event = 0.0, None
    for chosen_on, tried_on in attacks:
        for number, (one, two) in enumerate(zip(*chosen_on, strict=True)):
            ways = (tried_on[0][number], tried_on[1][number])
            for sign in (1, -1):
                for first, second, way in ((one, two, ways), (two, one, ways[::-1])):
                    bound, threshold = _choose(sign * first, sign * second, len(way[0]), doubt)
                    if bound > best:
                        best, event = bound, (sign * way[0], sign * way[1], threshold)
    if event is None:
        return 0.0
    likely, unlikely = (np.count_nonzero(s >= event[2], keepdims=True) for s in event[:2])
    return max(0.0, float(_clopper_pearson(likely, unlikely, len(event[0]), doubt)[0]))


def most_provable(runs: int, doubt: float) -> float:
    """Return the bound of an attack that is right in all runs it is tried on."""
    return float(_clopper_pearson(np.array([runs]), np.array([0]), runs, doubt)[0])


def _choose(first: Reals, second: Reals, runs: int, doubt: float) -> tuple[float, float]:
    """Return the best bound to expect from so many runs, and the threshold of its event."""
    pooled = np.concatenate([first, second])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS), method="higher"))
    counts = [
        np.mean(sample >= thresholds[:, np.newaxis], axis=1) * runs for sample in (first, second)
    ]
    bounds = _clopper_pearson(counts[0], counts[1], runs, doubt)
    best = int(np.argmax(bounds))
    return float(bounds[best]), float(thresholds[best])


def _clopper_pearson(
    likely: NDArray[Any], unlikely: NDArray[Any], runs: int, doubt: float
) -> Reals:
    """Lower bounds of ln(p/q), of whose error either side has half."""
    from scipy.stats import beta

    tail = doubt / 2
    with np.errstate(divide="ignore"):
        p = np.where(likely > 0, beta.ppf(tail, likely, runs - likely + 1), 0.0)
        q = np.where(unlikely < runs, beta.ppf(1 - tail, unlikely + 1, runs - unlikely), 1.0)
        bounds: Reals = np.log(p) - np.log(q)
    return bounds
