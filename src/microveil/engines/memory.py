"""The engine for tables in memory: Polars, pandas or PyArrow, through narwhals."""

import os
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from microveil.categories import CategorySummary, summarise_categories
from microveil.clusters import ClusterSummary, singletons, summarise
from microveil.engines.base import CategoryFacts, Column, Cut, Facts, TextFacts
from microveil.engines.columns import (
    category_values,
    column_like,
    describe,
    listed_categories,
    numbers,
)
from microveil.errors import DataError
from microveil.grid import Grid, Integers, Reals, grid_of_observed
from microveil.noise import WordSource, draw_all
from microveil.roles import Derived
from microveil.taxonomy import Category

Number = TypeVar("Number", np.int64, np.float64)
Order = NDArray[Any]
"""Positions of values in rank order, in 32 bits where that is enough."""

_MOST_THREADS = 8  # each holds a few columns of temporary values
_PYTHON: dict[str, type] = {"text": str, "whole numbers": int, "truth values": bool}


class MemoryEngine:
    """A table in memory."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - a table of the user's kind
        self._frame = open_table(data)
        self._positions: Integers = np.arange(len(self._frame))
        self._joint: dict[str, Integers] = {}
        self._clusters: dict[str, tuple[Order, Integers] | None] = {}
        self._masked: dict[str, nw.Series[Any]] = {}

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self._frame)

    @property
    def threads(self) -> int:
        """How many attributes may be worked on at once: one for each core, within reason."""
        return min(os.cpu_count() or 1, _MOST_THREADS)

    @property
    def positions(self) -> Integers:
        """Where each record stood in the table that came in."""
        return self._positions

    @property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return {name: describe(dtype) for name, dtype in self._frame.schema.items()}

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        values = [str(value) for value in self._column(attribute).drop_nulls().to_list()]
        numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
        return TextFacts(nulls=self.records - len(values), not_numbers=numbers.null_count())

    def drop_missing(self, attributes: list[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        present = np.ones(self.records, dtype=np.bool_)
        for attribute in attributes:
            present &= self.present(attribute)
        mask = nw.new_series("present", present, nw.Boolean, backend=self._frame.implementation)
        self._frame = _without_index(self._frame.filter(mask))
        self._positions = self._positions[present]

    def facts(self, attribute: str, lower: float, upper: float) -> Facts:
        """Look at a numeric column once; `outside` counts values not in [lower, upper]."""
        from microveil import column_kernels

        values = self._values(attribute)
        counts = column_kernels.look(values, lower, upper)
        not_finite, fractional, outside, smallest, largest = counts
        return Facts(
            nulls=self.records - len(values),
            not_finite=not_finite,
            fractional=fractional,
            smallest=smallest,
            largest=largest,
            outside=outside,
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
        single = self.columns[attribute].single_precision
        return grid_of_observed(self._values(attribute), single_precision=single)

    def units(self, attribute: str, grid: Grid) -> Integers:
        """Values of an attribute in grid units, in record order, without the missing ones."""
        from microveil import column_kernels

        return column_kernels.to_units(self._values(attribute), grid.step, grid.origin)

    def ranked(self, attribute: str, grid: Grid) -> Integers:
        """Return the values of an attribute in grid units, ascending."""
        return _rank(self.units(attribute, grid))[1]

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only asked for where none are declared."""
        values, holds = category_values(self._column(attribute))
        values = values.drop_nulls()
        if categories is None:
            seen = tuple(values.unique().sort().to_list()) if holds != "other values" else ()
            return CategoryFacts(self.records - len(values), holds, 0, 0, seen)
        outside = len(values)
        if type(categories[0]) is _PYTHON.get(holds):
            outside -= int(values.is_in(list(categories)).sum())
        listed = listed_categories(self._column(attribute))
        unknown = 0 if listed is None else len(set(categories) - listed)
        return CategoryFacts(self.records - len(values), holds, outside, unknown, ())

    def codes(self, attribute: str, categories: tuple[Category, ...]) -> Integers:
        """Return the number of each record's category, in record order, without missing ones."""
        values, _ = category_values(self._column(attribute))
        codes = list(range(len(categories)))
        numbered = values.drop_nulls().replace_strict(
            list(categories), codes, return_dtype=pl.Int64
        )
        return numbered.to_numpy()

    def join(self, attributes: tuple[str, ...], clusters: Integers) -> None:
        """Hold these clusters, one number for each record, for attributes clustered jointly."""
        self._joint |= dict.fromkeys(attributes, clusters)

    def joint(self, attribute: str) -> Integers | None:
        """Return the joint cluster of each record; None if the attribute is clustered by itself."""
        return self._joint.get(attribute)

    def summarise(
        self, attribute: str, grid: Grid, cut: Cut | None, ties: WordSource
    ) -> ClusterSummary:
        """Rank an attribute and cut it into clusters; without a cut every record is a cluster."""
        units = self.units(attribute, grid)
        if cut is None:
            self._clusters[attribute] = None
            return singletons(units)
        return summarise(*self._cluster(attribute, units, cut, ties))

    def summarise_categories(
        self, attribute: str, categories: tuple[Category, ...], cut: Cut, ties: WordSource
    ) -> CategorySummary:
        """Rank an attribute by its categories' numbers and cut it into clusters."""
        codes = self.codes(attribute, categories)
        ranked, sizes = self._cluster(attribute, codes, cut, ties)
        return summarise_categories(ranked, sizes, len(categories))

    def _cluster(
        self, attribute: str, values: Integers, cut: Cut, ties: WordSource
    ) -> tuple[Integers, Integers]:
        """Form clusters; return the values, ascending within each, and the clusters' sizes."""
        joint = self.joint(attribute)
        if joint is None:
            order, ranked = _rank(values)
            sizes = cut(ranked)
            _shuffle_ties(order, ranked, sizes, ties)
        else:
            order = np.lexsort((values, joint))
            ranked, sizes = values[order], np.bincount(joint)
        self._clusters[attribute] = order, sizes
        return ranked, sizes

    def spread(self, attribute: str, masked: Reals) -> None:
        """Give every record of the clusters last summarised its cluster's masked value."""
        values = self._spread(attribute, masked, np.nan)
        self._keep(attribute, pl.Series(values, nan_to_null=True))

    def spread_categories(
        self, attribute: str, masked: Integers, categories: tuple[Category, ...]
    ) -> None:
        """Do the same with numbers of categories; one for each record if none were summarised."""
        codes = self._spread(attribute, masked, len(categories))
        labels = pl.Series([*categories, None])
        self._keep(attribute, labels.gather(codes))

    def _spread(self, attribute: str, masked: NDArray[Number], absent: float) -> NDArray[Number]:
        """Return one value for every record, `absent` where it has none."""
        from microveil import column_kernels

        clusters, values = self._clusters.pop(attribute, None), masked
        if clusters is not None:
            order, sizes = clusters
            values = np.empty(len(order), dtype=masked.dtype)
            column_kernels.spread(masked, sizes, order, values)
        if len(values) == self.records:
            return values
        everyone = np.full(self.records, absent, dtype=masked.dtype)
        everyone[self.present(attribute)] = values
        return everyone

    def smallest_class(self, attributes: tuple[str, ...]) -> int:
        """Count the records of the rarest combination of masked values."""
        masked = pl.DataFrame([self._released(name).to_polars() for name in attributes])
        return int(masked.group_by(*attributes).len()["len"].min())  # type: ignore[arg-type]

    def derive(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute from masked ones; count records with no finite result."""
        inputs = pl.DataFrame({name: self._released(name).to_polars() for name in derived.inputs})
        inputs = inputs.with_columns(cs.numeric().cast(pl.Float64))  # which does not wrap around
        known = inputs.select(~pl.any_horizontal(pl.all().is_null())).to_series()
        try:
            result = _evaluate(derived, inputs)
            if not result.equals(_evaluate(derived, inputs.reverse()).reverse()):
                raise DataError(
                    f"attribute {attribute!r}: its expression depends on the order of records; "
                    "compute it record by record"
                )
            valid = result.is_not_null()
            if result.dtype.is_numeric():
                valid &= result.is_finite().fill_null(value=False)
            undefined = int((known & ~valid).sum())
            if not undefined:
                self._keep(attribute, result)
        except (pl.exceptions.PolarsError, ArithmeticError, TypeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"attribute {attribute!r}: its expression cannot be computed from these column "
                f"types, or does not give {self.columns[attribute].type_name}; change it"
            ) from None
        return undefined

    def finish(self, attributes: list[str]) -> Any:  # noqa: ANN401 - a table of the user's kind
        """Return the masked table with these columns, of the kind and types that came in."""
        return self._frame.select(*map(self._released, attributes)).to_native()

    def _column(self, attribute: str) -> nw.Series[Any]:
        return self._frame[attribute]

    def _keep(self, attribute: str, masked: pl.Series) -> None:
        self._masked[attribute] = column_like(self._column(attribute), masked)

    def _released(self, attribute: str) -> nw.Series[Any]:
        return self._masked[attribute] if attribute in self._masked else self._column(attribute)

    def present(self, attribute: str) -> NDArray[np.bool_]:
        """Which records have a value."""
        return ~self._column(attribute).is_null().to_numpy().astype(np.bool_)

    def _values(self, attribute: str) -> Reals:
        return numbers(self._column(attribute).drop_nulls())


def _rank(values: Integers) -> tuple[Order, Integers]:
    """Return the order of ascending values, and the values in it."""
    from microveil import column_kernels

    small = np.uint32 if len(values) < 2**32 else np.int64
    order, spare = np.empty(len(values), small), np.empty(len(values), small)
    ranked = column_kernels.rank(values, order, spare)
    return order, ranked


def _shuffle_ties(order: Order, ranked: Integers, sizes: Integers, source: WordSource) -> None:
    """Put records of equal value into clusters at random."""
    from microveil import column_kernels

    ends, inside = np.cumsum(sizes), np.zeros(1, dtype=np.bool_)
    tied = column_kernels.tied_across(ranked, ends)
    if not tied:
        return
    draw_all(
        len(order),
        source,
        lambda words, done: column_kernels.shuffle_ties(order, ranked, ends, inside, words, done),
        words_per_draw=tied / len(order),
    )


def open_table(data: Any) -> nw.DataFrame[Any]:  # noqa: ANN401 - a table of the user's kind
    """Open a Polars or pandas DataFrame or a PyArrow Table, without its index."""
    try:
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise DataError("column names must differ, found the same name twice; rename one") from None
    except TypeError:
        raise DataError(
            "data must be a Polars or pandas DataFrame, a PyArrow Table or a path, "
            f"got {type(data).__module__}.{type(data).__qualname__}"
        ) from None
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("column names must be text, found other types; rename the columns")
    return _without_index(frame)


def _without_index(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Leave a pandas index behind: it has no role in the plan and often names people."""
    return nw.maybe_reset_index(frame)


def _evaluate(derived: Derived, inputs: pl.DataFrame) -> pl.Series:
    result = inputs.with_columns(derived.parsed.alias("result"))["result"]
    return result.cast(pl.Float64) if result.dtype.is_numeric() else result
