"""Which records of a Spark table belong together: units and strata, numbered and counted.

A unit has the least key of its records for a number, so that this record is its first; strata are
numbered from 0 on as in memory.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import IntegralType

from microveil.engines.base import UnitFacts
from microveil.engines.layout import numbered
from microveil.errors import DataError
from microveil.types import Integers

MOST_TOGETHER = 2**27
"""Values of eight bytes that one worker is given together, and works on copies of."""

MOST_STRATA = 100_000
"""Strata, whose sizes the driver holds."""

BELONGING = ("key", "unit", "stratum")


def is_first() -> Column:
    """Whether a record is the first of its unit."""
    return F.col("key") == F.col("unit")


def laid_out(records: DataFrame, unit: str | None, strata: Sequence[str]) -> DataFrame:
    """Add to records their `unit`, null where it is missing, and their `stratum`.

    Without units every record is one of its own.
    """
    own = F.col("key")
    if unit is not None:
        least = F.min("key").over(Window.partitionBy(unit))
        own = F.when(F.col(unit).isNotNull(), least)
    return _with_strata(records.withColumn("unit", own), strata)


def _with_strata(records: DataFrame, strata: Sequence[str]) -> DataFrame:
    if not strata:
        return records.withColumn("stratum", F.lit(0).cast("long"))
    told = [
        F.col(name) if isinstance(records.schema[name].dataType, IntegralType)
        else F.col(name).cast("string")
        for name in strata
    ]  # fmt: skip
    names = [f"s{number}" for number in range(len(strata))]
    seen = records.select(*(t.alias(name) for t, name in zip(told, names, strict=True)))
    found = pl.DataFrame(seen.distinct().limit(MOST_STRATA + 1).toArrow())
    if len(found) > MOST_STRATA:
        raise DataError(
            f"more than {MOST_STRATA:,} strata were found, the most there can be on Spark; name "
            "fewer columns, or columns of fewer values",
            setting="within",
        )
    strata_seen = found.with_columns(stratum=numbered(found.get_columns()))
    few = records.sparkSession.createDataFrame(strata_seen.to_arrow())
    same = F.lit(True)
    for value, name in zip(told, names, strict=True):
        same &= value.eqNullSafe(few[name])
    return records.join(F.broadcast(few), same).drop(*names)


def sizes(records: DataFrame, *, units: bool = False) -> Integers:
    """Count the records, or the units, in each stratum."""
    counted = F.count_distinct("unit") if units else F.count("key")
    found = records.groupBy("stratum").agg(counted.alias("found")).collect()
    counts = np.zeros(1 + max((row.stratum for row in found), default=-1), dtype=np.int64)
    for row in found:
        counts[row.stratum] = row.found
    return counts


def unit_facts(records: DataFrame, same: Mapping[str, str]) -> UnitFacts:
    """Look at units; columns that are the `same`, by name, should have one value in each."""
    differs = {
        name: (F.min(column) != F.max(column)) | ~F.count(column).isin(0, F.count("key"))
        for name, column in same.items()
    }
    units = records.where(F.col("unit").isNotNull()).groupBy("unit").agg(
        F.count("key").alias("size"),
        *(found.alias(f"d{at}") for at, found in enumerate(differs.values())),
    )  # fmt: skip
    found = units.agg(
        F.max("size"), *(F.count_if(f"d{at}") for at in range(len(differs)))
    ).collect()[0]
    missing = records.where(F.col("unit").isNull()).count()
    return UnitFacts(missing, found[0] or 0, dict(zip(differs, found[1:], strict=True)))


def values_of_record(pooled: int, kept: int) -> int:
    """Return how many values of a record a worker holds, of so many attributes in a pool.

    Besides them are so many kept columns. To mask one takes as much memory as to pool two or three.
    """
    return max(8, len(BELONGING) + 2 * pooled + kept)


def parts_of(records: Integers, most: int) -> Integers:
    """Return the part of each stratum: some in a row that have so many records together, or one."""
    before = np.cumsum(records) - records
    found: Integers = np.unique(before // most, return_inverse=True)[1].astype(np.int64)
    return found
