"""What attacks get to work on: people, a way to release any of them, and how success is counted.

Every attack is a function of a `Subject` and a seed, and says beside its success what the same
guess achieves without the release telling anything of the person: its control. The risk is what is
gained over that, (rate − control)/(1 − control), after Giomi, Boenisch, Wehmeyer and Tasnádi
(2022), "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023(2).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from microveil.attacks.linked import Linked, wilson
from microveil.types import Booleans, Integers, Reals


@dataclass(frozen=True)
class Controlled:
    """How often an attack was right, and its control.

    Attributes
    ----------
    rate, control
        Shares of right guesses about people in the release, and of the control.
    tried, tried_control
        How many guesses the shares are of, counted as if those about one person were one; 0 for a
        control that is known exactly.
    auc
        Of membership inference: the area under the curve of true over false alarms.
    """

    rate: float
    control: float
    tried: int
    tried_control: int = 0
    auc: float | None = None

    @property
    def risk(self) -> float:
        """What is gained over the control, as a share of what could be."""
        return max(0.0, _gain(self.rate, self.control))

    @property
    def low(self) -> float:
        """The lower end of the risk's 95% interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """The upper end of the risk's 95% interval."""
        return self.interval()[1]

    def interval(self, of: int = 1) -> tuple[float, float]:
        """Return the risk's 95% interval; of several risks, such that all of them hold at once.

        It adds the squares of what Wilson's intervals of both shares allow (Zou and Donner (2008),
        "Construction of confidence limits about effect measures", Statistics in Medicine 27(10)).
        """
        z = NormalDist().inv_cdf(1 - 0.025 / of)
        rates = wilson(self.rate, self.tried, z)
        controls = wilson(self.control, self.tried_control, z) if self.tried_control else None
        least, most = controls or (self.control, self.control)
        found = _gain(self.rate, self.control)
        below = np.hypot(found - _gain(rates[0], self.control), found - _gain(self.rate, most))
        above = np.hypot(_gain(rates[1], self.control) - found, _gain(self.rate, least) - found)
        low, high = np.clip((found - below, found + above), 0.0, 1.0).tolist()
        return low, high


def _gain(rate: float, control: float) -> float:
    return (rate - control) / (1 - control) if control < 1 else 0.0


class ReleasedRows(NamedTuple):
    """Released rows, and the joint cluster of every value; None where rows are by themselves."""

    rows: Reals
    joint: Integers | None = None


class PeopleTried(NamedTuple):
    """Records of people, and whose they are."""

    values: Reals
    owner: Integers


@dataclass(frozen=True, eq=False)
class Scene:
    """One release: original values of the people in it, their rows, and people outside it.

    Row i is that of record i, which an attack uses to count its success alone. `joint` has the
    joint cluster of every released value, `owner` and `owner_outside` whose records these are.
    """

    people: Reals
    rows: Reals
    outside: Reals
    nominal: tuple[int, ...]
    exact: tuple[int, ...]
    joint: Integers
    owner: Integers
    owner_outside: Integers

    @cached_property
    def space(self) -> "Coordinates":
        """Where distances are measured: its units are those of the rows, which are seen."""
        return Coordinates(self.rows, self.nominal)

    def nearest(self, values: Reals, attributes: Iterable[int]) -> Booleans:
        """Return which rows are nearest to records by some attributes: several if equally near.

        Rows with another value of what is published as it is are ruled out, unless all are.
        """
        chosen = list(attributes)
        points, rows = (self.space.place(table, chosen) for table in (values, self.rows))
        exact = [a for a in chosen if a in self.exact]
        same = np.ones((len(values), len(rows)), dtype=np.bool_)
        for a in exact:
            same &= values[:, a, np.newaxis] == self.rows[:, a]
        return nearest_to(points, rows, same | ~same.any(axis=1, keepdims=True))

    @property
    def groups(self) -> tuple[PeopleTried, PeopleTried]:
        """The people in the release, and those outside it."""
        return PeopleTried(self.people, self.owner), PeopleTried(self.outside, self.owner_outside)

    @property
    def secrets(self) -> list[int]:
        """Attributes that are not published as they are."""
        return [a for a in range(self.rows.shape[1]) if a not in self.exact]


@dataclass(frozen=True, eq=False)
class Subject:
    """People and a way to release any of them.

    Attributes
    ----------
    people
        Original values, records × attributes; NaN where one is missing.
    nominal
        Columns that hold codes of categories without an order.
    release
        Protects the records at these places in the table, with a seed, and returns their rows in
        the same order. A place may be given twice: then two people are alike.
    exact
        Columns that are published as they are, which everybody knows.
    unit
        Whose the records are; by default everybody has one.
    """

    people: Reals
    nominal: tuple[int, ...]
    release: Callable[[Integers, int], ReleasedRows]
    exact: tuple[int, ...] = ()
    unit: Integers | None = None
    _scenes: dict[tuple[str, int], Scene] = field(default_factory=dict, repr=False)

    @cached_property
    def owner(self) -> Integers:
        """Whose each record is."""
        return np.arange(len(self.people)) if self.unit is None else self.unit

    def whole(self, seed: int) -> Scene:
        """Release everybody."""
        return self._once(("whole", seed), np.ones(len(self.people), dtype=np.bool_))

    def halves(self, seed: int) -> tuple[Scene, Scene]:
        """Release one half of the people, drawn at random, and the other: each other's control."""
        units = np.unique(self.owner)
        drawn = np.random.default_rng(seed).permutation(units)[: len(units) // 2]
        chosen = np.isin(self.owner, drawn)
        return self._once(("half", seed), chosen), self._once(("other half", seed), ~chosen)

    def _once(self, key: tuple[str, int], chosen: Booleans) -> Scene:
        if key not in self._scenes:
            people, owner = self.people, self.owner
            rows, joint = self.release(np.flatnonzero(chosen), key[1])
            alone = np.repeat(np.arange(len(rows))[:, np.newaxis], rows.shape[1], axis=1)
            self._scenes[key] = Scene(
                people[chosen], rows, people[~chosen], self.nominal, self.exact,
                alone if joint is None else joint, owner[chosen], owner[~chosen],
            )  # fmt: skip
        return self._scenes[key]


class Coordinates:
    """Attributes as coordinates: numbers in standard deviations, two categories at distance 1.

    A missing number lies at the mean, a missing category at none.
    """

    def __init__(self, like: Reals, nominal: Iterable[int]) -> None:
        self._nominal = frozenset(nominal)
        self._categories = [np.unique(column[~np.isnan(column)]) for column in like.T]
        ends = [_mean_and_deviation(column) for column in like.T]
        self.mean, self.deviation = (np.array(each) for each in zip(*ends, strict=True))

    def place(self, table: Reals, attributes: Iterable[int]) -> Reals:
        """Return the coordinates of records by some attributes."""
        return np.column_stack([self._column(table[:, a], a) for a in attributes])

    def _column(self, values: Reals, attribute: int) -> Reals:
        if attribute in self._nominal:
            belongs = values[:, np.newaxis] == self._categories[attribute]
            places: Reals = belongs / np.sqrt(2)
            return places
        moved: Reals = (values - self.mean[attribute]) / self.deviation[attribute]
        return np.where(np.isnan(moved), 0.0, moved)[:, np.newaxis]


def _mean_and_deviation(values: Reals) -> tuple[float, float]:
    present = values[~np.isnan(values)]
    if not len(present):
        return 0.0, 1.0
    return float(present.mean()), float(present.std()) or 1.0


_TIE = 1e-9  # squared distances this close, as a share of a point's own, differ by rounding alone


def nearest_to(points: Reals, rows: Reals, possible: Booleans | None = None) -> Booleans:
    """Return for each point which of the possible rows are nearest: several if equally near."""
    own = np.sum(points**2, axis=1, keepdims=True)
    away = np.sum(rows**2, axis=1) - 2 * points @ rows.T
    if possible is not None:
        away[~possible] = np.inf
    found: Booleans = away <= away.min(axis=1, keepdims=True) + _TIE * (1 + own)
    return found


_NEVER_AGAIN = 1_000_003


def seed_of_shadow(seed: int, number: int) -> int:
    """Give every release that an attacker makes a seed that no release under attack has."""
    return _NEVER_AGAIN * (seed + 1) + number


@dataclass(frozen=True)
class LinkageWithControl:
    """A linkage attack on everybody; its control is a row at random."""

    attack: Callable[..., Linked]

    def __call__(self, subject: Subject, seed: int) -> Controlled:
        """Make the attack."""
        scene = subject.whole(seed)
        found = self.attack(scene.people, scene.rows, nominal=scene.nominal, seed=seed)
        return Controlled(found.share, found.chance, found.attacked)


@dataclass(frozen=True)
class OverAttributes:
    """An attack on every attribute in turn; on all of them its mean counts."""

    each: Callable[[Subject, int], dict[int, Controlled]]

    def __call__(self, subject: Subject, seed: int) -> Controlled | None:
        """Make the attack."""
        found = list(self.each(subject, seed).values())
        if not found:
            return None
        rate, control = np.mean([(one.rate, one.control) for one in found], axis=0).tolist()
        tried = min(one.tried for one in found), min(one.tried_control for one in found)
        return Controlled(rate, control, *tried)
