"""All file formats by file extension; tables are read and written in any of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from microveil.core.choices import DateOrder
from microveil.errors import FileError, FileWarning, require, warn
from microveil.formats import columnar, csv, database, excel
from microveil.formats.atomic import check_place, check_readable, is_disk_error
from microveil.formats.column_checks import check_names_to_write
from microveil.formats.forked import check_threads
from microveil.formats.metadata import LoadedTable, TableMeta
from microveil.formats.sandbox import Reader, sandboxed
from microveil.formats.source import Source, refuse_address
from microveil.formats.statistical import reader, writer
from microveil.formats.values import as_missing
from microveil.types import UserTable

Writer = Callable[[pl.DataFrame, Path, TableMeta], list[str]]


class _Format(NamedTuple):
    """A file format: its reader and writer, the options it takes, the modules it needs.

    A writer returns what the file cannot hold. Only `labelled` files hold labels, and missing codes
    that were read from files of the families in `codes_of`. `check` refuses values that the file
    would change.
    """

    name: str
    read: Reader
    write: Writer | None
    options: tuple[str, ...] = ()
    needs: Mapping[str, str] = MappingProxyType({})
    labelled: bool = False
    codes_of: tuple[str, ...] = ()
    check: Callable[[pl.DataFrame], None] | None = None


_EXCEL = {"fastexcel": "excel", "xlsxwriter": "excel"}
_DATABASE = {"adbc_driver_postgresql": "database", "pyarrow": "database"}
_OF_CSV = ("delimiter", "encoding", "decimal", "na", "dates")
_OF_EXCEL = ("sheet", "skip_rows")
_statistical = partial(
    _Format,
    read=sandboxed(reader.read_statistical),
    options=("encoding",),
    needs={"pyreadstat": "stats"},
    labelled=True,
)
_read_excel = sandboxed(excel.read_excel)

FORMATS = {
    ".csv": _Format("CSV", csv.read_csv, csv.write_csv, _OF_CSV, check=csv.check_csv),
    ".parquet": _Format("Parquet", columnar.read_parquet_file, columnar.write_parquet_file),
    ".arrow": _Format("Arrow", columnar.read_arrow_file, columnar.write_arrow_file),
    ".feather": _Format("Arrow", columnar.read_arrow_file, columnar.write_arrow_file),
    ".xlsx": _Format(
        "Excel", _read_excel, excel.write_excel, _OF_EXCEL, _EXCEL, check=excel.check_excel
    ),
    ".sav": _statistical(
        "SPSS", write=writer.write_spss, check=writer.check_spss, codes_of=("spss",)
    ),
    ".dta": _statistical(
        "Stata", write=writer.write_stata, check=writer.check_stata, codes_of=("stata", "sas")
    ),
    ".sas7bdat": _statistical("SAS", write=None),
}
_DATABASE_RESULT = _Format("the database", database.read_database, None, ("query",), _DATABASE)
READABLE = tuple(FORMATS)
WRITABLE = tuple(ending for ending, format_ in FORMATS.items() if format_.write)


def load_table(
    data: UserTable,
    *,
    verbatim: Collection[str] = (),
    na: Sequence[str] = (),
    dates: DateOrder | None = None,
) -> LoadedTable:
    """Read the table of a path or `Source`; return a table in memory as it is.

    Numbers in `verbatim` columns stay text if they would not be written as they were read. `na` and
    `dates` are used if the source does not give them.
    """
    check_threads()
    if isinstance(data, LoadedTable):
        return data
    if isinstance(data, pl.LazyFrame):
        return LoadedTable(data.collect())
    source = source_of(data)
    if source is None:
        return LoadedTable(data)
    source = replace(source, na=source.na or na, dates=source.dates or dates)
    return _read(source, verbatim)


def source_of(data: UserTable) -> Source | None:
    """Return the `Source` of a path or `Source`; None for a table in memory."""
    if isinstance(data, str | Path):
        return Source(data)
    return data if isinstance(data, Source) else None


def read_table(source: str | Path | Source, *, verbatim: Collection[str] = ()) -> pl.DataFrame:
    """Read a table without what its file says besides the values."""
    frame: pl.DataFrame = load_table(source, verbatim=verbatim).data
    return frame


def _read(source: Source, verbatim: Collection[str]) -> LoadedTable:
    format_ = _DATABASE_RESULT
    if source.path is not None:
        format_ = FORMATS[_ending(source.path, READABLE)]
        check_readable(source.path)
    for option in ("delimiter", "encoding", "decimal", "sheet", "query", "skip_rows"):
        if getattr(source, option) is not None and option not in format_.options:
            raise FileError(f"{source.name}: {option} does not apply to {format_.name}; remove it")
    _check_installed(format_)
    table = format_.read(source, verbatim)
    if source.na and format_.read is not csv.read_csv:
        columns = [as_missing(column, tuple(source.na)) for column in table.data]
        table = LoadedTable(pl.DataFrame(columns), table.meta)
    if table.data.is_empty():
        raise FileError(f"{source.path or source.name}: expected records, found only column names")
    return table


def write_table(data: UserTable, path: Path, meta: TableMeta = TableMeta()) -> None:  # noqa: B008
    """Write a Polars, pandas or PyArrow table in the format of the path's extension.

    A lazy Polars table is streamed. Warns of what the file cannot hold.
    """
    format_ = FORMATS[_ending(path, WRITABLE)]
    try:
        lost = _write(data, path, meta, format_)
    except Exception as error:
        if isinstance(error, FileError) or is_disk_error(error):
            raise
        raise FileError(  # each library's own error, whose message may hold data
            f"{path.suffix} cannot hold these column types ({type(error).__name__}); "
            "drop or convert the column, or write Parquet"
        ) from None
    lost += [] if format_.labelled else writer.lost_with_labels(meta)
    if lost:
        warn(
            f"{format_.name} files cannot hold everything; lost: {'; '.join(lost)}",
            FileWarning,
        )


def check_values(
    data: UserTable, kept: Collection[str], released: Collection[str], path: Path
) -> None:
    """Refuse what a file cannot hold, before the work: values of kept columns, and all names."""
    check = FORMATS[_ending(path, WRITABLE)].check
    if check is not None:
        frame = nw.from_native(data, eager_only=True)
        columns = [frame[name].to_polars() for name in kept if name in frame.columns]
        check(_without_decimals(pl.DataFrame(columns)))
        check(pl.DataFrame(schema=dict.fromkeys(released, pl.Null)))


def _write(data: UserTable, path: Path, meta: TableMeta, format_: _Format) -> list[str]:
    if isinstance(data, pl.LazyFrame):
        return columnar.sink_table(data, path, meta)
    frame = nw.from_native(data, eager_only=True)
    if format_.name in ("CSV", "Excel"):
        check_names_to_write(frame.columns, format_.name)
    polars = frame.implementation is nw.Implementation.POLARS
    plain = not any(dtype in (nw.Duration, nw.Decimal) for dtype in frame.schema.values())
    as_it_is = plain and len(frame.columns) > 1 and not meta.escape_formulas
    if path.suffix.lower() == ".csv" and not polars and as_it_is:
        csv.tell_of_formulas(_texts(frame), frame.columns)
        frame.write_csv(path)
    elif path.suffix.lower() == ".parquet" and not polars:
        frame.write_parquet(path)
    elif format_.write:
        table = frame.to_polars()
        as_floats = format_.check and format_.write is not csv.write_csv
        return format_.write(_without_decimals(table) if as_floats else table, path, meta)
    return []


def _texts(frame: nw.DataFrame[Any]) -> pl.LazyFrame:
    """Return the text of a table that is not Polars'."""
    texts = {}
    for name, dtype in frame.schema.items():
        if dtype in (nw.String, nw.Categorical, nw.Object):
            values = [v if isinstance(v, str) else None for v in frame[name].to_list()]
            texts[name] = pl.Series(values, dtype=pl.String)
    return pl.LazyFrame(texts)


def _without_decimals(table: pl.DataFrame) -> pl.DataFrame:
    """Convert decimals to floats where these are equal."""
    return pl.DataFrame({c.name: _as_float(c) if c.dtype.is_decimal() else c for c in table})


def _as_float(column: pl.Series) -> pl.Series:
    numbers = column.cast(pl.Float64)
    same = numbers.cast(column.dtype, strict=False).equals(column)
    return numbers if same else column


def check_escaped(path: Path | str) -> None:
    """Refuse to escape formulas in files other than CSV, where text is text."""
    if Path(path).suffix.lower() != ".csv":
        raise FileError(f"{path}: escape_formulas (--escape-formulas) is for CSV files; remove it")


def check_output(
    path: Path, *, overwrite: bool, source: Path | None, suffixes: tuple[str, ...] = WRITABLE
) -> None:
    """Refuse an output path that cannot or must not be written."""
    ending = _ending(path, suffixes)
    check_place(path, overwrite=overwrite, source=source)
    if suffixes == WRITABLE:
        _check_installed(FORMATS[ending])


def _check_installed(format_: _Format) -> None:
    for module, extra in format_.needs.items():
        if find_spec(module) is None:
            require(module, extra)


def _ending(path: Path, expected: tuple[str, ...]) -> str:
    refuse_address(path)
    ending = path.suffix.lower()
    if ending in FORMATS and expected == WRITABLE and ending not in WRITABLE:
        raise FileError(
            f"{path}: {FORMATS[ending].name} files are only read; choose another format"
        )
    if ending not in expected:
        *most, last = expected
        listed = f"{', '.join(most)} or {last}" if most else last
        raise FileError(f"{path}: expected a file ending in {listed}")
    return ending
