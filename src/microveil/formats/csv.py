"""CSV files: delimiter, encoding and decimal mark are detected or given."""

import codecs
import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO, StringIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs

from microveil.errors import FileError, FileWarning, few, warn
from microveil.formats.atomic import is_disk_error, why
from microveil.formats.column_checks import (
    check_names,
    check_names_to_write,
    name_of_rows,
    unsupported_type,
)
from microveil.formats.metadata import Dialect, LoadedTable, TableMeta
from microveil.formats.source import Source
from microveil.formats.values import Assumptions, TextOptions, parse_text

if TYPE_CHECKING:
    import _csv

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_LINES = 1_000
_SAMPLE_RECORDS = 1_000_000
_HEAD = 1 << 20
_MOST_SECONDS = 2**53 // 1_000_000
_FALLBACK = "windows-1252"
_ENCODINGS = [  # one of Latin letters only, since short text looks alike in all of them
    "utf_16", "utf_32", "cp1252", "cp1251", "cp1253", "cp1255", "cp1256", "koi8_r",
    "cp932", "euc_jp", "gb18030", "big5", "cp949",
]  # fmt: skip
_WITH_COMMA = r"^[+-]?(\d+|\d{1,3}([.' \x{a0}\x{202f}\x{2019}]\d{3})+)(,\d+)?$"
_WITH_POINT = r"^[+-]?\d+(\.\d+)?$"
_FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"  # the last are =, +, - and @ of full width
_TEXT = cs.by_dtype(pl.String, pl.Categorical, pl.Enum)
_GROUPED_BY_POINTS = r"^[+-]?\d{1,3}(\.\d{3})+$"


@dataclass(frozen=True)
class _Text:
    """An open text file."""

    path: Path
    file: IO[bytes]
    encoding: str

    @property
    def is_utf8(self) -> bool:
        """Whether Polars can read the file directly."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    @contextmanager
    def from_the_start(self) -> Iterator[IO[str]]:
        """Open the text without its byte order mark; refuse text in another encoding."""
        self.file.seek(0)
        encoding = "utf-8-sig" if self.is_utf8 else self.encoding
        text = TextIOWrapper(self.file, encoding=encoding, newline="")
        try:
            yield text
        except UnicodeError:
            raise FileError(
                f"{self.path}: expected {self.encoding} text, found other bytes; give its encoding"
            ) from None
        finally:
            text.detach()  # so that the file stays open

    def as_utf8(self, scratch: Path | None = None) -> Path | BytesIO:
        """Return what Polars can read: the file, or a copy in UTF-8, which goes to `scratch`."""
        if self.is_utf8:
            return self.path
        with self.from_the_start() as text:
            if scratch is None:
                return BytesIO(text.read().encode())
            with scratch.open("w", encoding="utf-8", newline="") as file:
                copyfileobj(text, file)
            return scratch


@dataclass(frozen=True)
class _Csv(_Text):
    """An open CSV file, with its delimiter and column names."""

    delimiter: str
    line_break: str
    names: tuple[str, ...]
    has_row_names: bool

    def assumed(self) -> Assumptions:
        """Start the list of what is assumed about the file."""
        said = "the first column has no name and is read as"
        return Assumptions(self.path, {said: [repr(self.names[0])]} if self.has_row_names else {})

    @property
    def options(self) -> dict[str, Any]:
        """Options for Polars: all columns are text and named by their position.

        Polars would take a name such as ``^x$`` for a pattern, and leaves quotes in names doubled.
        """
        return {
            "infer_schema": False,
            "separator": self.delimiter,
            "eol_char": self.line_break,
            "new_columns": [str(place) for place in range(len(self.names))],
        }


def read_csv(source: Source, verbatim: Collection[str]) -> LoadedTable:
    """Read a CSV file.

    Integers with leading zeros or of more than 64 bits stay text, and so do numbers in `verbatim`
    columns that would not be written as they were read.
    """
    with _opened(source) as text:
        try:
            strings = pl.read_csv(text.as_utf8(), **text.options)
        except (pl.exceptions.PolarsError, IndexError):
            raise _problem(text) from None
        nulls = strings.to_series(-1).null_count()
        records = _check_records(text, strings.width, strings.height, nulls)
    strings = strings.head(records)
    decimal = source.decimal or _detect_decimal(strings, text)
    reading, assumed = _reading(source, text, decimal), text.assumed()
    columns = [
        assumed.add(name, parse_text(column, reading, verbatim=name in verbatim))
        for name, column in zip(text.names, strings, strict=True)
    ]
    assumed.tell()
    return LoadedTable(
        pl.DataFrame(columns),
        TableMeta(text.path, dialect=Dialect(text.delimiter, decimal), inferred=True),
    )


def detect_csv(source: Source) -> tuple[Source, list[str]]:
    """Return a source with detected encoding and delimiter, and the column names."""
    with _opened(source) as text:
        detected = replace(source, encoding=text.encoding, delimiter=text.delimiter)
        return detected, list(text.names)


def read_csv_columnwise(
    source: Source, verbatim: Collection[str], scratch: Path
) -> tuple[dict[str, Path], TableMeta]:
    """Convert a CSV file larger than memory to one Parquet file per column.

    The decimal mark is detected in the first million records.
    """
    stored = scratch / "text.parquet"
    with _opened(source) as text:
        try:
            utf8 = text.as_utf8(scratch / "text.csv")
            lazy = pl.scan_csv(utf8, **text.options)
            lazy.sink_parquet(stored, compression="lz4")
        except pl.exceptions.PolarsError as error:
            raise error if is_disk_error(error) else _problem(text) from None
        (scratch / "text.csv").unlink(missing_ok=True)
        width = len(pl.read_parquet_schema(stored))
        last = pl.read_parquet(stored, columns=[width - 1]).to_series()
        records = _check_records(text, width, len(last), last.null_count())
        del last
    head = pl.read_parquet(stored, n_rows=min(records, _SAMPLE_RECORDS))
    decimal = source.decimal or _detect_decimal(head, text)
    del head
    files = {}
    reading, assumed = _reading(source, text, decimal), text.assumed()
    for number, name in enumerate(text.names):
        column = pl.read_parquet(stored, columns=[number], n_rows=records).to_series()
        column = assumed.add(name, parse_text(column, reading, verbatim=name in verbatim))
        files[name] = scratch / f"column{number}.parquet"
        column.to_frame().write_parquet(files[name], compression="lz4")
    stored.unlink()
    assumed.tell()
    return files, TableMeta(text.path, dialect=Dialect(text.delimiter, decimal), inferred=True)


def _reading(source: Source, text: _Csv, decimal: str) -> TextOptions:
    unsure = source.decimal is None and text.delimiter != ","
    return TextOptions(decimal, tuple(source.na), source.dates, unsure)


def write_csv(frame: pl.DataFrame, path: Path, meta: TableMeta) -> list[str]:
    """Write a CSV file in UTF-8, in the dialect it was read in."""
    check_csv(frame)
    frame = without_formulas(frame.lazy(), meta).collect()
    frame.with_columns(durations_in_seconds()).write_csv(path, **csv_options(meta, frame.schema))
    return []


def without_formulas(frame: pl.LazyFrame, meta: TableMeta) -> pl.LazyFrame:
    """Put an apostrophe in front of text that a spreadsheet takes for a formula, or warn of it."""
    if meta.escape_formulas:
        text = _TEXT.cast(pl.String)
        escaped = pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text)
        names = frame.collect_schema().names()
        renamed = {name: f"'{name}" for name in names if re.match(_FORMULA, name)}
        return frame.with_columns(escaped.name.keep()).rename(renamed)
    tell_of_formulas(frame, frame.collect_schema().names())
    return frame


def tell_of_formulas(frame: pl.LazyFrame, names: Sequence[str]) -> None:
    """Warn of text that a spreadsheet takes for a formula, by count and column."""
    cells = frame.select(_TEXT.cast(pl.String).str.contains(_FORMULA).sum())
    counts = cells.collect(engine="streaming").to_dicts() if cells.collect_schema() else [{}]
    found = [f"{count:,} in column {name!r}" for name, count in counts[0].items() if count]
    found += [f"the name {name!r}" for name in names if re.match(_FORMULA, name)]
    if found:
        warn(
            f"a spreadsheet takes text that begins with =, +, -, @, tab or return for a formula: "
            f"{few(found)}; to write it as text, with an apostrophe, give escape_formulas=True "
            "(--escape-formulas)",
            FileWarning,
        )


def durations_in_seconds() -> pl.Expr:
    """Durations as CSV files hold them: in seconds."""
    return (cs.duration().dt.total_microseconds() / 1_000_000).round(6)


def check_csv(frame: pl.DataFrame | pl.LazyFrame) -> None:
    """Refuse names, types and values that CSV cannot hold or would change."""
    check_names_to_write(frame.collect_schema().names(), "CSV")
    for name, dtype in frame.collect_schema().items():
        if dtype.is_nested() or dtype in (pl.Binary, pl.Object):
            raise unsupported_type(name, dtype, "CSV")
    with_nul = cs.string().str.contains("\0", literal=True).any()
    for column in frame.lazy().select(with_nul).collect(engine="streaming"):
        if column.item():
            raise FileError(
                f"column {column.name!r}: CSV files cannot hold NUL characters; remove them, or "
                "write Parquet"
            )
    too_long = cs.duration().dt.total_seconds().abs() > _MOST_SECONDS
    too_fine = cs.duration(time_unit="ns").dt.total_nanoseconds() % 1_000 != 0
    for wrong in (too_long, too_fine):
        for column in frame.lazy().select(wrong.any()).collect(engine="streaming"):
            if column.item():
                raise FileError(
                    f"column {column.name!r}: expected durations of at most 285 years in whole "
                    "microseconds, found others; convert them to numbers, or write Parquet"
                )


def csv_options(meta: TableMeta, schema: Mapping[str, pl.DataType]) -> dict[str, Any]:
    """Return Polars' options for writing a dialect.

    A missing value in a single column is written as "", not as an empty line. Times have the digits
    they need, but Polars has one format for times with and without a zone.
    """
    delimiter, decimal = meta.dialect
    how = {"separator": delimiter, "decimal_comma": decimal == ",", "time_format": "%T%.f"}
    if not any(getattr(dtype, "time_zone", None) for dtype in schema.values()):
        how["datetime_format"] = "%FT%T%.f"
    return {**how, "null_value": '""' if len(schema) == 1 else ""}


@contextmanager
def _opened(source: Source) -> Iterator[_Csv]:
    """Open a file, detect from its start what is not given, and check its column names."""
    path = Path(source.location)
    try:
        file = path.open("rb")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from None
    with file:
        text = _Text(path, file, source.encoding or _detect_encoding(path, file))
        with text.from_the_start() as characters:
            head = characters.read(_HEAD) + characters.readline()
            is_whole = not characters.read(1)
        if "\0" in head:
            raise FileError(
                f"{path}: expected {text.encoding} text, found NUL characters, as in text "
                "that is UTF-16 or UTF-32; give its encoding"
            )
        delimiter = source.delimiter or _detect_delimiter(path, head, is_whole=is_whole)
        names = _names(path, head, delimiter)
        named = tuple(map(str, name_of_rows(names)))
        check_names(path, [*named])
        yield _Csv(path, file, text.encoding, delimiter, _line_break(head), named, named != names)


def _detect_encoding(path: Path, file: IO[bytes]) -> str:
    sample = file.read(_HEAD)
    if b"\0" not in sample:
        if _decodes(_Text(path, file, "utf-8")):
            return "utf-8"
        file.seek(max(0, file.tell() - _HEAD))  # to what is not UTF-8
        sample = _words(file.read(_HEAD))
    encoding, is_certain = _guess_encoding(sample)
    if b"\0" in sample and not is_certain:
        raise FileError(
            f"{path}: expected text, found binary data; if it is text, give its encoding"
        )
    if not _decodes(_Text(path, file, encoding)):
        raise FileError(f"{path}: expected UTF-8 text, found other bytes; give its encoding")
    if not is_certain:
        message = f"{path}: not UTF-8, read as {encoding}; if letters look wrong, give its encoding"
        warn(message, FileWarning)
    return encoding


def _words(text: bytes) -> bytes:
    """Return the lines that are not ASCII, without digits and most punctuation."""
    lines = text.split(b"\n")
    complete = lines[:-1] or lines  # the last may end in half a character
    return re.sub(rb"[\0-\x3f]+", b" ", b" ".join(line for line in complete if not line.isascii()))


def _guess_encoding(sample: bytes) -> tuple[str, bool]:
    """Guess an encoding other than UTF-8; say whether a byte order mark makes it certain.

    It is windows-1252 unless charset-normalizer recognises a language in another one.
    """
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_ENCODINGS).best()
    if best is None or not (best.bom or best.coherence) or best.encoding == "cp1252":
        return _FALLBACK, False
    return best.encoding, best.bom


def _decodes(text: _Text) -> bool:
    try:
        with text.from_the_start() as characters:
            while characters.read(_HEAD):
                pass
    except FileError:
        return False
    return True


def _detect_delimiter(path: Path, head: str, *, is_whole: bool) -> str:
    """Find the delimiter that splits the header and all lines into the same number of fields."""
    widths = {d: _widths(head, d, is_whole=is_whole) for d in _DELIMITERS}
    splitting = [d for d, w in widths.items() if w and w[0] > 1]
    regular = [d for d in splitting if len(set(widths[d])) == 1]
    candidates = regular or splitting
    if len(candidates) > 1 and (regular or "," not in candidates):
        found = " or ".join(map(repr, candidates))
        raise FileError(f"{path}: the delimiter may be {found}; give it")
    return "," if "," in candidates or not candidates else candidates[0]


def _widths(head: str, delimiter: str, *, is_whole: bool) -> list[int]:
    rows = _rows(StringIO(head, newline=""), delimiter)
    try:
        widths = [len(row) for row in islice(rows, _SAMPLE_LINES)]
    except csv.Error:
        return []
    if not is_whole and 1 < len(widths) < _SAMPLE_LINES:
        widths.pop()  # the head may end within quotes
    return [width for width in widths if width]


def _names(path: Path, head: str, delimiter: str) -> tuple[str, ...]:
    try:
        names = next(_rows(StringIO(head, newline=""), delimiter), [])
    except csv.Error:
        raise FileError(f"{path}: expected column names in line 1, found broken CSV") from None
    if not head.strip():
        raise FileError(f"{path}: the file is empty")
    return tuple(names)


def _line_break(head: str) -> str:
    """Return what ends the first line: in files of very old Macs a carriage return."""
    quotes = 0
    for line in StringIO(head, newline=""):
        quotes += line.count('"')
        if quotes % 2 == 0:
            return "\r" if line.endswith("\r") else "\n"
    return "\n"


def _rows(text: IO[str], delimiter: str, *, strict: bool = False) -> "_csv.Reader":
    csv.field_size_limit(2**31 - 1)
    return csv.reader(text, delimiter=delimiter, strict=strict)


def _problem(text: _Csv) -> FileError:
    """Say why Polars could not read a file, without quoting it."""
    try:
        _count_records(text)
    except FileError as problem:
        return problem
    return FileError(f"{text.path}: not a CSV file that can be read; check the delimiter")


def _check_records(text: _Csv, width: int, height: int, nulls: int) -> int:
    """Return the number of records, given what Polars read and the nulls in the last column.

    Short lines and trailing empty lines have nulls there. In a table of one column an empty line is
    a missing value.
    """
    if width != len(text.names):
        raise _problem(text)
    if text.line_break == "\n" and not nulls:
        return height
    records = _count_records(text)
    if records > height:
        raise FileError(
            f"{text.path}: expected one kind of line ending, found several; save it anew"
        )
    return records


def _count_records(text: _Csv) -> int:
    """Count records slowly; refuse the first line with another number of fields than the header."""
    records, empty, first_empty = -1, 0, 0
    with text.from_the_start() as characters:
        rows = _rows(characters, text.delimiter, strict=True)
        try:
            for row in rows:
                if not row:
                    empty, first_empty = empty + 1, first_empty or rows.line_num
                    continue
                if first_empty and len(text.names) > 1:
                    raise _wrong_length(text, first_empty, 0)
                if len(row) != len(text.names):
                    raise _wrong_length(text, rows.line_num, len(row))
                records, empty, first_empty = records + empty + 1, 0, 0
        except csv.Error:
            raise FileError(
                f"{text.path}, line {rows.line_num}: broken quotes; correct the line"
            ) from None
    if first_empty and len(text.names) == 1:
        raise FileError(
            f"{text.path}, line {first_empty}: empty lines at the end may be missing values or "
            'nothing; write "" for missing values, or delete the lines'
        )
    return records


def _wrong_length(text: _Csv, line: int, found: int) -> FileError:
    return FileError(
        f"{text.path}, line {line}: expected {len(text.names)} fields, found {found}; "
        "correct the line"
    )


def _detect_decimal(strings: pl.DataFrame, text: _Csv) -> str:
    """Take the comma as the decimal mark where it can be nothing else."""
    if text.delimiter == ",":
        return "."
    with_comma = [c for c in strings if _all_match(c, _WITH_COMMA) and _any_has(c, ",")]
    if not with_comma:
        return "."
    with_point = [
        c for c in strings
        if _all_match(c, _WITH_POINT) and _any_has(c, ".") and not _are_thousands(c)
    ]  # fmt: skip
    thousands = all(not c.str.contains(r",(\d{1,2}|\d{4,})$").any() for c in with_comma)
    if not with_point and not thousands:
        return ","
    why = "others have a decimal point" if with_point else "they may separate thousands"
    first = text.names[int(with_comma[0].name)]
    warn(
        f"{text.path}: column {first!r} has numbers with commas, but {why}, so it is read as text; "
        "give the decimal mark",
        FileWarning,
    )
    return "."


def _are_thousands(text: pl.Series) -> bool:
    return _all_match(text.filter(text.str.contains(".", literal=True)), _GROUPED_BY_POINTS)


def _all_match(text: pl.Series, pattern: str) -> bool:
    return bool(text.str.contains(pattern).all())


def _any_has(text: pl.Series, character: str) -> bool:
    return bool(text.str.contains(character, literal=True).any())
