"""Excel workbooks, of which the first sheet or a named one is read."""

import logging
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import date, time
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import polars as pl

from microveil.errors import DataError, FileError, FileWarning, require, warn
from microveil.formats.column_checks import (
    as_whole_numbers,
    check_exact,
    check_names,
    check_names_to_write,
    name_of_rows,
    unsupported_type,
)
from microveil.formats.metadata import LoadedTable, TableMeta
from microveil.formats.source import Source
from microveil.formats.values import TextOptions, parse_text

_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1_048_575, 16_384, 32_767  # of a sheet, header apart
_MOST_NOTES, _FEWEST_COLUMNS = 50, 3  # rows above the names of columns, and where to tell
_MOST_CELLS = 100_000_000  # from the first to the last one with a content, some 3 GB in memory
_FAR_COLUMN = rb"[C-Z][A-Z]|[A-Z]{3}"  # no sheet with fewer columns has as many cells
_PLACE_OF_CELL = rb' r="%b"[^/>]*>'  # of one with a content: it is closed later
_AT_ONCE = 1 << 20
_LARGEST_NUMBER = 9.99999999999999e307
_NO_CHARACTERS = "[\ufffe\uffff]"
_LAST_DAY_OF_TIMES = date(1899, 12, 31)  # Excel's day 0, which times of day are on
_FIRST_DAY = date(1900, 3, 1)  # Excel counts a 29 February 1900, so the days before are unsure
_NUMBER_FORMATS = {
    pl.Date: "yyyy-mm-dd",
    pl.Datetime: "yyyy-mm-dd hh:mm:ss",
    pl.Time: "hh:mm:ss",
    pl.Duration: "[h]:mm:ss",
}


def read_excel(source: Source, _verbatim: Collection[str]) -> LoadedTable:
    """Read a sheet. Errors and formulas without a computed value are missing."""
    path = Path(source.location)
    fastexcel = require("fastexcel", "excel")
    logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of empty columns
    try:
        workbook = fastexcel.read_excel(path)
    except fastexcel.FastExcelError:
        raise FileError(f"{path}: not an Excel workbook that can be read") from None
    sheet = _sheet(workbook, source)
    _check_size(path, sheet)
    try:
        rows = workbook.load_sheet(
            sheet, header_row=None, skip_rows=0, n_rows=_MOST_NOTES, dtypes="string"
        )
        above, names = _header(rows.to_polars(), source, sheet, workbook.sheet_names)
        cells = workbook.load_sheet(sheet, header_row=above, schema_sample_rows=None).to_polars()
    except fastexcel.FastExcelError:
        raise FileError(f"{path}: sheet {sheet!r} cannot be read") from None
    if above and source.skip_rows is None:
        message = f"{path}: skipped {above} row(s) above the column names"
        warn(message, FileWarning)
    cells.columns = [str(place) for place in range(cells.width)]  # Polars takes ^x$ for a pattern
    cells = cells.select(_typed(column, tuple(source.na)) for column in cells)
    cells = _without_empty_rows(cells, path)
    cells.columns = names
    return LoadedTable(cells, TableMeta(path, inferred=True))


def _check_size(path: Path, sheet: str) -> None:
    """Refuse a sheet with a cell so far out that the empty ones before it fill the memory."""
    rows = columns = 0
    with suppress(Exception), ZipFile(path) as archive:  # none is far, or others refuse it
        part = _part_of(archive, sheet)
        columns = max(map(_number_of, _places(archive, part, rb"(%b)\d+" % _FAR_COLUMN)))
        far_row = rb"\d{%d,}" % len(str(_MOST_CELLS // columns))
        rows = max(map(int, _places(archive, part, rb"[A-Z]+(%b)" % far_row)))
    if rows * columns > _MOST_CELLS:
        raise DataError(
            f"{path}: expected at most {_MOST_CELLS:,} cells, found sheet {sheet!r} with a cell in "
            f"row {rows:,}, column {columns:,}; delete stray cells, or save it as CSV"
        )


def _part_of(archive: ZipFile, sheet: str) -> str:
    """Return the path of a sheet in its workbook."""
    sheets = ElementTree.fromstring(archive.read("xl/workbook.xml")).iter()  # noqa: S314
    found = next(e for e in sheets if e.tag.endswith("}sheet") and e.get("name") == sheet)
    number = next(value for name, value in found.items() if name.endswith("}id"))
    links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))  # noqa: S314
    target = next(link.get("Target", "") for link in links if link.get("Id") == number)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _places(archive: ZipFile, part: str, pattern: bytes) -> set[bytes]:
    """Return what a pattern picks from the positions of filled cells."""
    places = re.compile(_PLACE_OF_CELL % pattern)
    found: set[bytes] = set()
    with archive.open(part) as xml:
        rest = b""
        while chunk := xml.read(_AT_ONCE):
            text = rest + chunk
            found.update(places.findall(text))
            rest = text[max(text.rfind(b"<"), len(text) - _AT_ONCE) :]
    return found


def _number_of(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _sheet(workbook: Any, source: Source) -> str:  # noqa: ANN401 - of fastexcel
    sheets: list[str] = workbook.sheet_names
    if not sheets:
        raise FileError(f"{source.location}: expected a sheet, found none")
    if source.sheet is not None and source.sheet not in sheets:
        raise FileError(
            f"{source.location}: expected a sheet named {source.sheet!r}, found "
            f"{', '.join(map(repr, sheets))}"
        )
    return sheets[0] if source.sheet is None else source.sheet


def _header(
    rows: pl.DataFrame, source: Source, sheet: str, sheets: list[str]
) -> tuple[int, list[str]]:
    """Find the column names; return the number of rows above them, and the names."""
    others = [repr(name) for name in sheets if name != sheet]
    elsewhere = f"; other sheets (--sheet): {', '.join(others)}" if others else ""
    if not rows.width or not rows.height:
        raise FileError(f"{source.location}: sheet {sheet!r} is empty{elsewhere}")
    above = _rows_above(rows) if source.skip_rows is None else int(source.skip_rows)
    if above >= rows.height:
        raise FileError(
            f"{source.location}: skip_rows must be below the number of rows, got {above}"
        )
    names = name_of_rows(rows.row(above))
    try:
        check_names(f"{source.location}, sheet {sheet!r}", names)
    except DataError as error:
        where = "if there are notes above the column names, skip them with --skip-rows"
        raise DataError(f"{error}; {where}{elsewhere}") from None
    return above, list(map(str, names))


def _rows_above(rows: pl.DataFrame) -> int:
    """Count leading rows that are empty, or have a note in a cell or two."""
    for above, row in enumerate(rows.iter_rows()):
        filled = sum(cell is not None for cell in name_of_rows(row))
        if filled == len(row):
            return above
        if filled and (len(row) < _FEWEST_COLUMNS or filled > max(1, len(row) // 3)):
            return above
    return 0


def _typed(column: pl.Series, na: tuple[str, ...]) -> pl.Series:
    """Restore types: in Excel all numbers are floats and all dates have a time."""
    if column.dtype == pl.String and na and column.is_in(na).any():
        column = parse_text(column, TextOptions(na=na), verbatim=False).values
    if column.dtype == pl.Float64:
        return as_whole_numbers(column)
    if column.dtype == pl.String:
        return column.replace("", None)
    if column.dtype == pl.Null:
        return column.cast(pl.String)
    if column.dtype != pl.Datetime:
        return column.cast(pl.Duration("us")) if column.dtype == pl.Duration else column
    if (column.dt.date() <= _LAST_DAY_OF_TIMES).all():
        return column.dt.time()
    if (column.dt.time() == time(0)).all():
        return column.dt.date()
    return column.cast(pl.Datetime("us"))


def _without_empty_rows(cells: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Drop empty rows at the end; refuse others, unless there is a single column."""
    empty = cells.select(pl.all_horizontal(pl.all().is_null())).to_series()
    filled = cells.height if not empty.all() else 0
    while filled and empty[filled - 1]:
        filled -= 1
    first_empty = empty.head(filled).arg_max()
    if cells.width > 1 and filled and empty.head(filled).any() and first_empty is not None:
        raise FileError(f"{path}, record {first_empty + 1}: all cells are empty; delete the row")
    return cells.head(filled)


class _Exact(float):
    """A number written with all its digits, where xlsxwriter writes 16."""

    def __format__(self, _: str) -> str:
        return repr(float(self))


def check_excel(frame: pl.DataFrame) -> None:
    """Refuse columns and values that a sheet would change."""
    _check_fits(frame)
    check_names_to_write(frame.columns, "Excel")
    for column in frame:
        _storable(column.alias("column"), column.name)


def _check_fits(frame: pl.DataFrame) -> None:
    if frame.height > _MOST_ROWS or frame.width > _MOST_COLUMNS:
        raise FileError(
            f"Excel sheets hold {_MOST_ROWS:,} records and {_MOST_COLUMNS:,} columns, found "
            f"{frame.height:,} and {frame.width:,}; write Parquet or CSV"
        )


def _check_no_empty_rows(columns: list[pl.Series]) -> None:
    """Refuse records that would be empty rows, which nobody can tell from no rows."""
    empty = pl.select(pl.all_horizontal(map(_is_empty_cell, columns))).to_series().sum()
    if empty:
        raise FileError(
            f"Excel sheets lose records that have no value in any column, found {empty:,}; remove "
            "them first, keep a column that has a value, or write Parquet or CSV"
        )


def _is_empty_cell(column: pl.Series) -> pl.Series:
    """Say of each record whether its cell is empty, by a name that is no pattern."""
    plain = column.alias("column")
    return (plain.is_null() | (plain == "")) if plain.dtype == pl.String else plain.is_null()


def write_excel(frame: pl.DataFrame, path: Path, _meta: TableMeta) -> list[str]:
    """Write a workbook of one sheet. Text stays text, never a formula or link."""
    xlsxwriter = require("xlsxwriter", "excel")
    _check_fits(frame)
    columns = [
        _storable(column.alias("column"), column.name).alias(column.name) for column in frame
    ]
    _check_no_empty_rows(columns)
    file = BytesIO()  # a full disk would leave a traceback of its own
    try:
        with TemporaryDirectory(dir=path.parent, prefix=".") as directory:
            options = {"constant_memory": True, "tmpdir": directory}
            with xlsxwriter.Workbook(file, options) as workbook:
                _fill(workbook, pl.DataFrame(columns))
    except xlsxwriter.exceptions.FileCreateError:
        raise OSError from None
    path.write_bytes(file.getbuffer())
    return []


def _fill(workbook: Any, frame: pl.DataFrame) -> None:  # noqa: ANN401 - of xlsxwriter
    sheet = workbook.add_worksheet()
    writers = [_writer(sheet, workbook, dtype) for dtype in frame.dtypes]
    for place, name in enumerate(frame.columns):
        sheet.write_string(0, place, name)
    for row, values in enumerate(frame.iter_rows(), start=1):
        for place, value in enumerate(values):
            if value is not None:
                writers[place](row, place, value)


def _storable(column: pl.Series, name: str) -> pl.Series:
    check_exact(column, name, "Excel", largest=_LARGEST_NUMBER, finest="millisecond")
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if not _has_a_place(column.dtype):
        raise unsupported_type(name, column.dtype, "Excel")
    if column.dtype == pl.String and (column.str.len_chars() > _LONGEST_TEXT).any():
        raise FileError(
            f"column {name!r}: Excel cells hold {_LONGEST_TEXT:,} characters, found longer text; "
            "write Parquet or CSV"
        )
    if column.dtype == pl.String and column.str.contains(_NO_CHARACTERS).any():
        raise FileError(
            f"column {name!r}: Excel cells cannot hold U+FFFE and U+FFFF; write Parquet or CSV"
        )
    if column.dtype in (pl.Date, pl.Datetime) and (column.cast(pl.Date) < _FIRST_DAY).any():
        raise FileError(
            f"column {name!r}: Excel dates start on {_FIRST_DAY}, found earlier ones; write "
            "Parquet or CSV"
        )
    return column


def _has_a_place(dtype: pl.DataType) -> bool:
    """Whether a cell holds values of this type."""
    if dtype.is_integer() or dtype.is_float() or dtype in (pl.String, pl.Boolean, pl.Null):
        return True
    return dtype.base_type() in _NUMBER_FORMATS and getattr(dtype, "time_zone", None) is None


def _writer(sheet: Any, workbook: Any, dtype: pl.DataType) -> Callable[..., Any]:  # noqa: ANN401
    if dtype == pl.String:
        writer: Callable[..., Any] = sheet.write_string
    elif dtype == pl.Boolean:
        writer = sheet.write_boolean
    elif dtype.base_type() in _NUMBER_FORMATS:
        shown = workbook.add_format({"num_format": _NUMBER_FORMATS[dtype.base_type()]})
        return lambda row, place, value: sheet.write_datetime(row, place, value, shown)
    else:
        return lambda row, place, value: sheet.write_number(row, place, _Exact(value))
    return writer
