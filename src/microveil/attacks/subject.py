"""What attacks get to work on: people, a way to release any of them, and how success is counted.

Every attack is a function of a `Subject` and a seed, and says beside its success what the same
guess achieves without the release telling anything of the person: its control. The risk is what is
gained over that, (rate − control)/(1 − control), after Giomi, Boenisch, Wehmeyer and Tasnádi
(2022), "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023(2).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

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
        return _gain(self.rate, self.control)

    @property
    def low(self) -> float:
        """The lower end of the risk's 95% interval: Wilson's of both shares, at their worst."""
        return _gain(wilson(self.rate, self.tried)[0], self._control_ends[1])

    @property
    def high(self) -> float:
        """The upper end of the risk's 95% interval."""
        return _gain(wilson(self.rate, self.tried)[1], self._control_ends[0])

    @property
    def _control_ends(self) -> tuple[float, float]:
        if not self.tried_control:
            return self.control, self.control
        return wilson(self.control, self.tried_control)


def _gain(rate: float, control: float) -> float:
    return float(np.clip((rate - control) / (1 - control), 0.0, 1.0)) if control < 1 else 0.0


@dataclass(frozen=True, eq=False)
class Scene:
    """One release: original values of the people in it, their rows, and people outside it.

    Row i is that of person i, which an attack uses to count its success alone.
    """

    people: Reals
    rows: Reals
    outside: Reals
    nominal: tuple[int, ...]

    @cached_property
    def space(self) -> "Coordinates":
        """Where distances are measured: its units are those of the rows, which are seen."""
        return Coordinates(self.rows, self.nominal)


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
        Protects the people at these places in the table, with a seed, and returns their rows in the
        same order. A place may be given twice: then two people are alike.
    """

    people: Reals
    nominal: tuple[int, ...]
    release: Callable[[Integers, int], Reals]
    _scenes: dict[tuple[str, int], Scene] = field(default_factory=dict, repr=False)

    def whole(self, seed: int) -> Scene:
        """Release everybody."""
        return self._once(("whole", seed), np.arange(len(self.people)))

    def half(self, seed: int) -> Scene:
        """Release one half of the people, drawn at random; the others are the control group."""
        order = np.random.default_rng(seed).permutation(len(self.people))
        return self._once(("half", seed), order[: len(order) // 2])

    def _once(self, key: tuple[str, int], chosen: Integers) -> Scene:
        if key not in self._scenes:
            outside = np.setdiff1d(np.arange(len(self.people)), chosen)
            self._scenes[key] = Scene(
                self.people[chosen],
                self.release(chosen, key[1]),
                self.people[outside],
                self.nominal,
            )
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


_TIE = 1 + 1e-9  # distances this close are equal: they differ by rounding alone


def nearest_to(points: Reals, rows: Reals) -> Booleans:
    """Return for each point which rows are nearest to it: several if they are equally near."""
    from scipy.spatial.distance import cdist

    away = cdist(points, rows)
    found: Booleans = away <= away.min(axis=1, keepdims=True) * _TIE
    return found


MOST_IN_A_GROUP = 500
"""People attacked in each of the two halves."""


def drawn_groups(scene: Scene, seed: int) -> tuple[Reals, Reals]:
    """Draw as many people from the release as from outside it."""
    random = np.random.default_rng(seed)
    number = min(MOST_IN_A_GROUP, len(scene.people), len(scene.outside))
    people, outside = (
        group[random.choice(len(group), number, replace=False)]
        for group in (scene.people, scene.outside)
    )
    return people, outside


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
