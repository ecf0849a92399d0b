"""Every kind of file there is, by its ending; reading and writing whatever the kind."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import narwhals as nw
import polars as pl

from microveil.core.choices import DateOrder
from microveil.errors import FileError, FileWarning, require, warn
from microveil.formats import columnar, csv, database, excel
from microveil.formats.cage import Reader, caged
from microveil.formats.forked import check_threads
from microveil.formats.paths import check_place, check_readable, is_disk_error
from microveil.formats.statistical import read as statistical_read
from microveil.formats.statistical import write as statistical_write
from microveil.formats.table import Source, Table, TableMeta, refuse_address
from microveil.formats.values import without
from microveil.types import UserTable

Writer = Callable[[pl.DataFrame, Path, TableMeta], list[str]]


class _Format(NamedTuple):
    """A kind of file: its reader, its writer, options that mean something to it, what it needs.

    A writer returns what the file could not hold. Files that are not `labelled` hold no labels.
    `check` refuses values that the file would change.
    """

    name: str
    read: Reader
    write: Writer | None
    options: tuple[str, ...] = ()
    needs: Mapping[str, str] = MappingProxyType({})
    labelled: bool = False
    check: Callable[[pl.DataFrame], None] | None = None


_STATS = {"pyreadstat": "stats"}
_EXCEL = {"fastexcel": "excel", "xlsxwriter": "excel"}
_DATABASE = {"adbc_driver_postgresql": "database", "pyarrow": "database"}
_ENCODED = ("encoding",)
_OF_CSV = ("delimiter", "encoding", "decimal", "na", "dates")

FORMATS = {
    ".csv": _Format("CSV", csv.read, csv.write, _OF_CSV, check=csv.check),
    ".parquet": _Format("Parquet", columnar.read_parquet, columnar.write_parquet),
    ".arrow": _Format("Arrow", columnar.read_arrow, columnar.write_arrow),
    ".feather": _Format("Arrow", columnar.read_arrow, columnar.write_arrow),
    ".xlsx": _Format(
        "Excel", caged(excel.read), excel.write, ("sheet", "skip_rows"), _EXCEL, check=excel.check
    ),
    ".sav": _Format(
        "SPSS",
        caged(statistical_read.read),
        statistical_write.write_spss,
        _ENCODED,
        _STATS,
        labelled=True,
        check=statistical_write.check_spss,
    ),
    ".dta": _Format(
        "Stata",
        caged(statistical_read.read),
        statistical_write.write_stata,
        _ENCODED,
        _STATS,
        labelled=True,
        check=statistical_write.check_stata,
    ),
    ".sas7bdat": _Format(
        "SAS", caged(statistical_read.read), None, _ENCODED, _STATS, labelled=True
    ),
}
_DATABASE_RESULT = _Format("the database", database.read, None, ("query",), _DATABASE)
READABLE = tuple(FORMATS)
WRITABLE = tuple(ending for ending, format_ in FORMATS.items() if format_.write)


def load(
    data: UserTable,
    *,
    verbatim: Collection[str] = (),
    na: Sequence[str] = (),
    dates: DateOrder | None = None,
) -> Table:
    """Read what a path or `Source` names; take a table in memory as it is.

    Numbers in `verbatim` columns that were text in the source and would be written differently
    stay text. `na` and `dates` are for a source that does not say them itself.
    """
    check_threads()
    if isinstance(data, Table):
        return data
    if isinstance(data, pl.LazyFrame):
        return Table(data.collect())
    source = source_of(data)
    if source is None:
        return Table(data)
    source = replace(source, na=source.na or na, dates=source.dates or dates)
    return _read(source, verbatim)


def source_of(data: UserTable) -> Source | None:
    """Return what a path or `Source` names; None for a table in memory."""
    if isinstance(data, str | Path):
        return Source(data)
    return data if isinstance(data, Source) else None


def read_table(source: str | Path | Source, *, verbatim: Collection[str] = ()) -> pl.DataFrame:
    """Read a table, and leave behind what its file says besides the values."""
    frame: pl.DataFrame = load(source, verbatim=verbatim).data
    return frame


def _read(source: Source, verbatim: Collection[str]) -> Table:
    format_ = _DATABASE_RESULT
    if source.path is not None:
        format_ = FORMATS[_ending(source.path, READABLE)]
        check_readable(source.path)
    for option in ("delimiter", "encoding", "decimal", "sheet", "query", "skip_rows"):
        if getattr(source, option) is not None and option not in format_.options:
            raise FileError(f"{source.name}: {option} has no meaning for {format_.name}; remove it")
    _check_installed(format_)
    table = format_.read(source, verbatim)
    if source.na and format_.read is not csv.read:
        columns = [without(column, tuple(source.na)) for column in table.data]
        table = Table(pl.DataFrame(columns), table.meta)
    if table.data.is_empty():
        what = "the file has a header" if source.path else "the query's result has columns"
        raise FileError(f"{source.path or source.name}: {what} but no records")
    return table


def write_table(data: UserTable, path: Path, meta: TableMeta = TableMeta()) -> None:  # noqa: B008
    """Write a Polars, pandas or PyArrow table as what the path's ending says.

    A lazy Polars table is written as it is read, without ever being in memory as a whole.
    Warns of what the file cannot hold.
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
    lost += [] if format_.labelled else statistical_write.lost_with_labels(meta)
    if lost:
        warn(
            f"{format_.name} files cannot hold everything; lost: {'; '.join(lost)}",
            FileWarning,
        )


def check_values(
    data: UserTable, kept: Collection[str], released: Collection[str], path: Path
) -> None:
    """Refuse what the file at this path cannot hold, before any work is done.

    That is values of columns that are kept, and names of all that are released.
    """
    check = FORMATS[_ending(path, WRITABLE)].check
    if check is not None:
        frame = nw.from_native(data, eager_only=True)
        columns = [frame[name].to_polars() for name in kept if name in frame.columns]
        check(_without_decimals(pl.DataFrame(columns)))
        check(pl.DataFrame(schema=dict.fromkeys(released, pl.Null)))


def _write(data: UserTable, path: Path, meta: TableMeta, format_: _Format) -> list[str]:
    if isinstance(data, pl.LazyFrame):
        return columnar.sink(data, path, meta)
    frame = nw.from_native(data, eager_only=True)
    polars = frame.implementation is nw.Implementation.POLARS
    plain = not any(dtype in (nw.Duration, nw.Decimal) for dtype in frame.schema.values())
    if path.suffix.lower() == ".csv" and not polars and plain and len(frame.columns) > 1:
        frame.write_csv(path)
    elif path.suffix.lower() == ".parquet" and not polars:
        frame.write_parquet(path)
    elif format_.write:
        table = frame.to_polars()
        as_floats = format_.check and format_.write is not csv.write
        return format_.write(_without_decimals(table) if as_floats else table, path, meta)
    return []


def _without_decimals(table: pl.DataFrame) -> pl.DataFrame:
    """Give numbers of a decimal type as floating-point numbers where these are the same."""
    return pl.DataFrame([_as_float(c) if c.dtype.is_decimal() else c for c in table])


def _as_float(column: pl.Series) -> pl.Series:
    numbers = column.cast(pl.Float64)
    same = numbers.cast(column.dtype, strict=False).equals(column)
    return numbers if same else column


def check_output(
    path: Path, *, overwrite: bool, source: Path | None, suffixes: tuple[str, ...] = WRITABLE
) -> None:
    """Refuse an output path that could not, or should not, be written."""
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
        raise FileError(f"{path}: {FORMATS[ending].name} files can be read but not written")
    if ending not in expected:
        *most, last = expected
        listed = f"{', '.join(most)} or {last}" if most else last
        raise FileError(f"{path}: expected a file ending in {listed}")
    return ending
