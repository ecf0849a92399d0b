"""A table on its way from reading to writing, and what its file says besides the values."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import polars as pl

from microveil.core.attribute import Category
from microveil.core.choices import DateOrder
from microveil.errors import DataError, FileError
from microveil.plan.propose.columns import Described
from microveil.types import Integers, UserTable

Finest = Literal["second", "millisecond", "microsecond"]
_NANOSECONDS = {
    "second": 10**9, "millisecond": 10**6, "microsecond": 10**3, "ms": 10**6, "us": 10**3, "ns": 1,
}  # fmt: skip

Code = float | str
"""A declared missing value: a number or text in SPSS, a letter (.a to .z) in Stata and SAS."""

_DATABASES = ("postgresql://", "postgres://")
_DELIMITER = re.compile(r'[^\0"\r\n\w\x80-\U0010ffff]', re.ASCII)
_SCHEME = re.compile(r"\s*((?:[a-z][a-z0-9+.-]*:)*[a-z][a-z0-9+.-]+:)/+", re.IGNORECASE)
_ACCOUNT = re.compile(r"\s*[jo]dbc:|.*(:[^/\\]*@|@[^/\\]*:\d)", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Source:
    """Where a table is read from, and how.

    Functions that take a path take a `Source` as well.

    Parameters
    ----------
    location
        The path of a file, or the address of a database: ``postgresql://user@host/database``.
    delimiter, decimal
        Of CSV: what separates columns, and the decimal mark ``"."`` or ``","``;
        by default detected.
    encoding
        Of CSV, SPSS, Stata and SAS files; by default detected.
    sheet
        Of Excel: the name of a sheet; by default the first.
    query
        Of a database: the SQL query whose result is the table.
    na
        Values that stand for missing ones, in every column: ``["-99", "refused"]``, say.
    dates
        Of CSV: ``"day-first"`` or ``"month-first"``, where dates such as 03/02/2011 do not tell.
    skip_rows
        Of Excel: how many rows stand above the names of the columns; by default detected.
    for_spark
        Whether Spark reads it, from any address it knows: ``hdfs:///data/people``, say.

    Examples
    --------
    >>> Source("people.csv", delimiter=";", decimal=",")
    Source('people.csv')
    """

    location: str | Path
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    query: str | None = None
    na: Sequence[str] = ()
    dates: DateOrder | None = None
    skip_rows: int | None = None
    for_spark: bool = False

    def __post_init__(self) -> None:
        self._check_values()
        if not self.is_database and not self.for_spark:
            refuse_address(self.location)
        if self.is_database and not (self.query or "").strip():
            raise FileError("a database needs a query; give one that selects the table's columns")
        if self.delimiter == "\\t":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise FileError(
                f"delimiter must be one ASCII character that is no letter, digit or quote, "
                f"got {self.delimiter!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise FileError(f'decimal must be "." or ",", got {self.decimal!r}')
        try:
            b"ab".decode(self.encoding or "utf-8", "replace")
        except (LookupError, UnicodeError):
            raise FileError(
                f"encoding {self.encoding!r} is not known; for example utf-8, windows-1252, utf-16"
            ) from None

    def _check_values(self) -> None:
        object.__setattr__(self, "na", (self.na,) if isinstance(self.na, str) else tuple(self.na))
        if self.dates not in (None, *get_args(DateOrder)):
            raise FileError(f'dates must be "day-first" or "month-first", got {self.dates!r}')
        if self.skip_rows is not None and not str(self.skip_rows).isdecimal():
            raise FileError(f"skip_rows must be a number of rows, got {self.skip_rows!r}")

    @property
    def is_database(self) -> bool:
        """Whether the location is the address of a database."""
        return isinstance(self.location, str) and self.location.startswith(_DATABASES)

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""
        return None if self.is_database else Path(self.location)

    @property
    def name(self) -> str:
        """What to call it where others may read: never an address, which may hold a password."""
        return Path(self.location).name if self.path else "the database"

    def __repr__(self) -> str:
        return f"Source({str(self.location)!r})" if self.path else "Source(<database>)"

    def of_release(self, path: Path) -> "Source":
        """How a release of this table is read: CSV has the same dialect, in UTF-8."""
        if path.suffix.lower() != ".csv":
            return Source(path)
        return Source(path, delimiter=self.delimiter, decimal=self.decimal)


def refuse_address(location: str | Path) -> None:
    """Refuse an address where a file is expected, without repeating it."""
    expected = f"expected a file, or for a database text that begins with {_DATABASES[0]}, "
    scheme = _SCHEME.match(str(location))
    if scheme:
        space = "a space before " if str(location)[0].isspace() else ""
        raise FileError(f"{expected}got {space}an address that begins with {scheme.group(1)}//")
    if _ACCOUNT.match(str(location)):
        raise FileError(f"{expected}got what looks like an address with a user")


class Dialect(NamedTuple):
    """How a CSV file is written."""

    delimiter: str = ","
    decimal: str = "."


class Domain(NamedTuple):
    """Where masked values may lie, and how many decimals they have; None if any number."""

    lower: float
    upper: float
    decimals: int | None


@dataclass(frozen=True, eq=False)
class ColumnMeta:
    """What a file says of a column besides its values.

    Attributes
    ----------
    label, value_labels
        What the column, and some of its values, stand for.
    missing
        Ranges of values that are declared to be missing.
    codes
        For every record the declared missing value it has, or null. The table has nulls there.
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
        Of CSV.
    columns
        Columns of which the file says something.
    inferred
        Whether the values decided on the types of the columns.
    """

    path: Path | None = None
    family: Literal["spss", "stata", "sas"] | None = None
    dialect: Dialect = field(default_factory=Dialect)
    columns: Mapping[str, ColumnMeta] = field(default_factory=dict)
    inferred: bool = False

    @property
    def described(self) -> dict[str, Described]:
        """What the file says of its columns, for a proposal; labels of missing codes left out."""
        return {name: _described(column) for name, column in self.columns.items()}

    @property
    def labelled(self) -> tuple[str, ...]:
        """Columns with labels, of themselves or of values."""
        return tuple(name for name, c in self.columns.items() if c.label or c.value_labels)

    @property
    def coded(self) -> tuple[str, ...]:
        """Columns with declared missing codes."""
        return tuple(name for name, c in self.columns.items() if c.codes is not None)

    def of_release(
        self,
        positions: Integers,
        *,
        released: Collection[str],
        masked: Mapping[str, Domain],
        derived: Collection[str],
    ) -> "TableMeta":
        """Take what belongs to the columns of a release and to the records at these positions.

        Columns that were computed anew have no declared missing values.
        """
        columns = {}
        for name, column in self.columns.items():
            codes = None if column.codes is None else column.codes.gather(positions)
            kept = replace(column, codes=codes, masked=masked.get(name))
            if name in released:
                columns[name] = replace(kept, codes=None, missing=()) if name in derived else kept
        return replace(self, columns=columns)


def _described(column: ColumnMeta) -> Described:
    labels: dict[Category, str] = {}
    for value, label in column.value_labels.items():
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        missing = any(_is_between(value, low, high) for low, high in column.missing)
        if not missing and not isinstance(number, float):
            labels[number] = label
    return Described(labels, column.measure)


def _is_between(value: Code, low: Code, high: Code) -> bool:
    try:
        return bool(low <= value <= high)  # type: ignore[operator]
    except TypeError:
        return False


class Table(NamedTuple):
    """A table and what its file says besides."""

    data: UserTable
    meta: TableMeta = TableMeta()


def name_of_rows(names: Sequence[str | None]) -> list[str | None]:
    """Name a first column without a name, as R and pandas write the names of rows, «row».

    Examples
    --------
    >>> name_of_rows(["", "wages"]), name_of_rows([None, "row"])
    (['row', 'wages'], ['row_names', 'row'])
    """
    if len(names) < 2 or (names[0] or "").strip():
        return list(names)
    return ["row_names" if "row" in names else "row", *names[1:]]


def check_names(where: Path | str, names: list[str | None]) -> None:
    """Refuse column names that are missing, numbers or the same; they would be published."""
    if len(set(names) - {None}) < len([name for name in names if name is not None]):
        raise same_name_twice(where)
    text = pl.Series(names, dtype=pl.String).fill_null("")
    if (text.str.strip_chars() == "").any() or text.cast(pl.Float64, strict=False).count():
        raise DataError(
            f"{where}: the first line must hold column names, found a number or nothing as a name; "
            "add a line of names, since the first line would be published"
        )


def same_name_twice(where: Path | str) -> DataError:
    """Say that two columns have one name."""
    return DataError(f"{where}: column names must differ, found the same name twice; rename one")


def check_whole_numbers(column: pl.Series, name: str, where: str) -> None:
    """Refuse whole numbers that a file of floating-point numbers would change."""
    if not column.dtype.is_integer() or not column.count():
        return
    if max(abs(int(column.min())), abs(int(column.max()))) > 2**53:  # type: ignore[arg-type]
        raise FileError(
            f"column {name!r}: {where} files hold whole numbers of up to 2^53; write Parquet or CSV"
        )


def check_real_numbers(column: pl.Series, name: str, where: str, largest: float) -> None:
    """Refuse real numbers that a file would take for missing ones, or change."""
    if column.dtype.is_float() and _beyond(column, largest):
        raise FileError(
            f"column {name!r}: {where} files hold numbers of up to {largest:g}, found larger, "
            "infinite or NaN; make them missing, or write Parquet or CSV"
        )


def _beyond(column: pl.Series, largest: float) -> bool:
    sizes = column.drop_nulls().cast(pl.Float64).abs()
    return bool((sizes.is_nan() | (sizes > largest)).any())


def check_times(column: pl.Series, name: str, where: str, finest: Finest) -> None:
    """Refuse dates and times finer than a file holds."""
    if column.dtype not in (pl.Datetime, pl.Time, pl.Duration):
        return
    unit = getattr(column.dtype, "time_unit", "ns")  # which times of day have
    step = _NANOSECONDS[finest] // _NANOSECONDS[unit]
    if step > 1 and (column.to_physical() % step != 0).any():
        raise FileError(
            f"column {name!r}: {where} files hold times to the {finest}, found finer ones; round "
            "them, or write Parquet or CSV"
        )


def as_whole_numbers(column: pl.Series) -> pl.Series:
    """Turn floating-point numbers into integers if all of them are whole and exact."""
    whole = (column == column.round()) & column.is_between(-(2**53), 2**53)
    return column.cast(pl.Int64) if column.count() and whole.all() else column
