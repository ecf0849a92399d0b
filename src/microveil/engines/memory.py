"""Tables in memory: Polars, pandas or PyArrow, through narwhals."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.attribute import AttributeSettings
from microveil.core.mask import Description
from microveil.core.random_words import open_words, random_order
from microveil.engines.base import Column, Preparation, Released
from microveil.engines.column_source import TYPE_OF_KIND, complete_records
from microveil.engines.detail_rows import cluster_rows
from microveil.engines.dtypes import (
    as_objects,
    column_of,
    converted,
    describe_all,
    grouped,
    text_column,
    with_decimals,
)
from microveil.engines.local import LocalTable
from microveil.errors import DataError
from microveil.machine import available_cores
from microveil.plan.user_table import opened
from microveil.types import Integers, UserTable

_MOST_THREADS = 8  # each holds a few columns of temporary values


def memory_table(
    data: UserTable, *, inferred: bool = False, codes: Mapping[str, pl.Series] | None = None
) -> LocalTable:
    """Open a table in memory; `inferred` says that the values decided on its types.

    `codes` are declared missing codes, by column.
    """
    opened = FrameColumns.open(data, inferred=inferred)
    return LocalTable(replace(opened, missing_codes=codes or {}))


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """The columns of a table in memory.

    `objects` are the columns of pandas that hold decimals as Python objects, `positions` those of
    the records in the table that came in, `missing_codes` their declared missing codes.
    """

    frame: nw.DataFrame[Any]
    positions: Integers
    objects: frozenset[str]
    inferred: bool
    missing_codes: Mapping[str, pl.Series] = field(default_factory=dict)

    @classmethod
    def open(cls, data: UserTable, *, inferred: bool = False) -> "FrameColumns":
        """Open a Polars or pandas DataFrame or a PyArrow Table."""
        frame = open_table(data)
        return cls(frame, np.arange(len(frame)), _decimal_objects(data, frame), inferred)

    @property
    def threads(self) -> int:
        """How many columns may be worked on at once: one for each core, within reason."""
        return min(available_cores(), _MOST_THREADS)

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.frame)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return describe_all(self.frame.schema, inferred=self.inferred)

    @cached_property
    def _plain(self) -> dict[str, nw.Series[Any]]:
        return {}

    def column(self, name: str) -> nw.Series[Any]:
        """Return a column by a plain name."""
        if name not in self._plain:
            self._plain[name] = column_of(self.frame, name)
        return self._plain[name]

    def like(self, name: str) -> nw.Series[Any]:
        """Return a column of the same type."""
        return self.column(name)

    def prepared(self, preparation: Preparation) -> "FrameColumns":
        """Convert and group columns, and leave out records that are not complete."""
        changed = [
            converted(self.frame[name], TYPE_OF_KIND[kind])
            for name, kind in preparation.kinds.items()
        ]
        for name, groups in preparation.groups.items():
            column = self.frame[name]
            changed.append(text_column(grouped(column, groups), column).alias(name))
        prepared = replace(self, frame=self.frame.with_columns(*changed)) if changed else self
        complete = complete_records(prepared, preparation.complete)
        if complete is None:
            return prepared
        rows = nw.new_series("complete", complete, nw.Boolean, backend=self.frame.implementation)
        left = _without_index(prepared.frame.filter(rows))
        codes = {
            name: of_records.filter(complete) for name, of_records in self.missing_codes.items()
        }
        return replace(
            prepared, frame=left, positions=self.positions[complete], missing_codes=codes
        )

    def shelf(self) -> "MemoryShelf":
        """Return an empty shelf for masked columns."""
        return MemoryShelf(self)


class MemoryShelf:
    """Masked columns in memory."""

    def __init__(self, source: FrameColumns) -> None:
        self._source = source
        self.missing_codes = dict(source.missing_codes)
        self._masked: dict[str, nw.Series[Any]] = {}
        self._described: dict[str, tuple[AttributeSettings, Description]] = {}

    def put(self, name: str, column: nw.Series[Any]) -> None:
        """Keep a masked column."""
        self._masked[name] = column

    def get(self, name: str) -> nw.Series[Any] | None:
        """Return a masked column; None if there is none."""
        return self._masked.get(name)

    def describe(self, attribute: AttributeSettings, description: Description) -> None:
        """Keep the private description of an attribute's clusters."""
        self._described[attribute.name] = attribute, description

    def clusters(self, attributes: Sequence[str]) -> UserTable:
        """Return the private description of the clusters of these attributes."""
        return cluster_rows([self._described[attribute] for attribute in attributes])

    def release(self, columns: Iterable[tuple[str, nw.Series[Any]]]) -> Released:
        """Put these columns side by side."""
        objects = self._source.objects
        named = [
            (as_objects(column) if name in objects else column).alias(name)
            for name, column in columns
        ]
        released = self._source.frame.select(*named).to_native()
        positions, codes = self._source.positions, self.missing_codes
        return ReleasedInMemory(released, positions, missing_codes=codes)


@dataclass(frozen=True, eq=False)
class ReleasedInMemory:
    """A released table in memory; `positions` are those of its records in what came in.

    `missing_codes` are in the order of what came in.
    """

    data: UserTable
    positions: Integers
    row_order: Literal["random", "as in the original"] = "as in the original"
    missing_codes: Mapping[str, pl.Series] = field(default_factory=dict)

    def beside_original(self) -> None:
        """Nothing is kept of the original."""

    def shuffled(self, seed: int | None) -> Released:
        """Return it with its records in random order."""
        data, positions = self.arranged(keep_order=False, seed=seed)
        return ReleasedInMemory(data, positions, "random", self.missing_codes)

    def arranged(self, *, keep_order: bool, seed: int | None) -> tuple[UserTable, Integers]:
        """Return the table in its original or in random order, and where each record stood."""
        if keep_order:
            order = np.argsort(self.positions)
        elif self.row_order == "random":
            return self.data, self.positions
        else:
            order = random_order(len(self.positions), open_words(seed, "row order"))
        shuffled = nw.from_native(self.data, eager_only=True)[order]
        # A pandas index would tell the old order.
        return nw.maybe_reset_index(shuffled).to_native(), self.positions[order]


def open_table(data: UserTable) -> nw.DataFrame[Any]:
    """Open a Polars or pandas DataFrame or a PyArrow Table, without its index."""
    try:
        frame = opened(data)
    except TypeError:
        raise DataError(
            "data must be a Polars or pandas DataFrame, a PyArrow Table or a path, "
            f"got {type(data).__module__}.{type(data).__qualname__}"
        ) from None
    return with_decimals(_without_index(frame))


def _decimal_objects(data: UserTable, frame: nw.DataFrame[Any]) -> frozenset[str]:
    """Name the columns of pandas that hold decimals as Python objects."""
    if not frame.implementation.is_pandas():
        return frozenset()
    decimals = [name for name, dtype in frame.schema.items() if dtype.is_decimal()]
    return frozenset(name for name in decimals if data[name].dtype == object)


def _without_index(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Leave a pandas index behind: it has no role in the plan and often names people."""
    return nw.maybe_reset_index(frame)
