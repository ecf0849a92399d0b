"""The engine for tables in memory: Polars, pandas or PyArrow, through narwhals."""

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.clusters import ClusterSummary, cluster_sizes, singletons, summarise
from microveil.engines.base import Column, Facts, TextFacts
from microveil.errors import DataError
from microveil.grid import Grid, Integers, Reals, grid_of_observed
from microveil.plan import Derived, Kind

_LARGEST_INTEGER = 2.0**63 - 1024  # the largest double that is still a 64-bit integer


class MemoryEngine:
    """A table in memory."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - a table of the user's kind
        self._frame = _open(data)
        self._positions: Integers = np.arange(len(self._frame))
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
        return {name: _column(dtype) for name, dtype in self._frame.schema.items()}

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        values = [str(value) for value in self._frame[attribute].drop_nulls().to_list()]
        numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
        return TextFacts(nulls=self.records - len(values), not_numbers=numbers.null_count())

    def drop_missing(self, attributes: list[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        present = np.ones(self.records, dtype=np.bool_)
        for attribute in attributes:
            present &= self._present(attribute)
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

    def summarise(self, attribute: str, grid: Grid, k: int | None) -> ClusterSummary:
        """Rank an attribute into clusters of k; without k every record is its own cluster."""
        units = self.units(attribute, grid)
        if k is None:
            self._clusters[attribute] = None
            return singletons(units)
        order = np.argsort(units, kind="stable")
        sizes = cluster_sizes(len(units), k)
        self._clusters[attribute] = order, sizes
        return summarise(units[order], sizes)

    def spread(self, attribute: str, masked: Reals) -> None:
        """Give every record of the clusters last summarised its cluster's masked value."""
        clusters = self._clusters.pop(attribute)
        values = masked
        if clusters is not None:
            order, sizes = clusters
            values = np.empty(len(order))
            values[order] = np.repeat(masked, sizes)
        spread = np.full(self.records, np.nan)
        spread[self._present(attribute)] = values
        column = pl.Series(spread, nan_to_null=True)
        self._masked[attribute] = _column_like(self._frame[attribute], column)

    def derive(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute from masked ones; count records with no finite result."""
        inputs = pl.DataFrame({name: self._released(name).to_polars() for name in derived.inputs})
        known = inputs.select(~pl.any_horizontal(pl.all().is_null())).to_series()
        try:
            result = inputs.with_columns(derived.parsed.alias(attribute))[attribute]
            valid = result.is_not_null()
            if result.dtype.is_numeric():
                result = result.cast(pl.Float64)
                valid &= result.is_finite().fill_null(value=False)
            undefined = int((known & ~valid).sum())
            if not undefined:
                self._masked[attribute] = _column_like(self._frame[attribute], result)
        except (pl.exceptions.PolarsError, ArithmeticError, TypeError, ValueError):
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

    def _present(self, attribute: str) -> np.typing.NDArray[np.bool_]:
        return ~self._frame[attribute].is_null().to_numpy().astype(np.bool_)

    def _values(self, attribute: str) -> Reals:
        return self._frame[attribute].drop_nulls().cast(nw.Float64).to_numpy()


def _open(data: Any) -> nw.DataFrame[Any]:  # noqa: ANN401 - a table of the user's kind
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


def _column(dtype: nw.dtypes.DType) -> Column:
    kind: Kind | None = "integer" if dtype.is_integer() else "real" if dtype.is_float() else None
    if kind != "integer":
        return Column(kind, _in_words(dtype))
    limits = np.iinfo(str(dtype).lower())
    return Column(kind, _in_words(dtype), float(limits.min), min(limits.max, _LARGEST_INTEGER))


def _in_words(dtype: nw.dtypes.DType) -> str:
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    return "numbers" if dtype.is_numeric() else f"{dtype} values"


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
