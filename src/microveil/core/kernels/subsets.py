"""Compiled loops of SUDA2, imported only when they are run.

Subsets of keys are numbers: key v is in subset s where bit v of s is 1. For each record that is
unique on all keys, bit s of `found` says that it is unique on subset s.
"""

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.types import Reals

RowPlaces = NDArray[np.int32]
KeyBits = NDArray[np.uint64]

_BITS = 64
_KEYS = 6  # those whose subsets fill a word
_WITHOUT = np.array(
    [sum(1 << s for s in range(_BITS) if not s >> key & 1) for key in range(_KEYS)], np.uint64
)  # for each of these the subsets that it is not in


@compiled()
def refine(
    rows: RowPlaces, ends: RowPlaces, codes: RowPlaces, values: int, found: KeyBits, subset: int
) -> tuple[RowPlaces, RowPlaces]:
    """Cut groups of combinations by one more key, and note whose records are alone.

    The first `len(found)` combinations are those of one record. What is alone is left out of the
    new groups, and so are groups without such a record and combinations that miss the key.
    """
    kept, kept_ends = np.empty(len(rows), np.int32), np.empty(len(rows) // 2, np.int32)
    combinations, alone = np.zeros(values, np.int32), np.zeros(values, np.int32)
    place = np.full(values, -1, np.int32)
    uniques, word = len(found), subset // _BITS
    bit = np.uint64(1) << np.uint64(subset % _BITS)
    groups = filled = start = 0
    for end in ends:
        for row in rows[start:end]:
            code = codes[row]
            if code >= 0:
                combinations[code] += 1
                alone[code] += row < uniques
        for row in rows[start:end]:
            code = codes[row]
            if code < 0 or alone[code] == 0:
                continue
            if combinations[code] == 1:
                found[row, word] |= bit
                continue
            if place[code] < 0:
                place[code] = filled
                filled += combinations[code]
                kept_ends[groups] = filled
                groups += 1
            kept[place[code]] = row
            place[code] += 1
        for row in rows[start:end]:
            code = codes[row]
            if code >= 0:
                combinations[code], alone[code], place[code] = 0, 0, -1
        start = end
    return kept[:filled].copy(), kept_ends[:groups].copy()


@compiled()
def add_minimal(found: KeyBits, keys: int, weights: Reals, score: Reals, shares: Reals) -> None:
    """Add the weight of each minimal subset to its record's score and to the keys in it."""
    for row in range(len(found)):
        here = found[row]
        for key in range(keys):
            for word in range(len(here)):
                here[word] |= _enlarged(here, word, key)
        for word in range(len(here)):
            minimal = here[word]
            for key in range(keys):
                minimal &= ~_enlarged(here, word, key)
            for position in range(_BITS if minimal else 0):
                if minimal >> np.uint64(position) & np.uint64(1):
                    _add(word * _BITS + position, weights, score[row : row + 1], shares[row])


@compiled()
def _enlarged(here: KeyBits, word: int, key: int) -> np.uint64:
    """Find in a word the subsets that others become by one more key."""
    if key < _KEYS:
        return np.uint64((here[word] & _WITHOUT[key]) << np.uint64(1 << key))
    by = 1 << (key - _KEYS)
    return np.uint64(here[word - by]) if word & by else np.uint64(0)


@compiled()
def _add(subset: int, weights: Reals, score: Reals, shares: Reals) -> None:
    size = 0
    for key in range(len(shares)):
        size += subset >> key & 1
    score[0] += weights[size]
    for key in range(len(shares)):
        if subset >> key & 1:
            shares[key] += weights[size]
