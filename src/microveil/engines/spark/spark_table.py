"""The engine for Spark: a table on a cluster, looked at by aggregation only."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, partial

import narwhals as nw
import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import StructField

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    CategorySettings,
    NumericKind,
)
from microveil.core.coding import Coding
from microveil.core.grid import Grid, grid_of_last_decimal
from microveil.core.noise import open_words
from microveil.engines.base import CategoryFacts, Column, Facts, Holds, TextFacts, UnitFacts
from microveil.engines.dtypes import describe
from microveil.engines.spark import workers
from microveil.engines.spark.scratch_files import Scratch
from microveil.engines.spark.tasks import map_batches
from microveil.errors import DataError
from microveil.plan.plan import Plan
from microveil.types import Integers

_HOLDS: dict[str, Holds] = {
    "string": "text", "boolean": "true/false values", "tinyint": "whole numbers",
    "smallint": "whole numbers", "int": "whole numbers", "bigint": "whole numbers",
}  # fmt: skip
_HOLDS_OF: dict[type, Holds] = {str: "text", int: "whole numbers", bool: "true/false values"}
_MOST_CATEGORIES = 10_000
_MANY = 2**20  # rows, so that no cluster has a core without any

COPIES_PER_CORE = 32
"""A table of more partitions for each core is copied in so many tasks, into so many files."""


class SparkTable:
    """A Spark table that a plan can be checked against.

    The table is read once: it is written to the scratch directory, without identifiers (but those
    that get pseudonyms) and with a number and a random key for every record, and everything after
    that reads this copy. The key tells records apart, puts the release in random order, and decides
    between equal values.
    """

    def __init__(self, frame: DataFrame, plan: Plan, scratch: Scratch, seed: int | None) -> None:
        self._frame = frame
        roles = (plan.confidential, plan.kept, plan.names("pseudonym"), plan.shifted)
        self._staged = [name for names in roles for name in names]
        self._scratch = scratch
        self._dropped: list[str] = []
        self._coding: dict[str, Coding] = {}
        self._groups: dict[str, Mapping[str, str]] = {}
        self._secrets: list[int] = open_words(seed, "ties").words(4).view("int64").tolist()
        if len(set(frame.columns)) < len(frame.columns):
            raise DataError("column names must differ, found the same name twice; rename one")

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        schema = nw.from_native(self._frame.limit(0)).collect_schema()
        return {name: describe(dtype) for name, dtype in schema.items()}

    @cached_property
    def places(self) -> dict[str, str]:
        """What each column is called inside: names with dots or in two cases confuse Spark."""
        return {name: f"c{number}" for number, name in enumerate(self._frame.columns)}

    def field(self, attribute: str) -> StructField:
        """Return the name inside, and the type, of a column."""
        kind = self._frame.schema[list(self.places).index(attribute)].dataType
        return StructField(self.places[attribute], kind)

    @cached_property
    def _table(self) -> DataFrame:
        numbered = (
            self._frame.toDF(*self.places.values())
            .select(*(self.places[name] for name in self._staged if name in self.places))
            .withColumn("id", F.monotonically_increasing_id())
            .withColumn("key", _keyed(F.col("id"), self._secrets[:3]))
        )
        few = numbered.coalesce(COPIES_PER_CORE * self._cores)  # numbers stay as they are
        return self._scratch.write(few, "records")

    @cached_property
    def _cores(self) -> int:
        """How many tasks Spark makes of a table by default: about as many as it has cores."""
        numbers = self._frame.sparkSession.range(_MANY).select(F.spark_partition_id().alias("part"))
        return int(numbers.agg(F.max("part")).collect()[0][0]) + 1

    @property
    def table(self) -> DataFrame:
        """The records, without identifiers, each with its number `id` and its random `key`."""
        present = F.lit(True)
        for name in self._dropped:
            present &= F.col(self.places[name]).isNotNull()
        return self._table.where(present) if self._dropped else self._table

    @property
    def secret_of_ties(self) -> int:
        """What decides, with their keys, between records of equal value."""
        return self._secrets[3]

    @cached_property
    def records(self) -> int:
        """Number of records."""
        return self.table.count()

    def arrange(self, plan: Plan) -> UnitFacts:  # noqa: ARG002 - one with units was refused
        """There are no units and no strata here."""
        return UnitFacts()

    def counted(self, attribute: str) -> int:  # noqa: ARG002 - there are no units here
        """Count the records."""
        return self.records

    def stratum_sizes(self, attribute: str) -> Integers:  # noqa: ARG002 - there are no strata here
        """Count the records."""
        return self.pooled_sizes

    @property
    def pooled_sizes(self) -> Integers:
        """Count the records."""
        return np.array([self.records])

    def drop_missing(self, attributes: Sequence[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        self._dropped = list(attributes)
        self.__dict__.pop("records", None)

    def convert(self, kinds: Mapping[str, NumericKind]) -> None:
        """Make whole numbers real where the plan says so; the types of Parquet are not inferred."""
        for name, kind in kinds.items():
            column = self.columns[name]
            if (kind, column.kind, column.clock) == ("real", "integer", None):
                real = F.col(f"`{name}`").cast("double")
                self._frame = self._frame.withColumn(name, real)
        self.__dict__.pop("columns", None)

    def code(self, codings: Mapping[str, Coding]) -> None:
        """Code the numbers of these columns, and of no others, whenever they are looked at."""
        self._coding = dict(codings)

    def recode(self, attribute: str, groups: Mapping[str, str]) -> None:
        """Put groups, as text, in the place of categories; what is in none stays as it is."""
        self._groups[attribute] = groups
        text = F.col(f"`{attribute}`").cast("string")
        self._frame = self._frame.withColumn(attribute, text)
        self.__dict__.pop("columns", None)

    def _category(self, attribute: str) -> Expression:
        """Return a column of categories, or their groups."""
        value, groups = F.col(self.places[attribute]), self._groups.get(attribute)
        if groups is None:
            return value
        text = value.cast("string")
        group = F.create_map(*(F.lit(part) for pair in groups.items() for part in pair))
        return F.coalesce(group[text], text)

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        text = F.col(self.places[attribute]).cast("string")
        counts = self.table.agg(
            F.count_if(text.isNull()).alias("nulls"),
            F.count_if(text.isNotNull() & text.try_cast("double").isNull()).alias("texts"),
        ).collect()[0]
        return TextFacts(nulls=counts.nulls, not_numbers=counts.texts)

    def _plain_number(self, attribute: str) -> Expression:
        """Return a column as doubles: dates as days, times as microseconds."""
        place, column = self.places[attribute], self.columns[attribute]
        value = F.col(place)
        if column.clock == "date":
            value = F.unix_date(value)
        elif column.clock == "datetime" and column.zone:
            value = F.unix_micros(value)
        elif column.clock == "datetime":
            value = F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01', {place})")
        return value.cast("double")

    def _number(self, attribute: str) -> Expression:
        """Return a column as doubles, coded as the plan says."""
        number, coding = self._plain_number(attribute), self._coding.get(attribute)
        return number if coding is None else _coded(number, coding)

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at numeric columns, all of them in one job."""
        wanted = [
            aggregate
            for name, ends in domains.items()
            for aggregate in _aggregates(self.places[name], self._number(name), *ends)
        ]
        found = self.table.agg(*wanted).collect()[0] if wanted else Row()
        return {name: self._facts(self.places[name], found) for name in domains}

    def _facts(self, place: str, found: Row) -> Facts:
        smallest, largest = found[f"{place} smallest"], found[f"{place} largest"]
        return Facts(
            nulls=self.records - found[f"{place} present"],
            not_finite=found[f"{place} not_finite"],
            fractional=found[f"{place} fractional"],
            smallest=math.inf if smallest is None else smallest,
            largest=-math.inf if largest is None else largest,
            outside=found[f"{place} outside"],
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
        place, single = self.places[attribute], self.columns[attribute].single_precision
        value = self._number(attribute).alias(place)
        work = partial(workers.decimals_seen, single=single)
        seen = map_batches(self.table.select(value), work, workers.SEEN)
        found = seen.agg(F.max("decimals"), F.max("largest")).collect()[0]
        return grid_of_last_decimal(found[0], found[1])

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; the driver learns their names and counts only."""
        value, holds = self._category(attribute), self.holds(attribute)
        nulls = self.table.agg(F.count_if(value.isNull())).collect()[0][0]
        if categories is None:
            seen = () if holds == "other values" else self._seen(attribute)
            return CategoryFacts(nulls, holds, 0, 0, seen)
        outside = self.records - nulls
        if holds == _HOLDS_OF[type(categories[0])]:
            outside -= self.table.agg(F.count(_code(value, categories))).collect()[0][0]
        return CategoryFacts(nulls, holds, outside, 0, ())

    def holds(self, attribute: str) -> Holds:
        """Say what a column of categories or identifiers holds."""
        return _HOLDS.get(self._type(attribute), "other values")

    def _type(self, attribute: str) -> str:
        return self.field(attribute).dataType.simpleString()

    def _seen(self, attribute: str) -> tuple[Category, ...]:
        values = self.table.select(self.places[attribute])
        found = values.dropna().distinct().limit(_MOST_CATEGORIES + 1).collect()
        if len(found) > _MOST_CATEGORIES:
            raise DataError(
                f"more than {_MOST_CATEGORIES:,} categories were found; declare them, or make its "
                "role identifier",
                attribute=attribute,
                setting="categories",
            )
        return tuple(sorted(row[0] for row in found))

    def counts(self, attribute: str, categories: tuple[Category, ...]) -> Integers:
        """How many records there are of each category: all the driver learns of them."""
        code = _code(self._category(attribute), categories).alias("code")
        found: dict[int, int] = dict(
            self.table.select(code).dropna().groupBy("code").count().collect()
        )
        return np.array([found.get(number, 0) for number in range(len(categories))])

    def units(self, attribute: AttributeSettings, table: DataFrame | None = None) -> DataFrame:
        """Return values in grid units, or codes of categories, with the keys of their records.

        Missing ones are left out. `table` is all of it if not given. The same double-precision
        arithmetic as `Grid.to_units`, without a way through Python.
        """
        units = self.unit_of(attribute).cast("long").alias("units")
        table = self.table if table is None else table
        return table.where(units.isNotNull()).select(units, "key")

    def unit_of(self, attribute: AttributeSettings) -> Expression:
        """Return a value in grid units, or the code of a category; null where it is missing."""
        if isinstance(attribute, CategorySettings):
            return _code(self._category(attribute.name), attribute.categories)
        value, grid = self._number(attribute.name), attribute.grid
        return F.rint((value - F.lit(grid.origin)) / F.lit(grid.step))


def _coded(value: Expression, coding: Coding) -> Expression:
    """Return a coded number, as `Coding.of` does; for Spark NaN is larger than all numbers."""
    lower, upper = F.lit(coding.lower), F.lit(coding.upper)
    rounded = F.rint(value / coding.step) * coding.step if coding.step else value
    inside = (value >= lower) & (value <= upper) & (F.abs(value) < math.inf)
    coded = F.when(inside, F.greatest(F.least(rounded, upper), lower))
    if coding.top:
        coded = coded.when((value > upper) & (value < math.inf), upper)
    if coding.bottom:
        coded = coded.when((value < lower) & (value > -math.inf), lower)
    return coded.otherwise(value)


def _code(value: Expression, categories: tuple[Category, ...]) -> Expression:
    """Return the number of a category in their order; null where a value is none of them."""
    position = F.array_position(F.array(*map(F.lit, categories)), value)
    return F.when(position > 0, position - 1)


def _aggregates(place: str, value: Expression, lower: float, upper: float) -> list[Expression]:
    not_finite = F.isnan(value) | (F.abs(value) == math.inf)
    finite = F.when(~not_finite, value)
    wanted = {
        "present": F.count(value),
        "not_finite": F.count_if(not_finite),
        "fractional": F.count_if(finite != F.rint(finite)),
        "smallest": F.min(finite),
        "largest": F.max(finite),
        "outside": F.count_if((finite < lower) | (finite > upper)),
    }
    return [aggregate.alias(f"{place} {name}") for name, aggregate in wanted.items()]


def _keyed(number: Expression, keys: list[int]) -> Expression:
    """Permute 64-bit numbers by secret keys.

    xxHash64 of one number, for a given state before it, is a bijection: no two records get the
    same key. Rounds with keys of their own make it an iterated Even-Mansour cipher.
    """
    for key in keys:
        number = F.xxhash64(F.lit(key), number)
    return number
