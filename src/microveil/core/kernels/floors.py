"""The compiled loop that finds which values too few persons have."""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers


@compiled()
def noise_floors(ranked: Integers, unit: Integers, enough: int, rounding: int) -> Integers:
    """Return of each of ascending values how far its noise must reach if a cluster agrees on it.

    That is to the nearest other value or by `rounding`, whichever is further; 0 where `enough`
    persons have it, or units where `unit` is not empty.
    """
    n = len(ranked)
    floors = np.zeros(n, np.int64)
    seen_at = np.full(unit.max() + 1 if len(unit) else 0, -1, np.int64)
    first = 0
    while first < n:
        end, persons = first, 0
        while end < n and ranked[end] == ranked[first]:
            if len(unit) == 0:
                persons += 1
            elif seen_at[unit[end]] < first:
                seen_at[unit[end]] = first
                persons += 1
            end += 1
        if persons < enough:
            floor = rounding
            if first > 0 and end < n:
                below, above = ranked[first] - ranked[first - 1], ranked[end] - ranked[first]
                floor = max(floor, min(below, above))
            elif first > 0:
                floor = max(floor, ranked[first] - ranked[first - 1])
            elif end < n:
                floor = max(floor, ranked[end] - ranked[first])
            floors[first:end] = floor
        first = end
    return floors
