"""The compiled loops of partitions of least cost.

Clusters that end at neighbouring records are looked at together, size by size, so that the compiler
can do several at once. The two liberties it is given (no NaN, no sign of zero) do not touch
arithmetic: every cluster costs what it would cost by itself.
"""

import numba
import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers, Reals

ENDS = 64  # ends looked at together; their costs stay in the fastest cache
CHECKED = 16  # sizes between two looks at whether any larger cluster can pay
SLACK = 1e-9  # more than all rounding errors of a cost

_compiled = compiled(fastmath={"nnan", "nsz"})
_inlined = numba.njit(nogil=True, inline="always")  # a call for 64 ends costs as much as its loop


@_inlined
def _extend(first, top, total, squares):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add another record to every cluster; sums are those of distances from its last record."""
    for j in range(len(total)):
        away = float(first[j] - top[j])
        total[j] += away
        squares[j] += away * away


@_inlined
def _take_means(low, top, ends, total, kept, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Sum up values for plain means, and tell how far one anywhere in the domain moves them."""
    for j in range(len(total)):
        up, down = ends[1] - low[j], top[j] - ends[0]
        kept[j] = total[j]
        reach[j] = up if up > down else down


@_inlined
def _pull_in(low, high, total, kept, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Sum up values after the paper's pre-processing, and tell how far any value moves them.

    The three smallest records of a cluster are next to each other in `low`, the largest in `high`.
    """
    for j in range(len(total)):
        top = high[j + 2]
        smallest, second = float(low[j] - top), float(low[j + 1] - top)
        third = float(low[j + 2] - top)
        last_but_one, last_but_two = float(high[j + 1] - top), float(high[j] - top)
        up = -second + (third - second) - last_but_one
        down = (last_but_one - smallest) + (last_but_one - last_but_two) + (second - smallest)
        kept[j] = total[j] - smallest + second + last_but_one
        reach[j] = up if up > down else down


@_inlined
def _trim(low, high, outer, inner, kept, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Sum up values without those left out at either end, and tell how far any value moves them.

    The last value left out and the first kept are next to each other in `low`, the last kept and
    the first left out in `high`. `outer` are the sums of the largest values, which are left out,
    and `inner` those of all but the smallest.
    """
    for j in range(len(inner)):
        up, down = float(high[j + 1] - low[j + 1]), float(high[j] - low[j])
        kept[j] = inner[j] - outer[j]
        reach[j] = up if up > down else down


@_inlined
def _raise(floor, averaged, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let noise about values that too few have reach others, as `mask.least_scales` does."""
    for j in range(len(reach)):
        reach[j] = float(floor[j]) * averaged if reach[j] == 0 else reach[j]


@_inlined
def _take(ranked, end, size, settings, sums, totals, kept, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Extend clusters to so many records; return of how many values their centroids are means.

    `kept` are the sums of these, and `totals` those of the largest so many records.
    """
    k, pulled_in, trim, ends, floors = settings[:5]
    low, top = ranked[end - size :], ranked[end - 1 :]
    _extend(low, top, sums[0], sums[1])
    if trim:
        totals[size] = sums[0]
    if size < k:
        return 0
    cut = min(int(trim * size), (size - 1) // 2)  # as in clusters.left_out
    if cut:
        lower, upper = ranked[end - size + cut - 1 :], ranked[end - cut - 1 :]
        _trim(lower, upper, totals[cut], totals[size - cut], kept, reach)
    elif pulled_in:
        _pull_in(low, ranked[end - 3 :], sums[0], kept, reach)
    else:
        _take_means(low, top, ends, sums[0], kept, reach)
    if len(floors):
        _raise(floors[end - size + size // 2 :], size - 2 * cut, reach)
    return size - 2 * cut


@_inlined
def _cost(size, averaged, settings, sums, kept, reach, cost):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add up squares about centroids and, as often as they count, expected squares of the noise."""
    (total, squares), (epsilon, ceiling, inner) = sums, settings[5:]
    times = size * inner
    scale, widest = reach, 0.0  # in its place
    for j in range(len(cost)):
        centroid = kept[j] / averaged
        cost[j] = squares[j] - 2 * centroid * total[j] + size * centroid * centroid
        scale[j] = reach[j] / averaged / epsilon
    for j in range(len(cost)):  # by itself: compilers do not do both at once
        widest = max(widest, scale[j])
    if 41 * widest < ceiling:
        for j in range(len(cost)):
            cost[j] += times * (2 * scale[j] * scale[j])
        return
    for j in range(len(cost)):
        if scale[j] > 0:
            cost[j] += times * _noise(scale[j], ceiling)


@_inlined
def _noise(scale, ceiling):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the expected square of Laplace noise that is cut off, of a scale above 0."""
    ratio, noise = ceiling / scale, 2 * scale * scale
    if ratio < 40:
        noise -= np.exp(-ratio) * (2 * scale * scale + 2 * scale * ceiling)
    return noise


@_inlined
def _count_ends(size, first, last, settings, scale, cost):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Count the noise of the first and the last cluster of all in full."""
    ceiling, inner = settings[6:]
    rest = size * (1 - inner)
    if rest and first and scale[0] > 0:
        cost[0] += rest * _noise(scale[0], ceiling)
    at = len(cost) - 1
    if rest and last and scale[at] > 0 and not (first and at == 0):
        cost[at] += rest * _noise(scale[at], ceiling)


@_inlined
def _may_pay(size, averaged, settings, sums, kept, reach, before, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Whether a cluster may cost less in all than what was found: a bound without divisions."""
    (total, squares), (epsilon, ceiling, inner) = sums, settings[5:]
    part, rate, times = 1 / averaged, 1 / averaged / epsilon, size * inner
    far, cut_off, pays = ceiling * averaged * epsilon / 41, times * ceiling * ceiling, 0
    for j in range(len(before)):
        centroid, scale = kept[j] * part, reach[j] * rate
        within = squares[j] * (1 - SLACK) - (2 * total[j] - size * centroid) * centroid
        noise = times * (2 * scale * scale)
        # Cutting off at R leaves 0.41 of the smaller of 2b² and R² at least, at R = √2·b.
        noise = noise if reach[j] < far else 0.4 * min(noise, cut_off)
        pays += before[j] + within + noise * (1 - SLACK) < least[j] * (1 + 1e-12)
    return pays > 0


@_compiled
def _is_too_large(size, sums, floor, least):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Whether no larger cluster can pay: squares about the mean only grow with it.

    The records before it cost `floor` or more.
    """
    total, squares = sums
    for j in range(len(total)):
        within = squares[j] * (1 - SLACK) - total[j] * total[j] / size
        if floor + within <= least[j] * (1 + 1e-12):
            return False
    return True


@_inlined
def _keep_better(size, before, cost, best, chosen):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Note a size wherever it costs less in all than any smaller one did."""
    for j in range(len(cost)):
        whole = before[j] + cost[j]
        if whole < best[j]:
            best[j], chosen[j] = whole, size


@_compiled
def _choose(near, k, best, chosen, end, least, sizes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Choose for one end after the other between small clusters and the best large one."""
    for j in range(len(best)):
        cheapest, size = np.inf, 0
        for small in range(k, min(len(near), end + j + 1)):
            whole = least[end + j - small] + near[small, j]
            if whole < cheapest:
                cheapest, size = whole, small
        if best[j] < cheapest:
            cheapest, size = best[j], chosen[j]
        least[end + j], sizes[end + j] = cheapest, size


@_compiled
def _choose_among_equals(k, cap, end, beyond, least, sizes):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Choose for ends before which as many records as a cluster may have are all the same.

    Such clusters cost nothing where their ends are pulled in, so what comes before them decides.
    """
    for place in range(end, beyond):
        cheapest, size = np.inf, 0
        for tried in range(k, cap + 1):
            if least[place - tried] < cheapest:
                cheapest, size = least[place - tried], tried
        least[place], sizes[place] = cheapest, size


@_compiled
def cheapest_cuts(
    ranked: Integers,
    k: int,
    cap: int,
    pulled_in: bool,
    trim: float,
    ends: Reals,
    floors: Integers,
    epsilon: float,
    ceiling: float,
    inner: float,
) -> Integers:
    """Sizes of consecutive clusters of k to `cap` records that cost least in all.

    A cluster costs the squares of its records about the centroid used, plus its size times the
    expected square of its noise, cut off at `ceiling`; without noise if ε is infinite. The noise of
    all clusters but the first and the last counts for `inner` of that, a share. Sums run from the
    last record of a cluster, so that they stay small and lose no digits. Of sizes that cost the
    same, the smallest is chosen, from the last cluster to the first. `floors` are those of
    `noise_floors`; empty if there are none.

    Small clusters are tried first, and larger ones only where a bound says that they may pay.
    """
    n, settings = len(ranked), (k, pulled_in, trim, ends, floors, epsilon, ceiling, inner)
    least, sizes = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    least[0] = 0.0
    near, kept, reach = np.empty((ENDS, ENDS)), np.empty(ENDS), np.empty(ENDS)
    totals = np.empty((min(cap, n) + 1 if trim else 0, ENDS))
    for end in range(k, n + 1, ENDS):
        beyond = min(end + ENDS, n + 1)
        alike = pulled_in and end >= cap and ranked[end - cap] == ranked[beyond - 2]
        if alike and not (len(floors) and floors[end - cap]):
            _choose_among_equals(k, cap, end, beyond, least, sizes)
            continue
        count = beyond - end
        total, squares, cost = np.zeros(count), np.zeros(count), np.empty(count)
        best, chosen = np.full(count, np.inf), np.zeros(count, np.int64)
        for size in range(1, min(ENDS, cap + 1, beyond)):
            a = max(0, size - end)  # the first end with so many records before it
            sums = total[a:], squares[a:]
            history, out = totals[:, a:count], near[size, a:count]
            averaged = _take(ranked, end + a, size, settings, sums, history, kept, reach)
            if averaged:
                _cost(size, averaged, settings, sums, kept, reach, out)
                _count_ends(size, size >= end, beyond > n, settings, reach, out)
        _choose(near[: cap + 1], k, best, chosen, end, least, sizes)
        floor = least[max(0, end - cap) : end].min()
        for size in range(ENDS, min(cap + 1, beyond)):
            a = max(0, size - end)
            sums, found = (total[a:], squares[a:]), least[end + a : beyond]
            if size % CHECKED == 0 and _is_too_large(size - 1, sums, floor, found):
                break
            history, out = totals[:, a:count], cost[a:]
            averaged = _take(ranked, end + a, size, settings, sums, history, kept, reach)
            before = least[end + a - size : beyond - size]
            if averaged and _may_pay(size, averaged, settings, sums, kept, reach, before, found):
                _cost(size, averaged, settings, sums, kept, reach, out)
                _count_ends(size, size >= end, beyond > n, settings, reach, out)
                _keep_better(size, before, out, best[a:], chosen[a:])
        if np.any(best < least[end:beyond]):
            _choose(near[: cap + 1], k, best, chosen, end, least, sizes)
    return last_to_first(sizes)


@_compiled
def last_to_first(sizes: Integers) -> Integers:
    """Follow the chosen sizes from the last cluster to the first; return them in order."""
    found = np.empty(len(sizes), np.int64)
    count, end = 0, len(sizes) - 1
    while end > 0:
        found[count] = sizes[end]
        end, count = end - sizes[end], count + 1
    return found[:count][::-1].copy()
