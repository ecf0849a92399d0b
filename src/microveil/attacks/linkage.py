"""Linkage: how many people's records someone finds in a release who knows their original values.

Three intruders, from the simplest to the strongest. All of them see the released values in random
row order and know original values of people; none knows which row is whose. Chance is 1/n: one row
picked at random out of n.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from microveil.errors import DataError
from microveil.types import Booleans, Integers, Reals

Weights = NDArray[np.float32]

EXACT = 6_000_000
"""Pairs of a person and a row up to which all of them are weighed against each other."""

MOST_PEOPLE = 10_000
"""People attacked at once past `EXACT`, drawn at random; all rows take part."""

CANDIDATES = 50
"""Nearest rows that each person may be given past `EXACT`."""

ONE_TO_ONE = "linkage.one_to_one"

_ONE_TO_ONE = "gives each of them a released record of their own, at the least total distance"
_TIE = 1 + 1e-9  # distances this close are equal: they differ by rounding alone
_ROUGH = 5.0  # how far from the nearest a rough search may end, as a multiple


@dataclass(frozen=True)
class Linked:
    """What an intruder found.

    Attributes
    ----------
    id
        Of the measure.
    does
        What the intruder does with what they know of people.
    share
        Share of the people attacked whose own record was picked. Where the pick is one of several
        equal records, it is the expected share: 1 in the number of them.
    low, high
        Hold the share among all people known with 95% confidence (Wilson); equal to `share` where
        all of them were attacked.
    attacked, known, records
        People attacked, people whose values the intruder knows, and records released.
    anew
        With how many times the epsilon a sample of the records was protected anew by the same
        plan, to try it on; None where it was tried on the release.
    """

    id: str
    does: str
    share: float
    low: float
    high: float
    attacked: int
    known: int
    records: int
    anew: float | None = None

    @property
    def chance(self) -> float:
        """The share of people found by picking rows at random."""
        return 1 / self.records

    @property
    def intruder(self) -> str:
        """Whom it models, in one sentence."""
        return f"Someone who knows people's original values and {self.does}."


@dataclass(frozen=True, eq=False)
class _Scene:
    """What an intruder sees: people known, and rows in random order; `own` is what is sought."""

    people: Reals
    rows: Reals
    own: Integers
    nominal: Booleans
    exact: Booleans


def nearest(
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
        Columns the intruder knows; all by default.
    people
        People the intruder knows: a share, drawn at random, or true for each one known. All rows
        are released.
    sample
        How many of them to attack, drawn at random; None for all.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest(original, np.array([[1.0], [3.0], [8.5], [8.5]])).share
    0.625
    """
    if sample is not None and sample < 1:
        raise DataError(f"sample must be 1 or more, or None for everybody, got {sample}")
    random = np.random.default_rng(seed)
    columns, kinds = _columns(original, masked, nominal, exact, known)
    chosen = _known_people(people, len(original), random)
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
        gaps=_gaps(values, rows),
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
        How many people the intruder knows; those attacked are a random sample of them.
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


class Seen(NamedTuple):
    """What was seen: how many rows, who has none nearer than their own, and how many as near."""

    records: int
    left: Integers
    equal: Reals


@dataclass(frozen=True, eq=False)
class Around:
    """People and their own released records in the space of `nearest`, and who can be whom."""

    space: "_Space"
    blocks: "_Blocks"
    apart: float
    points: Reals
    owned: Reals

    @classmethod
    def of(
        cls,
        people: Reals,
        own: Reals,
        *,
        nominal: Sequence[int] = (),
        exact: Sequence[int] = (),
        like: Reals | None = None,
        gaps: Booleans | None = None,
    ) -> Self:
        """Place people and their own records; parameters are those of `nearest_in_parts`."""
        kinds = _kinds(people.shape[1], nominal, exact)
        gaps = np.ones(people.shape[1], dtype=np.bool_) if gaps is None else gaps
        space = _space(people if like is None else like, people, kinds, gaps)
        points, owned = space.place(people), space.place(own)
        apart = 1 + 2 * float(np.linalg.norm(points - owned, axis=1).max())
        blocks = _Blocks(people[:, kinds == "exact"])
        points, owned = (blocks.beside(at, table[:, kinds == "exact"], apart)
                         for at, table in ((points, people), (owned, own)))  # fmt: skip
        return cls(space, blocks, apart, points, owned)

    def place(self, rows: Reals) -> Reals:
        """Place released records among them."""
        exact = rows[:, self.space.kinds == "exact"]
        return self.blocks.beside(self.space.place(rows), exact, self.apart)


class NearestSearch(Around):
    """A search for the nearest released record of people, in rows that come part by part."""

    @property
    def away(self) -> Reals:
        """How far people are from their own records."""
        away: Reals = np.linalg.norm(self.points - self.owned, axis=1)
        return away

    def start(self) -> Seen:
        """Return what was seen before any row."""
        return Seen(0, np.arange(len(self.points)), np.zeros(len(self.points)))

    def see(self, seen: Seen, part: Reals, first: int) -> Seen:  # noqa: ARG002 - as of candidates
        """Look at some rows, for those of whom nothing nearer was found yet."""
        equal = seen.equal.copy()
        left = _count_equal(self.points, self.away, seen.left, self.place(part), equal)
        return Seen(seen.records + len(part), left, equal)

    def merge(self, one: Seen, other: Seen) -> Seen:
        """Put together what was seen in different rows."""
        left = np.intersect1d(one.left, other.left, assume_unique=True)
        return Seen(one.records + other.records, left, one.equal + other.equal)

    def linked(self, seen: Seen, known: int) -> Linked:
        """Return who was found, once all rows were seen."""
        chances = np.zeros(len(self.points))
        chances[seen.left] = 1 / seen.equal[seen.left]
        return _linked(
            "linkage.nearest",
            "takes the nearest released record for each of them",
            float(chances.mean()),
            len(self.points),
            known,
            seen.records,
        )


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
        away, found = _nearest_rows(self.points, self.place(part))
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
        match = _auction(candidates.reshape(near.rows.shape), values, len(numbers))
        held = np.empty((len(numbers), near.values.shape[2]))
        held[candidates.ravel()] = near.values.reshape(-1, held.shape[1])
        class_of, sizes = _classes(np.vstack([held, own]))
        sizes = np.bincount(class_of[: len(held)], minlength=len(sizes))
        mine, matched = class_of[len(held) :], match >= 0
        right = matched & (class_of[np.maximum(match, 0)] == mine)
        share = float(np.sum(1 / sizes[mine[right]]) / len(own))
        return _linked(ONE_TO_ONE, _ONE_TO_ONE, share, len(own), known, near.records)


def one_to_one(
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
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    0.5
    >>> one_to_one(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    1.0
    """
    random = np.random.default_rng(seed)
    scene = _scene(original, masked, nominal, exact, known, people, random)
    scene, all_known = _at_most(scene, random)
    points, rows, apart = _points(scene)
    if _is_small(scene):
        from scipy.spatial.distance import cdist

        match = _cheapest(np.minimum(cdist(points, rows), apart))
    else:
        away, candidates = _nearest_rows(points, rows)
        values = np.where(away < apart, -away, -np.inf).astype(np.float32)
        match = _auction(candidates, values, len(rows))
    return _linked(
        ONE_TO_ONE,
        _ONE_TO_ONE,
        _expected_share(scene, match),
        len(points),
        all_known,
        len(rows),
    )


def structure(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    exact: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    seed: int = 0,
) -> Linked:
    """Link people by who shares masked values with whom, whatever the noise.

    Rows that share a masked value in some attribute are a cluster of people whose original values
    are near each other. Which ones is not known, so it is learnt: guess by rank, match rows to
    people by all attributes at once, see which people were matched with each masked value, guess
    again from that, and so on, looking ever closer; at the end assign one to one. No noise
    prevents it, since noise changes a shared value for all who share it. By chance 1 in n are
    linked.

    Parameters are those of `nearest`; limits are those of `one_to_one`.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> original = random.normal(size=(200, 6))
    >>> clusters = original.argsort(axis=0).argsort(axis=0) // 5
    >>> noise = random.normal(size=(40, 6))
    >>> masked = np.take_along_axis(noise, clusters, axis=0) + clusters / 20
    >>> nearest(original, masked).share < 0.2 < 0.9 < structure(original, masked).share
    True
    """
    random = np.random.default_rng(seed)
    scene = _scene(original, masked, nominal, exact, known, people, random)
    scene, all_known = _at_most(scene, random)
    match = _solve(scene)
    return _linked(
        "linkage.structure",
        "works out from who shares masked values with whom which record is whose",
        _expected_share(scene, match),
        len(scene.people),
        all_known,
        len(scene.rows),
    )


def _scene(
    original: Reals,
    masked: Reals,
    nominal: Sequence[int],
    exact: Sequence[int],
    known: Sequence[int] | None,
    people: float | Booleans,
    random: np.random.Generator,
) -> _Scene:
    """Choose who and what is known, and shuffle the rows."""
    columns, kinds = _columns(original, masked, nominal, exact, known)
    records = len(original)
    order = random.permutation(records)
    own = np.empty(records, dtype=np.int64)
    own[order] = np.arange(records)
    chosen = _known_people(people, records, random)
    return _Scene(
        people=original[np.ix_(chosen, columns)].astype(np.float64),
        rows=masked[np.ix_(order, columns)].astype(np.float64),
        own=own[chosen],
        nominal=kinds == "nominal",
        exact=kinds == "exact",
    )


def _columns(
    original: Reals,
    masked: Reals,
    nominal: Sequence[int],
    exact: Sequence[int],
    known: Sequence[int] | None,
) -> tuple[Integers, NDArray[np.str_]]:
    """Check the arguments; return which columns are known, and of which kind each of them is."""
    if original.ndim != 2 or original.shape != masked.shape or not original.size:
        raise DataError(
            "original and masked must be tables of the same people and attributes, found "
            f"{original.shape} and {masked.shape}"
        )
    attributes = original.shape[1]
    columns = np.arange(attributes) if known is None else np.unique(np.array(known, dtype=np.int64))
    for word, given in (("known", columns), ("nominal", nominal), ("exact", exact)):
        chosen = np.array(given, dtype=np.int64)
        outside = (chosen < 0).any() or (chosen >= attributes).any()
        if outside or (word == "known" and not len(chosen)):
            raise DataError(
                f"{word} must be columns from 0 to {attributes - 1}, got {chosen.tolist()}"
            )
    return columns, _kinds(attributes, nominal, exact)[columns]


def _kinds(attributes: int, nominal: Sequence[int], exact: Sequence[int]) -> NDArray[np.str_]:
    kinds = np.full(attributes, "number", dtype="<U7")
    kinds[list(nominal)] = "nominal"
    kinds[list(exact)] = "exact"
    return kinds


def _known_people(people: float | Booleans, records: int, random: np.random.Generator) -> Integers:
    if isinstance(people, np.ndarray):
        chosen = np.flatnonzero(people)
        if people.shape != (records,) or people.dtype != np.bool_ or not len(chosen):
            raise DataError(f"people must be true for some of the {records:,} records, or a share")
        return chosen
    if not 0 < people <= 1:
        raise DataError(f"people must be a share above 0 and up to 1, got {people}")
    number = max(1, round(people * records))
    return np.sort(random.choice(records, number, replace=False))


def _is_small(scene: _Scene) -> bool:
    return len(scene.people) * len(scene.rows) <= EXACT


def _at_most(scene: _Scene, random: np.random.Generator) -> tuple[_Scene, int]:
    known = len(scene.people)
    if known <= MOST_PEOPLE or _is_small(scene):
        return scene, known
    chosen = np.sort(random.choice(known, MOST_PEOPLE, replace=False))
    return replace(scene, people=scene.people[chosen], own=scene.own[chosen]), known


def _linked(id_: str, does: str, share: float, attacked: int, known: int, records: int) -> Linked:
    low, high = (share, share) if attacked == known else wilson(share, attacked)
    return Linked(id_, does, share, low, high, attacked, known, records)


def tried_anew(found: Linked, records: int, times: float) -> Linked:
    """Return what was found in a sample of so many records, with so many times the epsilon."""
    low, high = wilson(found.share, found.attacked)
    return replace(found, low=low, high=high, known=records, records=records, anew=times)


def wilson(share: float, sampled: int) -> tuple[float, float]:
    """Return Wilson's 95% interval, which still says something when nobody was linked."""
    z = 1.96
    centre = share + z**2 / (2 * sampled)
    margin = z * np.sqrt(share * (1 - share) / sampled + z**2 / (4 * sampled**2))
    width = 1 + z**2 / sampled
    low, high = float((centre - margin) / width), float((centre + margin) / width)
    return min(share, max(0.0, low)), max(share, min(1.0, high))


@dataclass(frozen=True, eq=False)
class _Axis:
    """One attribute of the space in which distances are those of `nearest`."""

    mean: float
    unit: float
    categories: Reals | None
    gaps: bool

    def place(self, values: Reals) -> list[Reals]:
        """Return coordinates of values; the last says which are missing, if any may be."""
        absent = np.isnan(values)
        gaps = [absent] if self.gaps else []
        if self.categories is None:
            places = np.where(absent, self.mean, values) / self.unit
            return [places, *(gap.astype(np.float64) for gap in gaps)]
        belongs = values[:, np.newaxis] == self.categories
        others = ~absent & ~belongs.any(axis=1)
        return [column / np.sqrt(2) for column in (*belongs.T, others, *gaps)]


@dataclass(frozen=True, eq=False)
class _Space:
    """Where records lie by the attributes that are masked; `axes` and `kinds` go by column."""

    axes: Sequence[_Axis]
    kinds: NDArray[np.str_]

    def place(self, table: Reals) -> Reals:
        """Return the points of records."""
        columns = table.T[self.kinds != "exact"]
        places = [place for axis, column in zip(self.axes, columns, strict=True)
                  for place in axis.place(column)]  # fmt: skip
        return np.column_stack(places) if places else np.zeros((len(table), 0))


def _space(like: Reals, people: Reals, kinds: NDArray[np.str_], gaps: Booleans) -> _Space:
    """Make the space of people; a category that none of them has is just another one."""
    axes = []
    for values, own, kind, gap in zip(like.T, people.T, kinds, gaps, strict=True):
        if kind == "nominal":
            axes.append(_Axis(0.0, 1.0, np.unique(own[~np.isnan(own)]), bool(gap)))
        elif kind == "number":
            present = values[~np.isnan(values)]
            axes.append(_Axis(*_mean_and_deviation(present), None, bool(gap)))
    return _Space(axes, kinds)


def _gaps(*tables: Reals) -> Booleans:
    """Return which columns have missing values in any of the tables."""
    columns = zip(*(table.T for table in tables), strict=True)
    return np.array([any(np.isnan(column).any() for column in each) for each in columns])


class _Blocks:
    """Who can be whom by columns that are published as they are: those with equal values."""

    def __init__(self, people: Reals) -> None:
        self._steps: list[tuple[Reals, Integers]] = []
        label = np.zeros(len(people), dtype=np.int64)
        for column in people.T:
            values, at = np.unique(column, return_inverse=True)
            found, label = np.unique(label * len(values) + at, return_inverse=True)
            self._steps.append((values, found))

    def of(self, table: Reals) -> Integers:
        """Return the number of each record's block; −1 where it is nobody's."""
        label = np.zeros(len(table), dtype=np.int64)
        for (values, found), column in zip(self._steps, table.T, strict=True):
            at = np.minimum(np.searchsorted(values, column), len(values) - 1)
            same = (values[at] == column) | (np.isnan(values[at]) & np.isnan(column))
            combined = np.where(same & (label >= 0), label * len(values) + at, -1)
            label = np.minimum(np.searchsorted(found, combined), len(found) - 1)
            label = np.where(found[label] == combined, label, -1)
        return label

    def beside(self, points: Reals, table: Reals, apart: float) -> Reals:
        """Move the points of different blocks apart; without such columns return them."""
        return np.column_stack([points, self.of(table) * apart]) if self._steps else points


def _points(scene: _Scene) -> tuple[Reals, Reals, float]:
    """Place people and rows; return also from which distance on they are of different blocks."""
    kinds = np.where(scene.exact, "exact", np.where(scene.nominal, "nominal", "number"))
    space = _space(scene.people, scene.people, kinds, _gaps(scene.people, scene.rows))
    blocks = _Blocks(scene.people[:, scene.exact])
    people, rows = space.place(scene.people), space.place(scene.rows)
    if not scene.exact.any():
        return people, rows, np.inf
    both = np.vstack([people, rows])
    apart = 1 + 2 * float(np.linalg.norm(np.ptp(both, axis=0)))
    return (
        blocks.beside(people, scene.people[:, scene.exact], apart),
        blocks.beside(rows, scene.rows[:, scene.exact], apart),
        apart,
    )


def _mean_and_deviation(values: Reals) -> tuple[float, float]:
    if not len(values) or values.min() == values.max():
        return (float(values[0]) if len(values) else 0.0), 1.0
    return float(values.mean()), float(values.std(ddof=1))


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


def _nearest_rows(points: Reals, rows: Reals) -> tuple[Reals, Integers]:
    from scipy.spatial import KDTree

    number = np.arange(1, min(CANDIDATES, len(rows)) + 1)  # a list, or one is no column
    away, found = KDTree(rows).query(points, number, eps=1.0, workers=-1)
    return away, found


def _auction(candidates: Integers, values: Weights, rows: int) -> Integers:
    from microveil.core.kernels import assignment as kernels

    possible = np.isfinite(values)
    worst = np.where(possible, values, np.inf).min(axis=1)
    spread = float(np.mean(values.max(axis=1) - worst, where=possible.any(axis=1))) or 1.0
    return kernels.assign(candidates, values, rows, spread / 100, 5 * spread)


def _cheapest(costs: NDArray[Any]) -> Integers:
    from scipy.optimize import linear_sum_assignment

    match: Integers = linear_sum_assignment(costs)[1]
    return match


def _expected_share(scene: _Scene, match: Integers) -> float:
    """Share of people matched with their own row, on average over ties.

    Equal rows could be swapped, and so could people with equal values, without any intruder
    noticing: of a person class P and a row class C, each match of the two is right with the chance
    that two people of P and C drawn at random belong together.
    """
    person, persons = _classes(scene.people)
    row, rows = _classes(scene.rows)
    matched = match >= 0
    width = len(rows)
    guesses = person[matched] * width + row[match[matched]]
    truths, counts = np.unique(person * width + row[scene.own], return_counts=True)
    at = np.minimum(np.searchsorted(truths, guesses), len(truths) - 1)
    right = np.where(truths[at] == guesses, counts[at], 0)
    chances = right / persons[guesses // width] / rows[guesses % width]
    return float(chances.sum() / len(match))


def _classes(table: Reals) -> tuple[Integers, Integers]:
    """Give equal rows the same number, missing values being equal; return classes and sizes."""
    label = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        values, codes = np.unique(column, return_inverse=True)
        _, label = np.unique(label * len(values) + codes, return_inverse=True)
    return label, np.bincount(label)


_ROUNDS = 24
_FIRST_REACH = 0.2  # of all ranks: how far off a guess by rank may be
_BACKGROUND = 0.05  # chance of anything else, so that no single attribute rules out a match
_BALANCING = 15
_LOOK_AGAIN = 6  # rounds with the same candidates
_IMPOSSIBLE = -60.0  # log-odds of a match that published values rule out


@dataclass(eq=False)
class _Attribute:
    """One attribute to an intruder: places of people, masked values of rows, and what is learnt.

    `density` has, by place and masked value, how much likelier people of a place are to have it
    than others. It is learnt where masked values are shared.
    """

    places: Integers
    labels: Integers
    density: Reals
    smooth: bool
    shared: bool

    def odds(self) -> Weights:
        """Log-odds of a match by place and masked value."""
        odds: Weights = np.log((1 - _BACKGROUND) * self.density + _BACKGROUND).astype(np.float32)
        return odds

    @property
    def middles(self) -> Reals:
        """Where places lie between 0 and 1; what is missing is in the middle."""
        known = len(self.density) - 1
        return np.append((np.arange(known) + 0.5) / known, 0.5)

    def guesses(self) -> Reals:
        """Where the people of each masked value are thought to lie, on average."""
        among = np.bincount(self.places, minlength=len(self.density))[:, np.newaxis]
        weights = self.density * among
        means: Reals = self.middles @ weights / np.maximum(weights.sum(axis=0), 1e-12)
        return means

    def learn(self, counts: Reals, reach: float) -> None:
        """Estimate densities from who has been matched with what, `reach` places around."""
        among = np.bincount(self.places, minlength=len(counts))[:, np.newaxis].astype(np.float64)
        if self.smooth:
            counts, among = (_smoothed(table, reach) for table in (counts, among))
        counts = counts + 1e-9
        share = among / among.sum() + 1e-12
        self.density = counts / counts.sum(axis=0) / share


def _smoothed(table: Reals, reach: float) -> Reals:
    """Spread what is in a place over those nearby; the last one is for missing values."""
    return np.vstack([_spread(len(table) - 1, reach) @ table[:-1], table[-1:]])


@lru_cache(maxsize=8)
def _spread(known: int, reach: float) -> Reals:
    """How much of each place goes to each; attributes of one round share it."""
    middles = (np.arange(known) + 0.5) / known
    kernel: Reals = np.exp(-0.5 * ((middles[:, np.newaxis] - middles) / reach) ** 2)
    kernel /= kernel.sum(axis=0)
    return kernel


def _attribute(values: Reals, masked: Reals, nominal: bool) -> _Attribute:
    """Guess by rank, or of categories that they stay what they are."""
    released, labels, counts = np.unique(masked, return_inverse=True, return_counts=True)
    absent, none = np.isnan(values), np.isnan(released)
    if nominal:
        categories, codes = np.unique(values[~absent], return_inverse=True)
        density = 0.5 + 0.5 * len(categories) * (categories[:, np.newaxis] == released)
        bins = len(categories)
    else:
        bins = int(np.clip(len(values) // 5, 20, 200))
        _, inverse, sizes = np.unique(values[~absent], return_inverse=True, return_counts=True)
        middle = (np.cumsum(sizes) - sizes / 2)[inverse] / max(1, len(inverse))
        codes = np.minimum((middle * bins).astype(np.int64), bins - 1)
        ranks = (np.cumsum(counts) - counts / 2) / len(masked)
        away = (np.arange(bins)[:, np.newaxis] + 0.5) / bins - ranks
        density = np.exp(-0.5 * (away / (_FIRST_REACH + counts / len(masked))) ** 2)
        density /= density.mean(axis=0)
    places = np.full(len(values), bins, dtype=np.int64)
    places[~absent] = codes
    density = np.vstack([density, np.ones(len(released))])
    density[:, none] = 1.0
    shared = len(released) < len(masked) / 2
    return _Attribute(places, labels, density, not nominal, shared)


def _solve(scene: _Scene) -> Integers:
    """Give each person a row, or −1 where that is not worth it."""
    from microveil.core.kernels import assignment as kernels

    columns = zip(scene.people.T, scene.rows.T, scene.nominal, strict=True)
    masked = [c for c, exact in zip(columns, scene.exact, strict=True) if not exact]
    attributes = [_attribute(*column) for column in masked]
    blocks = _Blocks(scene.people[:, scene.exact])
    mine, theirs = (blocks.of(table[:, scene.exact]) for table in (scene.people, scene.rows))
    people, rows = len(scene.people), len(scene.rows)
    candidates: Integers = np.broadcast_to(np.arange(rows), (people, rows))
    for turn in range(_ROUNDS):
        if not _is_small(scene) and turn % _LOOK_AGAIN == 0:
            candidates = _likely_rows(attributes, mine, theirs)
        scores = np.zeros(candidates.shape, dtype=np.float32)
        scores[mine[:, np.newaxis] != theirs[candidates]] = _IMPOSSIBLE
        for attribute in attributes:
            kernels.score(attribute.odds(), attribute.places, attribute.labels, candidates, scores)
        if turn == _ROUNDS - 1:
            break
        if _is_small(scene):
            kernels.match_all_softly(scores, _BALANCING, people == rows)
        else:
            kernels.match_softly(scores, candidates, rows, _BALANCING, people == rows)
        progress = min(1.0, 1.25 * turn / _ROUNDS)
        for attribute in (a for a in attributes if a.shared):
            counts = np.zeros_like(attribute.density)
            kernels.learn(scores, attribute.places, attribute.labels, candidates, counts)
            finest = 0.5 / (len(counts) - 1)
            attribute.learn(counts, _FIRST_REACH * (finest / _FIRST_REACH) ** progress)
    return _cheapest(-scores) if _is_small(scene) else _auction(candidates, scores, rows)


def _likely_rows(attributes: Sequence[_Attribute], mine: Integers, theirs: Integers) -> Integers:
    """Return for each person the rows of their block thought to lie nearest by masked values."""
    apart = 1 + 2 * np.sqrt(len(attributes))  # all else lies between 0 and 1
    places = [attribute.middles[attribute.places] for attribute in attributes]
    guesses = [attribute.guesses()[attribute.labels] for attribute in attributes]
    return _nearest_rows(
        np.column_stack([*places, mine * apart]), np.column_stack([*guesses, theirs * apart])
    )[1]
