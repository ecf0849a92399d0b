"""The engine for tables in memory: Polars, pandas or PyArrow, through narwhals."""

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs

from microveil.clusters import ClusterSummary, singletons, summarise
from microveil.engines.base import Column, Cut, Facts, TextFacts
from microveil.errors import DataError
from microveil.grid import Grid, Integers, Reals, grid_of_observed
from microveil.roles import Derived


class MemoryEngine:
    """A table in memory."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - a table of the user's kind
        self._frame = open_table(data)
        self._positions: Integers = np.arange(len(self._frame))
        self._ties: Integers | None = None
        self._clusters: dict[str, tuple[Integers, Integers] | None] = {}
        self._masked: dict[str, nw.Series[Any]] = {}

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self._frame)

    @property
    def positions(self) -> Integers:
        """Where each record stood in the table that came in."""
        return self._positions

    @property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return {name: column_of(dtype) for name, dtype in self._frame.schema.items()}

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        values = [str(value) for value in self._frame[attribute].drop_nulls().to_list()]
        numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
        return TextFacts(nulls=self.records - len(values), not_numbers=numbers.null_count())

    def break_ties_by(self, order: Integers) -> None:
        """Rank records of equal value in this order of records, instead of the table's."""
        self._ties = order

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
        values = self._values(attribute)
        finite = values[np.isfinite(values)]
        return Facts(
            nulls=self.records - len(values),
            not_finite=len(values) - len(finite),
            fractional=int(np.count_nonzero(finite != np.rint(finite))),
            smallest=float(finite.min(initial=np.inf)),
            largest=float(finite.max(initial=-np.inf)),
            outside=int(np.count_nonzero((finite < lower) | (finite > upper))),
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
        single = self._frame.schema[attribute] == nw.Float32
        return grid_of_observed(self._values(attribute), single_precision=single)

    def units(self, attribute: str, grid: Grid) -> Integers:
        """Values of an attribute in grid units, in record order, without the missing ones."""
        return grid.to_units(self._values(attribute))

    def ranked(self, attribute: str, grid: Grid) -> Integers:
        """Return the values of an attribute in grid units, ascending."""
        return np.sort(self.units(attribute, grid))

    def summarise(self, attribute: str, grid: Grid, cut: Cut | None) -> ClusterSummary:
        """Rank an attribute and cut it into clusters; without a cut every record is a cluster."""
        units = self.units(attribute, grid)
        if cut is None:
            self._clusters[attribute] = None
            return singletons(units)
        order = self._rank(attribute, units)
        ranked = units[order]
        sizes = cut(ranked)
        self._clusters[attribute] = order, sizes
        return summarise(ranked, sizes)

    def _rank(self, attribute: str, units: Integers) -> Integers:
        if self._ties is None:
            return np.argsort(units, kind="stable")
        present = self.present(attribute)
        ties = (np.cumsum(present) - 1)[self._ties[present[self._ties]]]
        ranked: Integers = ties[np.argsort(units[ties], kind="stable")]
        return ranked

    def spread(self, attribute: str, masked: Reals) -> None:
        """Give every record of the clusters last summarised its cluster's masked value."""
        clusters = self._clusters.pop(attribute)
        values = masked
        if clusters is not None:
            order, sizes = clusters
            values = np.empty(len(order))
            values[order] = np.repeat(masked, sizes)
        spread = np.full(self.records, np.nan)
        spread[self.present(attribute)] = values
        column = pl.Series(spread, nan_to_null=True)
        self._masked[attribute] = _column_like(self._frame[attribute], column)

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
                self._masked[attribute] = _column_like(self._frame[attribute], result)
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

    def _released(self, attribute: str) -> nw.Series[Any]:
        return self._masked.get(attribute, self._frame[attribute])

    def present(self, attribute: str) -> np.typing.NDArray[np.bool_]:
        """Which records have a value."""
        return ~self._frame[attribute].is_null().to_numpy().astype(np.bool_)

    def _values(self, attribute: str) -> Reals:
        return self._frame[attribute].drop_nulls().cast(nw.Float64).to_numpy()


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


def column_of(dtype: nw.dtypes.DType) -> Column:
    """Describe a column by its type."""
    words = _in_words(dtype)
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        limits = np.iinfo(str(dtype).lower())
        return Column("integer", words, _double(limits.min), _double(limits.max))
    if dtype.is_float():
        largest = float(np.finfo(str(dtype).lower()).max)
        return Column("real", words, -largest, largest, single_precision=dtype == nw.Float32)
    return Column(None, words)


def _double(limit: int) -> float:
    """Return the double nearest to an integer type's limit that is still of that type."""
    return float(limit) if abs(float(limit)) <= abs(limit) else float(np.nextafter(float(limit), 0))


def _in_words(dtype: nw.dtypes.DType) -> str:
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    if dtype.is_integer() or dtype.is_float():
        return "numbers"
    return f"{dtype} values"


def _column_like(like: nw.Series[Any], values: pl.Series) -> nw.Series[Any]:
    """Return the values as a column of the same library, name and exact type as another."""
    if like.dtype.is_integer():
        values = values.round()
    native = _native_like(like.to_native(), values, like.implementation)
    column: nw.Series[Any] = nw.from_native(native, series_only=True)
    return column.alias(like.name)


def _native_like(like: Any, values: pl.Series, library: nw.Implementation) -> Any:  # noqa: ANN401
    if library is nw.Implementation.POLARS:
        return values.cast(like.dtype)
    if library is nw.Implementation.PYARROW:
        import pyarrow as pa

        return pa.chunked_array([values.to_arrow().cast(like.type)])
    import pandas as pd

    plain = values.to_numpy() if values.dtype.is_numeric() else values.to_list()
    return pd.Series(plain).astype(like.dtype)
