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
    if sys.platform == "win32":  # where os.kill(process, 0) would send it Ctrl+C
        return _is_alive_on_windows(process)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


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
