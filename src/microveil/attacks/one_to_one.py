"""One-to-one linkage: give everybody a row of their own, at the least total distance."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from microveil.attacks.known import EVERYTHING, known_of, proved
from microveil.attacks.linked import Linked, linkage_figure, linked_share
from microveil.attacks.searching import searched, victims_of
from microveil.attacks.sight import (
    CANDIDATES,
    Around,
    at_most,
    auction,
    cheapest,
    classes_of_rows,
    expected_share,
    is_small,
    nearest_rows,
    points_in,
    sight_of,
)
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure
from microveil.plan.scenarios import Scenario
from microveil.types import Booleans, Integers, Reals

_ID = "linkage.one_to_one"


def one_to_one_figure(seen: Examined, scenario: Scenario, asked: Asked) -> Figure | None:
    """Give people rows of their own; None where that would take too long."""
    most = min(asked.most_assigned, asked.most_attacked or asked.most_assigned)
    if not seen.whole and not most:
        return None
    linked = link_one_to_one(seen, scenario, most, asked.seed)
    return linkage_figure(linked, scenario, proved(seen.plan, scenario))


def link_one_to_one(
    seen: Examined, scenario: Scenario = EVERYTHING, most: int = 2_000, seed: int = 0
) -> Linked:
    """Give people a released record of their own, out of all there are.

    In tables too large to be looked at as a whole, `most` of those drawn take part and the others
    whom an attacker knows do not, so that it may find a little more or less than an attacker who
    assigns everybody at once.
    """
    if seen.whole:
        known = known_of(seen, scenario)
        return one_to_one_linkage(*known.tables, **known.given, people=scenario.people, seed=seed)
    victims = victims_of(seen, scenario, most)
    search = CandidateSearch.of(victims.people, victims.own, **victims.given)
    return search.linked(searched(seen, victims, search), victims.own, victims.known)


class Near(NamedTuple):
    """The nearest rows of each person that were seen: how far, which, and what they hold."""

    records: int
    away: Reals
    rows: Integers
    values: Reals


class CandidateSearch(Around):
    """A search for the `CANDIDATES` nearest rows of people, to be given out one to one."""

    def start(self) -> Near:
        """Return what was seen before any row."""
        people = len(self.points)
        return Near(0, np.empty((people, 0)), np.empty((people, 0), np.int64),
                    np.empty((people, 0, len(self.space.kinds))))  # fmt: skip

    def see(self, near: Near, part: Reals, first: int) -> Near:
        """Look at some rows, numbered from `first` on."""
        away, found = nearest_rows(self.points, self.place(part))
        return self.merge(near, Near(len(part), away, found + first, part[found]))

    def merge(self, one: Near, other: Near) -> Near:
        """Keep the nearest of both."""
        away = np.concatenate([one.away, other.away], axis=1)
        best = np.argsort(away, axis=1, kind="stable")[:, :CANDIDATES]
        rows = np.concatenate([one.rows, other.rows], axis=1)
        values = np.concatenate([one.values, other.values], axis=1)
        return Near(
            one.records + other.records,
            np.take_along_axis(away, best, axis=1),
            np.take_along_axis(rows, best, axis=1),
            np.take_along_axis(values, best[:, :, np.newaxis], axis=1),
        )

    def linked(self, near: Near, own: Reals, known: int) -> Linked:
        """Give the people a row each at the least total distance; a row equal to theirs is theirs.

        It is right with 1 in the number of rows that equal it, of which only candidates are
        counted: where there are more, the share is too high rather than too low.
        """
        numbers, candidates = np.unique(near.rows, return_inverse=True)
        values = np.where(near.away < self.apart, -near.away, -np.inf).astype(np.float32)
        match = auction(candidates.reshape(near.rows.shape), values, len(numbers))
        held = np.empty((len(numbers), near.values.shape[2]))
        held[candidates.ravel()] = near.values.reshape(-1, held.shape[1])
        class_of, sizes = classes_of_rows(np.vstack([held, own]))
        sizes = np.bincount(class_of[: len(held)], minlength=len(sizes))
        mine, matched = class_of[len(held) :], match >= 0
        right = matched & (class_of[np.maximum(match, 0)] == mine)
        share = float(np.sum(1 / sizes[mine[right]]) / len(own))
        return linked_share(_ID, share, len(own), known, near.records)


def one_to_one_linkage(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    exact: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    seed: int = 0,
) -> Linked:
    """Assign people to released records one to one, at the least total distance.

    Distances and parameters are those of `nearest`. The assignment is the best there is up to
    `EXACT` pairs of a person and a row. Past that `MOST_PEOPLE` are attacked at most, and each may
    get one of the `CANDIDATES` nearest rows or none. By chance 1 in n are linked.

    Examples
    --------
    >>> from microveil.attacks.nearest import nearest_linkage
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest_linkage(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    0.5
    >>> one_to_one_linkage(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    1.0
    """
    random = np.random.default_rng(seed)
    scene = sight_of(original, masked, nominal, exact, known, people, random)
    scene, all_known = at_most(scene, random)
    points, rows, apart = points_in(scene)
    if is_small(scene):
        from scipy.spatial.distance import cdist

        match = cheapest(np.minimum(cdist(points, rows), apart))
    else:
        away, candidates = nearest_rows(points, rows)
        values = np.where(away < apart, -away, -np.inf).astype(np.float32)
        match = auction(candidates, values, len(rows))
    share = expected_share(scene, match)
    return linked_share(_ID, share, len(points), all_known, len(rows))
