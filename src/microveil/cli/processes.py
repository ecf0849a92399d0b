"""What other users of this machine see of this process."""

import ctypes
import re
import sys
from contextlib import suppress
from pathlib import Path

_PASSWORDS = re.compile(rb"(?<=:)(?!//)[^\0]*(?=@)|(?<=password=)[^\0&]*", re.IGNORECASE)
_FIRST_FIELD, _START, _END = 3, 48, 49  # of arguments, as proc(5) counts


def hide_passwords() -> None:
    """Overwrite passwords of addresses in the list of processes, which Linux alone allows."""
    if sys.platform != "linux":
        return
    with suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        start, end = (int(fields[place - _FIRST_FIELD]) for place in (_START, _END))
        arguments = ctypes.string_at(start, end - start)
        if Path("/proc/self/cmdline").read_bytes() == arguments:
            ctypes.memmove(start, without_passwords(arguments), len(arguments))


def without_passwords(arguments: bytes) -> bytes:
    """Replace every byte of a password by a star.

    Examples
    --------
    >>> without_passwords(b"postgresql://me:secret@host/db?password=x")
    b'postgresql://me:******@host/db?password=*'
    """
    parts = arguments.split(b"\0")
    hidden = [
        _PASSWORDS.sub(lambda found: b"*" * len(found[0]), part) if b"://" in part else part
        for part in parts
    ]
    return b"\0".join(hidden)
