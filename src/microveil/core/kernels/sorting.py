"""Compiled passes over whole columns, imported only when they are run.

Each does in one pass what NumPy would need several temporary columns for, and lets go of the
interpreter, so that attributes can be worked on in parallel threads.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.core.kernels.draws import OUT_OF_WORDS, below
from microveil.core.random_words import Words
from microveil.types import Integers, Reals

_DIGIT_BITS = 11  # 2,048 places to write to in turn: about what caches and page tables hold


@compiled()
def look_through(values: Reals, lower: float, upper: float) -> tuple[int, int, int, float, float]:
    """Count values that are not finite, not whole, outside; find the smallest and largest."""
    not_finite = fractional = outside = 0
    smallest, largest = np.inf, -np.inf
    for value in values:
        if not np.isfinite(value):
            not_finite += 1
            continue
        fractional += value != np.rint(value)
        outside += (value < lower) | (value > upper)
        smallest, largest = min(smallest, value), max(largest, value)
    return not_finite, fractional, outside, smallest, largest


@compiled()
def to_steps(values: Reals, step: float, origin: float) -> Integers:
    """Round values to multiples of a power of two."""
    steps = np.empty(len(values), np.int64)
    for i in range(len(values)):
        steps[i] = np.int64(np.rint((values[i] - origin) / step))
    return steps


@compiled()
def _width(steps, low):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return how many trailing bits all distances from the lowest lack, and how many they need."""
    seen = np.int64(0)
    for position in steps:
        seen |= position - low
    shift = 0
    while seen and not (seen >> shift) & 1:
        shift += 1
    bits = 0
    while seen >> (shift + bits):
        bits += 1
    return shift, bits


@compiled()
def sort_steps(steps: Integers, order: NDArray[Any], spare: NDArray[Any]) -> Integers:
    """Sort by least significant digits first; fill `order` and return the values ascending.

    `order` and `spare` are of one integer type, as long as `steps`. Equal values keep their order.
    """
    n = len(steps)
    low = steps.min()
    shift, bits = _width(steps, low)
    passes = max(1, (bits + _DIGIT_BITS - 1) // _DIGIT_BITS)
    digit = (bits + passes - 1) // passes
    mask = (np.int64(1) << digit) - 1
    counts = np.zeros((passes, mask + 1), np.int64)
    keys, moved = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        key = (steps[i] - low) >> shift
        keys[i], order[i] = key, i
        for p in range(passes):
            counts[p, (key >> (p * digit)) & mask] += 1
    for p in range(passes):
        start = np.int64(0)
        for d in range(mask + 1):
            counts[p, d], start = start, start + counts[p, d]
        for i in range(n):
            key = keys[i]
            d = (key >> (p * digit)) & mask
            place = counts[p, d]
            counts[p, d] = place + 1
            moved[place], spare[place] = key, order[i]
        keys, moved = moved, keys
        order, spare = spare, order
    if passes % 2:
        spare[:] = order
    for i in range(n):
        keys[i] = (keys[i] << shift) + low
    return keys


@compiled()
def tied_across(ranked: Integers, ends: Integers) -> int:
    """Count records whose value stands in more than one cluster."""
    tied = reached = 0
    for end in ends[:-1]:
        if end < reached or ranked[end - 1] != ranked[end]:
            continue
        first, reached = end - 1, end + 1
        while first > 0 and ranked[first - 1] == ranked[end]:
            first -= 1
        while reached < len(ranked) and ranked[reached] == ranked[end]:
            reached += 1
        tied += reached - first
    return tied


@compiled()
def shuffle_ties(
    order: NDArray[Any],
    ranked: Integers,
    ends: Integers,
    inside: NDArray[np.bool_],
    words: Words,
    first: int,
) -> tuple[int, int]:
    """Shuffle records of equal value that stand in more than one cluster, from `first` on.

    `ends` are the clusters' ends in rank order; `inside` says whether `first` is amid a shuffle.
    Returns the next position and the words used.
    """
    n, at, i = len(order), 0, first
    cluster = np.searchsorted(ends, first, side="right")
    while i < n:
        end = i + 1
        while end < n and ranked[end] == ranked[i]:
            end += 1
        while ends[cluster] <= i:
            cluster += 1
        if not inside[0] and ends[cluster] >= end:
            i = end
            continue
        while i < end:
            draw, at = below(end - i, words, at)
            if draw == OUT_OF_WORDS:
                inside[0] = True
                return i, at
            order[i], order[i + draw] = order[i + draw], order[i]
            i += 1
        inside[0] = False
    return n, at


@compiled()
def spread(masked: NDArray[Any], sizes: Integers, order: NDArray[Any], out: NDArray[Any]) -> None:
    """Give every record its cluster's masked value."""
    i = 0
    for j in range(len(sizes)):
        for _ in range(sizes[j]):
            out[order[i]] = masked[j]
            i += 1
