"""Output paths that are checked before the work, and files that are moved into place after it."""

import ctypes
import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path

import polars as pl
import psutil
from filelock import FileLock, Timeout

from microveil.core.scratch import name_of_scratch, start_of_scratch
from microveil.errors import FileError

LOCK = ".microveil.lock"
"""The file in a directory that is locked while files are moved into it."""

_PATIENCE = 60.0  # seconds to wait for another process
OR_OVERWRITE = "choose another path, or give overwrite=True (--overwrite)"
_DISK_ERROR = re.compile(r"\(os error (\d+)\)|transport error")  # as Polars passes them on


def check_place(path: Path, *, overwrite: bool, source: Path | None) -> None:
    """Refuse an output path that cannot or must not be written."""
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
        raise FileError(f"{path}: the file exists; {OR_OVERWRITE}")
    if path.is_dir():
        raise FileError(f"{path}: expected a file, found a directory; name a file in it")
    if not path.parent.is_dir():
        raise FileError(f"{path}: the directory does not exist; make it first")


@contextmanager
def moved_into_place(paths: list[Path]) -> Iterator[list[Path]]:
    """Yield a temporary path for each path; move all into place at the end, or none on failure.

    They are moved in turn, while no other process moves files into that directory. If one cannot
    be moved, those before it are put back as they were.
    """
    with ExitStack() as scratch, disk_errors(paths[0]):
        parents = list(dict.fromkeys(path.parent for path in paths))
        beside = {parent: scratch.enter_context(_scratch_in(parent)) for parent in parents}
        temporary = [beside[path.parent] / path.name for path in paths]
        yield temporary
        with exclusive(paths[0].parent):
            _move(temporary, paths)


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Keep other processes from moving files into a directory meanwhile.

    The lock file is removed while it is locked, so that none is left behind; a process that waits
    for it then makes another. Where files cannot be locked, nothing is.
    """
    lock = FileLock(directory / LOCK, timeout=_PATIENCE, poll_interval=0.01, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise FileError(
            f"{directory}: another process has been moving files here for a minute; try again, or "
            "choose another directory"
        ) from None
    except OSError:  # such as that the file system has no locks
        pass
    try:
        yield
    finally:
        if lock.is_locked:
            with suppress(OSError):  # Windows removes it when it is released
                (directory / LOCK).unlink()
            lock.release()


def _move(sources: list[Path], targets: list[Path]) -> None:
    """Move files in turn; if one cannot be moved, put back what was there."""
    before = [_kept(*pair) for pair in zip(sources[:-1], targets[:-1], strict=True)]
    try:
        for source, target in zip(sources, targets, strict=True):
            source.replace(target)
    except BaseException:
        if sources[-1].exists():  # otherwise all were moved
            for source, target, old in zip(sources, targets, before, strict=False):
                if not source.exists():
                    old.replace(target) if old else target.unlink()
        raise


def _kept(source: Path, target: Path) -> Path | None:
    """Give a file that will be replaced a second name, next to what replaces it."""
    if not target.exists():
        return None
    old = source.with_name(f"{secrets.token_hex(4)}.old")
    try:
        os.link(target, old)
    except OSError:  # such as that the file system has no links
        shutil.copy2(target, old)
    return old


def write_text(path: Path, text: str, *, private: bool = False) -> None:
    """Write text to a checked path; if private, only its owner can read it.

    On Windows everyone who can read the directory can read the file, private or not.
    """
    with moved_into_place([path]) as temporary:
        if private:
            temporary[0].touch(mode=0o600)
        temporary[0].write_text(text, encoding="utf-8")


@contextmanager
def scratch_directory(beside: Path) -> Iterator[Path]:
    """Make a directory for temporary files next to a path; remove it at the end."""
    with disk_errors(beside), _scratch_in(beside.parent) as directory:
        yield directory


@contextmanager
def _scratch_in(parent: Path) -> Iterator[Path]:
    """Make a directory that only this user can open; if this run is killed, the next removes it."""
    remove_scratch(parent)
    directory = parent / name_of_scratch()
    try:
        directory.mkdir(mode=0o700)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def remove_scratch(parent: Path, *, own: bool = False) -> None:
    """Remove what killed runs of this user left, and with `own` what this process made.

    Other files with such names are left alone.
    """
    start = start_of_scratch()
    for stale in parent.glob(f"{start}*"):
        process = stale.name.removeprefix(start).partition("-")[0]
        with suppress(OSError, OverflowError):  # it is gone by now, or no process number
            if process.isdecimal() and _is_own(stale) and _is_over(int(process), own=own):
                shutil.rmtree(stale) if stale.is_dir() else stale.unlink()


def _is_over(process: int, *, own: bool) -> bool:
    return own if process == os.getpid() else not psutil.pid_exists(process)


def _is_own(path: Path) -> bool:
    """Whether what is at a path, be it a link, belongs to this user; on Windows it is assumed."""
    return sys.platform == "win32" or path.lstat().st_uid == os.geteuid()


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise a `FileError` if the disk is full or refuses, whichever library finds out."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        if not is_disk_error(error):
            raise
        found = _DISK_ERROR.search(str(error))
        words = _error_text(int(found[1])) if found and found[1] else why(error)
        raise FileError(f"{path}: cannot be written: {words}") from None


def _error_text(number: int) -> str:
    """Name an error of the operating system in its words."""
    if sys.platform == "win32":  # whose numbers are not those of C
        return str(ctypes.FormatError(number))
    return os.strerror(number)


def is_disk_error(error: Exception) -> bool:
    """Whether an error is the operating system's, whichever library passes it on."""
    if isinstance(error, FileError):
        return False
    return isinstance(error, OSError) or bool(_DISK_ERROR.search(str(error)))


def check_readable(path: Path) -> None:
    """Refuse a path without a readable file."""
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {why(error)}") from None
    if size is None:
        raise FileError(f"{path}: no such file")
    if not os.access(path, os.R_OK):
        raise FileError(f"{path}: cannot be read: no permission")
    if size == 0:
        raise FileError(f"{path}: the file is empty")


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, or of a directory of files, in hexadecimal."""
    if path.is_dir():
        parts = [file for file in path.iterdir() if not file.name.startswith(("_", "."))]
        for part in filter(Path.is_symlink, parts):  # which could go round in circles
            raise FileError(f"{part}: expected a file, found a link; replace it by the file")
        return digest_of_directory({file.name: sha256_of(file) for file in parts})
    try:
        check_regular(path)
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be read: {why(error)}") from None


def check_regular(path: Path) -> None:
    """Refuse pipes and devices, which may have no end."""
    if not path.is_file() and path.exists():
        raise FileError(f"{path}: expected a file, found something else")


def digest_of_directory(digests: Mapping[str, str]) -> str:
    """SHA-256 of what ``sha256sum *`` prints in a directory, given the SHA-256 of its files."""
    lines = (f"{digests[name]}  {name}\n" for name in sorted(digests))
    return sha256("".join(lines).encode()).hexdigest()


def why(error: Exception) -> str:
    """Return the operating system's reason."""
    return getattr(error, "strerror", None) or "no permission, or no space left"
