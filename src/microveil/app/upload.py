"""A file that was uploaded: held in memory, and read as any other file is."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from tempfile import gettempdir
from typing import Any

from microveil.errors import MicroveilError, noted
from microveil.formats import (
    FORMATS,
    LoadedTable,
    Source,
    load_table,
    remove_scratch,
    scratch_directory,
)

_LONGEST_NAME = 200  # bytes; file systems take 255


@dataclass(frozen=True)
class Upload:
    r"""A file as the browser sent it.

    Parameters
    ----------
    name
        What the file is called; its ending tells what kind of file it is.
    content
        Its bytes.
    options
        How to read it, as for `Source`: delimiter, encoding, decimal or sheet.

    Examples
    --------
    >>> table, notes = Upload("people.csv", b"age\n31\n35\n").read()
    >>> table.data["age"].to_list(), notes
    ([31, 35], [])
    """

    name: str
    content: bytes = field(repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    def read(self, verbatim: Collection[str] = ()) -> tuple[LoadedTable, list[str]]:
        """Read the file; return the table, and what had to be assumed to read it.

        The readers need a file, so there is one while they read, which only this user can open.
        """
        name = PureWindowsPath(PurePosixPath(self.name).name).name
        with private_folder() as folder:
            path = folder / shortened(name)
            path.write_bytes(self.content)
            with noted() as notes:
                table = load_table(Source(path, **self.options), verbatim=verbatim)
        meta = replace(table.meta, path=None)
        return LoadedTable(table.data, meta), [_without(folder, note) for note in notes]


def shortened(name: str) -> str:
    """Return the end of a name that is too long for a file, or too long with what comes after it.

    Examples
    --------
    >>> len(shortened(300 * "a" + ".csv")), shortened("people.csv")
    (200, 'people.csv')
    """
    return name.encode()[-_LONGEST_NAME:].decode(errors="ignore")


@contextmanager
def private_folder() -> Iterator[Path]:
    """Make a folder that only this user can open; errors name the files in it without it."""
    with scratch_directory(Path(gettempdir()) / "microveil") as folder, _named_without(folder):
        yield folder


@contextmanager
def scratch_of_this_server() -> Iterator[None]:
    """Remove the folders of servers that were killed, and at the end those of this one."""
    remove_scratch(Path(gettempdir()))
    try:
        yield
    finally:
        remove_scratch(Path(gettempdir()), own=True)


def possible_options(name: str) -> tuple[str, ...]:
    """List what can be said of how a file of this name is to be read.

    Examples
    --------
    >>> possible_options("people.xlsx")
    ('sheet', 'skip_rows')
    """
    known = FORMATS.get(Path(name).suffix.lower())
    return () if known is None else known.options


@contextmanager
def _named_without(folder: Path) -> Iterator[None]:
    """Let errors name a file without the temporary folder it is in."""
    try:
        yield
    except MicroveilError as error:
        raise type(error)(_without(folder, str(error))) from None


def _without(folder: Path, message: str) -> str:
    return message.replace(str(folder / "_")[:-1], "")
