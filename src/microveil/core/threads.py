"""Threads: pseudonyms that persons keep from release to release, and when they lose them.

Threads with one history are a class: they were in the same joint cluster of every release so far,
or absent from it together. A release parts a class only where every part has k threads or more, so
that classes never have fewer. Whoever cannot be shown so gets a new pseudonym: a thread ends, which
from then on is absent, and another begins.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from microveil.core.random_words import WordSource, random_order
from microveil.types import Booleans, Integers, Reals

FEW_CUT = 0.1
"""Share of those who stay that may lose their pseudonym in the next release, if it can be had."""

LEAST_BEGUN = 5
"""Joint clusters that those form who begin a thread together, or values would travel far."""

_LARGEST = 10

Cluster = Callable[[Integers, int], Integers]
"""Clusters some of those present, so many or more together; returns labels from 0 on."""


def first_size(k: int, turnover: float) -> int:
    """Return how many persons a joint cluster begins with, given who is expected to leave.

    It is the least size with which fewer than a tenth of those who stay lose their pseudonym in
    the next release, of k to ten times k.

    Examples
    --------
    >>> first_size(10, 0.0), first_size(10, 0.01), first_size(10, 0.05)
    (10, 10, 67)
    """
    sizes = range(k, _LARGEST * k + 1)
    shares = [_share_cut(size, k, turnover) for size in sizes]
    enough = [size for size, share in zip(sizes, shares, strict=True) if share < FEW_CUT]
    return enough[0] if enough else sizes[int(np.argmin(shares))]


def _share_cut(size: int, k: int, turnover: float) -> float:
    """Expect which share of those of a class who stay are cut, if others leave independently."""
    from scipy.stats import binom  # takes a while, and few plans need it

    leaving = np.arange(1, size)
    ended = np.maximum(leaving, k)
    cut = np.where(size - ended >= k, ended, size) - leaving
    expected = np.sum(cut * binom.pmf(leaving, size, turnover))
    return float(expected / (size * (1 - turnover)))


class LookingAlike(NamedTuple):
    """Those whom a release has: how each looks in it, and the thread of each, −1 if none goes on.

    Of those who look alike, `looks` has the same number: the same kept values, record by record, as
    many records, one stratum.
    """

    looks: Integers
    thread: Integers


class Assigned(NamedTuple):
    """The joint cluster of everyone present, from 0 on, and whose thread goes on."""

    label: Integers
    goes_on: Booleans


def assign_threads(
    history: Integers,
    present: LookingAlike,
    k: int,
    size: int,
    places: Reals,
    cluster: Cluster,
    source: WordSource,
) -> Assigned:
    """Say who is in which joint cluster of a release, and under the same pseudonym as before.

    `history` numbers the classes of all threads there are, ended ones included. Each has k or more,
    and so must those who look alike. `places` is where those present lie in a space.

    Guarantee
    ---------
    Afterwards each class has k threads or more: those of a joint cluster, which look alike, and
    the absent ones of a class before.
    """
    wanted = np.full(len(history), -1)
    has = present.thread >= 0
    wanted[present.thread[has]] = present.looks[has]
    order = random_order(len(history), source)
    shown = shown_threads(history, wanted, k, order)
    _recruit(history, wanted, shown, k, order, present, places)
    goes_on = has.copy()
    goes_on[has] = shown[present.thread[has]]
    label = np.empty(len(has), dtype=np.int64)
    if goes_on.any():
        both = np.column_stack([history[present.thread[goes_on]], present.looks[goes_on]])
        label[goes_on] = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    clusters = int(label[goes_on].max()) + 1 if goes_on.any() else 0
    for alike in _parted(np.flatnonzero(~goes_on), present.looks):
        for members in _apart(alike, has, k):
            own = cluster(members, min(size, max(k, len(members) // LEAST_BEGUN)))
            label[members] = own + clusters
            clusters += int(own.max()) + 1
    return Assigned(label, goes_on)


def _apart(alike: Integers, has: Booleans, k: int) -> list[Integers]:
    """Part those who never had a thread, and may behave alike later, from others, if enough."""
    new, others = alike[~has[alike]], alike[has[alike]]
    return [new, others] if min(len(new), len(others)) >= k else [alike]


def shown_threads(history: Integers, wanted: Integers, k: int, order: Integers) -> Booleans:
    """Say which threads a release may show, so that all parts of their classes have k or more.

    `wanted` says how each would look, −1 for those whom the release does not have; in `order` they
    are chosen to accompany those, where these are too few.

    Examples
    --------
    Of six alike one leaves, so another ends with it. Of four one leaves, and none goes on.

    >>> wanted = np.array([0, 0, 0, 0, 0, -1, 0, 0, 0, -1])
    >>> shown_threads(np.array([0] * 6 + [1] * 4), wanted, 2, np.arange(10)).astype(int)
    array([0, 1, 1, 1, 1, 0, 0, 1, 1, 0])
    >>> shown_threads(np.array([0] * 6 + [1] * 4), wanted, 3, np.arange(10)).astype(int)
    array([0, 0, 1, 1, 1, 0, 0, 0, 0, 0])
    """
    shown = wanted >= 0
    for members in _parted(order, history):
        looks = wanted[members]
        if np.any(looks != looks[0]):
            _part(members, looks, shown, k)
    return shown


def _part(members: Integers, looks: Integers, shown: Booleans, k: int) -> None:
    """Part one class: groups of fewer than k end, and others until those absent are none or k."""
    groups = sorted((members[looks == one] for one in np.unique(looks[looks >= 0])), key=len)
    for group in groups:
        shown[group] = len(group) >= k
    groups = [group for group in groups if len(group) >= k]
    absent = len(members) - sum(map(len, groups))
    if groups and 0 < absent < k:
        missing = k - absent
        spare = len(groups[-1]) - missing >= k
        shown[groups[-1][:missing] if spare else groups[0]] = False


def _recruit(
    history: Integers, wanted: Integers, shown: Booleans, k: int, order: Integers,
    present: LookingAlike, places: Reals,
) -> None:  # fmt: skip
    """End threads of others, where those who begin one and look alike are fewer than k."""
    person = np.full(len(history), -1)
    has = present.thread >= 0
    person[present.thread[has]] = np.flatnonzero(has)
    begin = ~has
    begin[has] = ~shown[present.thread[has]]
    for new in _parted(np.flatnonzero(begin), present.looks):
        if len(new) >= k:
            continue
        alike = order[shown[order] & (wanted[order] == present.looks[new[0]])]
        absent = np.bincount(history[~shown], minlength=int(history.max()) + 1)
        centre, offers = places[new].mean(axis=0), []
        for group in _parted(alike, history):
            fewest = k - len(new) if absent[history[group[0]]] else k
            some = group[:fewest] if len(group) - fewest >= k else group
            away = float(np.sum((places[person[group]].mean(axis=0) - centre) ** 2))
            offers.append((len(some), away, some))
        shown[min(offers, key=lambda offer: offer[:2])[2]] = False


def _parted(rows: Integers, label: Integers) -> list[Integers]:
    """Part rows, in their order, by what they are labelled with."""
    own = label[rows]
    by_label = np.argsort(own, kind="stable")
    ends = np.flatnonzero(np.diff(own[by_label])) + 1
    bounds = [0, *ends.tolist(), len(rows)]
    return [rows[by_label[a:b]] for a, b in pairwise(bounds) if a < b]
