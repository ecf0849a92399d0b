"""A table as loaded, with what its file says besides the values."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

from microveil.types import UserTable

if TYPE_CHECKING:
    from microveil.core.attribute import Category
    from microveil.plan.propose.columns import Described

Code = float | str
"""A declared missing value: a number or text in SPSS, a letter (.a to .z) in Stata and SAS."""


class Dialect(NamedTuple):
    """The delimiter and decimal mark of a CSV file."""

    delimiter: str = ","
    decimal: str = "."


class Domain(NamedTuple):
    """Bounds of masked values, and their number of decimals; None for any."""

    lower: float
    upper: float
    decimals: int | None


@dataclass(frozen=True, eq=False)
class ColumnMeta:
    """What a file says about a column besides its values.

    Attributes
    ----------
    label, value_labels
        What the column and its values mean.
    missing
        Ranges of values that are declared missing.
    codes
        For each record its declared missing value, where the table has a null; otherwise null.
    display, measure
        The display format, and SPSS's level of measurement.
    masked
        The domain of a masked column, whose values must stay clear of `missing`.
    """

    label: str | None = None
    value_labels: Mapping[Code, str] = field(default_factory=dict)
    missing: tuple[tuple[Code, Code], ...] = ()
    codes: pl.Series | None = None
    display: str | None = None
    measure: str | None = None
    masked: Domain | None = None


@dataclass(frozen=True, eq=False)
class TableMeta:
    """What a file says besides its values, carried from reading to writing.

    Attributes
    ----------
    path
        The file, which a release must not replace.
    family
        Whose labels, codes and display formats these are.
    dialect
        CSV only.
    columns
        Columns that the file describes.
    inferred
        Whether column types were inferred from the values.
    escape_formulas
        CSV only: whether text that a spreadsheet takes for a formula is written with an apostrophe.
    """

    path: Path | None = None
    family: Literal["spss", "stata", "sas"] | None = None
    dialect: Dialect = field(default_factory=Dialect)
    columns: Mapping[str, ColumnMeta] = field(default_factory=dict)
    inferred: bool = False
    escape_formulas: bool = False

    @property
    def described(self) -> "dict[str, Described]":
        """What the file says about its columns, for a plan; without labels of missing codes."""
        return {name: _described(column) for name, column in self.columns.items()}

    @property
    def labelled(self) -> tuple[str, ...]:
        """Columns with labels, of themselves or of values."""
        return tuple(name for name, c in self.columns.items() if c.label or c.value_labels)

    @property
    def codes(self) -> dict[str, pl.Series]:
        """The declared missing codes of columns that have some."""
        about = self.columns.items()
        return {n: c.codes for n, c in about if c.codes is not None and c.codes.count()}

    def of_release(
        self,
        codes: Mapping[str, pl.Series],
        *,
        released: Collection[str],
        masked: Mapping[str, Domain],
        derived: Collection[str],
    ) -> "TableMeta":
        """Keep what belongs to the columns of a release, with the codes of its records.

        Derived columns have no declared missing values.
        """
        columns = {}
        for name, column in self.columns.items():
            kept = replace(column, codes=codes.get(name), masked=masked.get(name))
            if name in released:
                columns[name] = replace(kept, codes=None, missing=()) if name in derived else kept
        return replace(self, columns=columns)


def _described(column: ColumnMeta) -> "Described":
    from microveil.plan.propose.columns import Described  # much that reading a file does not need

    labels: dict[Category, str] = {}
    for value, label in column.value_labels.items():
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        missing = any(_is_between(value, low, high) for low, high in column.missing)
        if not missing and not isinstance(number, float):
            labels[number] = label
    return Described(labels, column.measure, column.label or "")


def _is_between(value: Code, low: Code, high: Code) -> bool:
    try:
        return bool(low <= value <= high)  # type: ignore[operator]
    except TypeError:
        return False


class LoadedTable(NamedTuple):
    """A table and what its file says besides the values."""

    data: UserTable
    meta: TableMeta = TableMeta()
