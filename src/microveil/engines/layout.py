"""Which records belong together: units, of which some attributes have one value, and strata."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.relation_model import RowValues, numbers_in_rows
from microveil.engines.dtypes import comparable, numbers_with_gaps
from microveil.types import Integers

FEW_KEPT = 20
"""Whole numbers of a kept column that are as few as this are taken for categories."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The unit and the stratum of every record, numbered from 0 on; None where there are none.

    An attribute of `per_unit` has one value for every unit, that of its first record; all others
    have one for every record. What there is one of is said to count.
    """

    per_unit: frozenset[str] = frozenset()
    unit: Integers | None = None
    stratum: Integers | None = None

    @cached_property
    def first(self) -> Integers:
        """The first record of each unit."""
        assert self.unit is not None  # noqa: S101 - asked of attributes per unit only
        first = np.empty(int(self.unit.max()) + 1, dtype=np.int64)
        first[self.unit[::-1]] = np.arange(len(self.unit))[::-1]
        return first

    def counting(self, attribute: str) -> Integers | None:
        """Return the records whose values of an attribute count; None if all do."""
        return self.first if attribute in self.per_unit else None

    def values_counting(self, attribute: str, column: nw.Series[Any]) -> nw.Series[Any]:
        """Return the values of a column that count: all, or that of each unit's first record."""
        rows = self.counting(attribute)
        return column if rows is None else nw.maybe_reset_index(column[rows])

    def spread(self, attribute: str, values: NDArray[Any]) -> NDArray[Any]:
        """Give every record the value that counts for it."""
        return values[self.unit] if attribute in self.per_unit else values

    def strata_of(self, attribute: str) -> Integers | None:
        """Return the strata of the values of an attribute that count."""
        if self.stratum is None or attribute not in self.per_unit:
            return self.stratum
        return self.stratum[self.first]

    @property
    def largest_unit(self) -> int:
        """The most records of one unit."""
        return 1 if self.unit is None else int(np.bincount(self.unit).max())

    def differs(self, column: pl.Series) -> NDArray[np.bool_]:
        """Return of each unit whether its records do not have the same value."""
        assert self.unit is not None  # noqa: S101 - asked where there are units
        same = column.eq_missing(column.gather(self.first[self.unit])).to_numpy()
        differs = np.zeros(len(self.first), dtype=np.bool_)
        differs[self.unit[~same]] = True
        return differs


def kept_values(column: nw.Series[Any], attribute: str) -> RowValues:
    """Return what a kept column has: numbers, or categories, as whole numbers of few values are.

    Examples
    --------
    >>> kept_values(nw.from_native(pl.Series([3, 1, None, 3]), series_only=True), "rooms").states
    array([1, 0, 2, 1])
    """
    dtype = column.dtype
    number = dtype.is_numeric() or dtype.is_temporal()
    if number and not (dtype.is_integer() and column.n_unique() <= FEW_KEPT):
        return numbers_in_rows(numbers_with_gaps(column))
    return RowValues(None, numbered([comparable(column, attribute)]))


def numbered(columns: Sequence[pl.Series]) -> Integers:
    """Give different combinations of values numbers from 0 on; a missing value is one of its own.

    Examples
    --------
    >>> numbered([pl.Series(["b", "a", None, "b"]), pl.Series([1, 1, 1, 2])]).tolist()
    [1, 0, 3, 2]
    """
    label = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        listed = column.dtype in (pl.Categorical, pl.Enum)  # which rank by their lists
        plain = column.cast(pl.String) if listed else column
        ranks = plain.rank("dense").cast(pl.Int64)
        numbers = ranks.fill_null(ranks.max() + 1 if ranks.max() else 0).to_numpy()  # type: ignore[operator]
        label = label * (int(numbers.max()) + 1) + numbers
        label = np.unique(label, return_inverse=True)[1].astype(np.int64)
    return label


def classes_of_units(record: Integers, unit: Integers) -> Integers:
    """Give units whose records are of the same classes the same number.

    Examples
    --------
    >>> one, other, third = classes_of_units(np.array([0, 1, 1, 0, 0]), np.array([0, 0, 1, 1, 2]))
    >>> bool(one == other), bool(one == third)
    (True, False)
    """
    order = np.lexsort((record, unit))
    sizes = np.bincount(unit)
    rank = np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    label = np.zeros(len(sizes), dtype=np.int64)
    for place in range(int(sizes.max())):
        here = order[rank == place]
        own = np.full(len(sizes), -1)
        own[unit[here]] = record[here]
        label = numbered([pl.Series(label), pl.Series(own)])
    return label
