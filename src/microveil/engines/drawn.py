"""Synthetic rows as tables: drawn in chunks, with rules kept and derived attributes computed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
import polars.selectors as cs

from microveil.core.linear_rules import System, keep, reference
from microveil.core.synthesis.mechanism import LearntTable
from microveil.engines.counted import CountedAttribute
from microveil.errors import DataError
from microveil.plan.roles import Derived
from microveil.types import Reals, UserTable

ROWS_AT_ONCE = 2**17
_AGGREGATE = re.compile(r"\b(AVG|SUM|MIN|MAX|COUNT|MEDIAN|STDDEV|VARIANCE)\s*\(|\bOVER\b", re.I)


@dataclass(frozen=True, eq=False)
class RowsToDraw:
    """A model of a table, and what is done to rows that are drawn from it.

    `entropy` are random numbers, from which those of every chunk follow. `columns` are those of
    the release, in its order.
    """

    learnt: LearntTable
    attributes: tuple[CountedAttribute, ...]
    systems: tuple[System, ...]
    derived: Mapping[str, Derived]
    columns: tuple[str, ...]
    entropy: tuple[int, ...]

    @property
    def chunks(self) -> int:
        """In how many chunks the rows are drawn."""
        return max(1, -(-self.learnt.records // ROWS_AT_ONCE))

    def chunk(self, number: int) -> pl.DataFrame:
        """Draw the rows of a chunk, in random order."""
        rng = np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=(number,)))
        parts = [
            self.learnt.rows(part, self._size(part.records, number), rng)
            for part in self.learnt.parts
        ]
        order = rng.permutation(sum(len(part[0]) for part in parts))
        drawn = [np.concatenate(columns)[order] for columns in zip(*parts, strict=True)]
        return self._finished(drawn)

    def all(self) -> pl.DataFrame:
        """Draw all rows."""
        return pl.concat([self.chunk(number) for number in range(self.chunks)])

    def _size(self, records: int, number: int) -> int:
        return records * (number + 1) // self.chunks - records * number // self.chunks

    def _finished(self, drawn: Sequence[Reals]) -> pl.DataFrame:
        """Keep rules, turn numbers into values, and compute derived attributes."""
        values = dict(zip((one.name for one in self.attributes), drawn, strict=True))
        for system in self.systems:
            numbers = {name: values[name] for name in system.names}
            values |= keep(system, numbers, reference(system))
        frame = pl.DataFrame({one.name: one.decode(values[one.name]) for one in self.attributes})
        for name, recipe in self.derived.items():
            frame = frame.with_columns(computed(name, recipe, frame))
        return frame[list(self.columns)]  # by select, some names are patterns


def computed(name: str, recipe: Derived, rows: pl.DataFrame) -> pl.Series:
    """Compute a derived attribute of synthetic rows; null where it has no finite result."""
    if _AGGREGATE.search(recipe.expression):
        raise DataError(
            "its expression depends on other records, which are not all drawn at once; compute it "
            "record by record",
            attribute=name,
            setting="expression",
        )
    inputs = rows[sorted(recipe.inputs)]
    try:
        exact = inputs.lazy().select(recipe.parsed).collect_schema().dtypes()[0]
        found = inputs.with_columns(cs.numeric().cast(pl.Float64)).select(recipe.parsed).to_series()
        if not found.dtype.is_numeric():
            return found.alias(name)
        finite = found.cast(pl.Float64).to_numpy()
        finite = np.where(np.isfinite(finite), finite, np.nan)
        kept = pl.Series(name, finite).fill_nan(None)
        return kept.cast(pl.Int64) if exact.is_integer() else kept
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError):
        raise DataError(
            "its expression cannot be computed from the types that the plan declares; change it",
            attribute=name,
            setting="expression",
        ) from None


@dataclass(frozen=True, eq=False)
class SyntheticRows:
    """Released rows that belong to nobody."""

    data: UserTable

    @property
    def positions(self) -> None:
        """None: no row is that of a record."""

    @property
    def missing_codes(self) -> Mapping[str, pl.Series]:
        """None are released."""
        return {}

    @property
    def row_order(self) -> Literal["random"]:
        """In which order its records are."""
        return "random"

    def shuffled(self, seed: int | None) -> "SyntheticRows":  # noqa: ARG002 - as for others
        """Return it as it is: its rows are in random order."""
        return self

    def arranged(self, *, keep_order: bool, seed: int | None) -> tuple[UserTable, None]:  # noqa: ARG002
        """Return the table, whose rows have no other order."""
        return self.data, None

    def beside_original(self) -> None:
        """Nothing is kept of the original."""


def as_kind_of(rows: pl.DataFrame, original: UserTable) -> UserTable:
    """Return rows as a table of the same library as the original."""
    library = type(original).__module__.partition(".")[0]
    if library == "pyarrow":
        return rows.to_arrow()
    if library != "pandas":
        return rows
    import pandas as pd

    return pd.DataFrame({column.name: _of_pandas(column) for column in rows})


def _of_pandas(column: pl.Series) -> Any:  # noqa: ANN401 - pandas has no types here
    import pandas as pd

    if column.dtype == pl.Int64:
        return pd.array(column.to_list(), dtype="Int64")
    if column.dtype == pl.Boolean:
        return pd.array(column.to_list(), dtype="boolean")
    if column.dtype == pl.Float64:
        return column.to_numpy()
    if column.dtype in (pl.Date, pl.Time):
        return pd.Series(column.to_list(), dtype=object)
    if isinstance(column.dtype, pl.Datetime):
        zone = f", {column.dtype.time_zone}" if column.dtype.time_zone else ""
        return pd.Series(column.to_list(), dtype=f"datetime64[us{zone}]")
    return pd.Series(column.to_list(), dtype=object)
