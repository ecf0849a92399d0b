"""Where a table is read from, and with what options."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from microveil.core.choices import DateOrder
from microveil.errors import FileError

_DATABASES = ("postgresql://", "postgres://")
_DELIMITER = re.compile(r'[^\0"\r\n\w\x80-\U0010ffff]', re.ASCII)
_SCHEME = re.compile(r"\s*((?:[a-z][a-z0-9+.-]*:)*[a-z][a-z0-9+.-]+:)/+", re.IGNORECASE)
_ACCOUNT = re.compile(r"\s*[jo]dbc:|.*(:[^/\\]*@|@[^/\\]*:\d)", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Source:
    """A file or database query to read a table from, with options.

    Functions that take a path also take a `Source`.

    Parameters
    ----------
    location
        The path of a file, or the address of a database: ``postgresql://user@host/database``.
    delimiter, decimal
        CSV: the column separator, and the decimal mark ``"."`` or ``","``; detected by default.
    encoding
        CSV, SPSS, Stata and SAS: the text encoding; detected by default.
    sheet
        Excel: the name of a sheet; the first by default.
    query
        Database: the SQL query whose result is the table.
    na
        Values that mean missing, in every column, such as ``["-99", "refused"]``.
    dates
        CSV: ``"day-first"`` or ``"month-first"``, needed if dates such as 03/02/2011 do not tell.
    skip_rows
        Excel: the number of rows above the column names; detected by default.
    for_spark
        Whether Spark reads it, from any address Spark knows, such as ``hdfs:///data/people``.

    Examples
    --------
    >>> Source("people.csv", delimiter=";", decimal=",")
    Source('people.csv')
    """

    location: str | Path
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    query: str | None = None
    na: Sequence[str] = ()
    dates: DateOrder | None = None
    skip_rows: int | None = None
    for_spark: bool = False

    def __post_init__(self) -> None:
        self._check_values()
        if not self.is_database and not self.for_spark:
            refuse_address(self.location)
        if self.is_database and not (self.query or "").strip():
            raise FileError(
                "expected a query for the database, found none; give SQL that selects the table"
            )
        if self.delimiter == "\\t":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise FileError(
                "delimiter must be one ASCII character other than a letter, digit or quote, "
                f"got {self.delimiter!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise FileError(f'decimal must be "." or ",", got {self.decimal!r}')
        try:
            b"ab".decode(self.encoding or "utf-8", "replace")
        except (LookupError, UnicodeError):
            raise FileError(
                "encoding must be one that Python knows, such as utf-8 or windows-1252, "
                f"got {self.encoding!r}"
            ) from None

    def _check_values(self) -> None:
        object.__setattr__(self, "na", (self.na,) if isinstance(self.na, str) else tuple(self.na))
        if self.dates not in (None, *get_args(DateOrder)):
            raise FileError(f'dates must be "day-first" or "month-first", got {self.dates!r}')
        if self.skip_rows is not None and not str(self.skip_rows).isdecimal():
            raise FileError(f"skip_rows must be a number of rows, got {self.skip_rows!r}")

    @property
    def is_database(self) -> bool:
        """Whether the location is the address of a database."""
        return isinstance(self.location, str) and self.location.startswith(_DATABASES)

    @property
    def path(self) -> Path | None:
        """The file; None for a database."""
        return None if self.is_database else Path(self.location)

    @property
    def name(self) -> str:
        """Name for messages: never an address, which may contain a password."""
        return Path(self.location).name if self.path else "the database"

    def __repr__(self) -> str:
        return f"Source({str(self.location)!r})" if self.path else "Source(<database>)"

    def of_release(self, path: Path) -> "Source":
        """Return the source of a release of this table: CSV has the same dialect, in UTF-8."""
        if path.suffix.lower() != ".csv":
            return Source(path)
        return Source(path, delimiter=self.delimiter, decimal=self.decimal)


def refuse_address(location: str | Path) -> None:
    """Refuse an address where a file is expected, without repeating it."""
    expected = f"expected a file, or a database address that begins with {_DATABASES[0]}, "
    scheme = _SCHEME.match(str(location))
    if scheme:
        space = "a space before " if str(location)[0].isspace() else ""
        raise FileError(f"{expected}found {space}an address that begins with {scheme.group(1)}//")
    if _ACCOUNT.match(str(location)):
        raise FileError(f"{expected}found what looks like an address with a user name")
