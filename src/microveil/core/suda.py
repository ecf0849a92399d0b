"""SUDA2: on how few keys a record is already unique (Elliot, Manning and others 2002, 2008).

A minimal sample unique of a record is a set of keys on which it is unique while it is on no part
of that set. With M keys, a set of k adds (M − k)! to the record's score.
"""

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING

import numpy as np

from microveil.types import Integers, Reals

if TYPE_CHECKING:
    from microveil.core.kernels.subsets import KeyBits, RowPlaces

MOST_SUBSETS = 2**32
"""The most combinations times subsets of keys that are searched: half a GiB of marks."""

_FEWEST_KEYS = 3
"""Scores are those of three keys where there are fewer, as sdcMicro has it."""


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """What SUDA2 finds, for each combination of keys.

    Attributes
    ----------
    score
        0 where no record has it alone.
    dis
        The score turned into the chance that a match with the population is right (DIS-SUDA).
    shares
        For each key the share of the score that sets with it have.
    """

    score: Reals
    dis: Reals
    shares: Reals


def is_searchable(combinations: int, keys: int) -> bool:
    """Whether there are few enough combinations and keys to look through all subsets."""
    return combinations << keys <= MOST_SUBSETS


def special_uniques(codes: Integers, counts: Integers, fraction: float = 0.01) -> SpecialUniques:
    """Score combinations of keys by the sets of keys on which they are unique.

    A missing key is in no such set, and matches nothing.

    Parameters
    ----------
    codes
        Different combinations × keys: codes from 0 on, −1 where a key is missing.
    counts
        How many records have each combination.
    fraction
        The sampling fraction of DIS.

    Examples
    --------
    >>> codes = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 0]])
    >>> special_uniques(codes, np.ones(3, int)).score.tolist()
    [2.0, 4.0, 2.0]
    """
    from microveil.core.kernels.subsets import add_minimal

    combinations, keys = codes.shape
    score, shares = np.zeros(combinations), np.zeros((combinations, keys))
    singles_first = np.argsort(counts > 1, kind="stable")
    uniques = singles_first[: np.count_nonzero(counts == 1)]
    if len(uniques):
        found = _search(codes[singles_first].T, len(uniques))
        most = max(keys, _FEWEST_KEYS)
        weights = np.array([float(factorial(most - size)) for size in range(keys + 1)])
        own_score, own_shares = np.zeros(len(uniques)), np.zeros((len(uniques), keys))
        add_minimal(found, keys, weights, own_score, own_shares)
        score[uniques] = own_score
        shares[uniques] = own_shares / np.where(own_score > 0, own_score, 1)[:, np.newaxis]
    return SpecialUniques(score, _dis(score, counts, keys, fraction), shares)


def _search(codes: Integers, uniques: int) -> "KeyBits":
    """Note on which subsets of keys the first combinations are unique."""
    from microveil.core.kernels.subsets import refine

    columns = np.ascontiguousarray(codes, np.int32)
    values = columns.max(axis=1) + 1
    found = np.zeros((uniques, max(1, 2 ** len(columns) // 64)), np.uint64)
    largest_first = np.argsort(-values)

    def search(rows: "RowPlaces", ends: "RowPlaces", subset: int, next_: int) -> None:
        for place in range(next_, len(columns)):
            key = largest_first[place]
            larger = subset | 1 << int(key)
            inner = refine(rows, ends, columns[key], values[key], found, larger)
            if len(inner[0]):
                search(*inner, larger, place + 1)

    everything = np.arange(columns.shape[1], dtype=np.int32)
    search(everything, np.array([len(everything)], np.int32), 0, 0)
    return found


def _dis(score: Reals, counts: Integers, keys: int, fraction: float) -> Reals:
    """Turn scores into chances, by how many records are alone and how many are in pairs."""
    exponent = 1 + (8 - max(keys, _FEWEST_KEYS)) / 20
    special = score > 0
    strength = score[special] ** exponent
    strength *= np.sum(1 / strength)
    in_pairs = 2 * np.count_nonzero(counts == 2)
    dis = np.zeros(len(score))
    dis[special] = strength / (strength + in_pairs * (1 - fraction) / fraction)
    return dis
