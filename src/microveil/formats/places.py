"""Where files go: checked before any work is done, and moved into place once all are written."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path

from microveil.errors import FileError


def check_place(path: Path, *, overwrite: bool, source: Path | None) -> None:
    """Refuse an output path that could not, or should not, be written."""
    try:
        _check_place(path, overwrite=overwrite, source=source)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be written: {why(error)}") from None


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
        raise FileError(f"{paths[0]}: cannot be written: {why(error)}") from None
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def check_readable(path: Path) -> None:
    """Refuse a path at which there is nothing to read."""
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from None
    if size is None:
        raise FileError(f"{path}: no such file")
    if size == 0:
        raise FileError(f"{path}: the file is empty")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def why(error: OSError) -> str:
    """Say in the operating system's words why it refused."""
    return error.strerror or "no permission, or no space left"
