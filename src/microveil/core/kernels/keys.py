"""Compiled passes over random keys of 64 bits, imported only when they are run."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers

Keys = NDArray[np.uint64]

_DIGIT_BITS = np.uint64(11)
_DIGIT = np.uint64(2**11 - 1)
_PRIMES = (
    np.uint64(0x9E3779B185EBCA87),
    np.uint64(0xC2B2AE3D27D4EB4F),
    np.uint64(0x165667B19E3779F9),
    np.uint64(0x85EBCA77C2B2AE63),
    np.uint64(0x27D4EB2F165667C5),
)


@compiled()
def order_of_random(keys: Keys) -> Integers:
    """Return the order that sorts keys, quick where they are spread evenly between two ends.

    Two passes sort them by the 22 leading bits of their distance from the lowest; what is left out
    of order is then a few places away from where it belongs.
    """
    n = len(keys)
    order, spare = np.arange(n), np.empty(n, np.int64)
    if n < 2:
        return order
    low = keys.min()
    span, shift = keys.max() - low, np.uint64(0)
    while span >> shift >= np.uint64(2**22):
        shift += np.uint64(1)
    moved, start = np.empty(n, np.uint64), np.zeros((2, 2**11), np.int64)
    for key in keys:
        lead = (key - low) >> shift
        start[0, lead & _DIGIT] += 1
        start[1, lead >> _DIGIT_BITS] += 1
    for turn in range(2):
        total = 0
        for d in range(2**11):
            start[turn, d], total = total, total + start[turn, d]
    for i in range(n):
        d = ((keys[i] - low) >> shift) & _DIGIT
        place = start[0, d]
        start[0, d] = place + 1
        moved[place], spare[place] = keys[i], i
    found = np.empty(n, np.uint64)
    for i in range(n):
        d = (moved[i] - low) >> shift >> _DIGIT_BITS
        place = start[1, d]
        start[1, d] = place + 1
        found[place], order[place] = moved[i], spare[i]
    for i in range(1, n):
        key, owner, at = found[i], order[i], i
        while at > 0 and found[at - 1] > key:
            found[at], order[at] = found[at - 1], order[at - 1]
            at -= 1
        found[at], order[at] = key, owner
    return order


@compiled()
def _rotated(word, bits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@compiled()
def _xxhash64(word, seed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Hash eight bytes; for a given seed a bijection."""
    p1, p2, p3, p4, p5 = _PRIMES
    found = seed + p5 + np.uint64(8)
    found ^= _rotated(word * p2, 31) * p1
    found = _rotated(found, 27) * p1 + p4
    found = (found ^ (found >> np.uint64(33))) * p2
    found = (found ^ (found >> np.uint64(29))) * p3
    return found ^ (found >> np.uint64(32))


@compiled()
def hashed(keys: Keys, secret: np.uint64) -> Keys:
    """Permute keys by a secret one, as Spark's `xxhash64(secret, key)` does."""
    seed = _xxhash64(secret, np.uint64(42))
    found = np.empty(len(keys), np.uint64)
    for i in range(len(keys)):
        found[i] = _xxhash64(keys[i], seed)
    return found


@compiled()
def ranges_of(
    values: Integers, ties: Keys, bounds: Integers, bound_ties: Keys, out: NDArray[Any]
) -> None:
    """Say between which bounds, which ascend, each pair of a value and a tie lies."""
    for i in range(len(values)):
        low, high = 0, len(bounds)
        while low < high:
            middle = (low + high) // 2
            if values[i] < bounds[middle] or (
                values[i] == bounds[middle] and ties[i] < bound_ties[middle]
            ):
                high = middle
            else:
                low = middle + 1
        out[i] = low
