"""Nearest linkage: take the nearest released row for each person."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from microveil.attacks.known import EVERYTHING, known_of, proved
from microveil.attacks.linked import Linked, linkage_figure, linked_share
from microveil.attacks.searching import searched, victims_of
from microveil.attacks.sight import Around, gaps_in, known_columns, known_people
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure
from microveil.errors import DataError
from microveil.plan.scenarios import Scenario
from microveil.types import Booleans, Integers, Reals

_ID = "linkage.nearest"

_TIE = 1 + 1e-9  # distances this close are equal: they differ by rounding alone
_ROUGH = 5.0  # how far from the nearest a rough search may end, as a multiple


def nearest_figure(seen: Examined, scenario: Scenario, asked: Asked) -> Figure:
    """Link people to the nearest of all released records."""
    linked = link_to_nearest(seen, scenario, asked.most_attacked, asked.seed)
    return linkage_figure(linked, scenario, proved(seen.plan, scenario))


def link_to_nearest(
    seen: Examined, scenario: Scenario = EVERYTHING, most: int | None = 10_000, seed: int = 0
) -> Linked:
    """Link people, so many at most, to the nearest of all released records."""
    if seen.whole:
        known = known_of(seen, scenario)
        return nearest_linkage(
            *known.tables, **known.given, people=scenario.people, sample=most, seed=seed
        )
    victims = victims_of(seen, scenario, most)
    search = NearestSearch.of(victims.people, victims.own, **victims.given)
    return search.linked(searched(seen, victims, search), victims.known)


def nearest_linkage(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    exact: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    sample: int | None = 10_000,
    seed: int = 0,
) -> Linked:
    """Link every person to the nearest released record.

    Distances are Euclidean over attributes divided by their standard deviations in the original.
    Two nominal categories are at squared distance 1, and so are a missing and a present value; a
    missing number lies at the mean besides. A person whose nearest distance is attained by t
    records, their own among them, counts 1/t. By chance 1 in n are linked.

    Parameters
    ----------
    original, masked
        Records × attributes, row i of both of the same person; NaN where a value is missing.
    nominal
        Columns that hold codes of categories without an order. Ordinal ones are numbers.
    exact
        Columns that are published as they are: where they are known, only records with the same
        values are possible.
    known
        Columns the attacker knows; all by default.
    people
        People the attacker knows: a share, drawn at random, or true for each one known. All rows
        are released.
    sample
        How many of them to attack, drawn at random; None for all.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest_linkage(original, np.array([[1.0], [3.0], [8.5], [8.5]])).share
    0.625
    """
    if sample is not None and sample < 1:
        raise DataError(f"sample must be 1 or more, or None for everybody, got {sample}")
    random = np.random.default_rng(seed)
    columns, kinds = known_columns(original, masked, nominal, exact, known)
    chosen = known_people(people, len(original), random)
    attacked = chosen
    if sample is not None and sample < len(chosen):
        attacked = np.sort(random.choice(chosen, sample, replace=False))
    rows = masked[:, columns].astype(np.float64)
    values = original[np.ix_(chosen, columns)].astype(np.float64)
    return nearest_in_parts(
        original[np.ix_(attacked, columns)].astype(np.float64),
        rows[attacked],
        [rows],
        nominal=np.flatnonzero(kinds == "nominal").tolist(),
        exact=np.flatnonzero(kinds == "exact").tolist(),
        known=len(chosen),
        like=values,
        gaps=gaps_in(values, rows),
    )


def nearest_in_parts(
    people: Reals,
    own: Reals,
    parts: Iterable[Reals],
    *,
    nominal: Sequence[int] = (),
    exact: Sequence[int] = (),
    known: int,
    like: Reals | None = None,
    gaps: Booleans | None = None,
) -> Linked:
    """Link people to the nearest released record of a table that is looked at part by part.

    Parameters
    ----------
    people, own
        Original values of the people attacked, and their own released records.
    parts
        All released records, some at a time.
    nominal, exact
        As for `nearest`.
    known
        How many people the attacker knows; those attacked are a random sample of them.
    like
        Original values whose standard deviations are the units of distances; by default `people`.
    gaps
        Which columns may have missing values; by default all.

    Examples
    --------
    >>> people, own = np.array([[1.0], [8.0]]), np.array([[1.0], [8.5]])
    >>> parts = [np.array([[1.0], [3.0]]), np.array([[8.5], [8.5]])]
    >>> nearest_in_parts(people, own, parts, known=4).share
    0.75
    """
    search = NearestSearch.of(people, own, nominal=nominal, exact=exact, like=like, gaps=gaps)
    state = search.start()
    for part in parts:
        state = search.see(state, part, state.records)
    return search.linked(state, known)


class RowsSeen(NamedTuple):
    """What was seen: how many rows, who has none nearer than their own, and how many as near."""

    records: int
    left: Integers
    equal: Reals


class NearestSearch(Around):
    """A search for the nearest released record of people, in rows that come part by part."""

    @property
    def away(self) -> Reals:
        """How far people are from their own records."""
        away: Reals = np.linalg.norm(self.points - self.owned, axis=1)
        return away

    def start(self) -> RowsSeen:
        """Return what was seen before any row."""
        return RowsSeen(0, np.arange(len(self.points)), np.zeros(len(self.points)))

    def see(self, seen: RowsSeen, part: Reals, first: int) -> RowsSeen:  # noqa: ARG002 - as of candidates
        """Look at some rows, for those of whom nothing nearer was found yet."""
        equal = seen.equal.copy()
        left = _count_equal(self.points, self.away, seen.left, self.place(part), equal)
        return RowsSeen(seen.records + len(part), left, equal)

    def merge(self, one: RowsSeen, other: RowsSeen) -> RowsSeen:
        """Put together what was seen in different rows."""
        left = np.intersect1d(one.left, other.left, assume_unique=True)
        return RowsSeen(one.records + other.records, left, one.equal + other.equal)

    def linked(self, seen: RowsSeen, known: int) -> Linked:
        """Return who was found, once all rows were seen."""
        chances = np.zeros(len(self.points))
        chances[seen.left] = 1 / seen.equal[seen.left]
        return linked_share(_ID, float(chances.mean()), len(self.points), known, seen.records)


def _count_equal(points: Reals, away: Reals, left: Integers, rows: Reals, equal: Reals) -> Integers:
    """Add to `equal` how many rows are as near as a person's own; return who has none nearer."""
    from scipy.spatial import KDTree

    if not len(left):
        return left
    tree = KDTree(rows)
    for precision in (_ROUGH, 0.0):  # most are found out by a rough search
        distances, _ = tree.query(points[left], eps=precision, workers=-1)
        left = left[away[left] <= distances * _TIE]
    equal[left] += tree.query_ball_point(
        points[left], away[left] * _TIE, return_length=True, workers=-1
    )
    return left
