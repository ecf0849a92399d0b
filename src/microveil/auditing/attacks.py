"""Tell two tables apart by what the mechanism publishes of them, and how surely that is so."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from microveil.auditing.base import Published
from microveil.auditing.targets import Neighbour, Targets
from microveil.core.grid import Reals
from microveil.core.noise import WordSource

CONFIDENCE = 0.95

_THRESHOLDS = 50


class Attack:
    """Samples of the statistics from both tables, for some targets and one neighbour.

    Of targets and neighbour it keeps what can tell the tables apart.
    """

    def __init__(self, targets: Targets, neighbour: Neighbour) -> None:
        pairs = zip(targets, neighbour.summaries, strict=True)
        watched = [target.watching(summary) for target, summary in pairs]
        self.targets = [target for target, _ in watched]
        self.summaries = [summary for _, summary in watched]
        self.loss = neighbour.loss
        self.here: list[Reals] = []
        self.there: list[Reals] = []

    def sample(self, published_here: Sequence[Published], source: WordSource) -> None:
        """Add one batch of runs; those on the table as it is may be shared between attacks."""
        totals = np.zeros((2, 4, len(published_here[0])))
        for target, summary, seen in zip(self.targets, self.summaries, published_here, strict=True):
            other = target.run(summary, len(seen), source)
            totals += np.stack([target.statistics(summary, rows) for rows in (seen, other)])
        self.here.append(totals[0])
        self.there.append(totals[1])


def lower_bound(attacks: Sequence[Attack]) -> float:
    """Bound the loss from below with 95% confidence by the most telling of some attacks.

    Neighbour, statistic, threshold and direction are chosen on one half of the runs; the bound
    comes from the other half alone, by Clopper and Pearson's intervals for the two probabilities.
    """
    best, event = 0.0, None
    for attack in attacks:
        here, there = (np.concatenate(s, axis=1) for s in (attack.here, attack.there))
        half = here.shape[1] // 2
        for one, two in zip(here, there, strict=True):
            for first, second in ((one, two), (-one, -two), (two, one), (-two, -one)):
                bound, threshold = _choose(first[:half], second[:half])
                if bound > best:
                    best, event = bound, (first[half:], second[half:], threshold)
    if event is None:
        return 0.0
    likely, unlikely = (np.count_nonzero(s >= event[2], keepdims=True) for s in event[:2])
    return max(0.0, float(_clopper_pearson(likely, unlikely, len(event[0]))[0]))


def _choose(first: Reals, second: Reals) -> tuple[float, float]:
    """Return the best bound over thresholds of the event «statistic ≥ threshold»."""
    pooled = np.concatenate([first, second])
    thresholds = np.unique(np.quantile(pooled, np.linspace(0, 1, _THRESHOLDS), method="higher"))
    counts = [
        len(sample) - np.searchsorted(np.sort(sample), thresholds) for sample in (first, second)
    ]
    bounds = _clopper_pearson(counts[0], counts[1], len(first))
    best = int(np.argmax(bounds))
    return float(bounds[best]), float(thresholds[best])


def _clopper_pearson(
    likely: NDArray[np.integer], unlikely: NDArray[np.integer], runs: int
) -> Reals:
    """Lower bounds of ln(p/q), each side at half the remaining probability."""
    from scipy.stats import beta

    tail = (1 - CONFIDENCE) / 2
    with np.errstate(divide="ignore"):
        p = np.where(likely > 0, beta.ppf(tail, np.maximum(likely, 1), runs - likely + 1), 0.0)
        q = np.where(
            unlikely < runs, beta.ppf(1 - tail, unlikely + 1, np.maximum(runs - unlikely, 1)), 1.0
        )
        bounds: Reals = np.log(p) - np.log(q)
    return bounds
