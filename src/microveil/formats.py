"""Files in and out: CSV and Parquet. Output goes to a temporary file and is moved into place."""

import csv
import os
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from microveil.errors import DataError, FileError

TABLES = (".csv", ".parquet")


def read_table(path: str | Path, *, verbatim: Collection[str] = ()) -> pl.DataFrame:
    """Read a CSV or Parquet file.

    In CSV, whole numbers with leading zeros or of more than 64 bits stay text, and so do all
    numbers in `verbatim` columns that would be written differently from how they were read.
    """
    path = Path(path)
    suffix = _suffix(path, TABLES)
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {_why(error)}") from None
    if size is None:
        raise FileError(f"{path}: no such file")
    if size == 0:
        raise FileError(f"{path}: the file is empty")
    table = _read_csv(path, verbatim) if suffix == ".csv" else _read_parquet(path)
    if table.is_empty():
        raise FileError(f"{path}: the file has a header but no records")
    return table


def write_table(data: Any, path: Path) -> None:  # noqa: ANN401 - a table of the user's kind
    """Write a Polars, pandas or PyArrow table as CSV or Parquet, by the path's ending."""
    frame = nw.from_native(data, eager_only=True)
    frame = frame.with_columns(*map(_own_categories, frame.iter_columns()))
    try:
        if _suffix(path, TABLES) == ".csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - each library's own, whose message may hold data
        raise FileError(
            f"{path.suffix} cannot hold these column types ({type(error).__name__}); "
            "drop or convert the column, or write Parquet"
        ) from None


def _own_categories(column: nw.Series[Any]) -> nw.Series[Any]:
    """Rebuild categories from the rows at hand, so that they tell of no other rows or order."""
    if column.dtype != nw.Categorical or column.implementation is nw.Implementation.POLARS:
        return column
    native = column.to_native()
    if column.implementation is nw.Implementation.PYARROW:
        native = native.cast(native.type.value_type).dictionary_encode()
    else:
        native = native.cat.remove_unused_categories()
        if not native.cat.ordered:
            native = native.cat.reorder_categories(sorted(native.cat.categories))
    own: nw.Series[Any] = nw.from_native(native, series_only=True)
    return own.alias(column.name)


def check_output(
    path: Path, *, overwrite: bool, source: Path | None, suffixes: tuple[str, ...] = TABLES
) -> None:
    """Refuse an output path that could not, or should not, be written."""
    _suffix(path, suffixes)
    try:
        _check_place(path, overwrite=overwrite, source=source)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be written: {_why(error)}") from None


def _check_place(path: Path, *, overwrite: bool, source: Path | None) -> None:
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
        if isinstance(error, FileError):
            raise
        raise FileError(f"{paths[0]}: cannot be written: {_why(error)}") from None
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, or of a directory of files, in hexadecimal."""
    if path.is_dir():
        parts = [file for file in path.iterdir() if not file.name.startswith(("_", "."))]
        return digest_of_directory({file.name: sha256_of(file) for file in parts})
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def digest_of_directory(digests: Mapping[str, str]) -> str:
    """SHA-256 of what ``sha256sum *`` prints in a directory, given the SHA-256 of its files."""
    lines = (f"{digests[name]}  {name}\n" for name in sorted(digests))
    return sha256("".join(lines).encode()).hexdigest()


def _why(error: OSError) -> str:
    return error.strerror or "no permission, or no space left"


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


def _read_csv(path: Path, verbatim: Collection[str]) -> pl.DataFrame:
    _check_header(path)
    try:
        text = pl.read_csv(path, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError):
        raise _bad_line(path) or FileError(f"{path}: not a CSV file that can be read") from None
    if text.width > 1 and text[text.columns[-1]].null_count():  # short and empty lines end in nulls
        problem = _bad_line(path)
        if problem:
            raise problem
        text = text.head(text.height - _empty_lines_at_the_end(path))
    return text.select(_typed(column, verbatim=column.name in verbatim) for column in text)


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
    names = pl.Series(header, dtype=pl.String)
    if (names.str.strip_chars() == "").any() or names.cast(pl.Float64, strict=False).count():
        raise DataError(
            f"{path}: the first line must hold column names, found a number or nothing as a name; "
            "add a line of names, since the first line would be published"
        )


def _twice(path: Path) -> DataError:
    return DataError(f"{path}: column names must differ, found the same name twice; rename one")


def _bad_line(path: Path) -> FileError | None:
    """Find the first line that is not like the header; slow, so only called when there may be one.

    Empty lines at the end are no mistake.
    """
    csv.field_size_limit(2**31 - 1)
    empty = None
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            expected = len(next(rows))
            for row in rows:
                if row and empty:
                    return _wrong_length(path, empty, expected, 0)
                if not row:
                    empty = empty or rows.line_num
                elif len(row) != expected:
                    return _wrong_length(path, rows.line_num, expected, len(row))
    except UnicodeDecodeError:
        return FileError(f"{path}: expected UTF-8 text; save the file as UTF-8")
    except csv.Error:
        return FileError(f"{path}, line {rows.line_num}: broken quotes; correct the line")
    return None


def _wrong_length(path: Path, line: int, expected: int, found: int) -> FileError:
    return FileError(
        f"{path}, line {line}: expected {expected} fields, found {found}; correct the line"
    )


def _empty_lines_at_the_end(path: Path) -> int:
    with path.open("rb") as file:
        file.seek(-min(path.stat().st_size, 65_536), os.SEEK_END)
        end = file.read().replace(b"\r", b"")
    return max(0, len(end) - len(end.rstrip(b"\n")) - 1)


def _typed(text: pl.Series, *, verbatim: bool) -> pl.Series:
    """Read a column as numbers or truth values if every value is one."""
    if text.null_count() == len(text) or text.str.contains(r"^[+-]?0\d").any():
        return text
    for dtype in (pl.Int64, pl.Float64):
        typed = text.cast(dtype, strict=False)
        if typed.null_count() > text.null_count():
            continue
        too_long = dtype == pl.Float64 and text.str.contains(r"^[+-]?\d{16,}$").any()
        if too_long or (verbatim and not typed.cast(pl.String).equals(text)):
            return text
        return typed
    if text.drop_nulls().is_in(["true", "false"]).all():
        return text == "true"
    return text
