"""The engine for Spark: a table on a cluster, looked at by aggregation only."""

import math
from functools import cached_property, partial

import narwhals as nw
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import StructField

from microveil.engines.base import Column, Facts, TextFacts
from microveil.engines.columns import describe
from microveil.engines.spark import clusters
from microveil.engines.spark.hadoop import Scratch
from microveil.errors import DataError
from microveil.grid import Grid, grid_of_last_decimal
from microveil.noise import open_words
from microveil.plan import Plan


class SparkEngine:
    """A Spark table and its plan.

    The table is read once: it is written to the scratch directory, without identifiers and with a
    number and a random key for every record, and everything after that reads this copy. The key
    tells records apart, puts the release in random order, and decides between equal values.
    """

    def __init__(self, frame: DataFrame, plan: Plan, scratch: Scratch, seed: int | None) -> None:
        self._frame = frame
        self._plan = plan
        self._scratch = scratch
        self._dropped: list[str] = []
        self._secrets = open_words(seed, "ties").words(4).view("int64").tolist()
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
        wanted = [*self._plan.confidential, *self._plan.names("kept")]
        numbered = (
            self._frame.toDF(*self.places.values())
            .select(*(self.places[name] for name in wanted))
            .withColumn("id", F.monotonically_increasing_id())
            .withColumn("key", _keyed(F.col("id"), self._secrets[:3]))
        )
        return self._scratch.write(numbered, "records")

    @property
    def table(self) -> DataFrame:
        """The records, without identifiers, each with its number `id` and its random `key`."""
        present = F.lit(True)
        for name in self._dropped:
            present &= F.col(self.places[name]).isNotNull()
        return self._table.where(present) if self._dropped else self._table

    @property
    def tie(self) -> Expression:
        """What decides between records of equal value: random, and not the order of the release."""
        return _keyed(F.col("key"), self._secrets[3:])

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self._facts["records"])

    def drop_missing(self, attributes: list[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        self._dropped = attributes
        self.__dict__.pop("_facts", None)

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        text = F.col(self.places[attribute]).cast("string")
        counts = self.table.agg(
            F.count_if(text.isNull()).alias("nulls"),
            F.count_if(text.isNotNull() & text.try_cast("double").isNull()).alias("texts"),
        ).collect()[0]
        return TextFacts(nulls=counts.nulls, not_numbers=counts.texts)

    @cached_property
    def _facts(self) -> Row:
        """All that a plan needs to know, from one job."""
        wanted = [F.count(F.lit(1)).alias("records")]
        for name, attribute in self._plan.confidential.items():
            if self.columns[name].kind is not None:
                lower = -math.inf if attribute.lower is None else attribute.lower
                upper = math.inf if attribute.upper is None else attribute.upper
                wanted += _aggregates(self.places[name], lower, upper)
        return self.table.agg(*wanted).collect()[0]

    def facts(self, attribute: str, lower: float, upper: float) -> Facts:  # noqa: ARG002
        """Look at a numeric column; the plan told its bounds when all columns were looked at."""
        place, facts = self.places[attribute], self._facts
        smallest, largest = facts[f"{place} smallest"], facts[f"{place} largest"]
        return Facts(
            nulls=facts["records"] - facts[f"{place} present"],
            not_finite=facts[f"{place} not_finite"],
            fractional=facts[f"{place} fractional"],
            smallest=math.inf if smallest is None else smallest,
            largest=-math.inf if largest is None else largest,
            outside=facts[f"{place} outside"],
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
        facts = self.facts(attribute, -math.inf, math.inf)
        largest = max(abs(facts.smallest), abs(facts.largest))
        return grid_of_last_decimal(self._decimals[self.places[attribute]], largest)

    @cached_property
    def _decimals(self) -> Row:
        """Decimals seen in every column whose grid the plan does not declare, from one job."""
        undeclared = [
            name
            for name, attribute in self._plan.confidential.items()
            if self.columns[name].kind == "real"
            and not attribute.has_domain
            and attribute.resolution is None
            and attribute.decimals is None
        ]
        places = [self.places[name] for name in undeclared]
        count = partial(
            clusters.decimals_seen,
            single=[self.columns[name].single_precision for name in undeclared],
        )
        seen = self.table.select(*(F.col(place).cast("double") for place in places)).mapInArrow(
            count, ", ".join(f"{place} int" for place in places)
        )
        return seen.agg(*(F.max(place).alias(place) for place in places)).collect()[0]

    def units(self, attribute: str, grid: Grid) -> DataFrame:
        """Values of an attribute in grid units, without the missing ones, with their keys.

        The same double-precision arithmetic as `Grid.to_units`, without a way through Python.
        """
        value = F.col(self.places[attribute]).cast("double")
        units = F.rint((value - F.lit(grid.origin)) / F.lit(grid.step)).cast("long")
        return self.table.where(value.isNotNull()).select(units.alias("units"), "key")


def _aggregates(place: str, lower: float, upper: float) -> list[Expression]:
    value = F.col(place).cast("double")
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
