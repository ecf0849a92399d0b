"""The engine for tables larger than memory: columns in files, one of them in memory at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, NumericKind
from microveil.core.mask import Description
from microveil.core.noise import WordSource, random_order
from microveil.engines.base import Column, Released
from microveil.engines.detail_rows import CLUSTERS, cluster_rows
from microveil.engines.dtypes import column_like, column_of, describe, grouped
from microveil.engines.memory import MemoryEngine
from microveil.types import Integers

ROW_GROUP = 1_000_000


class ColumnwiseEngine(MemoryEngine):
    """Columns of Parquet files that never are in memory together.

    Parameters
    ----------
    files
        The Parquet file of each column.
    scratch
        A directory for released columns.
    shuffle
        Where the order of the released records comes from; None keeps theirs.
    described
        Whether to keep the private description of clusters.
    inferred
        Whether the values decided on the types of the columns.
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        scratch: Path,
        shuffle: WordSource | None,
        *,
        described: bool,
        inferred: bool = False,
    ) -> None:
        super().__init__(pl.DataFrame(), inferred=inferred)
        self._files, self._scratch, self._shuffle = dict(files), scratch, shuffle
        self._clusters: dict[str, Path] | None = {} if described else None
        schemas = {path: pl.read_parquet_schema(path) for path in set(files.values())}
        types = {name: schemas[path][name] for name, path in files.items()}
        places = {path: {n: i for i, n in enumerate(schema)} for path, schema in schemas.items()}
        self._places = {name: places[path][name] for name, path in files.items()}
        self._empty = nw.from_native(pl.DataFrame(schema=types))
        first = next(iter(files.values()))
        self._records = int(pl.scan_parquet(first).select(pl.len()).collect().item())
        self._rows: NDArray[np.bool_] | None = None
        self._parts: dict[str, Path] = {}
        self._groups: dict[str, Mapping[str, str]] = {}

    @property
    def records(self) -> int:
        """Number of records."""
        return self._records

    @property
    def threads(self) -> int:
        """How many attributes may be worked on at once: one, so that memory is for one."""
        return 1

    @property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return {
            name: replace(describe(dtype), inferred=self._inferred)
            for name, dtype in self._empty.schema.items()
        }

    def convert(self, kinds: Mapping[str, NumericKind]) -> None:
        """Make whole numbers real where the plan says so, and inferred real numbers whole."""
        wanted = self._wanted_types(kinds)
        self._empty = self._empty.with_columns(
            *(self._empty[name].cast(dtype) for name, dtype in wanted.items())
        )

    def recode(self, attribute: str, groups: Mapping[str, str]) -> None:
        """Put groups, as text, in the place of categories; what is in none stays as it is."""
        self._groups[attribute] = groups
        empty = pl.Series(attribute, dtype=pl.String)
        self._empty = self._empty.with_columns(nw.from_native(empty, series_only=True))

    def drop_missing(self, attributes: Sequence[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        present = self._complete(attributes)
        if not present.all():
            self._rows, self._records = present, int(np.count_nonzero(present))

    def clusters(self, attributes: Sequence[str]) -> pl.LazyFrame:
        """Return the private description of the clusters, to be written as it is read."""
        if self._clusters is None:
            return pl.LazyFrame(schema=CLUSTERS)
        return pl.scan_parquet([self._clusters[attribute] for attribute in attributes])

    def finish(self, attributes: Sequence[str]) -> Released:
        """Return the released columns, side by side, to be written as they are read."""
        order: NDArray[Any] | None = None
        if self._shuffle is not None:
            order = random_order(self.records, self._shuffle)
            order = order.astype(np.uint32) if self.records < 2**32 else order
        for attribute in attributes:
            released = self._released(attribute).to_polars()
            self._store(attribute, released if order is None else released.gather(order))
        parts = [
            pl.scan_parquet(self._parts[attribute]).rename({"column": attribute})
            for attribute in attributes
        ]
        rows = np.arange(self.records) if self._rows is None else np.flatnonzero(self._rows)
        positions = rows if order is None else rows[order]
        row_order: Literal["random", "as in the original"]
        row_order = "as in the original" if order is None else "random"
        return ReleasedInFiles(pl.concat(parts, how="horizontal"), positions, row_order)

    def _keep_clusters(self, attribute: AttributeSettings, description: Description) -> None:
        if self._clusters is not None:
            path = self._scratch / f"clusters{len(self._clusters)}.parquet"
            cluster_rows([(attribute, description)]).write_parquet(path)
            self._clusters[attribute.name] = path

    def _column(self, attribute: str) -> nw.Series[Any]:
        column = read_column(self._files[attribute], self._places[attribute])
        if self._rows is not None:
            column = column.filter(pl.Series(self._rows))
        read = nw.from_native(column, series_only=True)
        if attribute in self._groups:
            grouped_ = grouped(read, self._groups[attribute])
            return nw.from_native(grouped_, series_only=True)
        return read.cast(self._empty.schema[attribute])

    def _keep(self, attribute: str, masked: pl.Series) -> None:
        like = column_of(self._empty, attribute)
        self._store(attribute, column_like(like, masked).to_polars())

    def _keep_text(self, attribute: str, texts: pl.Series) -> None:
        self._store(attribute, texts)

    def _store(self, attribute: str, released: pl.Series) -> None:
        path = self._parts.setdefault(attribute, self._scratch / f"{len(self._parts)}.parquet")
        frame = released.alias("column").to_frame()
        frame.write_parquet(path, compression="uncompressed", row_group_size=ROW_GROUP)

    def _rearrange(self, attribute: str, giver: Integers) -> None:
        self._store(attribute, self._released(attribute).to_polars().gather(giver))

    def _released(self, attribute: str) -> nw.Series[Any]:
        if attribute not in self._parts:
            return self._column(attribute)
        column = read_column(self._parts[attribute], 0)
        return nw.from_native(column, series_only=True)


def read_column(path: Path, place: int) -> pl.Series:
    """Read one column, by its place, since Polars takes names such as ``^x$`` for patterns."""
    return pl.read_parquet(path, columns=[place]).to_series().alias("column").rechunk()


@dataclass(frozen=True, eq=False)
class ReleasedInFiles:
    """A released table in files, in the order in which the engine was told to leave it."""

    data: pl.LazyFrame
    positions: Integers
    row_order: Literal["random", "as in the original"]

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
