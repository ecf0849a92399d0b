"""Text parsed as numbers, true/false values, dates and times, with markers of missing values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from microveil.core.choices import DateOrder
from microveil.errors import FileError, FileWarning, warn

MISSING_MARKERS = ("NA", "N/A", "n/a", "#N/A", ".", "NaN", "nan", "NULL", "null", "None")
"""Markers of missing values where the rest of a column is numbers, dates or true/false."""

_DAY, _TIME = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?"
_CLOCKS: dict[str, pl.Date | pl.Datetime | pl.Time] = {
    f"^{_DAY}$": pl.Date(),
    f"^{_DAY}[T ]{_TIME}$": pl.Datetime("us"),
    f"^{_TIME}$": pl.Time(),
}
_NATIONAL = re.compile(r"(\d{1,4})([./-])\d{1,2}[./-](\d{1,4})(?: (\d{1,2}:\d{2})(:\d{2})?)?")
_SEPARATORS: Mapping[str, tuple[str, ...]] = {
    ".": (",", " ", "\u00a0", "\u202f", "'", "\u2019"),
    ",": (".", " ", "\u00a0", "\u202f", "'", "\u2019"),
}
_SURELY_GROUPED = r",\d{3}[,.]"
_WORDS = (("true", "false"), ("TRUE", "FALSE"), ("True", "False"))


@dataclass(frozen=True)
class TextOptions:
    """How to parse text: decimal mark, declared missing values, order of day and month.

    If commas are `unsure`, 1,234 may also be 1.234 and stays text.
    """

    decimal: str = "."
    na: tuple[str, ...] = ()
    dates: DateOrder | None = None
    unsure: bool = False


@dataclass(frozen=True, eq=False)
class ParsedColumn:
    """The values of a column, and what was assumed to parse them.

    `unclear` says that day and month cannot be told apart.
    """

    values: pl.Series
    assumed: tuple[str, ...] = ()
    unclear: bool = False


@dataclass
class Assumptions:
    """What was assumed to read a file, told in one line that names the columns."""

    path: Path
    columns: dict[str, list[str]] = field(default_factory=dict)
    unclear: list[str] = field(default_factory=list)

    def add(self, name: str, read: ParsedColumn) -> pl.Series:
        """Add what was assumed about a column; return its values under its name."""
        for what in read.assumed:
            self.columns.setdefault(what, []).append(repr(name))
        if read.unclear:
            self.unclear.append(repr(name))
        return read.values.alias(name)

    def tell(self) -> None:
        """Warn of the assumptions; raise an error if day and month cannot be told apart."""
        if self.unclear:
            raise FileError(
                f"{self.path}: {', '.join(self.unclear)}: day and month cannot be told apart; give "
                'dates="day-first" or dates="month-first" (--dates day-first)'
            )
        if self.columns:
            said = "; ".join(f"{what}: {', '.join(names)}" for what, names in self.columns.items())
            warn(f"{self.path}: {said}", FileWarning)


def parse_text(text: pl.Series, reading: TextOptions, *, verbatim: bool) -> ParsedColumn:
    """Parse text as numbers, true/false values, dates or times if every value is one.

    If `verbatim`, only if all values would be written as they were read.
    """
    text = as_missing(text, reading.na)
    known = text.replace("", None)  # files that quote every field have "" for nothing
    marked = known.is_in(MISSING_MARKERS)
    found = known.filter(marked).unique().sort().to_list() if marked.any() else []
    if verbatim and found:  # which would be written as nothing
        return ParsedColumn(text)
    rest = as_missing(known, MISSING_MARKERS) if found else known
    read = _read(rest, reading, verbatim=verbatim) if rest.count() else None
    if read is None:
        stays = tuple(f'"{m}" stays text (--na {m} makes it missing)' for m in found if m == "NA")
        return ParsedColumn(text, stays if rest.count() else ())
    missing = tuple(f'"{marker}" is read as missing' for marker in found)
    return ParsedColumn(as_missing(read.values, reading.na), missing + read.assumed, read.unclear)


def as_missing(column: pl.Series, na: tuple[str, ...]) -> pl.Series:
    """Make declared missing values null: text that is equal, numbers that are equal in any form."""
    if column.dtype == pl.String and na:
        return column.replace(dict.fromkeys(na))
    if not column.dtype.is_numeric() or not na:
        return column
    numbers = pl.Series(na, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls()
    frame = pl.DataFrame({"column": column, "na": column.cast(pl.Float64).is_in(numbers.implode())})
    kept = frame.select(pl.when(~pl.col("na")).then(pl.col("column"))).to_series()
    return kept.alias(column.name)


def _read(known: pl.Series, reading: TextOptions, *, verbatim: bool) -> ParsedColumn | None:
    dated = None if verbatim else _dates(known, reading.dates)
    if dated is not None:
        return dated
    numbers = _numbers(known, reading, verbatim=verbatim)
    if numbers is not None:
        return numbers
    for yes, no in _WORDS[:1] if verbatim else _WORDS:
        if known.drop_nulls().is_in([yes, no]).all():
            return ParsedColumn(known == yes)
    return None


def _numbers(known: pl.Series, reading: TextOptions, *, verbatim: bool) -> ParsedColumn | None:
    if known.str.contains(r"^[+-]?0\d").any():
        return None
    plain, assumed = known, []
    if not verbatim:
        plain = plain.str.strip_chars()
        if plain.str.ends_with("%").all():
            plain = plain.str.strip_suffix("%").str.strip_chars()
            assumed.append("percent signs are removed")
        plain, grouped = _ungrouped(plain, reading)
        assumed += ["thousands separators are removed"] if grouped else []
    if reading.decimal == ",":
        if plain.str.contains(".", literal=True).any():
            return None
        plain = plain.str.replace(",", ".", literal=True)
    numbers = _cast(plain)
    if numbers is None or (verbatim and not numbers.cast(pl.String).equals(plain)):
        return None
    return ParsedColumn(numbers, tuple(assumed))


def _cast(plain: pl.Series) -> pl.Series | None:
    """Cast text to integers or else to floats; None if that would lose digits."""
    for dtype in (pl.Int64, pl.Float64):
        numbers = plain.cast(dtype, strict=False)
        if numbers.count() == plain.count():
            too_long = dtype == pl.Float64 and plain.str.contains(r"^[+-]?\d{16,}$").any()
            return None if too_long else numbers
    return None


def _ungrouped(plain: pl.Series, reading: TextOptions) -> tuple[pl.Series, bool]:
    """Remove thousands separators, if all are the same mark and in the right place."""
    decimal = reading.decimal
    for mark in _SEPARATORS[decimal]:
        if not plain.str.contains(mark, literal=True).any():
            continue
        place, point = re.escape(mark), re.escape(decimal)
        grouped = rf"^[+-]?(\d+|\d{{1,3}}({place}\d{{3}})+)({point}\d+)?$"
        sure = not reading.unsure or mark != "," or plain.str.contains(_SURELY_GROUPED).any()
        if sure and plain.str.contains(grouped).all():
            return plain.str.replace_all(mark, "", literal=True), True
    return plain, False


def _dates(text: pl.Series, order: DateOrder | None) -> ParsedColumn | None:
    """Parse a column as dates or times if every value is one, all in the same format."""
    known = text.drop_nulls()
    for pattern, dtype in _CLOCKS.items():
        if re.search(pattern, known[0]) and known.str.contains(pattern).all():
            times = text.str.replace(" ", "T", literal=True).str.strptime(dtype, strict=False)
            return ParsedColumn(times) if times.null_count() == text.null_count() else None
    first = _NATIONAL.fullmatch(known[0])
    return None if first is None else _national(text, first, order)


def _national(
    text: pl.Series, first: re.Match[str], order: DateOrder | None
) -> ParsedColumn | None:
    """Parse dates in the format of the first one: 2.3.2011, 03/02/2011 14:05, 2011/03/02."""
    begin, mark, end, minutes, seconds = first.groups()
    place = re.escape(mark)
    clock = r" \d{1,2}:\d{2}" + (r":\d{2}" if seconds else "") if minutes else ""
    shape = rf"\d{{4}}{place}\d{{1,2}}{place}\d{{1,2}}"
    if len(end) == 4 and len(begin) <= 2:
        shape = rf"\d{{1,2}}{place}\d{{1,2}}{place}\d{{4}}"
    elif len(begin) != 4:
        return None
    if not text.drop_nulls().str.contains(f"^{shape}{clock}$").all():
        return None
    day_first, unclear = None, False
    if len(begin) <= 2:
        day_first = _comes_day_first(text, mark)
        if day_first is None:
            unclear = order is None
            day_first = order != "month-first"
    form = {None: "%Y{0}%m{0}%d", True: "%d{0}%m{0}%Y", False: "%m{0}%d{0}%Y"}[day_first]
    form = form.format(mark) + ((" %H:%M:%S" if seconds else " %H:%M") if minutes else "")
    dtype = pl.Datetime("us") if minutes else pl.Date()
    times = text.str.strptime(dtype, form, strict=False)
    if times.null_count() > text.null_count():
        return None
    said = {None: (), True: ("dates are read day-first",), False: ("dates are read month-first",)}
    return ParsedColumn(times, said[day_first], unclear)


def _comes_day_first(text: pl.Series, mark: str) -> bool | None:
    """Whether the day comes first; None if no value tells. Dates with points are day-first."""
    parts = [text.str.extract(rf"^{start}(\d{{1,2}})").cast(pl.Int64)
             for start in ("", rf"\d{{1,2}}{re.escape(mark)}")]  # fmt: skip
    most = [int(part.max()) for part in parts]  # type: ignore[arg-type]
    if max(most) > 12:
        return most[0] > 12
    return True if mark == "." else None
