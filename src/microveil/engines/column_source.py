"""Where a table on this machine has its columns, and where masked columns are kept."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.attribute import AttributeSettings, NumericKind
from microveil.core.mask import Description
from microveil.engines.base import Column, Preparation, Released
from microveil.engines.dtypes import is_present
from microveil.types import Booleans, UserTable

TYPE_OF_KIND: dict[NumericKind, nw.dtypes.DType] = {"real": nw.Float64(), "integer": nw.Int64()}


class ColumnSource(Protocol):
    """The columns of a table, which never change."""

    @property
    def threads(self) -> int:
        """How many columns may be worked on at once."""

    @property
    def records(self) -> int:
        """Number of records."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns in table order."""

    def column(self, name: str) -> nw.Series[Any]:
        """Return a column by a plain name."""

    def like(self, name: str) -> nw.Series[Any]:
        """Return a column of the same type, perhaps without values."""

    @property
    def missing_codes(self) -> Mapping[str, pl.Series]:
        """The declared missing code of each record, by column; null where it has none."""

    def prepared(self, preparation: Preparation) -> "ColumnSource":
        """Convert and group columns, and leave out records that are not complete."""

    def shelf(self) -> "Shelf":
        """Return an empty shelf for masked columns."""


class Shelf(Protocol):
    """Keeps masked columns and descriptions of clusters until they are released.

    `missing_codes` are the declared missing codes of released records, by column.
    """

    missing_codes: dict[str, pl.Series]

    def put(self, name: str, column: nw.Series[Any]) -> None:
        """Keep a masked column."""

    def get(self, name: str) -> nw.Series[Any] | None:
        """Return a masked column; None if there is none."""

    def describe(self, attribute: AttributeSettings, description: Description) -> None:
        """Keep the private description of an attribute's clusters."""

    def clusters(self, attributes: Sequence[str]) -> UserTable:
        """Return the private description of the clusters of these attributes."""

    def release(self, columns: Iterable[tuple[str, nw.Series[Any]]]) -> Released:
        """Put these columns side by side."""


def complete_records(source: ColumnSource, names: Sequence[str]) -> Booleans | None:
    """Say of each record whether it has a value in all of these columns; None if all do."""
    complete = np.ones(source.records, dtype=np.bool_)
    for name in names:
        complete &= is_present(source.column(name))
    return None if complete.all() else complete
