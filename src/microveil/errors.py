"""Every exception and warning of microveil.

::

    Exception
    └── MicroveilError            anything a user can fix; a line for each problem, no data values
        ├── PlanError             the plan is wrong in itself (also a ValueError)
        ├── DataError             the table is wrong, or does not fit its plan (also a ValueError)
        ├── FileError             a file cannot be read or written as asked (also an OSError)
        └── RiskError             a release does not pass its verdict

    UserWarning
    ├── PrivacyWarning            something weakens the guarantee; the certificate records it too
    ├── FileWarning               something was assumed of a file, or a file cannot hold it
    └── UsefulnessWarning         a choice leaves little of the data

Messages name attributes, counts and line numbers. They never contain a value from the data.
"""

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Self

_MOST_SHOWN = 40

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
    line
        The line in the file of the plan; None if that is not known.
    problems
        Everything that is wrong, an error each, in the order of being found; an error that tells of
        several has the class, attribute, setting and line of the first.
    """

    def __init__(
        self,
        message: str = "",
        *,
        attribute: str | None = None,
        setting: str | None = None,
        line: int | None = None,
    ) -> None:
        at = "" if line is None else f"line {line}: "
        about = "" if attribute is None else f"attribute {attribute!r}: "
        super().__init__(f"{at}{about}{message}")
        self.message = message
        self.attribute = attribute
        self.setting = setting
        self.line = line
        self._several: tuple[MicroveilError, ...] = ()

    @property
    def problems(self) -> "tuple[MicroveilError, ...]":
        """Everything that is wrong, an error each."""
        return self._several or (self,)

    def at_line(self, line: int | None) -> Self:
        """Return the same error with the line in the file of the plan."""
        return type(self)(
            self.message, attribute=self.attribute, setting=self.setting, line=line or self.line
        )


class PlanError(MicroveilError, ValueError):
    """The plan contradicts itself or cannot be read."""


class DataError(MicroveilError, ValueError):
    """The table is unusable, or does not fit the plan."""


class FileError(MicroveilError, OSError):
    """A file cannot be read or written as asked."""


class RiskError(MicroveilError):
    """A release does not pass its verdict."""


class Problems:
    """Collects errors, so that everything that is wrong is said at once.

    Examples
    --------
    >>> problems = Problems()
    >>> with problems:
    ...     raise PlanError("k must be 1 or more, got 0", setting="k")
    >>> with problems:
    ...     raise DataError("every value is missing", attribute="age")
    >>> problems.raise_found()
    Traceback (most recent call last):
    ...
    microveil.errors.PlanError: 2 problems:
      k must be 1 or more, got 0
      attribute 'age': every value is missing
    """

    def __init__(self) -> None:
        self.found: list[MicroveilError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if isinstance(error, MicroveilError):
            self.found += error.problems
        return isinstance(error, MicroveilError)

    def raise_found(self) -> None:
        """Raise what was found, if anything was."""
        if self.found:
            raise all_of(self.found) from None


def all_of(problems: Sequence[MicroveilError]) -> MicroveilError:
    """Return one error that tells of all problems; a single one is itself."""
    first = problems[0]
    if len(problems) == 1:
        return first
    alike: dict[str, list[MicroveilError]] = {}
    for problem in problems:
        alike.setdefault(problem.message, []).append(problem)
    texts = [_text_of(same) for same in alike.values()]
    shown = [f"  {text}" for text in texts[:_MOST_SHOWN]]
    shown += [f"  and {len(texts) - _MOST_SHOWN:,} more"] if len(texts) > _MOST_SHOWN else []
    text = texts[0] if len(texts) == 1 else "\n".join([f"{len(texts):,} problems:", *shown])
    several = type(first)(text, setting=first.setting)
    several.attribute, several.line, several._several = first.attribute, first.line, tuple(problems)
    return several


def _text_of(alike: Sequence[MicroveilError]) -> str:
    """Say what is wrong with several attributes in the same way once."""
    names = list(dict.fromkeys(repr(p.attribute) for p in alike if p.attribute is not None))
    if len(names) < 2:
        return str(alike[0])
    lines = list(dict.fromkeys(f"{p.line}" for p in alike if p.line is not None))
    at = f"line{'s' * (len(lines) > 1)} {few(lines)}: " if lines else ""
    return f"{at}attributes {few(names)}: {alike[0].message}"


def few(items: Sequence[str], most: int = 8) -> str:
    """Name the first few of many.

    Examples
    --------
    >>> few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(items) - most
    return ", ".join(items[:most]) + (f" and {more:,} more" if more > 0 else "")


class PrivacyWarning(UserWarning):
    """A choice that weakens the guarantee was made; it is also written on the certificate."""


class FileWarning(UserWarning):
    """Something had to be assumed to read a file, or is lost because a file cannot hold it."""


class UsefulnessWarning(UserWarning):
    """A choice leaves little of the data; the guarantee holds all the same."""


def warn(message: str, category: type[UserWarning]) -> None:
    """Warn at the line that called microveil, or note it for whoever collects."""
    notes = _noted.get()
    if notes is None:
        warnings.warn(message, category, stacklevel=_callers_level())
    elif message not in notes:
        notes.append(message)


def _callers_level() -> int:
    """Return the `stacklevel`, seen from `warn`, of the line outside microveil that called it."""
    frame: FrameType | None = sys._getframe(1)
    level, outside = 1, 2
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "microveil":
            outside = level + 1
        frame, level = frame.f_back, level + 1
    return outside


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect what this thread would warn of; `warnings` knows only the whole process.

    Examples
    --------
    >>> with noted() as notes:
    ...     warn("it was assumed to be text", FileWarning)
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
