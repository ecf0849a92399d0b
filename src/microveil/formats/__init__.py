"""Tables in and out of files, and out of a database."""

from microveil.formats.atomic import (
    check_regular,
    digest_of_directory,
    moved_into_place,
    remove_scratch,
    scratch_directory,
    sha256_of,
    write_text,
)
from microveil.formats.file_formats import (
    FORMATS,
    READABLE,
    WRITABLE,
    check_escaped,
    check_output,
    check_values,
    load_table,
    read_table,
    source_of,
    write_table,
)
from microveil.formats.metadata import Domain, LoadedTable, TableMeta
from microveil.formats.source import Source

__all__ = [
    "FORMATS",
    "READABLE",
    "WRITABLE",
    "Domain",
    "LoadedTable",
    "Source",
    "TableMeta",
    "check_escaped",
    "check_output",
    "check_regular",
    "check_values",
    "digest_of_directory",
    "load_table",
    "moved_into_place",
    "read_table",
    "remove_scratch",
    "scratch_directory",
    "sha256_of",
    "source_of",
    "write_table",
    "write_text",
]
