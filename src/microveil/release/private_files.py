"""Private files that releases change: locked meanwhile, replaced as a whole, read by one user."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from microveil.errors import FileError
from microveil.formats.atomic import why

_PATIENCE = 60.0  # seconds to wait for another process


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Keep other processes from a private file meanwhile."""
    if not path.parent.is_dir():  # which the lock would make
        raise FileError(f"{what} {path}: cannot be written: the directory does not exist")
    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=_PATIENCE, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise FileError(
            f"{what} {path}: another process has been using it for a minute; try again"
        ) from None
    except OSError as error:
        raise FileError(f"{what} {path}: cannot be written: {why(error)}") from None
    try:
        yield
    finally:
        lock.release()


def replace_private(path: Path, content: bytes, what: str) -> None:
    """Replace a file by a whole one that only its owner can read."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise FileError(f"{what} {path}: cannot be written: {why(error)}") from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
