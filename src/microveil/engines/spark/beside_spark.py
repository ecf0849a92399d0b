"""An original and its release on Spark: a sample to the driver, everything else on the workers."""

import math
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import NumericType

from microveil.core.attribute import MOSTLY
from microveil.engines.beside import ClassSizes, Fold, Indistinct
from microveil.engines.spark.arrow import Batches, gathered
from microveil.engines.spark.tasks import map_batches
from microveil.errors import DataError
from microveil.plan.plan import Plan

_AT_ONCE = 2**26  # bytes of released records that a worker looks at together
_MERGED = 16  # tasks that put together what all others saw
_WIDTHS_ALIKE = 0.002  # clusters whose widths differ by less, as a share, are put together
_STATE = pa.schema([("state", pa.binary())])


def fingerprint(frame: DataFrame, columns: Mapping[str, str], plan: Plan) -> Column:
    """Return 64 bits by which records can be told that differ in any of these columns.

    `columns` has by their names in the plan what they are called in the frame. Records that agree
    in all of them may stand for each other wherever two tables are compared, so that it says which
    record is whose without a word about the order of rows, which Spark does not keep. Numbers are
    told as doubles and all else as text, so that types may differ.
    """
    told = []
    for name, column in columns.items():
        masked = plan.confidential.get(name)
        number = isinstance(frame.schema[column].dataType, NumericType)
        as_number = number and masked is not None and not masked.is_category
        told.append(F.col(_quoted(column)).cast("double" if as_number else "string"))
    return F.xxhash64(*told)


def told_by(plan: Plan) -> tuple[str, ...]:
    """Name the columns by which records of an original are told, those that attacks look at."""
    unit = (plan.unit,) if plan.unit else ()
    names = (*plan.confidential, *plan.kept, *plan.names("pseudonym"), *unit)
    return tuple(dict.fromkeys(names))


def staged_columns(frame: DataFrame, plan: Plan) -> DataFrame:
    """Return the columns of an original by which its records are told, in the order of the plan."""
    names = [name for name in told_by(plan) if name in frame.columns]
    return frame.select(*(F.col(_quoted(name)) for name in names))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@dataclass(frozen=True, eq=False)
class BesideOnSpark:
    """Two tables on Spark, and which record of one is which of the other.

    Attributes
    ----------
    original, released
        The tables; of the original the columns that have to do with the release.
    pairs
        Gives, for a share and a seed, fingerprints of so many released records, `released`, and of
        what they were, `original`.
    described
        The private description of clusters, if it is known.
    plan
        What was done.
    """

    original: DataFrame
    released: DataFrame
    pairs: Callable[[float, int], DataFrame]
    described: DataFrame | None
    plan: Plan
    inferred: bool = False

    @cached_property
    def originals(self) -> int:
        """Number of records in the original."""
        return self.original.count()

    @cached_property
    def records(self) -> int:
        """Number of released records."""
        return self.released.count()

    def draw(
        self, number: int, random: np.random.Generator, unit: str | None = None
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Draw released records at random: what they were, and what they are, in one order.

        If `unit` is a column of the original, whole units are drawn, of about so many records.
        Moved dates and derived attributes, which records are not told by, are left out.
        """
        share, seed = number / self.records, int(random.integers(2**31))
        if unit is not None and unit in self.original.columns:
            drawn, number = self._pairs_of_units(unit, share, seed), self.records
        else:
            drawn = self.pairs(min(1.0, share + (5 * math.sqrt(number) + 10) / self.records), seed)
        pairs = _here(drawn.select("original", "released")).sort("original", "released")
        if len(pairs) > number:
            pairs = pairs[np.sort(random.choice(len(pairs), number, replace=False))]
        original = self._of(self.original, pairs["original"])
        released = self._of(self.released, pairs["released"])
        return original, released.select(name for name in released.columns if name in original)

    def _pairs_of_units(self, unit: str, share: float, seed: int) -> DataFrame:
        """Draw whole units by a hash of each with the seed."""
        drawn = F.pmod(F.xxhash64(F.lit(seed), "value"), F.lit(2**31)) < F.lit(share * 2**31)
        chosen = self._told(self.original, [unit]).where(drawn).select("print")
        return self.pairs(1.0, seed).join(chosen, F.col("original") == F.col("print"), "left_semi")

    def _told(self, table: DataFrame, names: Sequence[str]) -> DataFrame:
        """Return the `print` of records that differ, and what they have in some columns."""
        whole = fingerprint(table, dict(zip(table.columns, table.columns, strict=True)), self.plan)
        value = F.struct(*(F.col(_quoted(name)).cast("string") for name in names))
        return table.select(whole.alias("print"), value.alias("value")).dropDuplicates(["print"])

    def indistinct(
        self, joint: Mapping[str, DataFrame], kept: Sequence[str], unit: str | None
    ) -> Indistinct | None:
        """Count the classes of people whom the draws alone tell apart, on the workers."""
        records = self.pairs(1.0, 0)
        names = [f"joint{at}" for at in range(len(joint))]
        for name, label in zip(names, joint.values(), strict=True):
            told = label.select("record", F.struct("block", "joint").alias(name))
            records = records.join(told, "record")
        if kept:
            records = records.join(
                self._told(self.released, kept).toDF("released", "kept"), "released"
            )
            names.append("kept")
        records = records.withColumn("own", F.struct(*names))
        people = records.select("own", F.lit(1).alias("records"))
        if unit is not None and unit in self.original.columns:
            told = self._told(self.original, [unit]).toDF("original", "unit")
            people = records.join(told, "original").groupBy("unit").agg(
                F.sort_array(F.collect_list("own")).alias("own"), F.count("own").alias("records")
            )  # fmt: skip
        sizes = people.groupBy("own").agg(F.count("*").alias("size"), F.sum("records").alias("all"))
        found = sizes.agg(F.sum("size"), F.count("*"), F.min("size"), F.sum("all")).collect()[0]
        if found[3] != self.records:
            raise _other_tables(self.records - (found[3] or 0), self.records, "tables")
        return Indistinct(found[0], found[1], found[2])

    def _of(self, table: DataFrame, prints: pl.Series) -> pl.DataFrame:
        """Bring the records here that have these fingerprints, named as the table, in order."""
        names = table.columns
        places = [f"c{number}" for number in range(len(names))]
        inside = table.toDF(*places)
        told = fingerprint(inside, dict(zip(names, places, strict=True)), self.plan)
        wanted = prints.unique().alias("print").to_frame()
        few = table.sparkSession.createDataFrame(wanted.to_arrow())
        found = inside.withColumn("print", told).join(F.broadcast(few), "print", "left_semi")
        rows = _here(found.dropDuplicates(["print"])).rename(dict(zip(places, names, strict=True)))
        if len(rows) < len(wanted):
            raise _other_tables(len(wanted) - len(rows), len(wanted), prints.name)
        ordered = prints.alias("print").to_frame()
        return ordered.join(rows, on="print", how="left", maintain_order="left").drop("print")

    def fold(self, fold: Fold) -> Any:  # noqa: ANN401 - what a fold keeps is its own
        """Look at all released records on the workers, which send what they saw."""
        columns = [F.col(_quoted(name)).alias(f"c{at}") for at, name in enumerate(fold.names)]
        parts = map_batches(self.released.select(*columns), partial(_see, fold=fold), _STATE)
        merged = map_batches(parts.repartition(_MERGED), partial(_merge, fold=fold), _STATE)
        states = [pickle.loads(row.state) for row in merged.collect()]  # noqa: S301 - our workers'
        return reduce(fold.merge, states)

    def class_sizes(self, names: tuple[str, ...]) -> ClassSizes:
        """Count the released records that share these columns."""
        columns = [F.col(_quoted(name)).alias(f"c{at}") for at, name in enumerate(names)]
        sizes = self.released.select(*columns).groupBy(*(f"c{at}" for at in range(len(names))))
        found = sizes.count().agg(F.count_if(F.col("count") == 1), F.min("count")).collect()[0]
        return ClassSizes(found[0], found[1], self.records)

    def clusters(self) -> pl.DataFrame | None:
        """Return the clusters; those of about the same width are put together."""
        if self.described is None:
            return None
        width = F.col("largest") - F.col("smallest")
        rows = self.described.select(
            "attribute", "records", (F.col("cluster") * 0).alias("cluster"), width.alias("largest"),
            F.round(F.log(width) / _WIDTHS_ALIKE).alias("about"),
            F.sign(F.coalesce("scale", "sensitivity")).alias("scale"), "shared_by",
            (F.col("unmoved") > MOSTLY).cast("double").alias("unmoved"),
        )  # fmt: skip
        alike = ("attribute", "cluster", "about", "scale", "shared_by", "unmoved")
        found = rows.groupBy(*alike).agg(
            F.sum("records").alias("records"), F.avg("largest").alias("largest")
        )
        counted = _here(found.drop("about"))
        nothing = pl.when(pl.col("largest").is_not_null()).then(0.0)
        return counted.with_columns(smallest=nothing, sensitivity=pl.col("scale"))


def _other_tables(lacking: int, drawn: int, which: str) -> DataError:
    return DataError(
        f"{lacking:,} of {drawn:,} records that were drawn from the private detail are not in the "
        f"{which}; use the tables of the same release"
    )


def _here(frame: DataFrame) -> pl.DataFrame:
    """Bring a small table to the driver."""
    found = pl.from_arrow(frame.toArrow())
    assert isinstance(found, pl.DataFrame)  # noqa: S101 - of a table
    return found


def _see(batches: Batches, fold: Fold) -> Iterator[pa.RecordBatch]:
    """Look at the records of one task; they are numbered as Spark numbers them."""
    context = TaskContext.get()
    first = (0 if context is None else context.partitionId()) << 33
    state = fold.start()
    for batch in gathered(batches, _AT_ONCE):
        part = pl.DataFrame(pa.table(batch.columns, names=list(fold.names)))
        state, first = fold.see(state, part, first), first + len(part)
    yield _pickled(state)


def _merge(batches: Batches, fold: Fold) -> Iterator[pa.RecordBatch]:
    state = None
    for batch in batches:
        for value in batch["state"]:
            found = pickle.loads(value.as_py())  # noqa: S301 - made by the workers of this job
            state = found if state is None else fold.merge(state, found)
    yield _pickled(fold.start() if state is None else state)


def _pickled(state: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"state": pa.array([pickle.dumps(state)], pa.binary())})
