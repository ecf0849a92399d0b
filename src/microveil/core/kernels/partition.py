"""The compiled loop of partitions of least cost."""

import numba
import numpy as np

from microveil.core.grid import Integers, Reals


@numba.njit(cache=True, nogil=True)
def cheapest_cuts(
    ranked: Integers, k: int, cap: int, pulled_in: bool, ends: Reals, epsilon: float, ceiling: float
) -> Integers:
    """Sizes of consecutive clusters of k to `cap` records that cost least in all.

    A cluster costs the squares of its records about the centroid used, plus its size times the
    expected square of its noise, cut off at `ceiling`; without noise if ε is infinite. Sums run
    from the last record of a cluster, so that they stay small and lose no digits.
    """
    n = len(ranked)
    least = np.full(n + 1, np.inf)
    least[0] = 0.0
    start = np.zeros(n + 1, np.int64)
    for end in range(k, n + 1):
        top = ranked[end - 1]
        total = squares = 0.0
        for first in range(end - 1, max(-1, end - cap - 1), -1):
            away = float(ranked[first] - top)
            total += away
            squares += away * away
            size = end - first
            if size < k or least[first] == np.inf:
                continue
            if pulled_in:
                second, third = float(ranked[first + 1] - top), float(ranked[first + 2] - top)
                last_but_one = float(ranked[end - 2] - top)
                last_but_two = float(ranked[end - 3] - top)
                centroid = (total - away + second + last_but_one) / size
                up = -second + (third - second) - last_but_one
                down = (last_but_one - away) + (last_but_one - last_but_two) + (second - away)
                reach = max(up, down)
            else:
                centroid = total / size
                reach = max(ends[1] - ranked[first], top - ends[0])
            cost = squares - 2 * centroid * total + size * centroid * centroid
            scale = reach / size / epsilon
            if scale > 0:
                ratio, noise = ceiling / scale, 2 * scale * scale
                if ratio < 40:
                    noise -= np.exp(-ratio) * (2 * scale * scale + 2 * scale * ceiling)
                cost += size * noise
            if least[first] + cost < least[end]:
                least[end], start[end] = least[first] + cost, first
    sizes = np.empty(n, np.int64)
    count, end = 0, n
    while end > 0:
        sizes[count] = end - start[end]
        end, count = start[end], count + 1
    return sizes[:count][::-1].copy()
