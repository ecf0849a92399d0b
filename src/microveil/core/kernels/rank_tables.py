"""Compiled loops of rank tables, imported only when they are run.

Rows stand in the order of their joint clusters; `ends` says where each cluster ends. Numbers are
NaN where there is none.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.core.kernels.draws import OUT_OF_WORDS, below
from microveil.core.random_words import Words
from microveil.types import Booleans, Integers, Reals

_SMALL = 48
"""Up to so many rows sorting by insertion is the quickest."""


@compiled()
def _sort(keys, rows, count):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Sort keys and the rows they are of, in place; equal keys keep their order."""
    if count > _SMALL:
        by = np.argsort(keys[:count], kind="mergesort")
        keys[:count] = keys[:count][by]
        rows[:count] = rows[:count][by]
        return
    for i in range(1, count):
        key, row, j = keys[i], rows[i], i
        while j > 0 and keys[j - 1] > key:
            keys[j], rows[j] = keys[j - 1], rows[j - 1]
            j -= 1
        keys[j], rows[j] = key, row


@compiled()
def _block_end(start, count, block):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return where the block of ranks that begins here ends; the last one takes the rest."""
    return count if count - start < 2 * block else start + block


@compiled()
def score_ranks(
    numbers: Reals, ends: Integers, block: int, normal: Reals, scores: NDArray[Any]
) -> tuple[float, float, int]:
    """Give each number the normal score of its rank in its cluster, the mean one where some tie.

    `normal` holds the normal distribution's quantiles. Returns the sums of squares and of products
    with plain scores of what is left of scores after a shuffle within blocks, and the numbers.
    """
    largest, start = 0, 0
    for end in ends:
        largest, start = max(largest, end - start), end
    keys, rows, mine = np.empty(largest), np.empty(largest, np.int64), np.empty(largest)
    squares = products = 0.0
    total = start = 0
    for end in ends:
        count = 0
        for row in range(start, end):
            scores[row] = 0.0
            if not np.isnan(numbers[row]):
                keys[count], rows[count] = numbers[row], row
                count += 1
        _sort(keys, rows, count)
        first = 0
        while first < count:
            last, mean = first, 0.0
            while last < count and keys[last] == keys[first]:
                mine[last] = normal[int((last + 0.625) / (count + 0.25) * len(normal))]
                mean += mine[last]
                last += 1
            for rank in range(first, last):
                scores[rows[rank]] = mean / (last - first)
            first = last
        first = 0
        while first < count:
            last, mean, plain = _block_end(first, count, block), 0.0, 0.0
            for rank in range(first, last):
                mean += scores[rows[rank]]
                plain += mine[rank]
            squares += mean * mean / (last - first)
            products += mean * plain / (last - first)
            first = last
        total, start = total + count, end
    return squares, products, total


@compiled()
def _shuffle(rows, start, end, arrangements, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Shuffle some rows, from one draw among all their arrangements where these can be counted."""
    count = end - start
    if count < len(arrangements):
        draw, at = below(arrangements[count], words, at)
        if draw == OUT_OF_WORDS:
            return OUT_OF_WORDS
        rest = np.uint64(draw)
        for i in range(count - 1):
            left = np.uint64(count - i)
            j = start + i + np.int64(rest % left)
            rest //= left
            rows[start + i], rows[j] = rows[j], rows[start + i]
        return at
    for i in range(start, end - 1):
        draw, at = below(end - i, words, at)
        if draw == OUT_OF_WORDS:
            return OUT_OF_WORDS
        rows[i], rows[i + draw] = rows[i + draw], rows[i]
    return at


@compiled()
def give_by_rank(
    numbers: Reals,
    has_number: Booleans,
    ends: Integers,
    samples: NDArray[np.uint16],
    normal: NDArray[Any],
    loadings: NDArray[Any],
    means: NDArray[Any],
    block: int,
    arrangements: Words,
    giver: NDArray[Any],
    offset: int,
    words: Words,
    first: int,
) -> tuple[int, int]:
    """Give each row the number whose rank a correlated normal sample has there; from a cluster on.

    A row's sample is the sum of its independent ones (`samples`, places in `normal`) times
    `loadings`, and of its mean, if there are `means`. Ranks are shuffled within blocks. Only rows
    that are to have a number take part, if `has_number` is not empty. `arrangements` counts those
    of 0, 1, 2, … things; givers are counted from `offset` on. Returns the next cluster and the
    words used.
    """
    largest, start = 0, 0
    for end in ends:
        largest, start = max(largest, end - start), end
    keys, owners = np.empty(largest), np.empty(largest, np.int64)
    drawn, rows = np.empty(largest, np.float32), np.empty(largest, np.int64)
    used = 0
    for cluster in range(first, len(ends)):
        start = ends[cluster - 1] if cluster else 0
        count = places = 0
        for row in range(start, ends[cluster]):
            if not np.isnan(numbers[row]):
                keys[count], owners[count] = numbers[row], row
                count += 1
            if len(has_number) == 0 or has_number[row]:
                key = means[row] if len(means) else np.float32(0.0)
                for a in range(len(loadings)):
                    key += loadings[a] * normal[samples[row, a]]
                drawn[places], rows[places] = key, row
                places += 1
        _sort(drawn, rows, places)
        _sort(keys, owners, count)
        at, rank = used, 0
        while rank < count and at != OUT_OF_WORDS:
            last = _block_end(rank, count, block)
            at = _shuffle(rows, rank, last, arrangements, words, at)
            rank = last
        if at == OUT_OF_WORDS:
            return cluster, used
        for rank in range(count):
            giver[rows[rank]] = owners[rank] + offset
        used = at
    return len(ends), used


@compiled()
def add_by_state(columns: NDArray[Any], slopes: Reals, ends: Integers, means: NDArray[Any]) -> None:
    """Add what the column of each row's state adds; without one, what others of its cluster get."""
    start = 0
    for end in ends:
        total, count = 0.0, 0
        for row in range(start, end):
            if columns[row] >= 0:
                total += slopes[columns[row]]
                count += 1
        for row in range(start, end):
            if columns[row] >= 0:
                means[row] += slopes[columns[row]]
            elif count:
                means[row] += total / count
        start = end


@compiled()
def match_states(before: Integers, after: Integers, ends: Integers, giver: NDArray[Any]) -> None:
    """Name for each row a record of its cluster that had the state the row has now."""
    start, most = 0, 0
    for end in ends:
        most, start = max(most, end - start), end
    old, new = np.empty(most, np.int64), np.empty(most, np.int64)
    owners, rows = np.empty(most, np.int64), np.empty(most, np.int64)
    start = 0
    for end in ends:
        count = end - start
        for i in range(count):
            old[i], owners[i] = before[start + i], start + i
            new[i], rows[i] = after[start + i], start + i
        _sort(old, owners, count)
        _sort(new, rows, count)
        for i in range(count):
            giver[rows[i]] = owners[i]
        start = end
