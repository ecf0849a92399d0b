"""Compiled loops, imported only when they are run.

Random words are handed in as an array. A draw that runs out of them is abandoned and reported
with the position of its first word, so that the caller can offer the same words again with fresh
ones behind: the outcome does not depend on how the words were cut into arrays.
"""

import numba
import numpy as np

from microveil.grid import Integers, Reals
from microveil.noise import Words

OUT_OF_WORDS = -1
LARGEST_INT64 = 2**63 - 1


@numba.njit(cache=True, nogil=True)
def _below(bound, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return a uniform integer in [0, bound) by rejection, and the next position."""
    range_ = np.uint64(bound)
    while at < len(words):
        word = words[at]
        at += 1
        # The first 2^64 mod bound words would favour small remainders; most words are above bound
        # and need no division to tell.
        if word >= range_ or word >= (np.uint64(0) - range_) % range_:
            return np.int64(word % range_), at
    return OUT_OF_WORDS, at


@numba.njit(cache=True, nogil=True)
def _exp_minus(numerator, denominator, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Bernoulli(exp(−numerator/denominator)) for a fraction in [0, 1]: CKS 2020, Algorithm 1.

    Bernoulli(γ/i) is drawn as Bernoulli(γ) and Bernoulli(1/i), so that no product can overflow.
    """
    i = 1
    while True:
        if numerator < denominator:
            draw, at = _below(denominator, words, at)
            if draw == OUT_OF_WORDS:
                return OUT_OF_WORDS, at
            if draw >= numerator:
                return i & 1, at
        if i > 1:
            draw, at = _below(i, words, at)
            if draw == OUT_OF_WORDS:
                return OUT_OF_WORDS, at
            if draw != 0:
                return i & 1, at
        i += 1


@numba.njit(cache=True, nogil=True)
def _magnitude(scale, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Geometric on 0, 1, 2, … with P(x) ∝ exp(−x/scale), cut off at 2^63 − 1."""
    while True:
        remainder, at = _below(scale, words, at)
        if remainder == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        accept, at = _exp_minus(remainder, scale, words, at)
        if accept == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if accept == 1:
            break
    magnitude = remainder
    while True:
        another, at = _exp_minus(1, 1, words, at)
        if another == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if another == 0:
            return magnitude, at
        magnitude = magnitude + scale if magnitude <= LARGEST_INT64 - scale else LARGEST_INT64


@numba.njit(cache=True, nogil=True)
def add_discrete_laplace(
    centroids: Integers,
    scales: Integers,
    masked: Integers,
    words: Words,
    first: int,
    cut_off: int,
) -> tuple[int, int]:
    """Mask centroids from position `first` on; return the next position and the words used."""
    used = 0
    for j in range(first, len(centroids)):
        if scales[j] == 0:
            masked[j] = centroids[j]
            continue
        at = used
        while True:
            if at >= len(words):
                return j, used
            negative = words[at] >> np.uint64(63)
            at += 1
            magnitude, at = _magnitude(scales[j], words, at)
            if magnitude == OUT_OF_WORDS:
                return j, used
            if magnitude > 0 or negative == 0:  # zero would otherwise be drawn twice as often
                break
        noise = -magnitude if negative else magnitude
        if noise > cut_off - centroids[j]:
            masked[j] = cut_off
        elif noise < -cut_off - centroids[j]:
            masked[j] = -cut_off
        else:
            masked[j] = centroids[j] + noise
        used = at
    return len(centroids), used


@numba.njit(cache=True, nogil=True)
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
