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
    """Where a table is read from, and how.

    Functions that take a path take a `Source` as well.

    Parameters
    ----------
    location
        The path of a file, or the address of a database: ``postgresql://user@host/database``.
    delimiter, decimal
        Of CSV: what separates columns, and the decimal mark ``"."`` or ``","``;
        by default detected.
    encoding
        Of CSV, SPSS, Stata and SAS files; by default detected.
    sheet
        Of Excel: the name of a sheet; by default the first.
    query
        Of a database: the SQL query whose result is the table.
    na
        Values that stand for missing ones, in every column: ``["-99", "refused"]``, say.
    dates
        Of CSV: ``"day-first"`` or ``"month-first"``, where dates such as 03/02/2011 do not tell.
    skip_rows
        Of Excel: how many rows stand above the names of the columns; by default detected.
    for_spark
        Whether Spark reads it, from any address it knows: ``hdfs:///data/people``, say.

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
            raise FileError("a database needs a query; give one that selects the table's columns")
        if self.delimiter == "\\t":
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _DELIMITER.fullmatch(self.delimiter):
            raise FileError(
                f"delimiter must be one ASCII character that is no letter, digit or quote, "
                f"got {self.delimiter!r}"
            )
        if self.decimal not in (None, ".", ","):
            raise FileError(f'decimal must be "." or ",", got {self.decimal!r}')
        try:
            b"ab".decode(self.encoding or "utf-8", "replace")
        except (LookupError, UnicodeError):
            raise FileError(
                f"encoding {self.encoding!r} is not known; for example utf-8, windows-1252, utf-16"
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
        """What to call it where others may read: never an address, which may hold a password."""
        return Path(self.location).name if self.path else "the database"

    def __repr__(self) -> str:
        return f"Source({str(self.location)!r})" if self.path else "Source(<database>)"

    def of_release(self, path: Path) -> "Source":
        """How a release of this table is read: CSV has the same dialect, in UTF-8."""
        if path.suffix.lower() != ".csv":
            return Source(path)
        return Source(path, delimiter=self.delimiter, decimal=self.decimal)


def refuse_address(location: str | Path) -> None:
    """Refuse an address where a file is expected, without repeating it."""
    expected = f"expected a file, or for a database text that begins with {_DATABASES[0]}, "
    scheme = _SCHEME.match(str(location))
    if scheme:
        space = "a space before " if str(location)[0].isspace() else ""
        raise FileError(f"{expected}got {space}an address that begins with {scheme.group(1)}//")
    if _ACCOUNT.match(str(location)):
        raise FileError(f"{expected}got what looks like an address with a user")
