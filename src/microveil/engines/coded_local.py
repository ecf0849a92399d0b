"""The records of a table on this machine, as codes that sums are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from microveil.core.random_words import WordSource
from microveil.core.synthesis.cells import Codes
from microveil.core.synthesis.coded_records import CodedRecords
from microveil.engines.column_source import ColumnSource
from microveil.engines.counted import CountedAttribute, as_polars_values
from microveil.types import Integers


@dataclass(frozen=True)
class NotHeld:
    """How many values a plan has no place for; private, since it counts records."""

    unread: int
    outside: int


def coded_records(
    source: ColumnSource,
    attributes: Sequence[CountedAttribute],
    *,
    drop_missing: bool,
    bounded: tuple[str, int, WordSource] | None,
    scratch: Path | None = None,
) -> tuple[CodedRecords, Mapping[str, NotHeld]]:
    """Encode a table column by column: in memory, or in files of a scratch directory.

    `bounded` is the column that says whose record it is, how many records of each are taken, and
    where the random numbers come from that choose them.
    """
    found: dict[str, NotHeld] = {}
    codes, rows = codes_of_records(source, attributes, drop_missing, scratch, found)
    if bounded is not None:
        column, most, words = bounded
        rows = some_of_each(as_polars_values(source.column(column)), rows, most, words)
    return CodedRecords(codes, None if len(rows) == source.records else rows), found


def codes_of_records(
    source: ColumnSource,
    attributes: Sequence[CountedAttribute],
    drop_missing: bool,
    scratch: Path | None = None,
    found: dict[str, NotHeld] | None = None,
) -> tuple[list[Codes], Integers]:
    """Encode a table column by column; return codes, and the records that count.

    How many values the plan has no place for is put into `found`.
    """
    codes = []
    complete = np.ones(source.records, dtype=np.bool_)
    for number, attribute in enumerate(attributes):
        coded = attribute.encode(source.column(attribute.name))
        if found is not None:
            found[attribute.name] = NotHeld(coded.unread, coded.outside)
        if drop_missing:
            complete &= ~coded.missing
        codes.append(_stored(coded.codes, scratch, number))
    return codes, np.flatnonzero(complete)


def _stored(codes: Codes, scratch: Path | None, number: int) -> Codes:
    """Leave codes in memory, or map them to a file."""
    if scratch is None or not len(codes):
        return codes
    path = scratch / f"codes{number}"
    codes.tofile(path)
    return np.memmap(path, dtype=codes.dtype, mode="r")


def some_of_each(units: pl.Series, rows: Integers, most: int, words: WordSource) -> Integers:
    """Choose at most so many records of each unit at random; records of no unit are left out."""
    own = units.gather(rows)
    rows = rows[own.is_not_null().to_numpy()]
    keys = words.words(len(rows))
    numbered = own.drop_nulls().rank("dense").to_numpy().astype(np.int64)
    order = np.lexsort((keys, numbered))
    ranked = numbered[order]
    within = np.arange(len(order)) - np.searchsorted(ranked, ranked)
    return np.sort(rows[order[within < most]])
