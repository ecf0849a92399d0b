"""Compiled loops that put the categories of a joint cluster into its rows, and fit how they go.

Rows stand in the order of their joint clusters; `ends` says where each cluster ends.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.core.kernels.draws import OUT_OF_WORDS, below
from microveil.core.random_words import Words
from microveil.types import Booleans, Integers, Reals

_PLACE = np.uint64(2**21 - 1)
_CHANCE = np.uint64(2**22 - 1)


@compiled()
def _field(weights, state, row, columns, scores):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """How well a category goes with what stands in a row before it."""
    total = 0.0
    for q in range(scores.shape[1]):
        total += weights[state, q] * scores[row, q]
    for p in range(columns.shape[1]):
        if columns[row, p] >= 0:
            total += weights[state, columns[row, p]]
    return total


@compiled()
def _shuffle_rows(rows, count, states, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Shuffle the categories of some rows."""
    for i in range(count - 1):
        draw, at = below(count - i, words, at)
        if draw == OUT_OF_WORDS:
            return OUT_OF_WORDS
        a, b = rows[i], rows[i + draw]
        states[a], states[b] = states[b], states[a]
    return at


@compiled()
def _swap(states, rows, fields, local, sweeps, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Swap the categories of two rows at a time, by Metropolis's rule."""
    count = np.uint64(len(rows))
    proposals = sweeps * len(rows)
    if at + proposals > len(words):
        return OUT_OF_WORDS
    for word in words[at : at + proposals]:
        i = np.int64(((word & _PLACE) * count) >> np.uint64(21))
        j = np.int64((((word >> np.uint64(21)) & _PLACE) * count) >> np.uint64(21))
        a, b = local[states[rows[i]]], local[states[rows[j]]]
        if a == b:
            continue
        gain = fields[i, b] + fields[j, a] - fields[i, a] - fields[j, b]
        chance = np.float64(word >> np.uint64(42)) / (np.float64(_CHANCE) + 1.0)
        if gain >= 0.0 or chance < np.exp(gain):
            states[rows[i]], states[rows[j]] = states[rows[j]], states[rows[i]]
    return at + proposals


@compiled()
def _likeness(fields, local, states, rows, i, j):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """How little it matters which of two rows has which of their categories; at most 0."""
    a, b = local[states[rows[i]]], local[states[rows[j]]]
    return -abs(fields[i, b] + fields[j, a] - fields[i, a] - fields[j, b])


@compiled()
def _blocks(states, rows, fields, local, counts, block):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Put each row with a category that few have into a block of rows that are alike.

    Returns the block of each row, −1 without one, and how many blocks there are.
    """
    size = len(rows)
    own, first, found = np.full(size, -1), np.empty(size, np.int64), 0
    free = size
    for i in range(size):
        if own[i] >= 0 or counts[states[rows[i]]] >= block:
            continue
        if free < block and found:
            best, most = 0, -np.inf
            for other in range(found):
                like = _likeness(fields, local, states, rows, i, first[other])
                if like > most:
                    best, most = other, like
            own[i] = best
            free -= 1
            continue
        own[i], first[found] = found, i
        for _ in range(min(block, free) - 1):
            best, most = -1, -np.inf
            for j in range(size):
                if own[j] < 0:
                    like = _likeness(fields, local, states, rows, i, j)
                    if like > most:
                        best, most = j, like
            own[best] = found
        free -= min(block, free)
        found += 1
    return own, found


@compiled()
def _mix_few(states, rows, fields, local, counts, block, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Shuffle categories that fewer than a block have, within blocks of rows that are alike."""
    own, found = _blocks(states, rows, fields, local, counts, block)
    members = np.empty(len(states), np.int64)
    for number in range(found):
        count = 0
        for i in range(len(rows)):
            if own[i] == number:
                members[count] = rows[i]
                count += 1
        if count < block:  # of all rows with weights: others, which have none, fill it up
            for row in range(len(states)):
                if count < block and not np.any(rows == row):
                    members[count] = row
                    count += 1
        at = _shuffle_rows(members, count, states, words, at)
        if at == OUT_OF_WORDS:
            return OUT_OF_WORDS
    return at


@compiled()
def _relate(
    here: Integers,
    start: int,
    related: Booleans,
    weights: Reals,
    columns: NDArray[Any],
    scores: NDArray[Any],
    sweeps: int,
    block: int,
    local: Integers,
    counts: Integers,
    words: Words,
    at: int,
) -> int:
    """Swap the shuffled categories of a cluster that are related to what stands in its rows."""
    rows = np.array([i for i in range(len(here)) if related[here[i]]], dtype=np.int64)
    found = np.unique(here[rows])
    if len(found) < 2:
        return at
    for i, state in enumerate(found):
        local[state], counts[state] = i, 0
    for row in rows:
        counts[here[row]] += 1
    fields = np.empty((len(rows), len(found)))
    for i in range(len(rows)):
        for j in range(len(found)):
            fields[i, j] = _field(weights, found[j], start + rows[i], columns, scores)
    at = _swap(here, rows, fields, local, sweeps, words, at)
    if at == OUT_OF_WORDS or block == 1:
        return at
    mixed: int = _mix_few(here, rows, fields, local, counts, block, words, at)
    return mixed


@compiled()
def arrange(
    states: NDArray[Any],
    ends: Integers,
    related: Booleans,
    weights: Reals,
    columns: NDArray[Any],
    scores: NDArray[Any],
    sweeps: int,
    block: int,
    words: Words,
    first: int,
) -> tuple[int, int]:
    """Put the categories of each cluster into its rows anew, from a cluster on.

    They are sorted, so that what follows does not know who had which, and shuffled. Those that are
    `related` to what stands in `columns` and `scores` are then swapped, `sweeps` times as often as
    there are, and those of them that fewer than `block` have are shuffled in blocks of rows that
    are alike. Returns the next cluster and the words used.
    """
    used, kinds = 0, len(related)
    local, counts = np.full(kinds, -1), np.zeros(kinds, np.int64)
    for cluster in range(first, len(ends)):
        start = ends[cluster - 1] if cluster else 0
        here = np.sort(states[start : ends[cluster]]).astype(np.int64)
        if here[0] == here[-1]:
            continue
        at = _shuffle_rows(np.arange(len(here)), len(here), here, words, used)
        if at != OUT_OF_WORDS and weights.shape[1]:
            at = _relate(
                here, start, related, weights, columns, scores, sweeps, block, local, counts,
                words, at,
            )  # fmt: skip
        if at == OUT_OF_WORDS:
            return cluster, used
        states[start : ends[cluster]] = here
        used = at
    return len(ends), used


@compiled()
def _add(array, a, b, u, v, x):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    array[a, u] += x
    array[a, v] -= x
    array[b, u] -= x
    array[b, v] += x


@compiled()
def _apart(weights, a, b, i, j, columns, scores):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """How well two categories go with their rows rather than with each other's, and on how much."""
    gain = size = 0.0
    for q in range(scores.shape[1]):
        apart = scores[i, q] - scores[j, q]
        gain += (weights[a, q] - weights[b, q]) * apart
        size += 2.0 * abs(apart)
    for p in range(columns.shape[1]):
        u, v = columns[i, p], columns[j, p]
        if u != v and u >= 0 and v >= 0:
            gain += weights[a, u] - weights[a, v] - weights[b, u] + weights[b, v]
            size += 4.0
    return gain, size


@compiled()
def likelihood(
    weights: Reals,
    left: Integers,
    right: Integers,
    states: NDArray[Any],
    columns: NDArray[Any],
    scores: NDArray[Any],
    slope: Reals,
    curvature: Reals,
) -> float:
    """How likely pairs of rows are against the same pairs with their categories swapped.

    Returns the negative logarithm, summed over pairs; adds its slope, and a bound of its curvature.
    """
    total = 0.0
    for pair in range(len(left)):
        i, j = left[pair], right[pair]
        a, b = states[i], states[j]
        gain, size = _apart(weights, a, b, i, j, columns, scores)
        total += np.log1p(np.exp(-abs(gain))) + max(0.0, -gain)
        push = -1.0 / (1.0 + np.exp(min(gain, 700.0)))
        for q in range(scores.shape[1]):
            apart = scores[i, q] - scores[j, q]
            slope[a, q] += push * apart
            slope[b, q] -= push * apart
            curvature[a, q] += 0.25 * size * abs(apart)
            curvature[b, q] += 0.25 * size * abs(apart)
        for p in range(columns.shape[1]):
            u, v = columns[i, p], columns[j, p]
            if u != v and u >= 0 and v >= 0:
                _add(slope, a, b, u, v, push)
                for state in (a, b):
                    curvature[state, u] += 0.25 * size
                    curvature[state, v] += 0.25 * size
    return total
