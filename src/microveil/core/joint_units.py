"""Joint clusters of units: those whose records are alike, member by member.

Units of a joint cluster have as many records each, wherever enough have as many. Their values are
pooled among units, and the values of their records among those of the same rank: the first records
of all units, the second ones, and so on, ranked within each unit along the direction in which
records vary most.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings
from microveil.core.joint import cluster_points
from microveil.core.random_words import WordSource, random_order
from microveil.types import Integers, Reals

_MOST_RANKS = 8
"""Ranks whose places count each by itself where units are compared; later ones count together."""


class JointLabels(NamedTuple):
    """The joint cluster of every record, and of every unit if there are units."""

    records: Integers
    units: Integers | None = None

    def of(self, attribute: AttributeSettings) -> Integers:
        """Return the joint clusters among which an attribute is pooled."""
        if attribute.per_unit:
            assert self.units is not None  # noqa: S101 - for the type checker
            return self.units
        return self.records


def cluster_units(
    own: Reals,
    members: Reals,
    unit: Integers,
    k: int,
    ties: WordSource,
    strata: Integers | None = None,
) -> tuple[JointLabels, int]:
    """Cluster units by MDAV, k or more of them each; return labels, and the number of blocks.

    `own` places every unit, and `members` every record, in a space; `strata` are those of units.

    Guarantee
    ---------
    Exchanged within these clusters, each attribute by itself, or averaged, values of a joint
    cluster whose units have as many records each are as likely for any order of these units:
    an attacker who knows all values of all units, and which rows are of one, picks a unit with
    chance 1/k at most. Units of a size that fewer than k have are clustered with others, beside
    k or more of one size if there are, and can be told by their size.
    """
    rank = rank_members(members, unit, ties)
    classes, rare = size_classes(np.bincount(unit), k, strata)
    points = np.hstack([own, member_points(members, unit, rank)])
    label = np.empty(len(classes), dtype=np.int64)
    label[~rare], parts = cluster_points(points[~rare], k, ties, strata=classes[~rare])
    for one in np.flatnonzero(rare):
        others = np.flatnonzero(~rare & (classes == classes[one]))
        away = np.sum((points[others] - points[one]) ** 2, axis=1)
        label[one] = label[others[np.argmin(away)]]
    return JointLabels(by_rank(label, unit, rank, k), label), parts


def rank_members(
    members: Reals, unit: Integers, ties: WordSource, first: Integers | None = None
) -> Integers:
    """Rank the records of each unit from 0 on, along the direction in which all vary most.

    By what is given `first` they are ranked before.

    Examples
    --------
    >>> from microveil.core.random_words import SeededWords
    >>> rank_members(np.array([[9.0], [1.0], [4.0]]), np.array([0, 0, 1]), SeededWords(1))
    array([1, 0, 0])
    """
    along = np.zeros(len(unit))
    if members.shape[1]:
        centred = members - members.mean(axis=0)
        along = centred @ np.linalg.eigh(centred.T @ centred)[1][:, -1]
    before = np.zeros_like(unit) if first is None else first
    order = np.lexsort((random_order(len(unit), ties), along, before, unit))
    rank, sizes = np.empty(len(unit), dtype=np.int64), np.bincount(unit)
    rank[order] = np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def size_classes(
    sizes: Integers, k: int, strata: Integers | None = None
) -> tuple[Integers, NDArray[np.bool_]]:
    """Put units of as many records into a class, within strata; sizes that few have share one.

    If all of these are fewer than k, they join the largest size that k units or more have: the
    second array says which. Clusters of that size are formed without them.

    Examples
    --------
    >>> size_classes(np.array([1, 1, 2, 2, 3, 7, 1]), k=2)[0]
    array([0, 0, 1, 1, 2, 2, 0])
    >>> size_classes(np.array([1, 1, 2, 2, 3]), k=2)
    (array([0, 0, 1, 1, 1]), array([False, False, False, False,  True]))
    """
    strata = np.zeros_like(sizes) if strata is None else strata
    kinds, kind, counts = np.unique(
        np.column_stack([strata, sizes]), axis=0, return_inverse=True, return_counts=True
    )
    classes, joins, first = np.arange(len(kinds)), np.zeros(len(kinds), dtype=np.bool_), 0
    for end in (np.flatnonzero(np.diff(kinds[:, 0], append=kinds[-1, 0] + 1)) + 1).tolist():
        rare = first + np.flatnonzero(counts[first:end] < k)
        common = first + np.flatnonzero(counts[first:end] >= k)
        if len(rare):
            alone = counts[rare].sum() >= k or not len(common)
            classes[rare] = rare[0] if alone else common[-1]
            joins[rare] = not alone
        first = end
    label = np.unique(classes[kind.ravel()], return_inverse=True)[1].astype(np.int64)
    return label, joins[kind.ravel()]


def member_points(members: Reals, unit: Integers, rank: Integers) -> Reals:
    """Place units by their records: those of each rank, or the mean of all where a unit has none.

    Distances count members as much as one record does, however many there are.
    """
    sizes = np.bincount(unit)
    slots = min(int(sizes.max()), _MOST_RANKS)
    means = _sums(members, unit, len(sizes)) / sizes[:, np.newaxis]
    places = []
    for slot in range(slots):
        here = rank == slot if slot < slots - 1 else rank >= slot
        counts = np.bincount(unit[here], minlength=len(sizes))[:, np.newaxis]
        sums = _sums(members[here], unit[here], len(sizes))
        places.append(np.where(counts > 0, sums / np.maximum(counts, 1), means))
    points: Reals = np.hstack(places) / np.sqrt(slots)
    return points


def by_rank(label: Integers, unit: Integers, rank: Integers, k: int) -> Integers:
    """Cluster the records of each joint cluster of units by rank, k or more in each.

    Ranks that fewer than k of its units have join the last that k have.

    Examples
    --------
    >>> label, unit = np.array([0, 0]), np.array([0, 0, 1, 1, 1])
    >>> by_rank(label, unit, np.array([0, 1, 0, 1, 2]), k=2)
    array([0, 1, 0, 1, 1])
    """
    own, width = label[unit], int(rank.max()) + 1
    counts = np.bincount(own * width + rank, minlength=(int(label.max()) + 1) * width)
    last = (counts.reshape(-1, width) >= k).sum(axis=1) - 1
    joined = own * width + np.minimum(rank, last[own])
    found: Integers = np.unique(joined, return_inverse=True)[1].astype(np.int64)
    return found


def _sums(values: Reals, group: Integers, groups: int) -> Reals:
    """Add up the rows of each group."""
    sums = np.zeros((groups, values.shape[1]))
    for column in range(values.shape[1]):
        sums[:, column] = np.bincount(group, values[:, column], minlength=groups)
    return sums
