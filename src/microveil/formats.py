"""Files in and out: CSV and Parquet. Output goes to a temporary file and is moved into place."""

import csv
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from microveil.errors import DataError, FileError

TABLES = (".csv", ".parquet")


def read_table(path: str | Path) -> pl.DataFrame:
    """Read a CSV or Parquet file.

    In CSV, a column is read as numbers only if nothing is lost by it: codes with leading zeros
    stay text.
    """
    path = Path(path)
    suffix = _suffix(path, TABLES)
    if not path.is_file():
        raise FileError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise FileError(f"{path}: the file is empty")
    table = _read_csv(path) if suffix == ".csv" else _read_parquet(path)
    if table.is_empty():
        raise FileError(f"{path}: the file has a header but no records")
    return table


def write_table(data: Any, path: Path) -> None:  # noqa: ANN401 - a table of the user's kind
    """Write a Polars, pandas or PyArrow table as CSV or Parquet, by the path's ending."""
    frame = nw.from_native(data, eager_only=True)
    if _suffix(path, TABLES) == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def check_output(
    path: Path, *, overwrite: bool, source: Path | None, suffixes: tuple[str, ...] = TABLES
) -> None:
    """Refuse an output path that could not, or should not, be written."""
    _suffix(path, suffixes)
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise FileError(f"{path}: the output would replace the input; choose another path")
    if path.exists() and not overwrite:
        raise FileError(f"{path}: the file exists; choose another path or overwrite it")
    if path.is_dir():
        raise FileError(f"{path}: this is a directory; name a file in it")
    if not path.parent.is_dir():
        raise FileError(f"{path}: the directory does not exist; make it first")


@contextmanager
def moved_into_place(paths: list[Path]) -> Iterator[list[Path]]:
    """Give a temporary path for each; move all into place at the end, or remove all on failure."""
    token = secrets.token_hex(4)
    temporary = [path.with_name(f".{token}.{path.name}") for path in paths]
    try:
        yield temporary
        for source, target in zip(temporary, paths, strict=True):
            source.replace(target)
    except OSError as error:
        raise FileError(f"{paths[0]}: cannot be written: {error.strerror}") from None
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _suffix(path: Path, expected: tuple[str, ...]) -> str:
    suffix = path.suffix.lower()
    if suffix not in expected:
        raise FileError(f"{path}: expected a file ending in {' or '.join(expected)}")
    return suffix


def _read_parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except pl.exceptions.DuplicateError:
        raise _twice(path) from None
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(f"{path}: not a Parquet file that can be read") from None


def _read_csv(path: Path) -> pl.DataFrame:
    _check_header(path)
    try:
        text = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError):
        raise _bad_line(path) or FileError(f"{path}: not a CSV file that can be read") from None
    last = text.columns[-1]
    problem = _bad_line(path) if text[last].null_count() else None  # short lines end in nulls
    if problem:
        raise problem
    return text.select(_typed(column) for column in text)


def _check_header(path: Path) -> None:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except UnicodeDecodeError:
        raise FileError(f"{path}: expected UTF-8 text; save the file as UTF-8") from None
    except (OSError, csv.Error):
        raise FileError(f"{path}: the first line cannot be read as CSV") from None
    if len(set(header)) < len(header):
        raise _twice(path)


def _twice(path: Path) -> DataError:
    return DataError(f"{path}: column names must differ, found the same name twice; rename one")


def _bad_line(path: Path) -> FileError | None:
    """Find the first line that is not like the header; slow, so only called when there is one."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            expected = len(next(rows))
            for row in rows:
                if len(row) != expected:
                    return FileError(
                        f"{path}, line {rows.line_num}: expected {expected} fields, "
                        f"found {len(row)}; correct the line"
                    )
    except UnicodeDecodeError:
        return FileError(f"{path}: expected UTF-8 text; save the file as UTF-8")
    except csv.Error:
        return FileError(f"{path}, line {rows.line_num}: broken quotes; correct the line")
    return None


def _typed(text: pl.Series) -> pl.Series:
    """Read a column as numbers or truth values if every value is one."""
    if text.null_count() == len(text) or text.str.contains(r"^[+-]?0\d").any():
        return text
    for dtype in (pl.Int64, pl.Float64):
        typed = text.cast(dtype, strict=False)
        if typed.null_count() == text.null_count():
            return typed
    if text.drop_nulls().is_in(["true", "false"]).all():
        return text == "true"
    return text
