"""Small statistics that several judges share."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from microveil.lab.paper.claims.claim import Case
from microveil.lab.paper.curves import Curves
from microveil.lab.paper.experiments import PAPER_EPSILONS
from microveil.types import Reals

Statistic = Callable[[str, float], tuple[str, float]]
"""From a data set and ε to a figure and how far the criterion is met there."""


def cases_of(curves: Curves, statistic: Statistic) -> list[Case]:
    """Make a case of every data set and ε."""
    return [
        Case(dataset, *statistic(dataset, epsilon), epsilon)
        for dataset in curves.datasets
        for epsilon in PAPER_EPSILONS
    ]


def share(met: ArrayLike) -> float:
    """Share of True in an array, or mean of what is met in part."""
    return float(np.mean(np.asarray(met, dtype=np.float64)))


def rank_correlation(x: Sequence[float] | Reals, y: Reals) -> float:
    """Spearman's correlation of sequences without ties; 0 if there is but one value."""
    if len(x) < 2:
        return 0.0
    first, second = (np.argsort(np.argsort(values)) for values in (x, y))
    return float(np.corrcoef(first, second)[0, 1])


def alpha_ratio(curves: Curves, dataset: str, method: str, epsilon: float) -> Reals:
    """Mean SSE for the wider domains as a multiple of that for the narrower, at every k."""
    narrow, wide = curves.sse(dataset, method, epsilon)
    ratio: Reals = wide / narrow
    return ratio
