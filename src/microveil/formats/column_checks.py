"""Checks of column names and values, shared by all formats."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import polars as pl

from microveil.errors import DataError, FileError

Finest = Literal["second", "millisecond", "microsecond"]
_NANOSECONDS = {
    "second": 10**9, "millisecond": 10**6, "microsecond": 10**3, "ms": 10**6, "us": 10**3, "ns": 1,
}  # fmt: skip


def name_of_rows(names: Sequence[str | None]) -> list[str | None]:
    """Name an unnamed first column, in which R and pandas write row names, "row".

    Examples
    --------
    >>> name_of_rows(["", "wages"]), name_of_rows([None, "row"])
    (['row', 'wages'], ['row_names', 'row'])
    """
    if len(names) < 2 or (names[0] or "").strip():
        return list(names)
    return ["row_names" if "row" in names else "row", *names[1:]]


def check_names(where: Path | str, names: list[str | None]) -> None:
    """Refuse column names that are missing, numbers or duplicates."""
    if len(set(names) - {None}) < len([name for name in names if name is not None]):
        raise same_name_twice(where)
    if any(map(_is_value, names)):
        raise DataError(
            f"{where}: expected column names in the first line, found a number or nothing; add a "
            "line of names, since the first line would be published"
        )


def check_names_to_write(names: Sequence[str], where: str) -> None:
    """Refuse names that are taken for something else when the file is read."""
    wrong = [name for name in names if _is_value(name)]
    if wrong:
        raise FileError(
            f"column {wrong[0]!r}: {where} files take a number, or nothing, in the first line for "
            "a value when they are read; rename the column, or write Parquet"
        )
    unread = [name for name in names if "\0" in name or name.startswith("\ufeff")]
    if unread:
        raise FileError(
            f"column {unread[0]!r}: {where} files hold no names with NUL characters or with a byte "
            "order mark in front; rename the column, or write Parquet"
        )


def _is_value(name: str | None) -> bool:
    text = pl.Series([name or ""])
    return not (name or "").strip() or bool(text.cast(pl.Float64, strict=False).count())


def same_name_twice(where: Path | str) -> DataError:
    """Return the error for two columns of the same name."""
    return DataError(
        f"{where}: expected unique column names, found the same name twice; rename one"
    )


def check_exact(
    column: pl.Series, name: str, where: str, *, largest: float, finest: Finest
) -> None:
    """Refuse numbers and times that a file would change."""
    _check_integers(column, name, where)
    _check_floats(column, name, where, largest)
    _check_times(column, name, where, finest)


def unsupported_type(name: str, dtype: pl.DataType, where: str) -> FileError:
    """Return the error for a type that a file cannot hold."""
    return FileError(
        f"column {name!r}: {where} files cannot hold type {dtype}; drop or convert the column, or "
        "write Parquet"
    )


def _check_integers(column: pl.Series, name: str, where: str) -> None:
    if not column.dtype.is_integer() or not column.count():
        return
    if max(abs(int(column.min())), abs(int(column.max()))) > 2**53:  # type: ignore[arg-type]
        raise FileError(
            f"column {name!r}: {where} files hold integers up to 2^53; write Parquet or CSV"
        )


def _check_floats(column: pl.Series, name: str, where: str, largest: float) -> None:
    if not column.dtype.is_float():
        return
    sizes = column.drop_nulls().cast(pl.Float64).abs()
    if (sizes.is_nan() | (sizes > largest)).any():
        raise FileError(
            f"column {name!r}: {where} files hold numbers up to {largest:g}, found larger, "
            "infinite or NaN; make them missing, or write Parquet or CSV"
        )


def _check_times(column: pl.Series, name: str, where: str, finest: Finest) -> None:
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
    """Convert floats to integers if all are whole and exact, −0.0 apart, which no integer is."""
    whole = (column == column.round()) & column.is_between(-(2**53), 2**53)
    minus_zero = (column == 0) & (1 / column < 0)
    exact = whole.all() and not minus_zero.any()
    return column.cast(pl.Int64) if column.count() and exact else column
