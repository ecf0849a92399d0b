"""Tables in and out of files, and out of a database."""

from microveil.formats.files import (
    FORMATS,
    READABLE,
    WRITABLE,
    check_output,
    check_values,
    load,
    read_table,
    source_of,
    write_table,
)
from microveil.formats.paths import (
    check_regular,
    digest_of_directory,
    moved_into_place,
    remove_scratch,
    scratch_directory,
    sha256_of,
    write_text,
)
from microveil.formats.table import Domain, Source, Table, TableMeta

__all__ = [
    "FORMATS",
    "READABLE",
    "WRITABLE",
    "Domain",
    "Source",
    "Table",
    "TableMeta",
    "check_output",
    "check_regular",
    "check_values",
    "digest_of_directory",
    "load",
    "moved_into_place",
    "read_table",
    "remove_scratch",
    "scratch_directory",
    "sha256_of",
    "source_of",
    "write_table",
    "write_text",
]
