"""Tables larger than memory: columns in files, one of them in memory at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings
from microveil.core.mask import Description
from microveil.core.random_words import WordSource, random_order
from microveil.engines.base import Column, Preparation, Released
from microveil.engines.column_source import TYPE_OF_KIND, complete_records
from microveil.engines.detail_rows import CLUSTER_COLUMNS, cluster_rows
from microveil.engines.dtypes import column_of, describe_all, grouped
from microveil.engines.local import LocalTable
from microveil.types import Booleans, Integers

ROW_GROUP = 1_000_000


@dataclass(frozen=True, eq=False)
class Workspace:
    """Where released columns go.

    Attributes
    ----------
    directory
        A directory for released columns.
    shuffle
        Where the order of the released records comes from; None keeps theirs.
    described
        Whether to keep the private description of clusters.
    """

    directory: Path
    shuffle: WordSource | None
    described: bool


def columnwise_table(
    files: Mapping[str, Path], workspace: Workspace, *, inferred: bool = False
) -> LocalTable:
    """Open columns of Parquet files, which are never in memory together.

    `inferred` says that the values decided on the types of the columns.
    """
    schemas = {path: pl.read_parquet_schema(path) for path in set(files.values())}
    types = {name: schemas[path][name] for name, path in files.items()}
    places = {path: {n: i for i, n in enumerate(schema)} for path, schema in schemas.items()}
    first = next(iter(files.values()))
    records = int(pl.scan_parquet(first).select(pl.len()).collect().item())
    return LocalTable(
        FileColumns(
            {name: (path, places[path][name]) for name, path in files.items()},
            workspace,
            nw.from_native(pl.DataFrame(schema=types)),
            records,
            inferred,
        )
    )


@dataclass(frozen=True, eq=False)
class FileColumns:
    """The columns of a table in Parquet files, each by its place in one of them.

    `empty` has their types, `rows` says which of all records are left.
    """

    files: Mapping[str, tuple[Path, int]]
    workspace: Workspace
    empty: nw.DataFrame[Any]
    records: int
    inferred: bool
    groups: Mapping[str, Mapping[str, str]] | None = None
    rows: Booleans | None = None

    @property
    def missing_codes(self) -> Mapping[str, pl.Series]:
        """None: Parquet and CSV files declare no missing codes."""
        return {}

    @property
    def threads(self) -> int:
        """How many columns may be worked on at once: one, so that memory is for one."""
        return 1

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return describe_all(self.empty.schema, inferred=self.inferred)

    def column(self, name: str) -> nw.Series[Any]:
        """Read a column."""
        column = read_column(*self.files[name])
        if self.rows is not None:
            column = column.filter(pl.Series(self.rows))
        read = nw.from_native(column, series_only=True)
        if self.groups and name in self.groups:
            return nw.from_native(grouped(read, self.groups[name]), series_only=True)
        return read.cast(self.empty.schema[name])

    def like(self, name: str) -> nw.Series[Any]:
        """Return a column of the same type, without values."""
        return column_of(self.empty, name)

    def prepared(self, preparation: Preparation) -> "FileColumns":
        """Convert and group columns, and leave out records that are not complete."""
        types = {name: TYPE_OF_KIND[kind] for name, kind in preparation.kinds.items()}
        types |= dict.fromkeys(preparation.groups, nw.String())
        empty = self.empty.with_columns(*(self.empty[n].cast(t) for n, t in types.items()))
        converted = replace(self, empty=empty, groups=preparation.groups)
        complete = complete_records(converted, preparation.complete)
        if complete is None:
            return converted
        return replace(converted, rows=complete, records=int(np.count_nonzero(complete)))

    def shelf(self) -> "FileShelf":
        """Return an empty shelf for masked columns."""
        return FileShelf(self)


class FileShelf:
    """Masked columns in files."""

    def __init__(self, source: FileColumns) -> None:
        self._source, self._workspace = source, source.workspace
        self.missing_codes: dict[str, pl.Series] = {}
        self._parts: dict[str, Path] = {}
        self._clusters: dict[str, Path] = {}

    def put(self, name: str, column: nw.Series[Any]) -> None:
        """Keep a masked column."""
        self._write(name, column.to_polars())

    def _write(self, name: str, column: pl.Series) -> None:
        path = self._workspace.directory / f"{len(self._parts)}.parquet"
        frame = column.alias("column").to_frame()
        frame.write_parquet(
            self._parts.setdefault(name, path), compression="uncompressed", row_group_size=ROW_GROUP
        )

    def get(self, name: str) -> nw.Series[Any] | None:
        """Return a masked column; None if there is none."""
        if name not in self._parts:
            return None
        return nw.from_native(read_column(self._parts[name], 0), series_only=True)

    def describe(self, attribute: AttributeSettings, description: Description) -> None:
        """Keep the private description of an attribute's clusters, if it is wanted."""
        if self._workspace.described:
            path = self._workspace.directory / f"clusters{len(self._clusters)}.parquet"
            cluster_rows([(attribute, description)]).write_parquet(path)
            self._clusters[attribute.name] = path

    def clusters(self, attributes: Sequence[str]) -> pl.LazyFrame:
        """Return the private description of the clusters, to be written as it is read."""
        if not self._workspace.described:
            return pl.LazyFrame(schema=CLUSTER_COLUMNS)
        return pl.scan_parquet([self._clusters[attribute] for attribute in attributes])

    def release(self, columns: Iterable[tuple[str, nw.Series[Any]]]) -> Released:
        """Return the released columns, side by side, to be written as they are read."""
        records, shuffle = self._source.records, self._workspace.shuffle
        order: NDArray[Any] | None = None
        if shuffle is not None:
            order = random_order(records, shuffle)
            order = order.astype(np.uint32) if records < 2**32 else order
        parts = []
        for name, column in columns:
            released = column.to_polars()
            self._write(name, released if order is None else released.gather(order))
            parts.append(pl.scan_parquet(self._parts[name]).rename({"column": name}))
        rows = self._source.rows
        positions = np.arange(records) if rows is None else np.flatnonzero(rows)
        row_order: Literal["random", "as in the original"]
        row_order = "as in the original" if order is None else "random"
        positions = positions if order is None else positions[order]
        return ReleasedInFiles(pl.concat(parts, how="horizontal"), positions, row_order)


def read_column(path: Path, place: int) -> pl.Series:
    """Read one column, by its place, since Polars takes names such as ``^x$`` for patterns."""
    return pl.read_parquet(path, columns=[place]).to_series().alias("column").rechunk()


@dataclass(frozen=True, eq=False)
class ReleasedInFiles:
    """A released table in files, in the order in which the engine was told to leave it."""

    data: pl.LazyFrame
    positions: Integers
    row_order: Literal["random", "as in the original"]
    missing_codes: ClassVar[Mapping[str, pl.Series]] = {}

    def beside_original(self) -> None:
        """Whoever looks is given the original by the function that has its files."""

    def shuffled(self, seed: int | None) -> Released:  # noqa: ARG002 - the engine was told before
        """Return it as it is."""
        return self

    def arranged(
        self,
        *,
        keep_order: bool,  # noqa: ARG002 - the engine was told before
        seed: int | None,  # noqa: ARG002
    ) -> tuple[pl.LazyFrame, Integers]:
        """Return the table as it is, and where each record stood."""
        return self.data, self.positions
