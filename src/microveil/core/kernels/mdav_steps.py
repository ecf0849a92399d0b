"""MDAV's compiled loops, imported only when they are run.

Remaining records lie together at the front of every column; a record that is taken swaps places
with the last remaining one. Distances add up attribute by attribute, as one would by hand, so that
what ties ties here as well: the two liberties given to the compiler (no NaN, no sign of zero) let
it look for an extreme in several lanes at once and do not touch arithmetic.
"""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers, Reals

CHUNK = 512  # records whose distances stay in the fastest cache while attributes are added

SAMPLE, TURNS = 20_000, 50  # records and rounds of the power method: any good direction will do

_compiled = compiled(fastmath={"nnan", "nsz"})


@_compiled
def _measure(columns, count, point, distance):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Squared distances of the remaining records from a point."""
    for start in range(0, count, CHUNK):
        out = distance[start : min(start + CHUNK, count)]
        out[:] = 0.0
        for a in range(len(columns)):
            column, centre = columns[a, start : start + len(out)], point[a]
            for i in range(len(out)):
                away = column[i] - centre
                out[i] += away * away


@_compiled
def _farthest(distance, record, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Place of the largest distance; of several, that of the first record."""
    best = 0
    for start in range(0, count, CHUNK):
        end = min(start + CHUNK, count)
        largest = distance[start]
        for i in range(start, end):
            largest = max(largest, distance[i])
        if largest < distance[best]:
            continue
        for i in range(start, end):
            if distance[i] > distance[best] or (
                distance[i] == distance[best] and record[i] < record[best]
            ):
                best = i
    return best


@_compiled
def _is_nearer(i, j, distance, record):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return distance[i] < distance[j] or (distance[i] == distance[j] and record[i] < record[j])


@_compiled
def _sink(heap, at, distance, record):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Let a place sink in a heap that has the farthest on top."""
    while 2 * at + 1 < len(heap):
        child = 2 * at + 1
        if child + 1 < len(heap) and _is_nearer(heap[child], heap[child + 1], distance, record):
            child += 1
        if not _is_nearer(heap[at], heap[child], distance, record):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@_compiled
def _nearest(distance, record, count, heap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Fill the heap with the places of the smallest distances; of equal ones, the first records."""
    wanted = len(heap)
    heap[:] = np.arange(wanted)
    for at in range(wanted // 2 - 1, -1, -1):
        _sink(heap, at, distance, record)
    for start in range(wanted, count, CHUNK):
        end = min(start + CHUNK, count)
        smallest = distance[start]
        for i in range(start, end):
            smallest = min(smallest, distance[i])
        if smallest > distance[heap[0]]:
            continue
        for i in range(start, end):
            if _is_nearer(i, heap[0], distance, record):
                heap[0] = i
                _sink(heap, 0, distance, record)


@_compiled
def _take(columns, record, distance, place, count, total):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Move a record behind the remaining ones and out of their total."""
    last = count - 1
    record[place], record[last] = record[last], record[place]
    distance[place] = distance[last]
    for a in range(len(columns)):
        total[a] -= columns[a, place]
        columns[a, place], columns[a, last] = columns[a, last], columns[a, place]
    return last


@_compiled
def _take_cluster(columns, record, distance, place, count, total, heap):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Move a record and those nearest to it behind the remaining ones."""
    count = _take(columns, record, distance, place, count, total)
    _measure(columns, count, columns[:, count].copy(), distance)
    if len(heap) > 0:
        _nearest(distance, record, count, heap)
        heap.sort()
    for i in range(len(heap) - 1, -1, -1):  # from the back, so that no place moves before its turn
        count = _take(columns, record, distance, heap[i], count, total)
    return count


@_compiled
def label_by_mdav(columns: Reals, k: int) -> Integers:
    """Label the records, k or more of them, by cluster; the columns are used up.

    The total of the remaining records is kept by subtraction and added up afresh each time their
    number has halved, so that rounding errors do not outgrow it.
    """
    attributes, count = columns.shape
    record, distance = np.arange(count), np.empty(count)
    total, added_up = np.empty(attributes), 2 * count
    heap = np.empty(k - 1, np.int64)
    label, clusters = np.empty(count, np.int64), 0
    while count >= 2 * k:
        if 2 * count <= added_up:
            for a in range(attributes):
                total[a] = columns[a, :count].sum()
            added_up = count
        _measure(columns, count, total / count, distance)
        for _ in range(2 if count >= 3 * k else 1):
            # The second time distances are those from the first cluster's record.
            place = _farthest(distance, record, count)
            left = _take_cluster(columns, record, distance, place, count, total, heap)
            label[record[left:count]] = clusters
            count, clusters = left, clusters + 1
    label[record[:count]] = clusters
    return label


@_compiled
def _scatter(points, records):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the mean of some records, and the sums of products of distances from it."""
    attributes = points.shape[1]
    mean, scatter = np.zeros(attributes), np.zeros((attributes, attributes))
    for record in records:
        for a in range(attributes):
            mean[a] += points[record, a] / len(records)
    away = np.empty(attributes)
    for record in records:
        for a in range(attributes):
            away[a] = points[record, a] - mean[a]
            for b in range(a + 1):
                scatter[a, b] += away[a] * away[b]
    for a in range(attributes):
        scatter[:a, a] = scatter[a, :a]
    return mean, scatter


@_compiled
def project(points: Reals, records: Integers) -> Reals:
    """Place records along the direction in which a sample of them varies most.

    The power method starts from the attribute with the largest variance, the first of several.
    """
    mean, scatter = _scatter(points, records[:: len(records) // SAMPLE + 1])
    direction = np.zeros(len(mean))
    direction[np.argmax(np.diag(scatter))] = 1.0
    for _ in range(TURNS):
        turned = np.zeros(len(mean))
        for a in range(len(mean)):
            for b in range(len(mean)):
                turned[a] += scatter[a, b] * direction[b]
        length = np.sqrt(np.sum(turned * turned))
        if length == 0:
            break
        direction = turned / length
    along = np.zeros(len(records))
    for i in range(len(records)):
        for a in range(len(mean)):
            along[i] += (points[records[i], a] - mean[a]) * direction[a]
    return along


@_compiled
def part(records: Integers, along: Reals, lower: int, cut: float) -> tuple[Integers, Integers]:
    """Part records into so many below a cut and the others; of those on it, the first go below."""
    on_it = lower - np.sum(along < cut)
    below = np.empty(lower, records.dtype)
    above = np.empty(len(records) - lower, records.dtype)
    down = up = 0
    for i in range(len(records)):
        on_it -= along[i] == cut
        if along[i] < cut or (along[i] == cut and on_it >= 0):
            below[down] = records[i]
            down += 1
        else:
            above[up] = records[i]
            up += 1
    return below, above
