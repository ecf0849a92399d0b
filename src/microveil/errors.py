"""Every exception and warning of microveil.

::

    Exception
    └── MicroveilError            anything a user can fix; one line, no data values
        ├── PlanError             the plan is wrong in itself (also a ValueError)
        ├── DataError             the table is wrong, or does not fit its plan (also a ValueError)
        └── FileError             a file cannot be read or written as asked (also an OSError)

    UserWarning
    ├── PrivacyWarning            something weakens the guarantee; the certificate records it too
    └── FileWarning               something was assumed of a file, or a file cannot hold it

Messages name attributes, counts and line numbers. They never contain a value from the data.
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)  # control characters, and those that turn the direction of writing
_noted: ContextVar[list[str] | None] = ContextVar("noted", default=None)


class MicroveilError(Exception):
    """Base of every error a user can fix.

    Attributes
    ----------
    message
        What is wrong and how to fix it, without the attribute.
    attribute
        The attribute it is about, which opens its text; None if it is about no single one.
    setting
        The setting of the plan or the option that would fix it; None if there is no single one.
    """

    def __init__(
        self, message: str = "", *, attribute: str | None = None, setting: str | None = None
    ) -> None:
        super().__init__(message if attribute is None else f"attribute {attribute!r}: {message}")
        self.message = message
        self.attribute = attribute
        self.setting = setting


class PlanError(MicroveilError, ValueError):
    """The plan contradicts itself or cannot be read."""


class DataError(MicroveilError, ValueError):
    """The table is unusable, or does not fit the plan."""


class FileError(MicroveilError, OSError):
    """A file cannot be read or written as asked."""


class PrivacyWarning(UserWarning):
    """A choice that weakens the guarantee was made; it is also written on the certificate."""


class FileWarning(UserWarning):
    """Something had to be assumed to read a file, or is lost because a file cannot hold it."""


def warn(message: str, category: type[UserWarning], *, stacklevel: int) -> None:
    """Warn whoever called, or note it for whoever collects; `stacklevel` is that of `warnings`."""
    notes = _noted.get()
    if notes is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    elif message not in notes:
        notes.append(message)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect what this thread would warn of; `warnings` knows only the whole process.

    Examples
    --------
    >>> with noted() as notes:
    ...     warn("it was assumed to be text", FileWarning, stacklevel=1)
    >>> notes
    ['it was assumed to be text']
    """
    notes: list[str] = []
    token = _noted.set(notes)
    try:
        yield notes
    finally:
        _noted.reset(token)


def visible(text: str) -> str:
    r"""Write characters that steer a terminal or reverse text as JSON does, line ends apart.

    Examples
    --------
    >>> print(visible("\x1b[2Jage"))
    \u001b[2Jage
    """
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def defect(error: BaseException) -> str:
    """Say where microveil failed, without the error's own message, which could contain data."""
    at = error.__traceback__
    while at and at.tb_next:
        at = at.tb_next
    where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else "?"
    return (
        f"defect: {type(error).__name__} at {where}; its message is not shown because it could "
        "contain data (set MICROVEIL_DEBUG=1 to see it)"
    )


def require(module: str, extra: str) -> Any:  # noqa: ANN401 - a module of its own types
    """Import a library that an extra of microveil installs, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise FileError(
            f"this needs {module.partition('.')[0]}, which is not installed; "
            f'install it with: pip install "microveil[{extra}]"'
        ) from None
