"""Parquet and Arrow (Feather) files."""

from collections.abc import Callable, Collection
from pathlib import Path

import polars as pl

from microveil.errors import FileError
from microveil.formats.column_checks import same_name_twice
from microveil.formats.csv import check_csv, csv_options, durations_in_seconds, without_formulas
from microveil.formats.metadata import LoadedTable, TableMeta
from microveil.formats.source import Source


def read_parquet_file(source: Source, _verbatim: Collection[str]) -> LoadedTable:
    """Read a Parquet file."""
    return _read(source, "a Parquet", pl.read_parquet)


def read_arrow_file(source: Source, _verbatim: Collection[str]) -> LoadedTable:
    """Read an Arrow file or a saved Arrow stream."""
    return _read(source, "an Arrow", _read_ipc)


def _read(source: Source, kind: str, read: Callable[[Path], pl.DataFrame]) -> LoadedTable:
    path = Path(source.location)
    try:
        return LoadedTable(read(path), TableMeta(path))
    except pl.exceptions.DuplicateError:
        raise same_name_twice(path) from None
    except pl.exceptions.PanicException:  # as Polars does for an Arrow file with a duplicate name
        raise FileError(
            f"{path}: not {kind} file that can be read: damaged, or with a duplicate column name"
        ) from None
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(f"{path}: not {kind} file that can be read") from None


def _read_ipc(path: Path) -> pl.DataFrame:
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return pl.read_ipc(path) if is_file else pl.read_ipc_stream(path)


def write_arrow_file(frame: pl.DataFrame, path: Path, _meta: TableMeta) -> list[str]:
    """Write an Arrow file."""
    frame.write_ipc(path, compression="lz4")
    return []


def write_parquet_file(frame: pl.DataFrame, path: Path, _meta: TableMeta) -> list[str]:
    """Write a Parquet file."""
    frame.write_parquet(path)
    return []


def sink_table(frame: pl.LazyFrame, path: Path, meta: TableMeta) -> list[str]:
    """Stream a table to a Parquet or CSV file."""
    if path.suffix.lower() == ".csv":
        check_csv(frame)
        frame = without_formulas(frame, meta).with_columns(durations_in_seconds())
        frame.sink_csv(path, **csv_options(meta, frame.collect_schema()))
    else:
        frame.sink_parquet(path)
    return []
