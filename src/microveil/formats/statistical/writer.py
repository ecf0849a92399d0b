"""SPSS and Stata files, written with the labels and missing codes that were read."""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from microveil.errors import FileError, require
from microveil.formats.column_checks import Finest, check_exact, unsupported_type
from microveil.formats.metadata import Code, ColumnMeta, TableMeta
from microveil.formats.statistical.reader import within

_LARGEST_NUMBER = {"SPSS": 1.797e308, "Stata": 8.98e307}  # larger ones stand for missing values
_FINEST: dict[tuple[str, type[pl.DataType]], Finest] = {  # what pyreadstat reads as it was written
    ("SPSS", pl.Time): "millisecond",
    ("Stata", pl.Datetime): "millisecond",
}
_LONGEST_TEXT = {"SPSS": 32_767, "Stata": 2_045}  # bytes
_LONGEST_LABEL = {"SPSS": (256, 120), "Stata": (80, 32_000)}  # bytes, of columns and of values
_DAYS_OF_SPSS = 141_428  # from October 14, 1582 to 1970
_STEPS_OF_SPSS: dict[type[pl.DataType], tuple[float, int, int]] = {
    pl.Date: (86_400, 1, _DAYS_OF_SPSS),
    pl.Datetime: (1, 1_000_000, 86_400 * _DAYS_OF_SPSS),
    pl.Time: (0.001, 1_000_000, 0),
}
"""Seconds in a step, how many units of Polars it has, and its number at Polars' epoch."""
_LARGEST_STATA_LONG = 2_147_483_620
_SPSS_NAME = re.compile(
    r"(?!(all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with)$)[^\W\d_][\w.@#$]{0,63}", re.I
)
_STATA_NAME = re.compile(r"[^\W\d]\w{0,31}")

_Columns = dict[str, pl.Series]
_Labels = dict[str, dict[Code, str]]


def check_spss(frame: pl.DataFrame) -> None:
    """Refuse names and values that an SPSS file would change."""
    _check_names_of_spss(frame.columns)
    for column in frame:
        _storable(column, "SPSS")


def check_stata(frame: pl.DataFrame) -> None:
    """Refuse names and values that a Stata file would change."""
    _check_names(frame.columns, _STATA_NAME, "Stata")
    for column in frame:
        _storable(column, "Stata")


def write_spss(frame: pl.DataFrame, path: Path, meta: TableMeta) -> list[str]:
    """Write an SPSS file, with missing codes if they are SPSS's."""
    _check_names_of_spss(frame.columns)
    columns = {column.name: _storable(column, "SPSS") for column in frame}
    whole = {name: "F16.0" for name, column in columns.items() if column.dtype.is_integer()}
    known = {name: _shortened(meta.columns.get(name, ColumnMeta()), "SPSS") for name in columns}
    own = known if meta.family == "spss" else {}
    for name, about in own.items():
        columns[name] = _declared(columns[name], about)
    labels = _labels(
        columns, known, lambda key, text: key if isinstance(key, str) == text else None
    )
    missing = {n: [{"lo": lo, "hi": hi} for lo, hi in about.missing] for n, about in own.items()}
    _write(
        "sav",
        columns,
        path,
        column_labels={name: about.label for name, about in known.items()},
        variable_value_labels=labels,
        missing_ranges=missing,
        variable_measure={name: about.measure for name, about in own.items()},
        variable_format=whole | _displays(columns, own),
    )
    lost = _lost(frame, known, labels, own) + _cut_short(known, meta)
    return lost + _in_words({"spaces at the end of text": sum(map(_ends_in_space, frame))})


def write_stata(frame: pl.DataFrame, path: Path, meta: TableMeta) -> list[str]:
    """Write a Stata file, with missing codes .a to .z if they are Stata's or SAS's."""
    _check_names(frame.columns, _STATA_NAME, "Stata")
    columns = {column.name: _as_stata(_storable(column, "Stata")) for column in frame}
    known = {name: _shortened(meta.columns.get(name, ColumnMeta()), "Stata") for name in columns}
    lettered = {
        name: about
        for name, about in known.items()
        if meta.family != "spss" and columns[name].dtype != pl.String
    }
    labels = _labels(columns, known, _stata_key)
    displays = _displays(columns, known if meta.family == "stata" else {})
    large = {
        c.name: "%21.0f"
        for c in frame
        if c.dtype.is_integer() and columns[c.name].dtype == pl.Float64
    }
    letters = {name: _letters(about, labels[name]) for name, about in lettered.items()}
    for name, used in letters.items():
        if used:
            columns[name] = _with_letters(columns[name], known[name].codes)
    _write(
        "dta",
        columns,
        path,
        column_labels={name: about.label for name, about in known.items()},
        variable_value_labels=labels,
        missing_user_values=letters,
        variable_format=displays | large,
    )
    return _lost(frame, known, labels, lettered) + _cut_short(known, meta)


def _shortened(about: ColumnMeta, kind: str) -> ColumnMeta:
    """Cut labels to the length that a file holds."""
    of_column, of_value = _LONGEST_LABEL[kind]
    label = None if about.label is None else _start(about.label, of_column)
    labels = {key: _start(text, of_value) for key, text in about.value_labels.items()}
    return replace(about, label=label, value_labels=labels)


def _start(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")


def _cut_short(known: Mapping[str, ColumnMeta], meta: TableMeta) -> list[str]:
    before = {name: meta.columns[name] for name in known if name in meta.columns}
    cut = sum(
        (known[name].label, known[name].value_labels) != (about.label, dict(about.value_labels))
        for name, about in before.items()
    )
    return _in_words({"ends of long labels": cut})


def lost_with_labels(meta: TableMeta) -> list[str]:
    """Return what is lost where a file holds only values."""
    about = meta.columns.values()
    lost = {
        "column labels": sum(column.label is not None for column in about),
        "value labels": sum(bool(column.value_labels) for column in about),
        "declared missing codes (now missing)": _coded(about),
    }
    return _in_words(lost)


def _lost(
    frame: pl.DataFrame,
    known: Mapping[str, ColumnMeta],
    labels: _Labels,
    coded: Mapping[str, object],
) -> list[str]:
    lost = {
        "value labels": sum(len(labels[n]) < len(known[n].value_labels) for n in known),
        "declared missing codes (now missing)": _coded(
            about for name, about in known.items() if name not in coded
        ),
        "true/false values (now 0 and 1)": sum(dtype == pl.Boolean for dtype in frame.dtypes),
    }
    return _in_words(lost)


def _ends_in_space(column: pl.Series) -> bool:
    return column.dtype == pl.String and bool(column.str.ends_with(" ").any())


def _coded(about: Iterable[ColumnMeta]) -> int:
    return sum(column.codes is not None and column.codes.count() > 0 for column in about)


def _in_words(lost: Mapping[str, int]) -> list[str]:
    return [f"{what} (columns: {count})" for what, count in lost.items() if count]


def _check_names_of_spss(names: Collection[str]) -> None:
    _check_names(names, _SPSS_NAME, "SPSS")
    if len({name.lower() for name in names}) < len(names):
        raise FileError(
            "SPSS ignores case, found column names that differ only in case; rename one"
        )


def _check_names(names: Iterable[str], pattern: re.Pattern[str], kind: str) -> None:
    for name in names:
        if not pattern.fullmatch(name):
            raise FileError(
                f"column {name!r}: not a valid {kind} name; rename it to letters, digits and _ "
                "that start with a letter, or write another format"
            )


def _storable(column: pl.Series, kind: str) -> pl.Series:
    """Return the column in a type that the file has, or refuse it."""
    dtype = column.dtype
    finest = _FINEST.get((kind, dtype.base_type()), "second")
    check_exact(column, column.name, kind, largest=_LARGEST_NUMBER[kind], finest=finest)
    if dtype == pl.String and column.str.contains("\0", literal=True).any():
        raise FileError(
            f"column {column.name!r}: {kind} files cannot hold NUL characters; remove them, or "
            "write Parquet"
        )
    if dtype == pl.String and (column.str.len_bytes() > _LONGEST_TEXT[kind]).any():
        raise FileError(
            f"column {column.name!r}: {kind} files hold text up to {_LONGEST_TEXT[kind]:,} bytes, "
            "found longer text; write Parquet or CSV"
        )
    if dtype == pl.Float16:
        return column.cast(pl.Float64)
    if dtype.is_float() or dtype in (pl.String, pl.Date, pl.Time):
        return column
    if dtype.is_integer() or dtype == pl.Boolean:
        return column.cast(pl.Int64)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is None:
        return column.cast(pl.Datetime("us"))
    if dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    if dtype == pl.Null:
        return column.cast(pl.Float64)
    raise unsupported_type(column.name, dtype, kind)


def _as_stata(column: pl.Series) -> pl.Series:
    """Store integers in 4 bytes if they fit, otherwise as floats."""
    if not column.dtype.is_integer():
        return column
    fits = column.is_between(-_LARGEST_STATA_LONG, _LARGEST_STATA_LONG).all()
    return column.cast(pl.Int32 if fits else pl.Float64)


def clear_of_codes(column: pl.Series, about: ColumnMeta) -> pl.Series:
    """Move masked values that equal a declared missing one to the nearest other value.

    Guarantee
    ---------
    A function of masked values and of what the file declares: post-processing, so it is free.
    """
    hit = within(column, about.missing) if about.masked else None
    if about.masked is None or hit is None or not hit.any():
        return column
    lower, upper, decimals = about.masked
    decimals = 0 if column.dtype.is_integer() else decimals
    beside = [value for ends in about.missing for value in _beside(ends, decimals)]
    free = pl.Series(beside, dtype=pl.Float64).sort()
    free = free.filter(free.is_finite() & ~within(free, about.missing))
    inside = free.filter(free.is_between(lower, upper))
    places = (inside if len(inside) else free).to_numpy()
    values = column.cast(pl.Float64).to_numpy(writable=True)
    where = hit.to_numpy()
    nearest = np.abs(values[where][:, None] - places).argmin(axis=1)
    values[where] = places[nearest]
    return pl.Series(column.name, values, nan_to_null=True).cast(column.dtype)


def _beside(ends: tuple[Code, Code], decimals: int | None) -> list[float]:
    """Return the last value below a range and the first one above it."""
    low, high = (float(end) for end in ends)
    scale = None if decimals is None else 10**decimals
    below, above = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    if scale and abs(low) < 2**53:
        below = (math.ceil(low * scale) - 1) / scale
    if scale and abs(high) < 2**53:
        above = (math.floor(high * scale) + 1) / scale
    return [below, above]


def _declared(column: pl.Series, about: ColumnMeta) -> pl.Series:
    """Return a column with its missing codes; dates and times then are SPSS's numbers of seconds.

    They are moved clear of codes by days, seconds or milliseconds, as the column has them.
    """
    if not column.dtype.is_temporal():
        return _with_codes(clear_of_codes(column, about), about.codes)
    if not about.missing:
        return column
    step, unit, epoch = _STEPS_OF_SPSS[column.dtype.base_type()]
    steps = column.cast(pl.Int64) // unit + epoch
    ranges = [(round(float(lo) / step, 3), round(float(hi) / step, 3)) for lo, hi in about.missing]
    clear = clear_of_codes(steps, replace(about, missing=tuple(ranges)))
    return _with_codes(clear.cast(pl.Float64) * step, about.codes)


def _with_codes(column: pl.Series, codes: pl.Series | None) -> pl.Series:
    if codes is None:
        return column
    return column.cast(codes.dtype).fill_null(codes)


def _letters(about: ColumnMeta, labels: Mapping[Code, str]) -> list[str]:
    used = set() if about.codes is None else set(about.codes.drop_nulls().to_list())
    return sorted(used | {key for key in labels if isinstance(key, str)})


def _with_letters(column: pl.Series, codes: pl.Series | None) -> pl.Series:
    entries = column.to_list()
    if codes is not None:
        pairs = zip(entries, codes.to_list(), strict=True)
        entries = [code if entry is None else entry for entry, code in pairs]
    return pl.Series(column.name, entries, dtype=pl.Object)


def _labels(
    columns: _Columns,
    known: Mapping[str, ColumnMeta],
    key_of: Callable[[Code, bool], Code | None],
) -> _Labels:
    """Keep the labels of values that the file can hold."""
    labels: _Labels = {}
    for name, about in known.items():
        is_text = columns[name].dtype == pl.String
        keys = {key: key_of(key, is_text) for key in about.value_labels}
        labels[name] = {k: about.value_labels[old] for old, k in keys.items() if k is not None}
    return labels


def _stata_key(key: Code, is_text: bool) -> Code | None:
    if is_text:
        return None
    if isinstance(key, str):
        return key.lower() if re.fullmatch("[a-zA-Z]", key) else None
    return int(key) if key == int(key) and abs(key) <= _LARGEST_STATA_LONG else None


def _displays(columns: _Columns, own: Mapping[str, ColumnMeta]) -> dict[str, str]:
    return {
        name: about.display
        for name, about in own.items()
        if about.display and columns[name].dtype != pl.String
    }


def _write(kind: str, columns: _Columns, path: Path, **about: Mapping[str, Any]) -> None:
    pyreadstat = require("pyreadstat", "stats")
    frame = pl.DataFrame(list(columns.values()))
    given = {
        what: {name: value for name, value in of_columns.items() if value}
        for what, of_columns in about.items()
    }
    try:
        getattr(pyreadstat, f"write_{kind}")(
            frame, path, **{what: of_columns for what, of_columns in given.items() if of_columns}
        )
    except pyreadstat.ReadstatError as error:
        if "Unable to write" in str(error):
            raise OSError from None
        raise
    _check_complete(getattr(pyreadstat, f"read_{kind}"), path, frame.height)


def _check_complete(read: Callable[..., Any], path: Path, records: int) -> None:
    """Read the last record back, since a disk that is full from the start is not reported."""
    try:
        last, _ = read(path, row_offset=records - 1, row_limit=1, output_format="polars")
    except Exception:  # noqa: BLE001 - whatever is wrong with it
        last = pl.DataFrame()
    if last.height != 1:
        raise OSError
