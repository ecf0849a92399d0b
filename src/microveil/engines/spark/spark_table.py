"""A table on a Spark cluster, looked at by aggregation only."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from threading import Lock
from typing import Self

import narwhals as nw
import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DoubleType, StringType, StructField

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    CategorySettings,
    NumericSettings,
)
from microveil.core.coding import Coding
from microveil.core.grid import Grid, grid_of_last_decimal
from microveil.core.random_words import open_words
from microveil.engines.base import (
    CategoryFacts,
    Column,
    Facts,
    Holds,
    Preparation,
    UnitFacts,
    Views,
)
from microveil.engines.dtypes import describe
from microveil.engines.layout import FEW_KEPT
from microveil.engines.spark import belonging, ranking, whole_strata, workers
from microveil.engines.spark.scratch_files import Scratch
from microveil.engines.spark.tasks import map_batches
from microveil.engines.spark.whole_strata import Sheet
from microveil.errors import DataError
from microveil.plan.plan import Plan
from microveil.types import Integers, Reals

_HOLDS: dict[str, Holds] = {
    "string": "text", "boolean": "true/false values", "tinyint": "whole numbers",
    "smallint": "whole numbers", "int": "whole numbers", "bigint": "whole numbers",
}  # fmt: skip
_HOLDS_OF: dict[type, Holds] = {str: "text", int: "whole numbers", bool: "true/false values"}
_MOST_CATEGORIES = 10_000
_MANY = 2**20  # rows, so that no cluster has a core without any

COPIES_PER_CORE = 32
"""A table of more partitions for each core is copied in so many tasks, into so many files."""

VALUES_PER_TASK = 2**22
"""A worker holds about so many values of eight bytes at a time, and works on copies of them."""

RECORDS_PER_RANGE = 2**16
"""Ranges that are cut each by itself have about so many records or more."""

NOTHING_MORE = pa.schema([])

SAMPLED_PER_RANGE = 400
"""Records of a sample for each range of ranks: ranges are of about equal length."""


@dataclass(frozen=True, eq=False)
class StagedCopy:
    """A copy of a table, which is read once: everything else reads the copy.

    It is in the scratch directory, without identifiers (but those that get pseudonyms, or say which
    records are of one unit or stratum) and with a number and a random key for every record. The key
    tells records apart, puts the release in random order, and decides between equal values.
    """

    frame: DataFrame
    names: tuple[str, ...]
    scratch: Scratch
    secrets: tuple[int, ...]
    numbers: Iterator[int] = field(default_factory=count)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns of the table in table order."""
        schema = nw.from_native(self.frame.limit(0)).collect_schema()
        return {name: describe(dtype) for name, dtype in schema.items()}

    @cached_property
    def places(self) -> dict[str, str]:
        """What each column is called inside: names with dots or in two cases confuse Spark."""
        return {name: f"c{number}" for number, name in enumerate(self.frame.columns)}

    @cached_property
    def table(self) -> DataFrame:
        """All records, each with its number `id` and its random `key`."""
        numbered = (
            self.frame.toDF(*self.places.values())
            .select(*(self.places[name] for name in self.names if name in self.places))
            .withColumn("id", F.monotonically_increasing_id())
            .withColumn("key", _keyed(F.col("id"), self.secrets[:3]))
        )
        few = numbered.coalesce(COPIES_PER_CORE * self.cores)  # numbers stay as they are
        return self.scratch.write(few, "records")

    @cached_property
    def records(self) -> int:
        """Number of records."""
        return self.table.count()

    @cached_property
    def cores(self) -> int:
        """How many tasks Spark makes of a table by default: about as many as it has cores."""
        numbers = self.frame.sparkSession.range(_MANY).select(F.spark_partition_id().alias("part"))
        return int(numbers.agg(F.max("part")).collect()[0][0]) + 1


def stage_copy(frame: DataFrame, plan: Plan, seed: int | None) -> StagedCopy:
    """Describe the copy of a table; it is written when it is first read."""
    if len(set(frame.columns)) < len(frame.columns):
        raise DataError("column names must differ, found the same name twice; rename one")
    together = (*([plan.unit] if plan.unit else ()), *plan.within)
    roles = (plan.confidential, plan.kept, plan.names("pseudonym"), plan.shifted, together)
    names = tuple(dict.fromkeys(name for role in roles for name in role))
    secrets = open_words(seed, "ties").words(4).view("int64").tolist()
    return StagedCopy(frame, names, Scratch(frame.sparkSession), tuple(secrets))


class StagedTable:
    """A Spark table that is looked at by aggregation, and ranked."""

    def __init__(
        self, copy: StagedCopy, plan: Plan, seed: int | None, preparation: Preparation | None = None
    ) -> None:
        self.copy, self.plan, self.seed = copy, plan, seed
        self.scratch, self.places = copy.scratch, copy.places
        self._preparation = preparation or Preparation()
        self._views: Views[Self] = Views()
        self._sampling = Lock()

    def prepared(self, preparation: Preparation) -> Self:
        """Return a prepared view of this table, the same one for equal preparations."""
        return self._views.of(
            preparation, lambda: type(self)(self.copy, self.plan, self.seed, preparation)
        )

    def discard(self) -> None:
        """Remove the scratch directory."""
        self.scratch.delete()

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        real = dict.fromkeys(self._preparation.kinds, describe(nw.Float64()))
        text = dict.fromkeys(self._preparation.groups, describe(nw.String()))
        return {**self.copy.columns, **real, **text}

    def field(self, attribute: str) -> StructField:
        """Return the name inside, and the type, of a column."""
        kind = self.copy.frame.schema[list(self.places).index(attribute)].dataType
        if attribute in self._preparation.kinds:
            kind = DoubleType()
        if attribute in self._preparation.groups:
            kind = StringType()
        return StructField(self.places[attribute], kind)

    @cached_property
    def table(self) -> DataFrame:
        """The records that are left, each with its number `id` and its random `key`.

        Where there are units or strata also `unit` and `stratum`, written once.
        """
        prepared, present = self._preparation, F.lit(True)
        for name in prepared.complete:
            present &= F.col(self.places[name]).isNotNull()
        records = self.copy.table.where(present) if prepared.complete else self.copy.table
        if not self._belongs:
            return records
        unit = self.places[prepared.unit] if prepared.unit else None
        found = belonging.laid_out(records, unit, [self.places[name] for name in prepared.strata])
        return self.scratch.write(found, f"laid_out{next(self.copy.numbers)}")

    @property
    def _belongs(self) -> bool:
        """Whether records belong together, in units or strata."""
        return bool(self._preparation.unit or self._preparation.strata)

    @cached_property
    def records(self) -> int:
        """Number of records."""
        return self.table.count() if self._preparation.complete else self.copy.records

    @cached_property
    def units(self) -> int:
        """Number of units."""
        return self.table.where(belonging.is_first()).count()

    def _counted(self, attribute: str) -> int:
        return self.units if attribute in self._preparation.per_unit else self.records

    def _counting(self, attribute: str, value: Expression) -> Expression:
        """Return a value where it counts: in all records, or in the first of each unit."""
        once = attribute in self._preparation.per_unit
        return F.when(belonging.is_first(), value) if once else value

    def unit_facts(self, same: Sequence[str]) -> UnitFacts:
        """Look at units; attributes that are the `same` should have one value in each."""
        if not self._belongs:
            return UnitFacts()
        self._check_strata()
        if not self._preparation.unit:
            return UnitFacts()
        return belonging.unit_facts(self.table, {name: self.places[name] for name in same})

    def stratum_sizes(self, attribute: str | None = None, *, units: bool = False) -> Integers:
        """Count the values of an attribute in each stratum, or the `units` that have one.

        Without an attribute, what is pooled there: units, or records where there are none.
        """
        if not self._belongs:
            return np.array([self.records])
        units = bool(self._preparation.unit) and (units or attribute is None)
        present = F.lit(True) if attribute is None else F.col(self.places[attribute]).isNotNull()
        if attribute is not None and attribute in self._preparation.per_unit:
            present &= belonging.is_first()
        return belonging.sizes(self.table.where(present), units=units)

    @cached_property
    def _records_of_strata(self) -> Integers:
        return belonging.sizes(self.table)

    def _check_strata(self) -> None:
        """Refuse strata, or a table of units, that one worker cannot hold."""
        groups = [len(group.attributes) for group in self.plan.pooled_groups]
        held = belonging.values_of_record(max(groups, default=0), len(self.plan.kept))
        most, found = belonging.MOST_TOGETHER // held, int(self._records_of_strata.max(initial=0))
        if found > most:
            setting = "within" if self._preparation.strata else "unit"
            raise DataError(
                f"on Spark one worker masks a whole stratum, or the table where units have no "
                f"strata: {most:,} records at most by this plan, found {found:,}; name kept "
                "columns that part it in within, or protect the table as a Parquet file, column by "
                "column",
                setting=setting,
            )

    def is_whole(self, attributes: Sequence[AttributeSettings], *, pooled: bool = False) -> bool:
        """Whether attributes are masked, or pooled, with whole strata on one worker."""
        if self._preparation.strata or (pooled and self._preparation.unit):
            return True
        return any(one.by_unit or one.per_unit for one in attributes)

    def sheet(self, attributes: Sequence[str], more: pa.Schema = NOTHING_MORE) -> Sheet:
        """Return how records of whole strata become a table; `more` is sent besides."""
        prepared, names = self._preparation, set(attributes)
        columns = {self.places[name]: name for name in attributes}
        columns |= {"unit": prepared.unit} if prepared.unit else {}
        columns |= {"stratum": prepared.strata[0]} if prepared.strata else {}
        own = Preparation(
            kinds={name: kind for name, kind in prepared.kinds.items() if name in names},
            groups={name: groups for name, groups in prepared.groups.items() if name in names},
            codings={name: one for name, one in prepared.codings.items() if name in names},
            unit=prepared.unit,
            per_unit=tuple(name for name in prepared.per_unit if name in names),
            strata=prepared.strata[:1],
        )
        zone = self.table.sparkSession.conf.get("spark.sql.session.timeZone")
        wanted = self.table.select(
            *belonging.BELONGING, *(self.places[name] for name in attributes)
        )
        schema = to_arrow_schema(wanted.schema, timezone=zone)
        return Sheet(pa.schema([*schema, *more]), columns, own)

    def parts(self, records: DataFrame, sheet: Sheet) -> DataFrame:
        """Deal records into whole strata, some of them to a part."""
        held = VALUES_PER_TASK // max(1, len(sheet.records))
        part_of = belonging.parts_of(self._records_of_strata, max(1, held))
        deal = partial(whole_strata.deal_strata, schema=sheet.records, part_of=part_of)
        dealt = map_batches(records.select(*sheet.records.names), deal, whole_strata.DEALT_STRATA)
        return dealt.repartitionById(int(part_of[-1]) + 1, "part")

    def _category(self, attribute: str) -> Expression:
        """Return a column of categories, or their groups."""
        value, groups = F.col(self.places[attribute]), self._preparation.groups.get(attribute)
        if groups is None:
            return value
        text = value.cast("string")
        group = F.create_map(*(F.lit(part) for pair in groups.items() for part in pair))
        return F.coalesce(group[text], text)

    def plain_number(self, attribute: str) -> Expression:
        """Return a column as doubles: dates as days, times as microseconds, text as numbers."""
        place, column = self.places[attribute], self.columns[attribute]
        value = F.col(place)
        if column.clock == "date":
            value = F.unix_date(value)
        elif column.clock == "datetime" and column.zone:
            value = F.unix_micros(value)
        elif column.clock == "datetime":
            value = F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01', {place})")
        elif column.kind is None:
            value = value.cast("string").try_cast("double")
        return value.cast("double")

    def kept_value(self, attribute: str) -> tuple[Expression, bool]:
        """Return a kept column as doubles, and whether these are numbers, as in `kept_values`.

        Otherwise they are fingerprints of its values, missing ones included, which are secret.
        """
        column, place = self.columns[attribute], F.col(self.places[attribute])
        few = self.table.select(place).distinct().limit(FEW_KEPT + 1)
        if column.clock or (
            column.kind is not None and not (column.kind == "integer" and few.count() <= FEW_KEPT)
        ):
            return self.plain_number(attribute), True
        known = F.xxhash64(F.lit(self.copy.secrets[3]), place.cast("string"))
        return F.shiftrightunsigned(known, 12).cast("double"), False

    def _number(self, attribute: str) -> Expression:
        """Return a column as doubles, coded as the plan says."""
        number, coding = self.plain_number(attribute), self._preparation.codings.get(attribute)
        return number if coding is None else _coded(number, coding)

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at numeric columns, all of them in one job."""
        wanted = [
            aggregate
            for name, ends in domains.items()
            for aggregate in self._aggregates(name, *ends)
        ]
        found = self.table.agg(*wanted).collect()[0] if wanted else Row()
        return {name: self._facts(name, found) for name in domains}

    def _aggregates(self, attribute: str, lower: float, upper: float) -> list[Expression]:
        place = self.places[attribute]
        there = self._counting(attribute, F.col(place))
        return _aggregates(
            place, there, self._counting(attribute, self._number(attribute)), lower, upper
        )

    def _facts(self, attribute: str, found: Row) -> Facts:
        place, counted = self.places[attribute], self._counted(attribute)
        smallest, largest = found[f"{place} smallest"], found[f"{place} largest"]
        present = found[f"{place} present"]
        return Facts(
            counted=counted,
            nulls=counted - present,
            not_numbers=present - found[f"{place} numbers"],
            not_finite=found[f"{place} not_finite"],
            fractional=found[f"{place} fractional"],
            smallest=math.inf if smallest is None else smallest,
            largest=-math.inf if largest is None else largest,
            outside=found[f"{place} outside"],
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Return the grid of the last decimal seen in a numeric column."""
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
        value, holds = self._counting(attribute, self._category(attribute)), self.holds(attribute)
        counted, outside = self._counted(attribute), self.table.agg(F.count(value)).collect()[0][0]
        nulls = counted - outside
        if categories is None:
            seen = () if holds == "other values" else self._seen(attribute)
            return CategoryFacts(counted, nulls, holds, seen=seen)
        if holds == _HOLDS_OF[type(categories[0])]:
            outside -= self.table.agg(F.count(_code(value, categories))).collect()[0][0]
        return CategoryFacts(counted, nulls, holds, outside)

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

    def steps(self, attribute: AttributeSettings, table: DataFrame | None = None) -> DataFrame:
        """Return values in grid steps, or codes of categories, with the keys of their records.

        Missing ones are left out. `table` is all of it if not given. The same double-precision
        arithmetic as `Grid.to_steps`, without a way through Python.
        """
        steps = self.step_of(attribute).cast("long").alias("steps")
        table = self.table if table is None else table
        return table.where(steps.isNotNull()).select(steps, "key")

    def step_of(self, attribute: AttributeSettings) -> Expression:
        """Return a value in grid steps, or the code of a category; null where it is missing."""
        if isinstance(attribute, CategorySettings):
            return _code(self._category(attribute.name), attribute.categories)
        value, grid = self._number(attribute.name), attribute.grid
        return F.rint((value - F.lit(grid.origin)) / F.lit(grid.step))

    def expected_errors(self, attribute: NumericSettings, ks: Sequence[int]) -> Reals:
        """Return the expected squared error with clusters of each k, summed over ranges of ranks.

        Each range is cut by itself, so its last cluster takes a remainder of its own. Whole strata
        are cut as they are in memory.
        """
        if self.is_whole([attribute]):
            sheet = self.sheet([attribute.name])
            by_part = partial(
                whole_strata.errors_of_strata, sheet=sheet, settings=attribute, ks=list(ks)
            )
            found = map_batches(self.parts(self.table, sheet), by_part, workers.ERRORS).collect()
            return _added_up(found)
        ranked = self.rank(attribute, self.ranges_of(attribute))
        work = partial(workers.errors_by_k, settings=attribute, ks=list(ks))
        found = map_batches(ranked.select("steps"), work, workers.ERRORS).collect()
        self.forget_ranks(attribute)
        return _added_up(found)

    def tasks(self, values: int) -> int:
        """Return in how many tasks so many values are worked on."""
        return max(self.copy.cores, math.ceil(values / VALUES_PER_TASK))

    def ranges_of(self, attribute: NumericSettings) -> int:
        """Return how many ranges are cut each by itself: few, since each has ends of its own."""
        most = max(1, attribute.records // RECORDS_PER_RANGE)
        return min(most, self.tasks(3 * attribute.records))

    def rank(
        self, attribute: AttributeSettings, tasks: int, to_cut: NumericSettings | None = None
    ) -> DataFrame:
        """Rank an attribute: ranges of ranks, sorted and if asked cut each by itself."""
        bounds = self._bounds(attribute, tasks)
        deal = partial(ranking.deal_ranges, bounds=bounds)
        dealt = map_batches(self.steps(attribute), deal, ranking.DEALT_RANGES)
        parts = dealt.repartitionById(tasks, "part")
        ends = (
            2 * attribute.k + attribute.counted_to
        )  # a cluster's records, and who stands beside it
        work = partial(ranking.rank_range, bounds=bounds, ends=ends, to_cut=to_cut)
        ranked = map_batches(parts, work, ranking.RANKED)
        return self.scratch.write(ranked, f"{self.places[attribute.name]}/ranked")

    def forget_ranks(self, attribute: AttributeSettings) -> None:
        """Delete the ranges of ranks of an attribute."""
        self.scratch.delete(f"{self.places[attribute.name]}/ranked")

    def _bounds(self, attribute: AttributeSettings, ranges: int) -> ranking.Bounds:
        """Find where ranges of ranks end, on a sample of records."""
        with self._sampling:
            sample = self.steps(attribute, self._sample)
        secret = self.copy.secrets[3]
        work = partial(ranking.bounds_of, ranges=ranges, secret=secret)
        found = map_batches(sample.repartition(1), work, ranking.BOUNDS).collect()
        packed = found[0] if found else (b"", b"")
        steps, keys = (np.frombuffer(numbers, dtype=np.int64) for numbers in packed)
        return ranking.Bounds(steps, keys, secret)

    @cached_property
    def _sample(self) -> DataFrame:
        """Some records, at random, written once so that not every attribute reads all of them."""
        wanted = SAMPLED_PER_RANGE * self.tasks(3 * self.records)
        share = min(1.0, wanted / max(1, self.records))
        return self.scratch.write(self.table.sample(fraction=share, seed=self.seed), "sample")


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


def _added_up(found: list[Row]) -> Reals:
    errors: Reals = np.sum([row.errors for row in found], axis=0)
    return errors


def _aggregates(
    place: str, there: Expression, value: Expression, lower: float, upper: float
) -> list[Expression]:
    not_finite = F.isnan(value) | (F.abs(value) == math.inf)
    finite = F.when(~not_finite, value)
    wanted = {
        "present": F.count(there),
        "numbers": F.count(value),
        "not_finite": F.count_if(not_finite),
        "fractional": F.count_if(finite != F.rint(finite)),
        "smallest": F.min(finite),
        "largest": F.max(finite),
        "outside": F.count_if((finite < lower) | (finite > upper)),
    }
    return [aggregate.alias(f"{place} {name}") for name, aggregate in wanted.items()]


def _keyed(number: Expression, keys: Sequence[int]) -> Expression:
    """Permute 64-bit numbers by secret keys.

    xxHash64 of one number, for a given state before it, is a bijection: no two records get the
    same key. Rounds with keys of their own make it an iterated Even-Mansour cipher.
    """
    for key in keys:
        number = F.xxhash64(F.lit(key), number)
    return number
