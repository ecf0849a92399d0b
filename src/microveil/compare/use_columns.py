"""Columns of an original and its release as uses take them: numbers, and groups of records."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from microveil.compare.paired_columns import (
    MISSING,
    Categories,
    Numbers,
    compare_categories,
    compare_columns,
    compare_numbers,
)
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import column_of
from microveil.plan.plan import Plan
from microveil.plan.uses import Use
from microveil.types import Booleans, Integers, Reals


class Grouped(NamedTuple):
    """The group of every record in both tables, as a place in `labels`; `MISSING` in none."""

    original: Integers
    released: Integers
    labels: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class UseColumns:
    """Columns of two tables, the released records in the order of the original if it is known."""

    pair: Pair

    @property
    def plan(self) -> Plan | None:
        """What was done, if it is known."""
        return self.pair.plan

    @property
    def tables(self) -> tuple[nw.DataFrame[Any], nw.DataFrame[Any]]:
        """The two tables."""
        pair = self.pair
        return pair.source, pair.table if pair.order is None else pair.table[pair.order, :]

    @cached_property
    def weights(self) -> tuple[Reals, Reals]:
        """The sampling weight of every record; 1 without weights."""
        if self.pair.weights is not None:
            return tuple(self.pair.weights)  # type: ignore[return-value]
        return np.ones(len(self.tables[0])), np.ones(len(self.tables[1]))

    def lacks(self, names: Sequence[str]) -> bool:
        """Whether one of the tables does not have all of these columns."""
        return any(not {*names} <= {*table.columns} for table in self.tables)

    def numbers(self, name: str) -> Numbers:
        """Return the numbers in a column."""
        original, released = self._columns(name)
        return compare_numbers(name, original, released)

    def either(self, name: str) -> Numbers | Categories:
        """Return numbers or categories, whichever a column holds."""
        return compare_columns(name, *self.tables, self.plan)

    def groups(self, use: Use) -> Grouped:
        """Return the group of every record, and what to call the groups that there are."""
        found = [self.grouped(name, use.bands.get(name)) for name in use.by]
        if not found:
            original, released = (np.zeros(len(table), np.int64) for table in self.tables)
            return Grouped(original, released, ("",))
        while len(found) > 1:
            found[:2] = [_crossed(*found[:2])]
        return found[0]

    def grouped(self, name: str, width: float | None) -> Grouped:
        """Return the groups of one column: categories, whole numbers, or bands of numbers."""
        if width is not None:
            return _bands(_in_years(self.numbers(name)), width)
        declared = None if self.plan is None else self.plan.confidential.get(name)
        found = compare_categories(name, *self._columns(name), declared)
        return _in_order(found, by_number=declared is None)

    def _columns(self, name: str) -> tuple[nw.Series[Any], nw.Series[Any]]:
        original, released = (column_of(table, name) for table in self.tables)
        return original, released


def _in_years(column: Numbers) -> Numbers:
    """Return the years of dates and times; other numbers as they are."""
    if column.length is None:
        return column
    original, released = (
        _years(values * column.length) for values in (column.original, column.released)
    )
    return replace(column, length=None, original=original, released=released)


def _years(microseconds: Reals) -> Reals:
    known = ~np.isnan(microseconds)
    years = np.full(len(microseconds), np.nan)
    moments = microseconds[known].astype("datetime64[us]").astype("datetime64[Y]")
    years[known] = moments.astype(np.int64) + 1970
    return years


def _bands(column: Numbers, width: float) -> Grouped:
    """Group numbers by the multiple of a width that they are at or above."""
    places = [np.floor(values / width) for values in (column.original, column.released)]
    known = np.unique(np.concatenate([each[~np.isnan(each)] for each in places]))
    labels = tuple(f"{width * at:.6g} to under {width * (at + 1):.6g}" for at in known)
    original, released = (_coded(each, known, np.isnan(each)) for each in places)
    return Grouped(original, released, labels)


def _coded(values: Reals, known: Reals, missing: Booleans) -> Integers:
    return np.where(missing, MISSING, np.searchsorted(known, values)).astype(np.int64)


def _in_order(found: Categories, *, by_number: bool) -> Grouped:
    """Leave out categories that no record has, and put whole numbers in order."""
    seen = np.union1d(found.original, found.released)
    places = [int(code) for code in seen if code != MISSING]
    if by_number:
        places.sort(key=lambda place: (_as_number(found.labels[place]), found.labels[place]))
    new = np.full(len(found.labels) + 1, MISSING)  # of what is missing, which is the last
    new[places] = np.arange(len(places))
    labels = tuple(found.labels[place] for place in places)
    return Grouped(new[found.original], new[found.released], labels)


def _as_number(label: str) -> float:
    try:
        return float(label)
    except ValueError:
        return math.inf


def _crossed(one: Grouped, other: Grouped) -> Grouped:
    """Return the combinations of two groupings that there are."""
    both = [
        np.where((a == MISSING) | (b == MISSING), MISSING, a * len(other.labels) + b)
        for a, b in ((one.original, other.original), (one.released, other.released))
    ]
    known = np.unique(np.concatenate(both))
    known = known[known != MISSING]
    names = (divmod(int(code), len(other.labels)) for code in known)
    labels = tuple(f"{one.labels[first]}, {other.labels[second]}" for first, second in names)
    original, released = (_coded(each, known, each == MISSING) for each in both)
    return Grouped(original, released, labels)
