"""SPSS, Stata and SAS files, with labels and declared missing values.

A declared missing value is a null in the table; its code is kept in `ColumnMeta.codes` until the
protected file is written.
"""

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl

from microveil.errors import FileError, require
from microveil.formats.column_checks import as_whole_numbers
from microveil.formats.metadata import Code, ColumnMeta, LoadedTable, TableMeta
from microveil.formats.source import Source

_Reader = Callable[..., tuple[pl.DataFrame, Any]]
_READERS: dict[str, tuple[str, Literal["spss", "stata", "sas"], str]] = {
    ".sav": ("read_sav", "spss", "an SPSS"),
    ".dta": ("read_dta", "stata", "a Stata"),
    ".sas7bdat": ("read_sas7bdat", "sas", "a SAS"),
}
_SECONDS_OF_A_DAY = 86_400
_WHOLE = re.compile(r"(F|N|COMMA|DOT)\d+(\.0)?|%-?\d+\.0f")


def read_statistical(source: Source, _verbatim: Collection[str]) -> LoadedTable:
    """Read an SPSS, Stata or SAS file."""
    path = Path(source.location)
    pyreadstat = require("pyreadstat", "stats")
    function, family, kind = _READERS[path.suffix.lower()]
    options = {"output_format": "polars", "encoding": source.encoding}
    reader = partial(getattr(pyreadstat, function), path, **options)
    try:
        raw, about, of_dates = _read(reader)
        raw = _with_lasting_times(raw, reader, 1_000 if family == "stata" else 1)
        raw, declared = _split_dates(raw, reader, about)
    except Exception as error:  # its own and Polars', whose messages may hold data
        if isinstance(error, UnicodeDecodeError) or "encoding" in str(error):
            raise _wrong_encoding(path, source) from None
        if isinstance(error, MemoryError):
            raise
        raise FileError(f"{path}: not {kind} file that can be read") from None
    of_dates |= declared
    columns = [_split(column, about, family, of_dates.get(column.name)) for column in raw]
    meta = {values.name: column for values, column in columns}
    return LoadedTable(pl.DataFrame([v for v, _ in columns]), TableMeta(path, family, columns=meta))


def _read(reader: _Reader) -> tuple[pl.DataFrame, Any, dict[str, pl.Series]]:
    """Read a table, what its file says of it, and the missing codes of dates and times.

    Where these are letters, pyreadstat converts either them or the dates.
    """
    try:
        return *reader(user_missing=True), {}
    except pl.exceptions.ComputeError:
        raw, about = reader(user_missing=True, disable_datetime_conversion=True)
    dates = [column for column in reader()[0] if column.dtype.is_temporal()]
    coded = [c.name for c in dates if raw[c.name].dtype in (pl.Object, pl.String)]
    letters = {name: _split_letters(raw[name])[1] for name in coded}
    return raw.with_columns(dates), about, letters


def _wrong_encoding(path: Path, source: Source) -> FileError:
    expected = source.encoding or "the encoding it declares"
    return FileError(f"{path}: expected {expected}, found other bytes; give its encoding")


def _with_lasting_times(raw: pl.DataFrame, reader: _Reader, unit: int) -> pl.DataFrame:
    """Keep times of 24 hours and more, which are durations, as stored numbers."""
    times = [column.name for column in raw if column.dtype == pl.Time]
    if not times:
        return raw
    stored, _ = reader(usecols=times, disable_datetime_conversion=True)
    day = _SECONDS_OF_A_DAY * unit
    return raw.with_columns(c for c in stored if not c.is_between(0, day, closed="left").all())


def _split_dates(
    raw: pl.DataFrame,
    reader: _Reader,
    about: Any,  # noqa: ANN401
) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """Separate dates from those declared missing, whose codes are the numbers that are stored."""
    ranges = about.missing_ranges
    dates = [c.name for c in raw if c.dtype.is_temporal() and c.name in ranges]
    if not dates:
        return raw, {}
    stored, numbers = reader(usecols=dates, user_missing=True, disable_datetime_conversion=True)
    ranges |= {name: numbers.missing_ranges[name] for name in dates}
    codes = {c.name: _split_ranges(c, _ranges(ranges[c.name]))[1] for c in stored}
    plain, _ = reader(usecols=dates, user_missing=False)
    return raw.with_columns(plain), {n: code for n, code in codes.items() if code is not None}


def _ranges(declared: Collection[Mapping[str, Code]]) -> tuple[tuple[Code, Code], ...]:
    return tuple((ends["lo"], ends["hi"]) for ends in declared)


def _split(
    column: pl.Series,
    about: Any,  # noqa: ANN401
    family: str,
    of_dates: pl.Series | None,
) -> tuple[pl.Series, ColumnMeta]:
    """Separate values from declared missing ones, and give them their type."""
    name = column.name
    stored = about.readstat_variable_types[name]
    missing = _ranges(about.missing_ranges.get(name, ()))
    codes: pl.Series | None
    if column.dtype == pl.Object or (column.dtype == pl.String and stored != "string"):
        values, codes = _split_letters(column)
    else:
        values, codes = _split_ranges(column, missing)
    codes = codes if of_dates is None else of_dates
    labels = dict(about.variable_value_labels.get(name, {}))
    display = about.original_variable_types.get(name) or None
    if values.dtype == pl.Null:
        values = values.cast(pl.String if stored == "string" else pl.Float64)
    if values.dtype == pl.String:
        values = values.replace("", None)
    elif stored == "float":
        values = values.cast(pl.Float32)
    elif values.dtype == pl.Float64 and (labels or family == "sas" or _is_whole(display)):
        values = as_whole_numbers(values)
    measure = about.variable_measure.get(name)
    return values, ColumnMeta(
        label=about.column_names_to_labels.get(name) or None,
        value_labels=labels,
        missing=missing,
        codes=codes if codes is not None and codes.count() else None,
        display=display,
        measure=None if measure == "unknown" else measure,
    )


def _is_whole(display: str | None) -> bool:
    return bool(display and _WHOLE.fullmatch(display))


def _split_letters(column: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Separate letters, the missing codes of Stata and SAS, from numbers."""
    entries = column.to_list()
    values = [None if isinstance(entry, str) else entry for entry in entries]
    codes = [entry.lower() if isinstance(entry, str) else None for entry in entries]
    return (
        pl.Series(column.name, values, strict=False),
        pl.Series(column.name, codes, dtype=pl.String),
    )


def _split_ranges(
    column: pl.Series, missing: tuple[tuple[Code, Code], ...]
) -> tuple[pl.Series, pl.Series | None]:
    """Separate values in the ranges that SPSS declares missing."""
    if not missing or not (column.dtype.is_numeric() or column.dtype == pl.String):
        return column, None
    declared = within(column, missing)
    frame = pl.DataFrame({"values": column, "declared": declared})
    value, is_code = pl.col("values"), pl.col("declared")
    split = frame.select(pl.when(~is_code).then(value), codes=pl.when(is_code).then(value))
    return split["values"].alias(column.name), split["codes"].alias(column.name)


def within(column: pl.Series, missing: tuple[tuple[Code, Code], ...]) -> pl.Series:
    """Whether values lie in declared ranges."""
    found = pl.repeat(value=False, n=len(column), eager=True)
    for low, high in missing:
        found |= column.is_between(low, high).fill_null(value=False)
    return found
