"""The straight line on Spark: stage → settle → rank → cut → mask → join.

Per attribute one shuffle by value, of (value, key), and one back by key, of (key, masked value);
whole records are moved once. The driver sees counts and totals, never records or clusters.
"""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from microveil.accounting import Totals
from microveil.certificate import certify
from microveil.clusters import singletons
from microveil.describe import (
    LOSSES,
    describe_category_losses,
    describe_clusters,
    describe_responses,
)
from microveil.engines.spark import clusters as workers
from microveil.engines.spark import join
from microveil.engines.spark.hadoop import Scratch
from microveil.engines.spark.release import SparkDetail, SparkRelease
from microveil.engines.spark.table import SparkEngine
from microveil.errors import DataError, PlanError
from microveil.grid import Integers
from microveil.masking import CategoryMasking, Masking, NumericMasking
from microveil.mechanism import calibrate, no_finite_result
from microveil.noise import open_words
from microveil.plan import Plan
from microveil.settle import Settled, settle

VALUES_PER_TASK = 2**22
"""A worker holds about so many values of eight bytes at a time, and works on copies of them."""

_SEEDED_BLOCK = 1024


def protect_spark(
    frame: DataFrame,
    plan: Plan,
    *,
    seed: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> SparkRelease:
    """Protect a Spark table; see `microveil.protect`."""
    _check(frame, plan)
    open_words(seed, "")
    scratch = Scratch(frame.sparkSession)
    try:
        engine = SparkEngine(frame, plan, scratch, seed)
        settled = settle(plan, engine)
        line = _Line(engine, scratch, seed)
        for done, masking in enumerate(settled.maskings, start=1):
            line.mask(masking)
            if progress:
                progress(f"masking {masking.name}", done, len(settled.maskings))
        released = line.assemble(settled)
    except BaseException:
        scratch.delete()
        raise
    columns = [F.col(engine.places[n]).alias(n, metadata={}) for n in settled.columns]
    return SparkRelease(
        data=released.select(*columns),
        certificate=certify(settled, records=engine.records, seeded=seed is not None),
        detail=SparkDetail(line.clusters, pl.concat(line.losses)),
        plan=plan,
        seed=seed,
        ordered=released.orderBy("id").select(*columns),
    )


def _check(frame: DataFrame, plan: Plan) -> None:
    """Refuse what needs all clusters in one place, before any work is done."""
    if ".connect." in type(frame).__module__:
        raise DataError("Spark Connect is not supported; use a session on the cluster itself")
    instead = "; change the plan, or protect a table in memory"
    if plan.partition != "fixed":
        raise PlanError(
            f'plan: partition = "{plan.partition}" is not for Spark, use "fixed"{instead}'
        )
    if plan.groups:
        raise PlanError(f"plan: joint clusters are not for Spark, remove groups{instead}")
    if "auto" in (plan.k_of(name) for name in plan.confidential):
        raise PlanError(f'plan: k = "auto" is not for Spark, use a number{instead}')
    if plan.post not in ("auto", "none"):
        raise PlanError(f'plan: post = "{plan.post}" is not for Spark, use "none"{instead}')


class _Line:
    def __init__(self, engine: SparkEngine, scratch: Scratch, seed: int | None) -> None:
        self._engine = engine
        self._scratch = scratch
        self._seed = seed
        self._dealt: list[DataFrame] = []
        self.clusters: list[DataFrame] = []
        self.losses: list[pl.DataFrame] = []

    def _tasks(self, values: int) -> int:
        least = self._engine.table.sparkSession.sparkContext.defaultParallelism
        return max(least, math.ceil(values / VALUES_PER_TASK))

    @property
    def _buckets(self) -> int:
        return self._tasks(self._engine.records * (len(self._engine.places) + 1))

    def mask(self, masking: Masking) -> None:
        """Mask one attribute: for every record's key a masked value, written once.

        The masked value of a category is its number.
        """
        place = self._engine.places[masking.name]
        if masking.method.clustered:
            masked = self._mask_clusters(masking, place).select("members", "masked")
            deal = partial(join.deal_clusters, column=place, buckets=self._buckets)
        else:
            masked = self._mask_records(masking, place).select("key", "masked")
            deal = partial(join.deal_values, column=place, buckets=self._buckets)
        self._dealt.append(_map(masked, deal, join.DEALT))

    def _mask_clusters(self, masking: Masking, place: str) -> DataFrame:
        ranked = self._rank(masking, place)
        cut = workers.Cut(_offsets(ranked), masking.k, masking.clusters - 1)
        clusters = _Clusters(ranked, cut)
        work = self._work(masking, clusters)
        if self._seed is None:
            masked = clusters.map(work, workers.MASKED)
        else:
            block = F.floor(F.col("cluster") / _SEEDED_BLOCK)
            masked = _map_groups(clusters.frame, block, work, workers.MASKED)
        masked = self._scratch.write(masked, f"{place}/masked")
        self._scratch.delete(f"{place}/ranked")
        sums = (F.sum(name).alias(name) for name in ("records", "up", "down"))
        found = _checked(masked, F.count("cluster").alias("clusters"), *sums)
        if (found["clusters"], found["records"]) != (masking.clusters, masking.records):
            raise _not_once(masking)
        if isinstance(masking, CategoryMasking):
            noisy = masked.where("held > 0").count()
            self.losses.append(describe_category_losses(masking, noisy))
        else:
            self._lost(masking, found["held"], max(found["up"], found["down"]))
        name = F.lit(masking.name).alias("attribute")
        self.clusters.append(masked.select(name, *workers.DESCRIBED.names))
        return masked

    def _work(self, masking: Masking, clusters: "_Clusters") -> workers.Work:
        """Return what the workers do to clusters."""
        if isinstance(masking, CategoryMasking):
            counts = self._engine.counts(masking.name, masking.categories)
            return partial(
                workers.mask_category_clusters, masking=masking, counts=counts, seed=self._seed
            )
        totals = _totals(clusters, masking)
        return partial(workers.mask_clusters, masking=masking, totals=totals, seed=self._seed)

    def _units(self, masking: Masking) -> DataFrame:
        if isinstance(masking, CategoryMasking):
            return self._engine.codes(masking.name, masking.categories)
        return self._engine.units(masking.name, masking.grid)

    def _rank(self, masking: Masking, place: str) -> DataFrame:
        """Rank an attribute: ranges of ranks, sorted each by itself."""
        units, tie = self._units(masking), self._engine.tie
        parts = units.repartitionByRange(self._tasks(3 * masking.records), "units", tie)
        parts = parts.select("units", "key", tie.alias("tie"), F.spark_partition_id().alias("part"))
        return self._scratch.write(_map(parts, workers.rank, workers.RANKED), f"{place}/ranked")

    def _mask_records(self, masking: Masking, place: str) -> DataFrame:
        units, category = self._units(masking), isinstance(masking, CategoryMasking)
        work = partial(
            workers.respond_records if category else workers.mask_records,
            masking=masking,  # type: ignore[arg-type]
            seed=self._seed,
        )
        block = F.pmod("key", F.lit(math.ceil(masking.records / _SEEDED_BLOCK)))
        if self._seed is None:
            masked = _map(units, _each(work), workers.MASKED_RECORDS)
        else:
            masked = _map_groups(units, block, work, workers.MASKED_RECORDS)
        masked = self._scratch.write(masked, f"{place}/masked")
        found = _checked(masked, F.count("key").alias("records"))
        if found["records"] != masking.records:
            raise _not_once(masking)
        if isinstance(masking, CategoryMasking):
            self.losses.append(describe_category_losses(masking, masking.records))
            described = describe_responses(masking)
        else:
            self._lost(masking, found["held"], found["held"])
            alone = singletons(np.zeros(1, dtype=np.int64))
            described = describe_clusters(alone, masking, calibrate(alone, masking))
        schema = pa.schema([pa.field("attribute", pa.string()), *workers.DESCRIBED])
        rows = described.select(schema.names).rows()
        self.clusters.append(units.sparkSession.createDataFrame(rows, from_arrow_schema(schema)))
        return masked

    def _lost(self, masking: NumericMasking, held: float, re_clustered: float) -> None:
        row = (masking.name, masking.epsilon_per_record, held, re_clustered)
        self.losses.append(pl.DataFrame([row], schema=LOSSES, orient="row"))

    def assemble(self, settled: Settled) -> DataFrame:
        """Join masked values to their records, in the order of their keys, which is random."""
        plan, engine = settled.plan, self._engine
        records = engine.table.select("key", "id", *(engine.places[n] for n in plan.names("kept")))
        released = StructType([StructField("id", LongType())])
        for name in settled.columns:
            released.add(engine.field(name))
        released.add("problem", "string")
        zone = records.sparkSession.conf.get("spark.sql.session.timeZone")
        assembly = join.Assembly(
            records=to_arrow_schema(records.schema, timezone=zone),
            released=to_arrow_schema(released, timezone=zone),
            masked={
                engine.places[m.name]: m.categories if isinstance(m, CategoryMasking) else None
                for m in settled.maskings
            },
            names={engine.places[name]: name for name in settled.columns},
            derived={engine.places[name]: plan.derived[name] for name in plan.derivation_order},
        )
        deal = partial(join.deal_records, schema=assembly.records, buckets=self._buckets)
        dealt = reduce(DataFrame.union, self._dealt, _map(records, deal, join.DEALT))
        buckets = dealt.repartitionById(self._buckets, "bucket")
        together = buckets.mapInArrow(partial(join.assemble, assembly=assembly), released)
        written = self._scratch.write(together, "release")
        self._scratch.delete("records")
        self._check(written, settled)
        return written.drop("problem")

    def _check(self, written: DataFrame, settled: Settled) -> None:
        """Raise what workers complained of, and make sure that every value found its record."""
        places = self._engine.places
        values = [F.count(places[masking.name]) for masking in settled.maskings]
        for problem, count, *found in (
            written.groupBy("problem").agg(F.count("id"), *values).collect()
        ):
            name = next((n for n in settled.plan.derived if places[n] == problem), None)
            if name is not None:
                raise no_finite_result(name, count, self._engine.records)
            if problem is not None:
                raise DataError(problem)
            for masking, number in zip(settled.maskings, found, strict=True):
                if (count, number) != (self._engine.records, masking.records):
                    raise _not_once(masking)


class _Clusters:
    """The clusters of an attribute: most lie within a range of ranks, a few across two."""

    def __init__(self, ranked: DataFrame, cut: workers.Cut) -> None:
        self._ranked = ranked
        self._whole = partial(workers.whole_clusters, cut=cut)
        pieces = _map(ranked, partial(workers.pieces_of_clusters, cut=cut), workers.CLUSTERS)
        self._pieces = pieces.repartition("cluster")

    @property
    def frame(self) -> DataFrame:
        """One row for each."""
        whole = _map(self._ranked, self._whole, workers.CLUSTERS)
        return whole.union(_map(self._pieces, workers.mend, workers.CLUSTERS))

    def map(self, work: workers.Work, schema: pa.Schema) -> DataFrame:
        """Do the work on all of them, where they are cut or mended."""
        whole = _map(self._ranked, _each(work, after=self._whole), schema)
        return whole.union(_map(self._pieces, _each(work, after=workers.mend), schema))


def _each(work: workers.Work, **after: Any) -> Any:  # noqa: ANN401
    return partial(workers.each_batch, work=work, **after)


def _map(rows: DataFrame, work: Any, schema: pa.Schema) -> DataFrame:  # noqa: ANN401
    return rows.mapInArrow(work, from_arrow_schema(schema))


def _map_groups(rows: DataFrame, block: Column, work: workers.Work, schema: pa.Schema) -> DataFrame:
    """Work on blocks that do not depend on where rows are, so that a seed repeats its noise."""
    return rows.groupBy(block).applyInArrow(workers.on_groups(work), from_arrow_schema(schema))


def _offsets(ranked: DataFrame) -> Integers:
    """How many records come before each range of ranks: all the driver learns of them."""
    lengths: dict[int, int] = dict(ranked.select("part", "records").collect())
    ends = np.cumsum([lengths.get(number, 0) for number in range(max(lengths) + 1)])
    return np.append(0, ends[:-1])


def _totals(clusters: _Clusters, masking: NumericMasking) -> Totals:
    """Add up what the noise of a cluster depends on in all others, where it does."""
    if masking.guarantee == "fixed-clusters" or masking.method.promise == "DP":
        return Totals(masking.records)
    parts = clusters.map(partial(workers.sum_totals, masking=masking), workers.TOTALS)
    return Totals(*_one(parts.agg(F.sum("records"), F.sum("up"), F.sum("down"))))


def _checked(masked: DataFrame, *counts: Column) -> Row:
    """Add up what a worker said of its clusters, and raise what it complained of."""
    problem = F.max("problem").alias("problem")
    found = _one(masked.agg(*counts, F.max("held").alias("held"), problem))
    if found["problem"]:
        raise DataError(found["problem"])
    return found


def _one(frame: DataFrame) -> Row:
    return frame.collect()[0]


def _not_once(masking: Masking) -> RuntimeError:
    return RuntimeError(
        f"attribute {masking.name!r}: masked values were not written exactly once; does the "
        "scratch directory's file system commit tasks atomically?"
    )
