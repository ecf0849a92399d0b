"""What Python asks each operating system differently: memory, processes, owners and locks."""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from microveil.errors import FileError

PATIENCE = 60.0
"""Seconds to wait for somebody else who moves files into a directory."""


def memory_of_this_machine() -> int:
    """Return the size of the machine's memory in bytes."""
    if sys.platform == "win32":
        return _memory_of_windows()
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def is_alive(process: int) -> bool:
    """Whether a process of this number runs, whoever owns it."""
    if sys.platform == "win32":  # where os.kill(process, 0) would send it Ctrl+C
        return _is_alive_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def is_own(path: Path) -> bool:
    """Whether what is at a path, be it a link, belongs to this user; on Windows it is assumed."""
    return sys.platform == "win32" or path.lstat().st_uid == os.geteuid()


def end_with(parent: int, *, within: int) -> None:
    """End this process when its parent ends, as far as Linux can, and after so many seconds."""
    if sys.platform != "win32":
        signal.alarm(within)
    if sys.platform == "linux":
        set_signal_of_parents_death = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_signal_of_parents_death, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(1)


def limit_memory(size: int) -> None:
    """Let this process take so many bytes, be the first that a full machine ends, dump nothing."""
    if sys.platform == "win32":
        return
    import resource

    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, size)):
        with suppress(OSError, ValueError):  # a lower limit is set, or the system has none
            resource.setrlimit(what, (most, most))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Wait until nobody else who calls this does so in a directory, and keep others waiting.

    Windows and some network file systems have no such locks; there it does nothing.
    """
    handle = None
    if sys.platform != "win32":
        with suppress(PermissionError):  # to list its files, without which there is no lock
            handle = os.open(directory, os.O_RDONLY)
    if handle is None:
        yield
        return
    try:
        _lock(handle, directory)
        yield
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file, once nobody else does; the system lets go of it if this process ends.

    The file stays, since removing it would let two hold it. Where there are no locks it is refused.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    until = monotonic() + PATIENCE
    try:
        while not _is_locked(handle, path):
            if monotonic() > until:
                raise FileError(f"{path}: somebody else has held this lock for a minute; try again")
            sleep(0.01)
        yield
    finally:
        os.close(handle)


def _is_locked(handle: int, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter on Windows
        return False
    except OSError:
        raise FileError(
            f"{path}: this file system has no locks; choose another directory"
        ) from None
    return True


def _lock(handle: int, directory: Path) -> None:
    import fcntl

    until = monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > until:
                raise FileError(
                    f"{directory}: for a minute somebody else has been moving files into this "
                    "directory; try again, or choose another"
                ) from None
        except OSError:  # the file system has no locks
            return None
        sleep(0.01)


def words_of_error(number: int) -> str:
    """Say in the operating system's words what one of its errors is."""
    if sys.platform == "win32":  # whose numbers are not those of C
        return str(ctypes.FormatError(number))
    return os.strerror(number)


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX; only the total of physical memory is looked at."""

    _fields_ = [
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("total", "free", *"abcde")),
    ]


def _memory_of_windows() -> int:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _kernel32().GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total)


def _is_alive_on_windows(process: int) -> bool:
    query, still_active, denied = 0x1000, 259, 5
    kernel32 = _kernel32()
    kernel32.OpenProcess.restype = ctypes.c_void_p
    found = kernel32.OpenProcess(query, False, process)
    if found is None:
        return bool(getattr(ctypes, "get_last_error")() == denied)  # noqa: B009
    handle, code = ctypes.c_void_p(found), ctypes.c_uint32()
    kernel32.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel32.CloseHandle(handle)
    return code.value == still_active


def _kernel32() -> ctypes.CDLL:
    library: ctypes.CDLL = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009
    return library
