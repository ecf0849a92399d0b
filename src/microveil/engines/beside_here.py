"""An original and its release on this machine, in memory or in files that Polars reads lazily."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.attribute import MOSTLY
from microveil.engines.beside import ClassSizes, Fold, Indistinct
from microveil.engines.classes import quasi_identifier_classes
from microveil.engines.dtypes import column_of, comparable, polars_of
from microveil.engines.layout import classes_of_units, numbered
from microveil.engines.memory import open_table
from microveil.types import Integers, Progress, UserTable

PART = 1_000_000
"""Released records in memory at a time."""

_WIDTHS_ALIKE = 0.002  # clusters whose widths differ by less, as a share, are put together


@dataclass(frozen=True, eq=False)
class BesideHere:
    """Two tables on this machine.

    Attributes
    ----------
    original, released
        Tables, which may be lazy ones of Polars.
    positions
        Where each released record stood in the original; None if that is not known.
    described
        The private description of clusters, if it is known.
    inferred
        Whether the values decided on the types of the original's columns.
    progress
        Called after every part.
    missing_codes
        Declared missing codes of released records, by column.
    """

    original: UserTable
    released: UserTable
    positions: Integers | None
    described: pl.DataFrame | pl.LazyFrame | None = None
    inferred: bool = False
    progress: Progress | None = None
    missing_codes: Mapping[str, pl.Series] = field(default_factory=dict)

    @property
    def in_memory(self) -> bool:
        """Whether both tables are in memory."""
        return not any(isinstance(table, pl.LazyFrame) for table in (self.original, self.released))

    def loaded(self, table: UserTable, names: Sequence[str] | None = None) -> UserTable:
        """Read columns of one of the tables, all of them by default."""
        if not isinstance(table, pl.LazyFrame):
            return table
        return (table if names is None else _columns(table, names)).collect()

    @cached_property
    def originals(self) -> int:
        """Number of records in the original."""
        return _height(self.original)

    @cached_property
    def records(self) -> int:
        """Number of released records."""
        return _height(self.released)

    def draw(
        self, number: int, random: np.random.Generator, unit: str | None = None
    ) -> tuple[UserTable, UserTable]:
        """Draw released records; if which is whose is not known, draw from both tables."""
        if self.positions is None:
            were = _choose(self.originals, number, random)
            chosen = _choose(self.records, number, random)
        elif unit is None or self.records <= number or unit not in _names(self.original):
            chosen = _choose(self.records, number, random)
            were = self.positions[chosen]
        else:
            column = column_of(open_table(_all(self.original, unit)), unit)
            chosen = rows_of_units(column[self.positions], number, random)
            were = self.positions[chosen]
        return _rows(self.original, were), _rows(self.released, chosen)

    def fold(self, fold: Fold) -> Any:  # noqa: ANN401 - what a fold keeps is its own
        """Look at all released records, some at a time."""
        state, first = fold.start(), 0
        for part in _parts(self.released, fold.names):
            state, first = fold.see(state, part, first), first + len(part)
            if self.progress:
                self.progress("looking for people in the release", first, self.records)
        return state

    def class_sizes(self, names: tuple[str, ...]) -> ClassSizes:
        """Count the released records that share these columns, by a number for each combination."""
        if not isinstance(self.released, pl.LazyFrame):
            return ClassSizes(*quasi_identifier_classes(self.released, names).counts)
        found = [_keys(part) for part in _parts(self.released, names)]
        keys = np.sort(np.concatenate(found))
        ends = np.append(np.flatnonzero(keys[1:] != keys[:-1]), len(keys) - 1)
        sizes = np.diff(ends, prepend=-1)
        return ClassSizes(int(np.count_nonzero(sizes == 1)), int(sizes.min()), self.records)

    def indistinct(
        self, joint: Mapping[str, Integers], kept: Sequence[str], unit: str | None
    ) -> Indistinct | None:
        """Count the classes of people whom the draws alone tell apart; None if not known."""
        if self.positions is None:
            return None
        back = np.argsort(self.positions, kind="stable")
        codes = [
            self.missing_codes[name].gather(back) for name in kept if name in self.missing_codes
        ]
        labels, told = map(pl.Series, joint.values()), self.in_record_order(kept)
        record = numbered([*labels, *told, *codes])
        if unit is not None and unit in _names(self.original):
            rows = self.positions[back]
            record = classes_of_units(record, numbered(self._read(self.original, [unit], rows)))
        sizes = np.bincount(record)
        return Indistinct(len(record), len(sizes), int(sizes.min()))

    def in_record_order(self, names: Sequence[str]) -> list[pl.Series]:
        """Return released columns in the order of the records in the original."""
        assert self.positions is not None  # noqa: S101 - asked where it is known
        return self._read(self.released, names, np.argsort(self.positions, kind="stable"))

    def _read(self, table: UserTable, names: Sequence[str], rows: Integers) -> list[pl.Series]:
        """Read columns of some records."""
        frame = open_table(self.loaded(table, names))
        return [comparable(frame[name], name).gather(rows) for name in names]

    def clusters(self) -> pl.DataFrame | None:
        """Return the clusters; those of about the same width are put together."""
        if not isinstance(self.described, pl.LazyFrame):
            return self.described
        return counted(self.described)


def counted(clusters: pl.LazyFrame) -> pl.DataFrame:
    """Put clusters together that are about as wide, shared by as many, and alike in their noise."""
    width = (pl.col("largest") - pl.col("smallest")).alias("largest")
    about = (width.log() / _WIDTHS_ALIKE).round().alias("about")
    size = pl.coalesce("scale", "sensitivity").sign().alias("scale")
    stays = (pl.col("unmoved") > MOSTLY).cast(pl.Float64)
    rows = clusters.select(
        "attribute", "records", pl.col("cluster") * 0, width, about, size, "shared_by", stays
    )
    found = rows.group_by("attribute", "cluster", "about", "scale", "shared_by", "unmoved").agg(
        pl.col("records").sum(), pl.col("largest").mean()
    )
    nothing = pl.when(pl.col("largest").is_not_null()).then(0.0)
    whole = found.with_columns(smallest=nothing, sensitivity=pl.col("scale"))
    return whole.drop("about").collect(engine="streaming")


def rows_of_units(unit: "nw.Series[Any]", number: int, random: np.random.Generator) -> Integers:
    """Draw records, about so many, of units that are there with all of theirs."""
    owner = numbered([polars_of(unit)])
    sizes = np.bincount(owner)
    order = random.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    return np.flatnonzero(np.isin(owner, order[before < number]))


def _names(table: UserTable) -> list[str]:
    if isinstance(table, pl.LazyFrame):
        return table.collect_schema().names()
    return list(open_table(table).columns)


def _all(table: UserTable, name: str) -> UserTable:
    """Read one column."""
    return _columns(table, [name]).collect() if isinstance(table, pl.LazyFrame) else table


def _height(table: UserTable) -> int:
    if isinstance(table, pl.LazyFrame):
        return int(table.select(pl.len()).collect().item())
    return len(open_table(table))


def _choose(records: int, number: int, random: np.random.Generator) -> Integers:
    if records <= number:
        return np.arange(records)
    return np.sort(random.choice(records, number, replace=False))


def _rows(table: UserTable, rows: Integers) -> UserTable:
    """Read some records; of a lazy table a column at a time."""
    if not isinstance(table, pl.LazyFrame):
        return open_table(table)[rows, :].to_native()
    names = table.collect_schema().names()
    columns = [_columns(table, [name]).select(pl.all().gather(rows)).collect() for name in names]
    return pl.concat(columns, how="horizontal")


def _columns(table: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Take columns by their places, since Polars takes names such as ``^x$`` for patterns."""
    everything = table.collect_schema().names()
    return table.select(pl.nth([everything.index(name) for name in names]))


def _parts(table: UserTable, names: Sequence[str]) -> Iterator[UserTable]:
    """Read all records, some at a time."""
    if isinstance(table, pl.LazyFrame):
        lazy = _columns(table, names)
        for first in range(0, _height(table), PART):
            yield lazy.slice(first, PART).collect()
    else:
        frame = open_table(table)[list(names)]
        for first in range(0, len(frame), PART):
            yield frame[first : first + PART].to_native()


def _keys(part: pl.DataFrame) -> NDArray[np.uint64]:
    """Return a number for every record by which equal ones can be told: 64 bits of a hash."""
    texts = part.select(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return part.with_columns(texts).hash_rows(0).to_numpy()
