"""The cells in which values of an attribute are counted: public, whatever the data are."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from microveil.types import Integers, Reals

BRANCH = 4
"""Every cell of numbers is divided into as many on the next level."""

MOST_LEVELS = 6
MOST_CELLS = BRANCH**MOST_LEVELS
_LONG_TAIL = 1000.0

Codes = NDArray[np.uint16]


@dataclass(frozen=True)
class NumberCells:
    """Cells of numbers from `lower` to `upper`, which are `lower` plus multiples of a `step`.

    There are as many cells as values where these are few, and otherwise 4^6 of equal width: in
    values, or where `log` is set on a logarithmic scale around 0. Each of the `atoms`, and missing
    values where there may be some, has a cell of its own, after all others. Records are encoded in
    the finest cells; at a smaller `depth`, cells are 4, 16, 64, … times as wide.
    """

    name: str
    lower: float
    upper: float
    step: float
    log: bool = False
    atoms: tuple[float, ...] = ()
    missing: bool = False
    depth: int = MOST_LEVELS

    def coarser(self, depth: int) -> "NumberCells":
        """Return cells of at most this depth."""
        return replace(self, depth=depth)

    @cached_property
    def values(self) -> int:
        """How many values there can be."""
        return round((self.upper - self.lower) / self.step) + 1

    @property
    def one_by_one(self) -> bool:
        """Whether every value has a finest cell of its own, and the last cells have none."""
        return self.values <= BRANCH**MOST_LEVELS and not self.log

    @cached_property
    def finest(self) -> int:
        """The depth of the finest cells."""
        if not self.one_by_one:
            return MOST_LEVELS
        return next(n for n in range(1, MOST_LEVELS + 1) if BRANCH**n >= self.values)

    @property
    def levels(self) -> int:
        """How often the domain is divided into four."""
        return min(self.depth, self.finest)

    @property
    def body(self) -> int:
        """How many cells there are besides those of single values."""
        return int(BRANCH**self.levels)

    @property
    def wide(self) -> int:
        """How many of the finest cells are in one."""
        return int(BRANCH ** (self.finest - self.levels))

    @property
    def single(self) -> int:
        """How many values have a cell of their own, after the body."""
        return len(self.atoms) + self.missing

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.body + self.single

    @property
    def open(self) -> int:
        """How many of the cells of the body can hold a value."""
        return -(-self.values // self.wide) if self.one_by_one else self.body

    def encode(self, values: Reals) -> Codes:
        """Return the finest cell of each value; outside the domain that of its nearest end."""
        whole, known = replace(self, depth=MOST_LEVELS), ~np.isnan(values)
        inside = np.clip(np.where(known, values, self.lower), self.lower, self.upper)
        steps = np.rint((inside - self.lower) / self.step)
        codes = np.clip(whole._position(steps), 0, whole.open - 1).astype(np.uint16)
        for place, atom in enumerate(self._atom_steps):
            codes[steps == atom] = whole.body + place
        if self.missing:
            codes[~known] = whole.size - 1
        return codes

    @property
    def cell_of_code(self) -> Integers:
        """The cell of each of the finest ones."""
        whole = BRANCH**self.finest
        return np.concatenate([np.arange(whole) // self.wide, self.body + np.arange(self.single)])

    @property
    def order(self) -> Integers:
        """The cells from the lowest to the highest; missing values come first."""
        atoms = self._position(self._atom_steps) / self.wide
        keys = [np.arange(self.body), atoms - 0.5, np.full(int(self.missing), -1.0)]
        return np.argsort(np.concatenate(keys), kind="stable")

    def decode(self, cells: Integers, within: Reals) -> Reals:
        """Return a value of each cell, `within` of its width from its lower end; NaN if missing."""
        low = np.minimum(cells, self.open - 1.0) * self.wide
        values = self._value(low, low + self.wide, within)
        named = np.array([*self.atoms, *([np.nan] if self.missing else []), np.nan])
        return np.where(cells < self.body, values, named[np.maximum(cells - self.body, 0)])

    @property
    def _atom_steps(self) -> Reals:
        return np.asarray(np.rint((np.array(self.atoms, dtype=float) - self.lower) / self.step))

    def _position(self, steps: Reals) -> Reals:
        """Return where values stand among the finest cells."""
        cells = BRANCH**self.finest
        if self.one_by_one:
            return steps
        if not self.log:
            return np.asarray(np.floor(steps * (cells / self.values)))
        low, high = self._ends
        share = (self._bent(self.lower + steps * self.step) - low) / (high - low)
        return np.asarray(np.floor(share * cells))

    def _value(self, low: Reals, high: Reals, within: Reals) -> Reals:
        """Return values between positions among the finest cells, each value as likely."""
        whole = BRANCH**self.finest
        if self.log:
            least, most = self._ends
            bent = least + (low + within * (high - low)) / whole * (most - least)
            values = np.sign(bent) * self._unit * np.expm1(np.abs(bent))
            steps = np.rint((values - self.lower) / self.step)
        else:
            per_cell = 1.0 if self.one_by_one else self.values / whole
            first, after = np.ceil(low * per_cell), np.ceil(high * per_cell)
            steps = np.floor(first + within * (np.minimum(after, self.values) - first))
        return np.asarray(self.lower + np.clip(steps, 0, self.values - 1) * self.step)

    @property
    def _unit(self) -> float:
        return max(abs(self.lower), abs(self.upper)) / _LONG_TAIL

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = self._bent(np.array([self.lower, self.upper]))
        return float(low), float(high)

    def _bent(self, values: Reals) -> Reals:
        return np.asarray(np.sign(values) * np.log1p(np.abs(values) / self._unit))


@dataclass(frozen=True)
class CategoryCells:
    """One cell for each of so many categories, and a last one for missing values if there are."""

    name: str
    categories: int
    ordered: bool = False
    missing: bool = False

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.categories + self.missing

    @property
    def cell_of_code(self) -> Integers:
        """The cell of each code: itself."""
        return np.arange(self.size)

    @property
    def order(self) -> Integers:
        """The cells from the lowest to the highest; missing values come first."""
        return np.roll(np.arange(self.size), int(self.missing))


AnyCells = NumberCells | CategoryCells
