"""Files that libraries in C and Rust read, each in a child process that a damaged file may end.

The child has limits of memory and time. It answers in a file without a name, which no other process
can open and which is gone when both processes end, however they do.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from subprocess import DEVNULL, TimeoutExpired, run
from tempfile import TemporaryFile
from typing import IO, Any

import polars as pl

from microveil import errors
from microveil.errors import DataError, FileError, FileWarning, MicroveilError, noted, warn
from microveil.formats.metadata import ColumnMeta, LoadedTable, TableMeta
from microveil.formats.source import Source
from microveil.machine import available_memory

Reader = Callable[[Source, Collection[str]], LoadedTable]

_MEMORY, _SECONDS = "MICROVEIL_READ_MEMORY", "MICROVEIL_READ_SECONDS"
_MB = 10**6
_OF_LIBRARIES = 2_000  # MB of addresses, most of them never used, before anything is read
_LEAST_SECONDS, _SECONDS_PER_MB = 60, 10
_FEW_THREADS = {  # since each takes addresses, which are limited
    "POLARS_MAX_THREADS": "2",
    "RAYON_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}
_CHILD = (
    "import json, sys; job = json.load(sys.stdin); sys.path[:] = job['path']; "
    "from microveil.formats.sandbox import answer; answer(job)"
)


@dataclass(frozen=True)
class _Limits:
    """Limits for reading a file, in MB and seconds."""

    memory: int
    seconds: int

    @classmethod
    def of(cls, path: Path) -> "_Limits":
        """Three quarters of the available memory, and time by the size of the file."""
        seconds = _LEAST_SECONDS + _SECONDS_PER_MB * (path.stat().st_size // _MB)
        memory = available_memory() * 3 // 4 // _MB
        return cls(_given(_MEMORY, max(memory, 1)), _given(_SECONDS, seconds))


def _given(name: str, otherwise: int) -> int:
    text = os.environ.get(name)
    if text is None:
        return otherwise
    if not text.isdecimal() or int(text) == 0:
        raise FileError(f"{name} must be an integer above 0; correct or remove it")
    return int(text)


def sandboxed(read: Reader) -> Reader:
    """Make a reader, which must be a function of a module, run in a child process."""

    @wraps(read)
    def reader(source: Source, verbatim: Collection[str]) -> LoadedTable:
        path = Path(source.location)
        with _unnamed_file() as file:
            _ask(_job(read, source, verbatim), file)
            file.seek(0)
            head = json.loads(file.readline())
            _raise(head, path)
            table = _unpacked(head, pl.read_ipc_stream(file), path)
        for note in head["notes"]:
            warn(note, FileWarning)
        return table

    return reader


def _job(read: Reader, source: Source, verbatim: Collection[str]) -> dict[str, Any]:
    return {
        "path": sys.path,
        "reader": [read.__module__, read.__qualname__],
        "source": asdict(source) | {"location": str(source.location)},
        "verbatim": list(verbatim),
        "parent": os.getpid(),
    }


def _unnamed_file() -> IO[bytes]:
    """Make a file in memory if the system has such files, otherwise one on disk without a name."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("microveil"), "w+b")
    return TemporaryFile()


def _ask(job: dict[str, Any], file: IO[bytes]) -> None:
    """Let a child process do a job and write its answer to a file."""
    path = Path(job["source"]["location"])
    limits = _Limits.of(path)
    try:
        done = run(  # noqa: S603
            [sys.executable, "-P", "-c", _CHILD],
            input=json.dumps(job | {"limits": asdict(limits)}).encode(),
            stdout=file,
            stderr=None if os.environ.get("MICROVEIL_DEBUG") else DEVNULL,
            timeout=limits.seconds,
            check=False,
            env=os.environ | _FEW_THREADS,
        )
    except TimeoutExpired:
        raise DataError(
            f"{path}: not read within {limits.seconds:,} seconds: damaged or very large; write it "
            f"as Parquet or CSV, or allow more with {_SECONDS}"
        ) from None
    except OSError:
        raise FileError(f"{path}: cannot start a process to read it") from None
    if done.returncode != 0:
        raise DataError(
            f"{path}: cannot be read: damaged, or it needs more than {limits.memory:,} MB of "
            f"memory; save it anew, or allow more with {_MEMORY}"
        )


def _raise(head: Mapping[str, Any], path: Path) -> None:
    """Raise the error that the child process met, if any."""
    if "error" in head:
        kind, message, about = head["error"]
        raise getattr(errors, kind)(message, **about)
    if "failed" in head:
        raise DataError(f"{path}: cannot be read: damaged ({head['failed']}); save it anew")


def answer(job: Mapping[str, Any]) -> None:
    """Do a job within its limits, answer on standard output, and end the process."""
    _end_with(job["parent"], within=job["limits"]["seconds"])
    _limit_memory((job["limits"]["memory"] + _OF_LIBRARIES) * _MB)
    with os.fdopen(os.dup(1), "wb") as file:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what libraries print is no answer
        write_answer(job, file)
    os._exit(0)  # without tidying up, which takes time and may fail


def _end_with(parent: int, *, within: int) -> None:
    """End this process after so many seconds, and on Linux when its parent ends."""
    if sys.platform != "win32":
        signal.alarm(within)
    if sys.platform == "linux":
        set_signal_of_parents_death = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)


def _limit_memory(size: int) -> None:
    """Limit this process to so many bytes; let a full machine end it first, without a core dump."""
    if sys.platform == "win32":
        return
    import resource

    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, size)):
        with suppress(OSError, ValueError):  # a lower limit is set, or the system has none
            resource.setrlimit(what, (most, most))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def write_answer(job: Mapping[str, Any], file: IO[bytes]) -> None:
    """Read a file; write its description as a line of JSON, then its values as Arrow."""
    head, frame = _outcome(job)
    file.write(json.dumps(head).encode() + b"\n")
    file.flush()
    frame.write_ipc_stream(file)


def _outcome(job: Mapping[str, Any]) -> tuple[dict[str, Any], pl.DataFrame]:
    module, name = job["reader"]
    try:
        with noted() as notes:
            read = getattr(import_module(module), name)
            table = read(Source(**job["source"]), job["verbatim"])
        head, frame = _packed(table)
    except MicroveilError as error:
        about = {"attribute": error.attribute, "setting": error.setting}
        return {"error": [type(error).__name__, error.message, about]}, pl.DataFrame()
    except BaseException as error:  # what Polars raises when it panics is no Exception
        if os.environ.get("MICROVEIL_DEBUG"):
            raise
        return {"failed": type(error).__name__}, pl.DataFrame()
    return head | {"notes": notes}, frame


def _packed(table: LoadedTable) -> tuple[dict[str, Any], pl.DataFrame]:
    """Split a table into what JSON and what Arrow can hold."""
    about = table.meta.columns
    head = {
        "names": table.data.columns,
        "family": table.meta.family,
        "inferred": table.meta.inferred,
        "columns": [[name, _packed_column(column)] for name, column in about.items()],
    }
    values = [column.alias(f"values {place}") for place, column in enumerate(table.data)]
    codes = [
        column.codes.alias(f"codes {place}")
        for place, column in enumerate(about.values())
        if column.codes is not None
    ]
    return head, pl.DataFrame(values + codes)


def _packed_column(column: ColumnMeta) -> dict[str, Any]:
    return {
        "label": column.label,
        "value_labels": list(column.value_labels.items()),
        "missing": column.missing,
        "display": column.display,
        "measure": column.measure,
    }


def _unpacked(head: Mapping[str, Any], frame: pl.DataFrame, path: Path) -> LoadedTable:
    names = head["names"]
    values = [frame[f"values {place}"].alias(name) for place, name in enumerate(names)]
    columns = {}
    for place, (name, column) in enumerate(head["columns"]):
        with suppress(pl.exceptions.ColumnNotFoundError):
            column["codes"] = frame[f"codes {place}"].alias(name)
        column["value_labels"] = dict(column["value_labels"])
        column["missing"] = tuple((low, high) for low, high in column["missing"])
        columns[name] = ColumnMeta(**column)
    meta = TableMeta(path, head["family"], columns=columns, inferred=head["inferred"])
    return LoadedTable(pl.DataFrame(values), meta)
