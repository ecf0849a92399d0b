"""Sums over records: all that the mechanism sees of them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from microveil.core.synthesis.cells import Codes
from microveil.types import Integers

PairKey = tuple[int, int]

_RECORDS_AT_ONCE = 2**16


class RecordSums(Protocol):
    """What can be counted of a table; every record adds once to each sum.

    Attributes are numbered, and a value is the number of its cell.
    """

    def count(self) -> int:
        """Count the records."""

    def one_way(self, sizes: Sequence[int]) -> list[Integers]:
        """Count the records in each cell of each attribute."""

    def products(self, scores: Sequence[Integers]) -> Integers:
        """Add up products of scores, which are given for each cell in one or several columns."""

    def pairs(self, bins: Sequence[Integers]) -> Mapping[PairKey, Integers]:
        """Count the records in each pair of bins, for all pairs of attributes."""

    def parts(self, attribute: int, size: int) -> "Sequence[RecordSums]":
        """Return the records of each cell of an attribute, without this attribute."""


class CodedRecords:
    """Records in memory, or in a file that is mapped to it: one array of cells per attribute."""

    def __init__(self, codes: Sequence[Codes], rows: Integers | None = None) -> None:
        self._codes, self._rows = codes, rows

    def count(self) -> int:
        """Count the records."""
        return len(self._codes[0]) if self._rows is None else len(self._rows)

    def one_way(self, sizes: Sequence[int]) -> list[Integers]:
        """Count the records in each cell of each attribute."""
        counts = [np.zeros(size, np.int64) for size in sizes]
        for chunk in self._chunks():
            for total, codes in zip(counts, chunk, strict=True):
                total += np.bincount(codes, minlength=len(total))
        return counts

    def products(self, scores: Sequence[Integers]) -> Integers:
        """Add up products of scores: exactly, since floats hold whole numbers up to 2^53."""
        width = sum(table.shape[1] for table in scores)
        total = np.zeros((width, width), np.int64)
        tables = [table.astype(np.float64) for table in scores]
        for chunk in self._chunks():
            rows = np.hstack([table[codes] for table, codes in zip(tables, chunk, strict=True)])
            total += np.rint(rows.T @ rows).astype(np.int64)
        return total

    def pairs(self, bins: Sequence[Integers]) -> dict[PairKey, Integers]:
        """Count the records in each pair of bins, for all pairs of attributes."""
        sizes = [int(of_cells.max()) + 1 for of_cells in bins]
        pairs = list(combinations(range(len(bins)), 2))
        counts = {(i, j): np.zeros(sizes[i] * sizes[j], np.int64) for i, j in pairs}
        for chunk in self._chunks():
            binned = [of_cells[codes] for of_cells, codes in zip(bins, chunk, strict=True)]
            for i, j in pairs:
                key = binned[i] * sizes[j] + binned[j]
                counts[i, j] += np.bincount(key, minlength=len(counts[i, j]))
        return counts

    def parts(self, attribute: int, size: int) -> "list[CodedRecords]":
        """Return the records of each cell of an attribute, without this attribute."""
        others = [codes for place, codes in enumerate(self._codes) if place != attribute]
        own = self._codes[attribute] if self._rows is None else self._codes[attribute][self._rows]
        order = np.argsort(own, kind="stable")
        ends = np.cumsum(np.bincount(own, minlength=size))
        found = np.split(order if self._rows is None else self._rows[order], ends[:-1])
        return [CodedRecords(others, np.sort(rows)) for rows in found]

    def _chunks(self) -> Iterator[list[Codes]]:
        for start in range(0, self.count(), _RECORDS_AT_ONCE):
            chosen = slice(start, start + _RECORDS_AT_ONCE)
            rows = chosen if self._rows is None else self._rows[chosen]
            yield [codes[rows] for codes in self._codes]
