"""What an attacker sees, and the space in which people and rows are compared.

Distances are Euclidean over attributes divided by their standard deviations in the original. Two
nominal categories are at squared distance 1, and so are a missing and a present value; a missing
number lies at the mean besides. Columns that are published as they are only allow rows with the
same values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from microveil.errors import DataError
from microveil.types import Booleans, Integers, Reals

EXACT = 6_000_000
"""Pairs of a person and a row up to which all of them are weighed against each other."""

MOST_PEOPLE = 10_000
"""People attacked at once past `EXACT`, drawn at random; all rows take part."""

CANDIDATES = 50
"""Nearest rows that each person may be given past `EXACT`."""

Scores = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Sight:
    """What an attacker sees: people known, and rows in random order; `own` is what is sought."""

    people: Reals
    rows: Reals
    own: Integers
    nominal: Booleans
    exact: Booleans


def sight_of(
    original: Reals,
    masked: Reals,
    nominal: Sequence[int],
    exact: Sequence[int],
    known: Sequence[int] | None,
    people: float | Booleans,
    random: np.random.Generator,
) -> Sight:
    """Choose who and what is known, and shuffle the rows."""
    columns, kinds = known_columns(original, masked, nominal, exact, known)
    records = len(original)
    order = random.permutation(records)
    own = np.empty(records, dtype=np.int64)
    own[order] = np.arange(records)
    chosen = known_people(people, records, random)
    return Sight(
        people=original[np.ix_(chosen, columns)].astype(np.float64),
        rows=masked[np.ix_(order, columns)].astype(np.float64),
        own=own[chosen],
        nominal=kinds == "nominal",
        exact=kinds == "exact",
    )


def known_columns(
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


def known_people(people: float | Booleans, records: int, random: np.random.Generator) -> Integers:
    """Return who is known: a share of all, drawn at random, or as given."""
    if isinstance(people, np.ndarray):
        chosen = np.flatnonzero(people)
        if people.shape != (records,) or people.dtype != np.bool_ or not len(chosen):
            raise DataError(f"people must be true for some of the {records:,} records, or a share")
        return chosen
    if not 0 < people <= 1:
        raise DataError(f"people must be a share above 0 and up to 1, got {people}")
    number = max(1, round(people * records))
    return np.sort(random.choice(records, number, replace=False))


def is_small(scene: Sight) -> bool:
    """Whether all pairs of a person and a row can be weighed."""
    return len(scene.people) * len(scene.rows) <= EXACT


def at_most(scene: Sight, random: np.random.Generator) -> tuple[Sight, int]:
    """Draw some people where there are too many; return also how many there were."""
    known = len(scene.people)
    if known <= MOST_PEOPLE or is_small(scene):
        return scene, known
    chosen = np.sort(random.choice(known, MOST_PEOPLE, replace=False))
    return replace(scene, people=scene.people[chosen], own=scene.own[chosen]), known


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


def gaps_in(*tables: Reals) -> Booleans:
    """Return which columns have missing values in any of the tables."""
    columns = zip(*(table.T for table in tables), strict=True)
    return np.array([any(np.isnan(column).any() for column in each) for each in columns])


class Blocks:
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


def points_in(scene: Sight) -> tuple[Reals, Reals, float]:
    """Place people and rows; return also from which distance on they are of different blocks."""
    kinds = np.where(scene.exact, "exact", np.where(scene.nominal, "nominal", "number"))
    space = _space(scene.people, scene.people, kinds, gaps_in(scene.people, scene.rows))
    blocks = Blocks(scene.people[:, scene.exact])
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


@dataclass(frozen=True, eq=False)
class Around:
    """People and their own released records in the space of `nearest`, and who can be whom."""

    space: "_Space"
    blocks: "Blocks"
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
        blocks = Blocks(people[:, kinds == "exact"])
        points, owned = (blocks.beside(at, table[:, kinds == "exact"], apart)
                         for at, table in ((points, people), (owned, own)))  # fmt: skip
        return cls(space, blocks, apart, points, owned)

    def place(self, rows: Reals) -> Reals:
        """Place released records among them."""
        exact = rows[:, self.space.kinds == "exact"]
        return self.blocks.beside(self.space.place(rows), exact, self.apart)


def nearest_rows(points: Reals, rows: Reals) -> tuple[Reals, Integers]:
    """Return how far the nearest rows of each point are, and which these are."""
    from scipy.spatial import KDTree

    number = np.arange(1, min(CANDIDATES, len(rows)) + 1)  # a list, or one is no column
    away, found = KDTree(rows).query(points, number, eps=1.0, workers=-1)
    return away, found


def auction(candidates: Integers, values: Scores, rows: int) -> Integers:
    """Give people one candidate each by an auction; −1 where that is not worth it."""
    from microveil.core.kernels import assignment as kernels

    possible = np.isfinite(values)
    worst = np.where(possible, values, np.inf).min(axis=1)
    spread = float(np.mean(values.max(axis=1) - worst, where=possible.any(axis=1))) or 1.0
    return kernels.assign(candidates, values, rows, spread / 100, 5 * spread)


def cheapest(costs: NDArray[np.floating]) -> Integers:
    """Give people one row each at the least total cost."""
    from scipy.optimize import linear_sum_assignment

    match: Integers = linear_sum_assignment(costs)[1]
    return match


def expected_share(scene: Sight, match: Integers) -> float:
    """Share of people matched with their own row, on average over ties.

    Equal rows could be swapped, and so could people with equal values, without any attacker
    noticing: of a person class P and a row class C, each match of the two is right with the chance
    that two people of P and C drawn at random belong together.
    """
    person, persons = classes_of_rows(scene.people)
    row, rows = classes_of_rows(scene.rows)
    matched = match >= 0
    width = len(rows)
    guesses = person[matched] * width + row[match[matched]]
    truths, counts = np.unique(person * width + row[scene.own], return_counts=True)
    at = np.minimum(np.searchsorted(truths, guesses), len(truths) - 1)
    right = np.where(truths[at] == guesses, counts[at], 0)
    chances = right / persons[guesses // width] / rows[guesses % width]
    return float(chances.sum() / len(match))


def classes_of_rows(table: Reals) -> tuple[Integers, Integers]:
    """Give equal rows the same number, missing values being equal; return classes and sizes."""
    label = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        values, codes = np.unique(column, return_inverse=True)
        _, label = np.unique(label * len(values) + codes, return_inverse=True)
    return label, np.bincount(label)
