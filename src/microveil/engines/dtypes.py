"""Columns of the user's library as numbers or categories, and back again."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.attribute import Category
from microveil.engines.base import Column, Holds
from microveil.errors import DataError
from microveil.types import NOT_POLARS, Booleans, Reals, UserColumn

pl.Series(np.empty(0))  # Polars finds NumPy on first use, where two threads can spoil it for good

_DAYS = (-719_162.0, 2_932_896.0)  # the years 1 to 9999
_MICROSECONDS = (-62_135_596_800_000_000.0, 253_402_300_799_999_968.0)  # the last double before
_NANOSECONDS = (-9_223_372_036_854_774.0, 9_223_372_036_854_774.0)  # 64 bits of them, in µs
_MICROSECONDS_OF: dict[str, float] = {"ms": 1e3, "s": 1e6}
_PER_DAY = {"": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_DAY = (0.0, 86_399_999_999.0)
_POLARS_NUMBERS: dict[nw.dtypes.DType, Any] = {nw.Float64(): pl.Float64, nw.Int64(): pl.Int64}


def describe(dtype: nw.dtypes.DType) -> Column:
    """Describe a column from its type."""
    words = _in_words(dtype)
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        limits = np.iinfo(str(dtype).lower())
        return Column("integer", words, _double(limits.min), _double(limits.max))
    if dtype.is_float():
        largest = float(np.finfo(str(dtype).lower()).max)
        return Column("real", words, -largest, largest, single_precision=dtype == nw.Float32)
    if dtype == nw.Date:
        return Column("integer", "dates", *_DAYS, clock="date")
    if isinstance(dtype, nw.Datetime):
        ends = _NANOSECONDS if dtype.time_unit == "ns" else _MICROSECONDS
        zone = str(dtype.time_zone) if dtype.time_zone else None
        return Column("integer", "times", *ends, clock="datetime", zone=zone)
    if dtype == nw.Time:
        return Column("integer", "times of day", *_DAY, clock="time")
    if dtype == nw.Duration:
        return Column("integer", "lengths of time", *_NANOSECONDS, clock="duration")
    if dtype.is_decimal():
        return _describe_decimals(dtype)
    return Column(None, words)


def describe_all(schema: Mapping[str, nw.dtypes.DType], *, inferred: bool) -> dict[str, Column]:
    """Describe columns from their types; `inferred` says that their values decided on these."""
    return {name: replace(describe(dtype), inferred=inferred) for name, dtype in schema.items()}


def _describe_decimals(dtype: nw.dtypes.DType) -> Column:
    """Describe numbers with a fixed number of decimals, which their type tells."""
    precision, scale = getattr(dtype, "precision", 38), getattr(dtype, "scale", None)
    if scale is None:  # older versions of narwhals do not tell
        return Column("real", "numbers", -1e18, 1e18)
    most = float(10 ** min(precision - scale, 18)) - 1
    return Column("real", "numbers", -most, most, decimals=scale)


def column_of(frame: nw.DataFrame[Any], name: str) -> nw.Series[Any]:
    """Return a column by a plain name, since Polars takes names such as ``^x$`` for patterns."""
    return frame[name].alias("column")


def polars_of(series: nw.Series[Any]) -> pl.Series:
    """Return a column as Polars has it, by a plain name, which PyArrow's does not keep."""
    return series.to_polars().alias("column")


def stored(column: pl.Series) -> pl.Series:
    """Return what values of types that other libraries add, such as intervals, are stored as."""
    return column.ext.storage() if isinstance(column.dtype, pl.BaseExtension) else column


def comparable(series: nw.Series[Any], attribute: str) -> pl.Series:
    """Return a column as Polars has it; refuse one of which it cannot tell equal values."""
    try:
        column = stored(polars_of(series))
    except NOT_POLARS:
        column = pl.Series(dtype=pl.Object)
    if column.dtype == pl.Object:
        raise DataError(
            "expected values of one type, found values of several types or Python objects; "
            "convert the column, or leave it out",
            attribute=attribute,
        )
    return column


def numbers(series: nw.Series[Any]) -> Reals:
    """Return the values of a numeric column, or of dates and times; missing ones must be gone."""
    dtype = series.dtype
    if dtype in (nw.Date, nw.Datetime, nw.Time, nw.Duration):
        column = polars_of(series)
        physical = column.to_physical().to_numpy()
        unit = getattr(column.dtype, "time_unit", "")
        if dtype == nw.Time or unit == "ns":
            physical = physical // 1_000
        microseconds: Reals = physical * _MICROSECONDS_OF.get(unit, 1.0)
        return microseconds
    if dtype in (nw.Int128, nw.UInt128):  # of Polars, which NumPy has not
        return series.cast(nw.Float64).to_numpy()
    if dtype.is_integer():  # PyArrow casts none above 2^53
        return series.to_numpy().astype(np.float64)
    return (series if dtype == nw.Float64 else series.cast(nw.Float64)).to_numpy()


def numbers_with_gaps(series: nw.Series[Any]) -> Reals:
    """Return the values of a numeric column, or of dates and times; NaN where one is missing."""
    values = np.full(len(series), np.nan)
    values[~series.is_null().to_numpy().astype(np.bool_)] = numbers(series.drop_nulls())
    return values


def shifted(moments: pl.Series, days: pl.Series, column: Column) -> tuple[pl.Series, int]:
    """Move dates or times by days, and count those that leave what their type can hold."""
    unit = getattr(moments.dtype, "time_unit", "")
    moved = moments.to_physical().cast(pl.Int64) + days * _PER_DAY[unit]
    least, most = (end * _PER_DAY[unit] / _PER_DAY["us" if unit else ""]
                   for end in (column.least, column.most))  # fmt: skip
    outside = int((~moved.is_between(least, most)).sum())
    if outside:
        return moments, outside
    if not unit:
        return moved.cast(pl.Int32).cast(pl.Date), 0
    return moved.cast(moments.dtype), 0


def grouped(categories: nw.Series[Any], groups: Mapping[str, str]) -> pl.Series:
    """Return the group of every category, as text, and what is in none as it is."""
    values, _ = category_values(categories)
    return values.cast(pl.String).replace(dict(groups))


def each_text(
    texts: pl.Series, function: Callable[[str], str | int], dtype: pl.DataType
) -> pl.Series:
    """Call a function once for every text there is, and give every record its result."""
    known = texts.drop_nulls().unique()
    results = pl.Series([function(text) for text in known], dtype=dtype)
    return texts.replace_strict(known, results, default=None, return_dtype=dtype)


def text_column(texts: pl.Series, like: nw.Series[Any]) -> nw.Series[Any]:
    """Return texts as a column of the same library as another."""
    library: Any = like.implementation
    if library is nw.Implementation.POLARS:
        return nw.from_native(texts, series_only=True)
    return nw.new_series("column", texts.to_list(), nw.String, backend=library)


def is_present(column: nw.Series[Any]) -> Booleans:
    """Say of each record whether it has a value."""
    if not column.null_count():
        return np.ones(len(column), dtype=np.bool_)
    return ~column.is_null().to_numpy().astype(np.bool_)


def category_values(series: nw.Series[Any]) -> tuple[pl.Series, Holds]:
    """Return a column of categories as Polars has it, and what it holds."""
    try:
        column = polars_of(series)
    except NOT_POLARS:  # values of several types
        return pl.Series(series.to_list(), dtype=pl.Object), "other values"
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.Null:
        return column.cast(pl.String), "text"
    if column.dtype == pl.String:
        return column, "text"
    if column.dtype == pl.Boolean:
        return column, "true/false values"
    if not column.dtype.is_integer() and not column.dtype.is_float():
        return column, "other values"
    whole = column.cast(pl.Int64, strict=False)  # pandas has codes with missing values as floats
    exact = whole.count() == column.count() and (whole.cast(column.dtype) == column).all()
    return (whole, "whole numbers") if exact else (column, "other values")


def with_decimals(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Give columns of pandas that hold Python's decimals as objects a type that says so."""
    if not frame.implementation.is_pandas():
        return frame
    objects = [name for name, dtype in frame.schema.items() if dtype == nw.Object]
    decimals = [_as_decimals(frame[name]) for name in objects]
    return frame.with_columns(*decimals) if decimals else frame


def as_objects(column: nw.Series[Any]) -> nw.Series[Any]:
    """Give a pandas column of decimals as Python objects, None where one is missing."""
    native = column.to_native().astype(object)
    objects: nw.Series[Any] = nw.from_native(native.where(native.notna(), None), series_only=True)
    return objects


def _as_decimals(column: nw.Series[Any]) -> nw.Series[Any]:
    values = column.drop_nulls().to_list()
    if not values or not all(isinstance(v, Decimal) and v.is_finite() for v in values):
        return column
    import pandas as pd
    import pyarrow as pa

    scale = max(0, *(-int(value.as_tuple().exponent) for value in values))
    native = column.to_native().astype(pd.ArrowDtype(pa.decimal128(38, scale)))
    decimals: nw.Series[Any] = nw.from_native(native, series_only=True)
    return decimals.alias(column.name)


def listed_categories(series: nw.Series[Any]) -> set[str] | None:
    """Return the only categories a column's type has a place for; None if it takes any."""
    if isinstance(series.dtype, nw.Enum):
        return set(series.dtype.categories)
    if series.dtype != nw.Categorical or series.implementation is nw.Implementation.POLARS:
        return None
    native = series.to_native()
    return set(native.cat.categories) if hasattr(native, "cat") else None  # of pandas itself


def own_categories(series: nw.Series[Any], declared: Collection[Category] = ()) -> nw.Series[Any]:
    """Leave out of a column's type the categories that no row has and that were not declared.

    They would tell of records that are not in the release, and in which order they came.
    """
    if isinstance(series.dtype, nw.Enum):
        kept = {*declared, *series.drop_nulls().unique().to_list()}
        return series.cast(nw.Enum([c for c in series.dtype.categories if c in kept]))
    if series.dtype != nw.Categorical or series.implementation is nw.Implementation.POLARS:
        return series
    native = series.to_native()
    if series.implementation is nw.Implementation.PYARROW:
        native = _own_dictionary(native)
    elif not hasattr(native, "cat"):  # pandas with a column of PyArrow
        import pandas as pd

        dictionary = _own_dictionary(native.array.__arrow_array__())
        native = pd.Series(pd.arrays.ArrowExtensionArray(dictionary), index=native.index)
    else:
        unused = [c for c in native.cat.categories if c not in {*declared, *native.dropna()}]
        native = native.cat.remove_categories(unused)
        if not native.cat.ordered:
            native = native.cat.reorder_categories(sorted(native.cat.categories))
    own: nw.Series[Any] = nw.from_native(native, series_only=True)
    return own.alias(series.name)


def _own_dictionary(column: UserColumn) -> UserColumn:
    """Encode a PyArrow column by the categories its rows have, in their order if they have one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, values = column.type, column.cast(column.type.value_type)
    used = set(values.unique().to_pylist()) - {None}
    if kind.ordered:
        listed = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
        categories = [category for category in listed if category in used]
    else:
        categories = sorted(used)
    dictionary = pa.array(categories, type=kind.value_type)
    places = pc.index_in(values, value_set=dictionary).cast(kind.index_type)
    return pa.chunked_array(
        [
            pa.DictionaryArray.from_arrays(chunk, dictionary, ordered=kind.ordered)
            for chunk in places.chunks
        ],
        type=kind,
    )


def converted(series: nw.Series[Any], dtype: nw.dtypes.DType) -> nw.Series[Any]:
    """Convert numbers; PyArrow itself refuses those beyond 2^53, and its message shows one."""
    values = polars_of(series).cast(_POLARS_NUMBERS[dtype])
    return column_like(series.head(0).cast(dtype), values).alias(series.name)


def column_like(like: nw.Series[Any], values: pl.Series) -> nw.Series[Any]:
    """Return the values as a column of the same library, name and exact type as another."""
    if like.dtype.is_integer() and values.dtype.is_float():
        values = values.round()
    if like.dtype.is_decimal() and values.dtype.is_numeric():
        values = values.cast(like.head(0).to_polars().dtype)
    if values.dtype.is_numeric() and like.dtype in (nw.Date, nw.Datetime, nw.Time, nw.Duration):
        values = _clock(values.round().cast(pl.Int64), like.dtype)
    native = _native_like(like.to_native(), values, like.implementation)
    column: nw.Series[Any] = nw.from_native(native, series_only=True)
    return column.alias(like.name)


def _clock(numbers: pl.Series, dtype: nw.dtypes.DType) -> pl.Series:
    """Turn days or microseconds back into dates and times."""
    if dtype == nw.Date:
        return numbers.cast(pl.Int32).cast(pl.Date)
    if dtype == nw.Time:
        return (numbers * 1_000).cast(pl.Time)
    if dtype == nw.Duration:
        return numbers.cast(pl.Duration("us"))
    zone = dtype.time_zone if isinstance(dtype, nw.Datetime) else None
    column = numbers.cast(pl.Datetime("us"))
    return column.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else column


def _native_like(like: UserColumn, values: pl.Series, library: nw.Implementation) -> UserColumn:
    if library is nw.Implementation.POLARS:
        return values.cast(like.dtype)
    if library is nw.Implementation.PYARROW:
        import pyarrow as pa

        # A safe cast refuses codes that came as floats above 2^53, and times finer than a column's.
        rounds = any(is_type(like.type) for is_type in (
            pa.types.is_floating, pa.types.is_timestamp, pa.types.is_duration, pa.types.is_decimal
        ))  # fmt: skip
        return pa.chunked_array([values.to_arrow().cast(like.type, safe=not rounds)])
    import pandas as pd

    as_array = values.dtype.is_numeric() and not values.dtype.is_decimal()
    plain = values.to_numpy() if as_array else values.to_list()
    return pd.Series(plain).astype(like.dtype)


def _double(limit: int) -> float:
    """Return the double nearest to an integer type's limit that is still of that type."""
    return float(limit) if abs(float(limit)) <= abs(limit) else float(np.nextafter(float(limit), 0))


def _in_words(dtype: nw.dtypes.DType) -> str:
    if dtype in (nw.String, nw.Object, nw.Categorical, nw.Enum):
        return "text"
    if dtype in (nw.Int128, nw.UInt128):
        return "integers of 128 bits"
    if dtype.is_numeric():
        return "numbers"
    if dtype == nw.Boolean:
        return "true/false values"
    return f"{dtype} values"
