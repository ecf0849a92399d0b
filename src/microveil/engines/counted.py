"""How values of a column are counted in public cells, and how drawn cells become values again.

What a value counts as follows from the value and the plan, never from other values of its column.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.attribute import Category, TimeStep
from microveil.core.choices import DateOrder
from microveil.core.synthesis.cells import AnyCells, CategoryCells, Codes, NumberCells
from microveil.engines.base import Column
from microveil.engines.dtypes import polars_of
from microveil.errors import PlanError
from microveil.plan.roles import Bound, Confidential
from microveil.types import Booleans, Integers, Reals

MomentKind = Literal["date", "datetime", "time"]

_STEPS: dict[TimeStep, float] = {
    "day": 86_400e6, "hour": 3_600e6, "minute": 60e6, "second": 1e6, "microsecond": 1.0,
}  # fmt: skip
_NARROW = 1e-100
_FINE = 1e6
_MOST_DECIMALS = 15
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = {"true": ("true", "True", "TRUE", "1"), "false": ("false", "False", "FALSE", "0")}
_DAYS = {None: (), "day-first": ("%d/%m/%Y", "%d-%m-%Y"), "month-first": ("%m/%d/%Y", "%m-%d-%Y")}
_TIMES = ("", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S%.f")


@dataclass(frozen=True)
class Coded:
    """The codes of a column; `unread` and `outside` say which values the plan has no place for.

    A missing value, and what cannot be read or is no category, has the last code. A number outside
    its domain counts as the nearest end.
    """

    codes: Codes
    missing: Booleans
    unread: int
    outside: int


@dataclass(frozen=True)
class CountedAttribute:
    """An attribute of a synthetic release, as the plan alone describes it."""

    name: str
    settings: Confidential
    missing: bool
    dates: DateOrder | None = None

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """The categories; none of numbers, dates and times."""
        return self.settings.declared_categories if self.settings.is_category else ()

    @cached_property
    def clock(self) -> MomentKind | None:
        """Whether it holds dates or times, as the ends of its domain tell."""
        lower = self.settings.lower
        if isinstance(lower, datetime):
            return "datetime"
        if isinstance(lower, date):
            return "date"
        return "time" if isinstance(lower, time) else None

    @cached_property
    def cells(self) -> AnyCells:
        """The cells that its values are counted in."""
        if self.settings.is_category:
            ordered = self.settings.kind == "ordinal"
            return CategoryCells(self.name, len(self.categories), ordered, self.missing)
        return NumberCells(
            self.name, self.lower, self.upper, self.step,
            self.settings.log_scale, self.settings.atoms, self.missing,
        )  # fmt: skip

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers."""
        return self.clock is not None or self.settings.kind == "integer"

    @cached_property
    def lower(self) -> float:
        """The lower end of the domain; of dates in days and of times in microseconds."""
        end = _number(self.settings.lower)
        return float(math.ceil(end)) if self.whole else end

    @cached_property
    def upper(self) -> float:
        """The upper end of the domain, a number of steps above the lower one."""
        end = _number(self.settings.upper)
        steps = math.floor((end - self.lower) / self.step * (1 + 1e-12) + 1e-9)
        if steps < 1:
            raise PlanError(
                "its domain holds one value only; widen lower and upper, or make it an identifier",
                attribute=self.name,
                setting="lower",
            )
        return self.lower + steps * self.step

    @cached_property
    def step(self) -> float:
        """How far values are apart."""
        settings = self.settings
        if self.clock == "date":
            return 1.0
        if self.clock is not None:
            return _STEPS[settings.time_step or "second"]
        if self.whole:
            return max(1.0, settings.round_to or 1.0)
        return settings.round_to or 10.0**-self.decimals

    @cached_property
    def decimals(self) -> int:
        """Decimals of a real number: those declared, or as many as a millionth of its domain."""
        if self.settings.decimals is not None:
            return self.settings.decimals
        width = _number(self.settings.upper) - _number(self.settings.lower)
        return min(max(0, math.ceil(math.log10(_FINE / max(width, _NARROW)))), _MOST_DECIMALS)

    @property
    def dtype(self) -> pl.DataType:
        """The type of the released column, which the plan decides on."""
        if self.settings.is_category:
            kinds = {str: pl.String(), bool: pl.Boolean(), int: pl.Int64()}
            return kinds[type(self.categories[0])]
        if self.clock is None:
            return pl.Int64() if self.settings.kind == "integer" else pl.Float64()
        return {"date": pl.Date(), "datetime": pl.Datetime("us", self._zone), "time": pl.Time()}[
            self.clock
        ]

    @property
    def column(self) -> Column:
        """The released column as engines describe theirs."""
        if self.settings.is_category:
            return Column(None, "categories")
        kind: Literal["integer", "real"] = "integer" if self.whole else "real"
        return Column(kind, "numbers", -math.inf, math.inf, clock=self.clock)

    @property
    def _zone(self) -> str | None:
        lower = self.settings.lower
        aware = isinstance(lower, datetime) and lower.tzinfo is not None
        return "UTC" if aware else None

    def encode(self, column: nw.Series[Any]) -> Coded:
        """Return the finest cell of each value."""
        values = as_polars_values(column)
        if isinstance(self.cells, CategoryCells):
            return self._encode_categories(values, self.cells)
        return self._encode_numbers(values, self.cells)

    def _encode_categories(self, values: pl.Series, cells: CategoryCells) -> Coded:
        texts = _texts(values)
        if self.settings.recoded:
            texts = texts.replace(dict(self.settings.recoded))
        found = texts.replace_strict(self._places, default=None, return_dtype=pl.UInt16)
        missing = found.is_null().to_numpy()
        codes = found.fill_null(cells.categories if self.missing else 0).to_numpy()
        outside = int((missing & values.is_not_null().to_numpy()).sum())
        return Coded(codes, missing, 0, outside)

    @property
    def _places(self) -> Mapping[str, int]:
        places: dict[str, int] = {}
        for place, category in enumerate(self.categories):
            words = (
                _WORDS[str(category).lower()] if isinstance(category, bool) else (str(category),)
            )
            places |= dict.fromkeys(words, place)
        return places

    def _encode_numbers(self, values: pl.Series, cells: NumberCells) -> Coded:
        numbers = self._read(values).fill_nan(None)
        missing = numbers.is_null().to_numpy()
        known = numbers.fill_null(math.nan).to_numpy()
        unread = int((missing & values.is_not_null().to_numpy()).sum())
        with np.errstate(invalid="ignore"):
            outside = int(((known < self.lower) | (known > self.upper)).sum())
        return Coded(cells.encode(known), missing, unread, outside)

    def _read(self, values: pl.Series) -> pl.Series:
        """Return values as numbers, each by itself; null where one cannot be read."""
        if values.dtype == pl.String:
            values = values.str.strip_chars().replace("", None)
        if self.clock is None:
            if values.dtype == pl.String:
                values = values.str.replace(r"^([+-]?\d+),(\d+)$", "${1}.${2}")
            readable = values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)
            return values.cast(pl.Float64, strict=False) if readable else _nulls(values)
        moments = self._moments(values)
        per = 1_000 if self.clock == "time" else 1
        return (moments.to_physical().cast(pl.Int64) // per).cast(pl.Float64)

    def _moments(self, values: pl.Series) -> pl.Series:
        dtype = {"date": pl.Date(), "datetime": pl.Datetime("us"), "time": pl.Time()}[
            self.clock or "date"
        ]
        if values.dtype == pl.String:
            return self._parsed(values, dtype)
        if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone and self._zone is None:
            values = values.dt.replace_time_zone(None)
        if isinstance(values.dtype, pl.Datetime) and self._zone and not values.dtype.time_zone:
            values = values.dt.replace_time_zone("UTC")
        same = values.dtype == pl.Time if self.clock == "time" else values.dtype.is_temporal()
        readable = same and values.dtype not in (pl.Duration,)
        if not readable or (self.clock != "time" and values.dtype == pl.Time):
            return pl.Series([None] * len(values), dtype=dtype)
        return (
            values.dt.convert_time_zone("UTC").dt.replace_time_zone(None).cast(dtype)
            if (isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone)
            else values.cast(dtype)
        )

    def _parsed(self, texts: pl.Series, dtype: pl.DataType) -> pl.Series:
        """Read dates and times, each in the first format that fits it."""
        days = ("%Y-%m-%d", "%d.%m.%Y", "%Y/%m/%d", *_DAYS[self.dates])
        joined = texts.str.replace(" ", "T", literal=True).str.strip_suffix("Z")
        if dtype == pl.Time:
            formats = [clock.removeprefix("T") for clock in _TIMES[1:]]
        else:
            formats = [day + clock for day in days for clock in _TIMES]
        target = pl.Time() if dtype == pl.Time else pl.Datetime("us")
        found = pl.Series([None] * len(texts), dtype=target)
        frame = pl.DataFrame({"text": joined, "found": found})
        tried = [
            pl.col("text").str.strptime(
                target if "%H" in form else pl.Date(), form, strict=False, exact=True
            ).cast(target)
            for form in formats
        ]  # fmt: skip
        read = frame.select(pl.coalesce(pl.col("found"), *tried)).to_series()
        return read.cast(dtype)

    def decode(self, drawn: Reals) -> pl.Series:
        """Return drawn numbers, or cells of categories, as values of the released column."""
        if isinstance(self.cells, CategoryCells):
            return self._categories_of(drawn.astype(np.int64), self.cells)
        values = pl.Series(drawn).fill_nan(None)
        if self.settings.kind == "real" and self.clock is None:
            return values.round(self.decimals) if not self.settings.round_to else values
        whole = values.round().cast(pl.Int64)
        if self.clock is None:
            return whole
        if self.clock == "date":
            return whole.cast(pl.Int32).cast(pl.Date)
        if self.clock == "time":
            return (whole * 1_000).cast(pl.Time)
        moments = whole.cast(pl.Datetime("us"))
        return moments.dt.replace_time_zone(self._zone) if self._zone else moments

    def _categories_of(self, cells: Integers, counted: CategoryCells) -> pl.Series:
        listed = pl.Series([*self.categories, None], dtype=self.dtype)
        return listed.gather(np.minimum(cells, counted.categories))


def as_polars_values(column: nw.Series[Any]) -> pl.Series:
    """Return a column as Polars has it, of whatever type; values of several types as text."""
    try:
        values = polars_of(column)
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001 - of values of several types
        values = pl.Series(
            [None if v is None else str(v) for v in column.to_list()], dtype=pl.String
        )
    if values.dtype in (pl.Categorical, pl.Enum):
        return values.cast(pl.String)
    if values.dtype == pl.Object:
        return pl.Series([None if v is None else str(v) for v in values.to_list()], dtype=pl.String)
    return values.fill_nan(None) if values.dtype.is_float() else values


def _texts(values: pl.Series) -> pl.Series:
    """Return categories as text, whole numbers without a point."""
    if values.dtype == pl.String:
        return values
    if values.dtype == pl.Boolean:
        return values.cast(pl.String)
    if values.dtype.is_float():
        whole = values.cast(pl.Int64, strict=False)
        return pl.DataFrame({"v": values, "w": whole}).select(
            pl.when(pl.col("v") == pl.col("w")).then(pl.col("w").cast(pl.String))
        ).to_series()  # fmt: skip
    return values.cast(pl.String) if values.dtype.is_integer() else _nulls(values).cast(pl.String)


def _nulls(values: pl.Series) -> pl.Series:
    return pl.Series([None] * len(values), dtype=pl.Float64)


def _number(end: Bound | None) -> float:
    """Return an end of a domain as a number: days for dates, microseconds for times."""
    if isinstance(end, datetime):
        moment = end if end.tzinfo else end.replace(tzinfo=UTC)
        return (moment - _EPOCH) / timedelta(microseconds=1)
    if isinstance(end, date):
        return float((end - _EPOCH.date()).days)
    if isinstance(end, time):
        since = timedelta(hours=end.hour, minutes=end.minute, seconds=end.second)
        return since / timedelta(microseconds=1) + end.microsecond
    return math.nan if end is None else float(end)
