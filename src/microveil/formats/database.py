"""Results of PostgreSQL queries, read through ADBC in a read-only transaction."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import polars as pl

from microveil.errors import FileError, require
from microveil.formats.column_checks import same_name_twice
from microveil.formats.metadata import LoadedTable, TableMeta
from microveil.formats.source import Source
from microveil.formats.values import TextOptions, parse_text

if TYPE_CHECKING:
    import pyarrow as pa

_SPEAKS_OF_THE_QUERY_ONLY = ("42", "25", "0A")  # classes of SQLSTATE whose messages hold no data
_YEARS = ("times from the year 1 to 9999", -62_135_596_800_000_000, 253_402_300_799_999_999)
_CALENDARS = {
    "date": ("dates from the year 1 to 9999", -719_162, 2_932_896),
    "time": ("times of day before 24:00", 0, 86_399_999_999),
    "timestamp": _YEARS,
    "timestamptz": _YEARS,
}
_UNREADABLE = ("interval", "money")  # one has no fixed length, the other arrives in cents


def read_database(source: Source, verbatim: Collection[str]) -> LoadedTable:
    """Read the result of a query. No message has the address, which may contain a password."""
    driver = require("adbc_driver_postgresql.dbapi", "database")
    require("pyarrow", "database")
    try:
        connection = driver.connect(source.location)
    except driver.Error as error:
        raise FileError(f"{source.name}: {_why_no_connection(str(error))}") from None
    with connection, connection.cursor() as cursor:
        try:
            cursor.execute("set transaction read only")
            cursor.execute((source.query or "").strip().rstrip(";"))
            result = cursor.fetch_arrow_table()
        except driver.Error as error:
            raise FileError(f"{source.name}: {_why_no_result(error)}") from None
    return LoadedTable(_as_polars(result, source, verbatim), TableMeta())


def _why_no_connection(message: str) -> str:
    """Give the reason without the driver's message, which quotes parts of the address."""
    if "authentication failed" in message or "no password supplied" in message:
        return "the server refused the user or password"
    if re.search(r"FATAL:\s+database .* does not exist", message):
        return "the server has no database of that name"
    if "refused" in message or "timeout" in message or "translate host" in message:
        return "no server answers; check host and port"
    return (
        "cannot connect; expected postgresql://user:password@host:port/database, with / : @ # ? % "
        "in the password written as %2F %3A %40 %23 %3F %25"
    )


def _why_no_result(error: Exception) -> str:
    state = getattr(error, "sqlstate", None) or "unknown"
    if state[:2] not in _SPEAKS_OF_THE_QUERY_ONLY:
        return f"the query failed (SQLSTATE {state})"
    found = re.search(r"ERROR:\s+(.*)", str(error))
    return f"the query was refused: {found.group(1) if found else f'SQLSTATE {state}'}"


def _as_polars(result: "pa.Table", source: Source, verbatim: Collection[str]) -> pl.DataFrame:
    names = result.schema.names
    if len(set(names)) < len(names):
        raise same_name_twice(source.name)
    return pl.DataFrame(
        [_column(result, field, verbatim=field.name in verbatim) for field in result.schema]
    )


def _column(result: "pa.Table", field: "pa.Field", *, verbatim: bool) -> pl.Series:
    kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    values = result[field.name]
    if not kind:
        raise FileError(
            f"column {field.name!r}: the driver gives no type; install another version of "
            "adbc-driver-postgresql"
        )
    if kind in _UNREADABLE or _arrives_as_bytes(field, kind):
        raise FileError(
            f"column {field.name!r}: type {kind} cannot be read; convert it in the query, for "
            f"example to {'numeric' if kind == 'money' else 'text'}"
        )
    if kind == "uuid":
        words = [None if value is None else str(value) for value in values.to_pylist()]
        return pl.Series(field.name, words, dtype=pl.String)
    if kind == "numeric":
        text = pl.Series(values.cast("string").to_pylist(), dtype=pl.String)
        return parse_text(text, TextOptions(), verbatim=verbatim).values.alias(field.name)
    if hasattr(field.type, "storage_type"):
        values = values.cast(field.type.storage_type)
    _check_calendar(values, field.name, kind)
    return pl.Series(field.name, values)


def _arrives_as_bytes(field: "pa.Field", kind: str) -> bool:
    """Whether the driver passes on raw bytes; it loses the shape of arrays."""
    import pyarrow as pa

    storage = getattr(field.type, "storage_type", field.type)
    if pa.types.is_nested(storage):
        return True
    return kind not in ("bytea", "uuid") and (
        pa.types.is_binary(storage)
        or pa.types.is_large_binary(storage)
        or pa.types.is_fixed_size_binary(storage)
    )


def _check_calendar(values: "pa.ChunkedArray", name: str, kind: str) -> None:
    """Refuse infinite dates and times, 24:00, and years that only PostgreSQL knows."""
    if kind not in _CALENDARS:
        return
    expected, least, most = _CALENDARS[kind]
    counted = pl.Series(values.cast("int32" if kind == "date" else "int64"))
    outside = int((~counted.is_between(least, most)).sum())
    if outside:
        raise FileError(
            f"column {name!r}: expected {expected}, found {outside:,} others; make them missing or "
            "convert them to text in the query"
        )
