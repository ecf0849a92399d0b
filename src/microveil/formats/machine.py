"""What Python asks each operating system differently: memory, and whether a process runs."""

import ctypes
import os
import sys


def memory_of_this_machine() -> int:
    """Return the size of the machine's memory in bytes."""
    if sys.platform == "win32":
        return _memory_of_windows()
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def is_alive(process: int) -> bool:
    """Whether a process of this number runs, whoever owns it."""
    if sys.platform == "win32":  # where os.kill(process, 0) would end it
        return _is_alive_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class _MemoryStatus(ctypes.Structure):
    _fields_ = [
        ("length", ctypes.c_ulong),
        ("load", ctypes.c_ulong),
        *((name, ctypes.c_ulonglong) for name in ("total", "free", *"abcde")),
    ]


def _memory_of_windows() -> int:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    _kernel32().GlobalMemoryStatusEx(ctypes.byref(status))
    return int(status.total)


def _is_alive_on_windows(process: int) -> bool:
    query, still_active, denied = 0x1000, 259, 5
    kernel32 = _kernel32()
    handle = kernel32.OpenProcess(query, False, process)
    if not handle:
        return bool(kernel32.GetLastError() == denied)
    code = ctypes.c_ulong()
    kernel32.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel32.CloseHandle(handle)
    return code.value == still_active


def _kernel32() -> ctypes.CDLL:
    library: ctypes.CDLL = getattr(ctypes, "windll").kernel32  # noqa: B009 - only on Windows
    return library
