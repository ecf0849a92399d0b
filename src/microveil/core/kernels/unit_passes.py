"""The compiled loops over ranked values of units, which may have several in one cluster."""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.core.kernels.cuts import last_to_first
from microveil.types import Integers, Reals


@compiled()
def cut_by_units(unit: Integers, least: int) -> Integers:
    """Cut ranked values as soon as so many different units are together; return sizes.

    What is left at the end and has fewer joins the last cluster.
    """
    seen_in, sizes = np.full(unit.max() + 1, -1, np.int64), np.zeros(len(unit), np.int64)
    cluster = together = 0
    for one in unit:
        if together >= least:
            cluster, together = cluster + 1, 0
        if seen_in[one] != cluster:
            seen_in[one] = cluster
            together += 1
        sizes[cluster] += 1
    if together < least and cluster:
        sizes[cluster - 1] += sizes[cluster]
        cluster -= 1
    return sizes[: cluster + 1].copy()


@compiled()
def cheapest_unit_cuts(
    ranked: Integers,
    unit: Integers,
    least: int,
    cap: int,
    trim: float,
    floors: Integers,
    epsilon: float,
    ceiling: float,
    inner: float,
) -> Integers:
    """Cut into clusters of `least` to `cap` units of little expected squared error; return sizes.

    An error is that of the clamped mean, and of noise as if every unit had one value: this is what
    the choice goes by, not what noise is calibrated to, and close to what it comes out as. Noise is
    cut off at `ceiling`; without any if ε is infinite, and means are then plain ones. The noise of
    all clusters but the first and the last counts for `inner` of that, a share. `floors` are those
    of `noise_floors`; empty if there are none.
    """
    n = len(ranked)
    away = (ranked - ranked[0]).astype(np.float64)
    sums = np.zeros(n + 1)
    sums[1:] = np.cumsum(away)
    following, last_seen = np.empty(n, np.int64), np.full(unit.max() + 1, n, np.int64)
    for i in range(n - 1, -1, -1):
        following[i] = last_seen[unit[i]]
        last_seen[unit[i]] = i
    lowest, sizes = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    lowest[0] = 0.0
    for end in range(1, n + 1):
        total = squares = 0.0
        together, top = 0, away[end - 1]
        floor = lowest[max(0, end - 4 * cap) : end].min()
        for start in range(end - 1, -1, -1):
            distance = away[start] - top
            total, squares = total + distance, squares + distance * distance
            together += following[start] >= end
            size = end - start
            if together > cap:
                break
            if together < least:
                continue
            if floor + squares - total * total / size > lowest[end]:
                break  # squares about the mean only grow with the cluster
            cost = lowest[start]  # infinite where no clusters end
            if np.isinf(epsilon):
                cost += squares - total * total / size
            else:
                t = clamped_units(together, trim)
                own, kept = away[start:end], sums[end - t] - sums[start + t]
                share = 1.0 if start == 0 or end == n else inner
                floor = float(floors[start + size // 2]) if len(floors) else 0.0
                cost += _error(own, kept, total, squares, t, floor, epsilon, ceiling, share)
            if cost < lowest[end]:
                lowest[end], sizes[end] = cost, size
    if not sizes[n]:
        return np.array([n])
    return last_to_first(sizes)


@compiled()
def _error(
    values: Reals,
    kept: float,
    total: float,
    squares: float,
    t: int,
    floor: float,
    epsilon: float,
    ceiling: float,
    share: float,
) -> float:
    """Return squares about the clamped mean plus those of noise, of which a share counts.

    `kept` is the sum of values that are not clamped; `total` and `squares` are those of all
    distances from the last one. Where values agree noise reaches as far as `floor`.
    """
    size = len(values)
    low, high = values[t], values[size - 1 - t]
    above, below = values[size - t], values[t - 1]
    centroid = (t * (low + high) + kept) / size - values[size - 1]
    up = t * (values[t + 1] - low + above - high) + above - low
    down = t * (high - values[size - 2 - t] + low - below) + high - below
    reach = max(up, down) / size
    noise = _cut_off_noise((reach if reach > 0 else floor) / epsilon, ceiling)
    within: float = squares - 2 * centroid * total + size * centroid * centroid
    return within + share * size * noise


@compiled()
def clamped_units(units: int, trim: float) -> int:
    """Return how many units' values are clamped at each end: a share of them, one or more."""
    return max(1, min(int(trim * units), (units - 1) // 2))


@compiled()
def _cut_off_noise(scale: float, ceiling: float) -> float:
    if scale <= 0:
        return 0.0
    ratio, noise = ceiling / scale, 2 * scale * scale
    if ratio < 40:
        noise -= np.exp(-ratio) * (2 * scale * scale + 2 * scale * ceiling)
    return noise


@compiled()
def unit_moves(
    ranked: Integers, unit: Integers, sizes: Integers, trim: float
) -> tuple[Integers, Integers, Integers, Integers, Integers, Integers, Integers]:
    """Clamp the values of every cluster, and tell how far each of its units can move their sum.

    Returns of each cluster how many units are clamped at each end and the sum of clamped values as
    distances from its smallest; and of each unit in each cluster: the cluster, the unit, its
    number of values there, and how far it can move this sum up and down.
    """
    n, clusters = len(ranked), len(sizes)
    clamped, totals = np.empty(clusters, np.int64), np.empty(clusters, np.int64)
    pair_cluster, pair_unit = np.empty(n, np.int64), np.empty(n, np.int64)
    pair_records = np.zeros(n, np.int64)
    up, down = np.zeros(n, np.int64), np.zeros(n, np.int64)
    local = np.full(unit.max() + 1, -1, np.int64)
    first = pair = 0
    for cluster in range(clusters):
        size = sizes[cluster]
        values = ranked[first : first + size] - ranked[first]
        owners = unit[first : first + size]
        minima, maxima = np.empty(size, np.int64), np.empty(size, np.int64)
        from_top = np.full(size, -1, np.int64)
        together = 0
        for i in range(size):  # values ascend: units come in the order of their minima
            one = owners[i]
            if local[one] < 0:
                local[one], minima[together] = together, values[i]
                pair_cluster[pair + together], pair_unit[pair + together] = cluster, one
                together += 1
            pair_records[pair + local[one]] += 1
        found = 0
        for i in range(size - 1, -1, -1):
            own = local[owners[i]]
            if from_top[own] < 0:
                from_top[own], maxima[found] = found, values[i]
                found += 1
        t = clamped_units(together, trim)
        sums = np.zeros(size + 1, np.int64)
        sums[1:] = np.cumsum(values)
        total = _clamped_sum(values, sums, minima[t], maxima[t])
        rising, falling = np.empty((2, 2), np.int64), np.empty((2, 2), np.int64)
        for a in range(2):
            for b in range(2):
                rising[a, b] = _clamped_sum(values, sums, minima[t + a], maxima[t - 1 + b])
                falling[a, b] = _clamped_sum(values, sums, minima[t - 1 + a], maxima[t + b])
        for i in range(size):  # take out each unit's own values, clamped as the others' are
            own = local[owners[i]]
            low, high = minima[t + (own <= t)], maxima[t - 1 + (from_top[own] < t)]
            up[pair + own] += high - min(max(values[i], low), high)
            low, high = minima[t - 1 + (own < t)], maxima[t + (from_top[own] <= t)]
            down[pair + own] += min(max(values[i], low), high) - low
        for own in range(together):
            risen = rising[np.int64(own <= t), np.int64(from_top[own] < t)]
            fallen = falling[np.int64(own < t), np.int64(from_top[own] <= t)]
            up[pair + own] += risen - total
            down[pair + own] += total - fallen
            local[pair_unit[pair + own]] = -1
        clamped[cluster], totals[cluster] = t, total
        first, pair = first + size, pair + together
    return (
        clamped,
        totals,
        pair_cluster[:pair].copy(),
        pair_unit[:pair].copy(),
        pair_records[:pair].copy(),
        up[:pair].copy(),
        down[:pair].copy(),
    )


@compiled()
def _clamped_sum(values: Integers, sums: Integers, low: int, high: int) -> int:
    """Add up ascending values, clamped to [low, high]; `sums` are those of the first ones."""
    before, within = np.searchsorted(values, low), np.searchsorted(values, high, side="right")
    total: int = before * low + sums[within] - sums[before] + (len(values) - within) * high
    return total
