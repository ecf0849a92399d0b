"""The compiled loops of swaps between joint clusters, imported only when they are run."""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers, Reals

LEAST_GAIN = 1e-9
"""A swap that lowers the squares by less is not made: rounding could make it again and again."""

_ENOUGH = 200  # a pass that moves fewer than one in so many records is the last

_compiled = compiled(fastmath={"nnan", "nsz", "contract", "reassoc"})


@_compiled
def _centre(points, start, centre):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Compute the mean of each cluster, afresh, so that rounding errors do not add up."""
    for cluster in range(len(centre)):
        centre[cluster] = 0.0
        first, end = start[cluster], start[cluster + 1]
        for row in range(first, end):
            for a in range(points.shape[1]):
                centre[cluster, a] += points[row, a] / (end - first)


@_compiled
def _nearest(centre, near):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """List the clusters whose centres are nearest to that of each, the nearest first."""
    clusters, attributes = centre.shape
    columns = np.ascontiguousarray(centre.T)
    found, away, square = np.empty((clusters, near), np.int64), np.empty(near), np.empty(clusters)
    for one in range(clusters):
        square[:] = 0.0
        for a in range(attributes):
            column, own = columns[a], centre[one, a]
            for other in range(clusters):
                apart = column[other] - own
                square[other] += apart * apart
        square[one] = np.inf
        count = 0
        for other in range(clusters):
            if count < near:
                at = count
                count += 1
            elif square[other] < away[near - 1]:
                at = near - 1
            else:
                continue
            while at > 0 and away[at - 1] > square[other]:
                away[at], found[one, at] = away[at - 1], found[one, at - 1]
                at -= 1
            away[at], found[one, at] = square[other], other
    return found


@_compiled
def _along(points, first, count, centre, step, along, reach):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """How far each record of a cluster is from its centre: in the direction of a step, and at all.

    Returns the largest of both.
    """
    furthest, longest = -np.inf, 0.0
    for i in range(count):
        dot = square = 0.0
        for a in range(len(step)):
            away = points[first + i, a] - centre[a]
            dot += step[a] * away
            square += away * away
        along[i], reach[i] = dot, np.sqrt(square)
        furthest, longest = max(furthest, dot), max(longest, reach[i])
    return furthest, longest


@_compiled
def _best_swap(points, start, centre, one, other, room):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the rows of two clusters whose exchange lowers the squares most; −1 if none does.

    If x of A and y of B change places, the squares fall by 2(c_A − c_B)·(y − x) + |y − x|²(1/|A| +
    1/|B|). The second term is computed only where the first leaves a chance: |y − x| is at most
    the way from x to c_A, to c_B, and to y.
    """
    step, along, reach, along_too, reach_too = room
    first, count = start[one], start[one + 1] - start[one]
    first_too, count_too = start[other], start[other + 1] - start[other]
    apart = 0.0
    for a in range(len(step)):
        step[a] = centre[one, a] - centre[other, a]
        apart += step[a] * step[a]
    share, way = 1.0 / count + 1.0 / count_too, np.sqrt(apart)
    _along(points, first, count, centre[one], step, along, reach)
    most, longest = _along(points, first_too, count_too, centre[other], step, along_too, reach_too)
    best, x, y = LEAST_GAIN, -1, -1
    for i in range(count):
        base = -along[i] - apart
        if 2 * (base + most) + share * (reach[i] + way + longest) ** 2 <= best:
            continue
        for j in range(count_too):
            dot = 2 * (base + along_too[j])
            if dot + share * (reach[i] + way + reach_too[j]) ** 2 <= best:
                continue
            square = 0.0
            for a in range(len(step)):
                square += (points[first_too + j, a] - points[first + i, a]) ** 2
            if dot + share * square > best:
                best, x, y = dot + share * square, first + i, first_too + j
    return x, y


@_compiled
def _swap(points, member, start, centre, one, other, x, y):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for a in range(points.shape[1]):
        moved = points[y, a] - points[x, a]
        centre[one, a] += moved / (start[one + 1] - start[one])
        centre[other, a] -= moved / (start[other + 1] - start[other])
        points[x, a], points[y, a] = points[y, a], points[x, a]
    member[x], member[y] = member[y], member[x]


@_compiled
def swap_records(points: Reals, member: Integers, size: Integers, near: int, passes: int) -> None:
    """Let records change places between near clusters while that lowers the squares within.

    Records stand cluster by cluster, of the given sizes; they and their numbers in `member` are
    moved in place. In a pass every cluster makes all good swaps with each of the `near` clusters
    nearest to it.
    """
    clusters, attributes, widest = len(size), points.shape[1], size.max()
    start = np.zeros(clusters + 1, np.int64)
    start[1:] = np.cumsum(size)
    centre = np.empty((clusters, attributes))
    room = (
        np.empty(attributes), np.empty(widest), np.empty(widest), np.empty(widest),
        np.empty(widest),
    )  # fmt: skip
    for _ in range(passes):
        _centre(points, start, centre)
        around = _nearest(centre, min(near, clusters - 1))
        moved = 0
        for one in range(clusters):
            for other in around[one]:
                if other < one and np.any(around[other] == one):
                    continue  # the pair had its turn
                x, y = _best_swap(points, start, centre, one, other, room)
                while x >= 0:
                    _swap(points, member, start, centre, one, other, x, y)
                    moved += 1
                    x, y = _best_swap(points, start, centre, one, other, room)
        if moved * _ENOUGH < len(points):
            return
