"""The compiled loop of isotonic regression."""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.types import Reals


@compiled()
def pool_adjacent_violators(values: Reals, weights: Reals) -> Reals:
    """Weighted isotonic regression in one pass; an infinite weight keeps its value."""
    level, mass = np.empty_like(values), np.empty_like(values)
    count = np.empty(len(values), np.int64)
    last = -1
    for j in range(len(values)):
        value, weight, members = values[j], weights[j], 1
        while last >= 0 and level[last] > value:
            total = mass[last] + weight
            if np.isinf(total):
                value = level[last] if np.isinf(mass[last]) else value
            else:
                value = (level[last] * mass[last] + value * weight) / total
            weight, members = total, members + count[last]
            last -= 1
        last += 1
        level[last], mass[last], count[last] = value, weight, members
    return np.repeat(level[: last + 1], count[: last + 1])
