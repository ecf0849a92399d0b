"""Tell two tables apart by what the mechanism publishes of them, and how surely that is so."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from microveil.audit.targets import Neighbour, Target
from microveil.clusters import ClusterSummary
from microveil.grid import Integers, Reals
from microveil.masking import NumericMasking
from microveil.mechanism import publish
from microveil.noise import WordSource

Mechanism = Callable[[ClusterSummary, Integers, NumericMasking, WordSource], Reals]
CONFIDENCE = 0.95

_THRESHOLDS = 50


def run(
    mechanism: Mechanism, target: Target, summary: ClusterSummary, runs: int, source: WordSource
) -> Reals:
    """Run the mechanism many times; one row of published values per run.

    The runs are one long table of clusters to the mechanism. Isotonic regression would mix them
    and is left out: post-processing can only hide, and it is the masking that is attacked.
    """
    repeated = ClusterSummary(*(np.tile(getattr(summary, f.name), runs) for f in fields(summary)))
    plain = replace(target.masking, post="none")
    published = mechanism(repeated, np.tile(target.scales, runs), plain, source)
    return published.reshape(runs, -1)


def statistics(target: Target, there: ClusterSummary, published: Reals) -> Reals:
    """Compute four numbers per run, each large where this table is likelier than the other.

    The likelihood ratio is the best there is against honest Laplace noise. The others look for
    noise that is missing somewhere, or the same in two clusters, raw or in units of its scale.
    """
    grid, method = target.masking.grid, target.masking.method
    here_values = grid.to_values(method.centroid(target.summary, 0))
    there_values = grid.to_values(method.centroid(there, 0))
    scales = np.maximum(target.scales, 1) * grid.step
    moved = np.flatnonzero(here_values != there_values)
    if not len(moved):
        return np.zeros((4, len(published)))
    seen, here, away = published[:, moved], here_values[moved], there_values[moved]
    ratio = np.sum((np.abs(seen - away) - np.abs(seen - here)) / scales[moved], axis=1)
    matches = np.sum(seen == publish(here, target.masking), axis=1) - np.sum(
        seen == publish(away, target.masking), axis=1
    )
    most = int(moved[np.argmax(np.abs(here - away) / scales[moved])])
    beside = most - 1 if most else min(1, len(scales) - 1)
    shared = [
        _apart(published[:, most] / s - published[:, beside] / t, here_values, there_values,
               most, beside, s, t)
        for s, t in ((1.0, 1.0), (scales[most], scales[beside]))
    ]  # fmt: skip
    return np.stack([ratio, matches, *shared])


def _apart(
    seen: Reals, here: Reals, there: Reals, most: int, beside: int, s: float, t: float
) -> Reals:
    expected_here, expected_there = (x[most] / s - x[beside] / t for x in (here, there))
    distance: Reals = np.abs(seen - expected_there) - np.abs(seen - expected_here)
    return distance


@dataclass(eq=False)
class Attack:
    """Samples of the statistics from both tables, for some targets and one neighbour."""

    targets: Sequence[Target]
    neighbour: Neighbour
    here: list[Reals] = field(default_factory=list)
    there: list[Reals] = field(default_factory=list)

    def sample(
        self, published_here: Sequence[Reals], mechanism: Mechanism, source: WordSource
    ) -> None:
        """Add one batch of runs; those on the table as it is are shared between attacks."""
        totals = np.zeros((2, 4, len(published_here[0])))
        for target, summary, seen in zip(
            self.targets, self.neighbour.summaries, published_here, strict=True
        ):
            other = run(mechanism, target, summary, len(seen), source)
            totals += np.stack([statistics(target, summary, rows) for rows in (seen, other)])
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
