"""Compiled loops over joint clusters, imported only when they are run.

Clusters are given by the order of records, one cluster after the other, and by where each ends.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.core.kernels.draws import OUT_OF_WORDS, below
from microveil.core.random_words import Words
from microveil.types import Integers, Reals

_compiled = compiled()


@_compiled
def by_cluster(label: Integers, ends: Integers) -> Integers:
    """Return the records in the order of their clusters, those of one cluster in their own."""
    place = np.empty(len(ends), np.int64)
    place[0], place[1:] = 0, ends[:-1]
    order = np.empty(len(label), np.int64)
    for record in range(len(label)):
        order[place[label[record]]] = record
        place[label[record]] += 1
    return order


@_compiled
def shuffle(order: Integers, ends: Integers, words: Words, first: int) -> tuple[int, int]:
    """Shuffle each cluster, from position `first` on; return the next position and words used."""
    at, cluster = 0, np.searchsorted(ends, first, side="right")
    for i in range(first, len(order)):
        while ends[cluster] <= i:
            cluster += 1
        if ends[cluster] - i > 1:  # the last record has no choice
            draw, at = below(ends[cluster] - i, words, at)
            if draw == OUT_OF_WORDS:
                return i, at
            order[i], order[i + draw] = order[i + draw], order[i]
    return len(order), at


@_compiled
def means_of_clusters(
    values: Reals, present: NDArray[np.bool_], order: Integers, ends: Integers
) -> Reals:
    """Mean of the values present in each cluster, NaN where most are missing.

    Values are added in ascending order, so that how a mean is rounded tells nothing of theirs.
    """
    mean = np.full(len(ends), np.nan)
    for j in range(len(ends)):
        members = order[ends[j - 1] if j else 0 : ends[j]]
        here = np.sort(values[members][present[members]])
        if 2 * len(here) >= len(members):
            mean[j] = here[0] + np.sum(here - here[0]) / len(here)
    return mean


@_compiled
def _middle(codes, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the median of ascending codes, one of two at random, and the next position."""
    lower, upper = codes[(len(codes) - 1) // 2], codes[len(codes) // 2]
    if lower == upper:
        return lower, at
    draw, at = below(2, words, at)
    if draw == OUT_OF_WORDS:
        return OUT_OF_WORDS, at
    return (upper if draw else lower), at


@_compiled
def _most_frequent(codes, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the most frequent of ascending codes, one of several at random, and the next position.

    The codes of one frequency move to the front, in their order.
    """
    most = tied = start = 0
    for i in range(1, len(codes) + 1):
        if i == len(codes) or codes[i] != codes[start]:
            if i - start > most:
                most, tied = i - start, 0
            if i - start == most:
                codes[tied] = codes[start]
                tied += 1
            start = i
    if tied == 1:
        return codes[0], at
    draw, at = below(tied, words, at)
    if draw == OUT_OF_WORDS:
        return OUT_OF_WORDS, at
    return codes[draw], at


@_compiled
def choose_codes(
    codes: Integers,
    present: NDArray[np.bool_],
    order: Integers,
    ends: Integers,
    ordinal: bool,
    chosen: Integers,
    words: Words,
    first: int,
) -> tuple[int, int]:
    """Choose the median or mode of each cluster, from cluster `first` on; −1 if most are missing.

    Returns the next cluster and the words used.
    """
    used = 0
    for j in range(first, len(ends)):
        members = order[ends[j - 1] if j else 0 : ends[j]]
        here = np.sort(codes[members][present[members]])
        chosen[j] = -1
        if 2 * len(here) < len(members):
            continue
        code, at = _middle(here, words, used) if ordinal else _most_frequent(here, words, used)
        if code == OUT_OF_WORDS:
            return j, used
        chosen[j], used = code, at
    return len(ends), used


@_compiled
def _mixed(value):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Mix the bits of a whole number, as SplitMix64 does: different ones stay different."""
    bits = np.uint64(value)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@_compiled
def same_multisets(
    before: NDArray[Any], after: NDArray[Any], order: Integers, ends: Integers
) -> bool:
    """Whether each cluster holds the same whole numbers, repeats counted, by sums of mixed bits."""
    start = 0
    for end in ends:
        total = np.uint64(0)
        for row in order[start:end]:
            total += _mixed(before[row]) - _mixed(after[row])
        if total != np.uint64(0):
            return False
        start = end
    return True
