"""The engine for Spark: rank → cut → mask on the workers, then join by key.

Per attribute one shuffle by value, of (value, key), and one back by key, of (key, masked value);
whole records are moved once. The driver sees counts and totals, never clusters, the values at the
ends of ranges, and of records a sample where they are pooled.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from microveil.core.accounting import Totals
from microveil.core.attribute import AttributeSettings, CategorySettings, NumericSettings
from microveil.core.blocks import BlockTree, grow
from microveil.core.isotonic import across_ranges
from microveil.core.joint import Scaling
from microveil.core.linear_rules import KeptRule, Rule, System
from microveil.core.mask import mask_singly, total_losses
from microveil.core.pooling import Pool
from microveil.core.random_words import SystemWords
from microveil.engines.base import Lasting, Pooled, Released, Shift
from microveil.engines.beside import Beside
from microveil.engines.detail_rows import cluster_rows, loss_row
from microveil.engines.refusals import (
    no_finite_result,
    no_lasting_clusters,
    no_pseudonym,
    pooled_wrongly,
)
from microveil.engines.spark import (
    belonging,
    derivations,
    hidden,
    join,
    spark_table,
    whole_strata,
    workers,
)
from microveil.engines.spark import joint_clusters as pooling
from microveil.engines.spark import rule_tasks as rules_on_spark
from microveil.engines.spark.arrow import Batches, fields
from microveil.engines.spark.beside_spark import BesideOnSpark, fingerprint, told_by
from microveil.engines.spark.failures import unpacked
from microveil.engines.spark.spark_table import StagedTable, stage_copy
from microveil.engines.spark.tasks import BatchTask, Work, map_batches, map_groups
from microveil.plan.plan import Plan
from microveil.plan.roles import Derived
from microveil.types import Integers, Reals

SAMPLED_PER_BLOCK = 200
"""Records of a sample for each block that records are parted into."""

_AT_ONCE = 4  # attributes
_FILLED = 0.8  # blocks of a sample's cuts are of about so much of the largest size
_SEEDED_BLOCK = 1024


class SparkEngine:
    """Masks a Spark table."""

    def __init__(self, staged: StagedTable) -> None:
        self._staged, self._places, self._scratch = staged, staged.places, staged.scratch
        self._plan, self._seed = staged.plan, staged.seed
        self._masked: dict[str, AttributeSettings] = {}
        self._dealt: dict[str, DataFrame] = {}
        self._present: dict[str, int] = {}
        self._pools = 0
        self._described: dict[str, DataFrame] = {}
        self._derived: dict[str, Derived] = {}
        self._hiding = hidden.Hiding()
        self._systems: list[System] = []

    @property
    def threads(self) -> int:
        """How many attributes may be masked at once: a few, so that Spark need not wait for us."""
        return _AT_ONCE

    def last(self, _: Lasting, __: Pool) -> None:
        """Refuse."""
        raise no_lasting_clusters()

    def pool(self, pool: Pool, seed: int | None) -> Pooled:
        """Pool masked values: records are parted into blocks, and pooled within each of them.

        Blocks are neighbours by a tree of cuts that the driver finds on a sample of records, or
        whole strata, or tables of units. Joint clusters are formed, and permutations drawn, by the
        one task that has a block, in files that are written once, by a model of that block.
        """
        name, self._pools = f"pool{self._pools}", self._pools + 1
        whole = self._staged.is_whole(pool.attributes, pooled=True)
        pooled = (self._pool_strata if whole else self._pool_blocks)(pool, seed, name)
        self._scratch.delete(f"{name}/gathered")
        found, smallest = self._take_pooled(pooled, pool)
        numbers = self._staged.table.select("key", F.col("id").alias("record"))
        joint = {
            ", ".join(a.name for a in level): numbers.join(
                pooled.select("key", "block", F.col(f"joint{at}").alias("joint")), "key"
            ).drop("key")
            for at, level in enumerate(pool.levels)
        }
        return Pooled(int(found["parts"]), smallest, joint, related=found["related"])

    def _pool_blocks(self, pool: Pool, seed: int | None, name: str) -> DataFrame:
        """Pool within blocks of neighbours."""
        steps = [
            self._staged.step_of(attribute).cast("double").alias(f"u{number}")
            for number, attribute in enumerate(pool.attributes)
        ]
        kept = [self._staged.kept_value(name) for name in pool.kept]
        values = [value.alias(f"x{number}") for number, (value, _) in enumerate(kept)]
        gathered = self._gather(self._staged.table.select("key", *steps, *values), pool, name)
        numbers = tuple(number for _, number in kept)
        space = pooling.PoolSpace(pool, _scalings(gathered, pool), numbers)
        tree = self._tree(gathered, space)
        count = partial(pooling.count_blocks, space=space, tree=tree)
        found = map_batches(gathered, count, pooling.COUNTED).groupBy("block").sum("records")
        counts: dict[int, int] = dict(found.collect())
        label = tree.merged(
            np.array([counts.get(leaf, 0) for leaf in range(tree.leaves)]), pool.anonymity
        )
        deal = partial(pooling.deal_blocks, space=space, tree=tree, label=label)
        dealt = map_batches(gathered, deal, pooling.DEALT_BLOCKS)
        blocks = dealt.repartitionById(int(label.max()) + 1, "block")
        work = partial(pooling.pool_block, space=space, seed=seed)
        schema = pooling.pooled_schema(len(pool.attributes))
        return self._scratch.write(map_batches(blocks, work, schema), f"{name}/pooled")

    def _pool_strata(self, pool: Pool, seed: int | None, name: str) -> DataFrame:
        """Pool whole strata, or the whole table of units that have none."""
        masked = pa.schema(fields(pa.float64(), *pooling.masked_columns(len(pool.attributes))))
        names = (*pool.names, *pool.kept)
        sheet = self._staged.sheet(names, masked)
        records = self._staged.table.select(
            *belonging.BELONGING, *(self._places[name] for name in names)
        )
        gathered = self._gather(records, pool, name)
        work = partial(whole_strata.pool_part, sheet=sheet, pool=pool, seed=seed)
        schema = pooling.pooled_schema(len(pool.attributes), len(pool.levels))
        parts = self._staged.parts(gathered, sheet)
        return self._scratch.write(map_batches(parts, work, schema), f"{name}/pooled")

    def _gather(self, records: DataFrame, pool: Pool, name: str) -> DataFrame:
        """Bring the masked values of a pool's attributes to their records."""
        number = len(pool.attributes)
        masked = pooling.masked_columns(number)
        places = {self._places[a.name]: m for a, m in zip(pool.attributes, masked, strict=True)}
        zone = records.sparkSession.conf.get("spark.sql.session.timeZone")
        schema = to_arrow_schema(records.schema, timezone=zone)
        deal = partial(join.deal_records, schema=schema, buckets=self._buckets)
        values = [self._dealt[place] for place in places]
        dealt = reduce(DataFrame.union, values, map_batches(records, deal, join.DEALT_COLUMNS))
        found = pa.schema([*schema, *fields(pa.float64(), *masked)])
        work = partial(join.gather, records=schema, masked=places, schema=found)
        buckets = dealt.repartitionById(self._buckets, "bucket")
        kinds = records.schema
        for column in masked:
            kinds = kinds.add(column, "double")
        return self._scratch.write(map_batches(buckets, work, kinds), f"{name}/gathered")

    def _tree(self, gathered: DataFrame, space: pooling.PoolSpace) -> BlockTree:
        """Find cuts on a sample that part all records into blocks that a worker can hold.

        Where a block is more than MDAV can take, the worker cuts it as the memory engine cuts all.
        """
        few = gathered.limit(1).toArrow().combine_chunks().to_batches()[0]
        width = space.points(few).shape[1]
        records = self._staged.records
        held = len(space.columns) + width  # values of a record
        most = max(spark_table.VALUES_PER_TASK // held, 2 * space.pool.anonymity)
        parts = math.ceil(records / (most * _FILLED)) if records > most else 1
        if parts == 1:
            return grow(np.zeros((0, width)), 1)
        share = min(1.0, SAMPLED_PER_BLOCK * parts / records)
        sample = gathered.sample(fraction=share, seed=self._seed).toArrow().combine_chunks()
        return grow(space.points(sample.to_batches()[0]), parts)

    def _take_pooled(self, pooled: DataFrame, pool: Pool) -> tuple[Row, int | None]:
        """Check what was pooled, and let it take the place of what was masked.

        Returns what is said of it, and how many records the rarest combination of averages has.
        """
        masked = pooling.masked_columns(len(pool.attributes))
        found = _one(
            pooled.agg(
                F.max("problem").alias("problem"), F.count("key").alias("records"),
                F.sum("parts").alias("parts"), F.max("related").alias("related"),
                *(F.count(name).alias(name) for name in masked),
            )
        )  # fmt: skip
        if found["problem"]:
            raise unpacked(found["problem"])
        smallest = None
        if pool.pooling == "average":
            classes = pooled.groupBy(*masked).count()
            smallest = int(_one(classes.agg(F.min("count")))[0])
            if smallest < pool.anonymity:
                raise pooled_wrongly(pool.names, f"the release is {smallest}-anonymous")
        for name, attribute in zip(masked, pool.attributes, strict=True):
            spread = pool.pooling == "average" or attribute.per_unit
            exact = spread or found[name] == attribute.records
            if found["records"] != self._staged.records or not exact:
                raise _not_once(attribute)
            self._present[attribute.name] = found[name]
            del self._dealt[self._places[attribute.name]]
        places = {m: self._places[a.name] for m, a in zip(masked, pool.attributes, strict=True)}
        deal = partial(join.deal_values, places=places, buckets=self._buckets)
        values = pooled.select("key", *masked)
        self._dealt[", ".join(places.values())] = map_batches(values, deal, join.DEALT_COLUMNS)
        return found, smallest

    def hide(
        self, pseudonyms: Mapping[str, Callable[[str], str]], shifts: Mapping[str, Shift]
    ) -> dict[str, int]:
        """Hide people when records are dealt, after checking that this is possible."""
        staged, most = self._staged, {}
        for name, pseudonym in pseudonyms.items():
            if staged.holds(name) not in ("text", "whole numbers"):
                raise no_pseudonym(name)
            place = staged.places[name]
            self._hiding.pseudonyms[place] = pseudonym
            most[name] = hidden.most_records(staged.table.select(place))
        for name, shift in shifts.items():
            place, person = staged.places[name], staged.places[shift.person]
            moving = hidden.Moving(person, shift.days, staged.columns[name])
            hidden.check_moving(staged.table, place, moving, (name, shift.person))
            self._hiding.moving[place] = moving
        return most

    def keep_rules(
        self, rules: Sequence[Rule], systems: Sequence[System]
    ) -> tuple[list[int | None], list[KeptRule]]:
        """Keep rules when masked values are joined to their records; what that took is not counted.

        Of derived columns, which are not staged, it is not counted either what broke the rules.
        """
        self._systems = list(systems)
        at_hand = [rule for rule in rules if rule.factors.keys() <= set(self._staged.copy.names)]
        counts = rules_on_spark.count_broken(self._staged.table, at_hand, self._staged.plain_number)
        found = dict(zip((rule.text for rule in at_hand), counts, strict=True))
        return [found.get(rule.text) for rule in rules], []

    def mask(self, attribute: AttributeSettings, seed: int | None) -> pl.DataFrame:  # noqa: ARG002
        """Mask an attribute: for every record's key a masked value, written once.

        The masked value of a category is its code.
        """
        place, self._masked[attribute.name] = self._places[attribute.name], attribute
        self._present[attribute.name] = attribute.records
        if self._staged.is_whole([attribute]):
            return loss_row(attribute, *self._mask_strata(attribute, place))
        if attribute.method.clustered:
            masked, losses = self._mask_clusters(attribute, place)
            values = self._published(masked, attribute)
            masked = masked.select("batch")
            deal = partial(join.deal_clusters, column=place, buckets=self._buckets, values=values)
        else:
            masked, losses = self._mask_records(attribute, place)
            masked = masked.select("key", "masked")
            deal = partial(join.deal_values, places={"masked": place}, buckets=self._buckets)
        self._dealt[place] = map_batches(masked, deal, join.DEALT_COLUMNS)
        return loss_row(attribute, *losses)

    def clusters(self, attributes: Sequence[str]) -> DataFrame:
        """Return the private description of the clusters; they stay on the cluster."""
        return reduce(DataFrame.union, [self._described[name] for name in attributes])

    @property
    def _buckets(self) -> int:
        return self._staged.tasks(self._staged.records * (len(self._places) + 1))

    def _mask_strata(self, attribute: AttributeSettings, place: str) -> tuple[float, float | None]:
        """Mask an attribute where whole strata arrive; its values leave dealt to their records."""
        sheet = self._staged.sheet([attribute.name])
        work = partial(
            whole_strata.mask_part, sheet=sheet, settings=attribute, column=place,
            buckets=self._buckets, seed=self._seed,
        )  # fmt: skip
        parts = self._staged.parts(self._staged.table, sheet)
        masked = map_batches(parts, work, whole_strata.MASKED_STRATA)
        masked = self._scratch.write(masked, f"{place}/masked")
        sums = (F.sum(name).alias(name) for name in ("counted", "records"))
        found = _checked(masked, *sums, F.max("again").alias("again"))
        if found["counted"] != attribute.records:
            raise _not_once(attribute)
        self._present[attribute.name] = found["records"]
        self._describe_strata(masked.where("about is not null"), attribute)
        dealt = masked.where("column is not null").select(join.DEALT_COLUMNS.names)
        self._dealt[place] = dealt
        return found["fixed"], found["again"]

    def _describe_strata(self, masked: DataFrame, attribute: AttributeSettings) -> None:
        if not attribute.method.clustered:
            self._described[attribute.name] = self._described_singly(attribute)
            return
        counts: dict[int, int] = dict(masked.select("part", "clusters").collect())
        ends = np.cumsum([counts[part] for part in sorted(counts)])
        first = dict(zip(sorted(counts), [0, *ends[:-1].tolist()], strict=True))
        describe = partial(whole_strata.describe_part, first=first)
        about = masked.select("part", "about")
        self._described[attribute.name] = map_batches(about, describe, workers.OF_ATTRIBUTE)

    def _mask_clusters(
        self, attribute: AttributeSettings, place: str
    ) -> tuple[DataFrame, tuple[float, float | None]]:
        clusters = self._cut(attribute)
        work = self._work(attribute, clusters)
        if self._seed is None or clusters.ranges is not None:
            masked = clusters.map(work, workers.PACKED)
        else:
            block = F.floor(F.col("cluster") / _SEEDED_BLOCK)
            masked = map_groups(clusters.frame, block, work, workers.PACKED)
        masked = self._scratch.write(masked, f"{place}/masked")
        self._staged.forget_ranks(attribute)
        sums = (F.sum(name).alias(name) for name in ("clusters", "records", "up", "down"))
        found = _checked(masked, *sums)
        if (found["clusters"], found["records"]) != (clusters.number, attribute.records):
            raise _not_once(attribute)
        if clusters.ranges is None and workers.is_regressed(attribute):
            masked = self._regress(masked, attribute, place)
        describe = partial(workers.described_clusters, attribute=attribute.name)
        about = masked.select("about")
        self._described[attribute.name] = map_batches(about, describe, workers.OF_ATTRIBUTE)
        return masked, total_losses(attribute, found["fixed"], found["up"], found["down"])

    def _cut(self, attribute: AttributeSettings) -> "_Clusters":
        """Rank an attribute and cut it; where the data decide on sizes, each range by itself."""
        if attribute.partition == "fixed" or not isinstance(attribute, NumericSettings):
            ranked = self._staged.rank(attribute, self._staged.tasks(3 * attribute.records))
            trim = attribute.trim if isinstance(attribute, NumericSettings) else 0.0
            edges = _edges(ranked, attribute.counted_to)
            cut = workers.Cut(_offsets(ranked), attribute.k, attribute.clusters - 1, trim, edges)
            return _ClustersAcross(ranked, cut, attribute.clusters, self._staged.copy.cores)
        tasks = self._staged.ranges_of(attribute)
        while True:
            ranked = self._staged.rank(attribute, tasks, to_cut=attribute)
            sizes = F.octet_length("sizes") / 8
            found = ranked.select("part", sizes.cast("long").alias("clusters")).collect()
            if all(row.clusters for row in found):
                edges = _edges(ranked, attribute.counted_to)
                return _ClustersWithin(ranked, _numbered(dict(found), attribute.trim, edges))
            tasks = max(1, tasks // 2)  # a range had fewer values than a cluster needs

    def _regress(self, masked: DataFrame, attribute: NumericSettings, place: str) -> DataFrame:
        """Put masked values of clusters that lie across ranges in order, range by range."""
        number, clusters = self._staged.ranges_of(attribute), attribute.clusters
        deal = partial(workers.deal_by_number, parts=number, clusters=clusters)
        parts = map_batches(masked, deal, workers.PACKED).repartitionById(number, "part")
        work = partial(workers.regress_range, settings=attribute, clusters=clusters)
        regressed = self._scratch.write(
            map_batches(parts, work, workers.PACKED), f"{place}/regressed"
        )
        self._scratch.delete(f"{place}/masked")
        return regressed

    def _published(
        self, masked: DataFrame, attribute: AttributeSettings
    ) -> Callable[[pa.RecordBatch], Reals]:
        """Return how to publish the masked values of clusters, given where ranges overlap."""
        if not workers.is_regressed(attribute):
            return join.masked_values
        ends = masked.select("part", "lowest", "highest").collect()
        number = 1 + max(row.part for row in ends)
        lowest, highest = np.full(number, np.inf), np.full(number, -np.inf)
        for row in ends:
            lowest[row.part], highest[row.part] = row.lowest, row.highest
        above = np.append(np.minimum.accumulate(lowest[::-1])[::-1][1:], np.inf)
        below = np.append(-np.inf, np.maximum.accumulate(highest)[:-1])
        astray = partial(workers.overlapping, below=below, above=above)
        blocks = map_batches(masked.select("batch"), astray, workers.OVERLAPPING).collect()
        levels = workers.Levels(np.full(number, -np.inf), np.full(number, np.inf))
        if blocks:
            owner, values, weights = np.array(sorted(blocks), dtype=np.float64).T
            found = across_ranges(owner.astype(np.int64), values, weights)
            for whole, some in zip(levels, found, strict=True):
                whole[: len(some)] = some
        return partial(workers.published, settings=attribute, levels=levels)

    def _work(self, attribute: AttributeSettings, clusters: "_Clusters") -> Work:
        """Return what the workers do to clusters."""
        summarised: Any
        totals = None
        if isinstance(attribute, CategorySettings):
            counts = self._staged.counts(attribute.name, attribute.categories)
            summarised = partial(workers.categories_of, counts=counts, k=attribute.k)
        else:
            summarised = partial(workers.numbers_of, trim=attribute.trim)
            totals = _totals(clusters, attribute)
        return partial(
            workers.mask_batch,
            settings=attribute,
            summarised=summarised,
            totals=totals,
            seed=self._seed,
            ranges=clusters.ranges,
        )

    def _mask_records(
        self, attribute: AttributeSettings, place: str
    ) -> tuple[DataFrame, tuple[float, float | None]]:
        steps = self._staged.steps(attribute)
        work = partial(workers.mask_records, settings=attribute, seed=self._seed)
        block = F.pmod("key", F.lit(math.ceil(attribute.records / _SEEDED_BLOCK)))
        if self._seed is None:
            masked = map_batches(steps, _each(work), workers.MASKED_RECORDS)
        else:
            masked = map_groups(steps, block, work, workers.MASKED_RECORDS)
        masked = self._scratch.write(masked, f"{place}/masked")
        found = _checked(masked, F.count("key").alias("records"))
        if found["records"] != attribute.records:
            raise _not_once(attribute)
        self._described[attribute.name] = self._described_singly(attribute)
        return masked, total_losses(attribute, found["fixed"], found["fixed"], found["fixed"])

    def _described_singly(self, attribute: AttributeSettings) -> DataFrame:
        """Describe a method that forms no clusters."""
        alone = mask_singly(np.zeros(1, dtype=np.int64), attribute, SystemWords())
        described = cluster_rows([(attribute, alone.description)]).with_columns(
            records=pl.lit(attribute.records, dtype=pl.Int64)
        )
        rows = described.select(workers.OF_ATTRIBUTE.names).rows()
        spark = self._staged.table.sparkSession
        return spark.createDataFrame(rows, from_arrow_schema(workers.OF_ATTRIBUTE))

    def finish(self, attributes: Sequence[str], derived: Mapping[str, Derived]) -> Released:
        """Join masked values to their records, in the order of their keys, which is random.

        Derived attributes are recomputed where they are joined, or after that.
        """
        self._derived = dict(derived)
        untouched = [n for n in attributes if n not in self._masked and n not in self._derived]
        records = self._staged.table.select("key", "id", *(self._places[n] for n in untouched))
        released = StructType([StructField("id", LongType())])
        for name in attributes:
            released.add(self._released_field(name))
        if self._derived:
            released.add("problem", "string")
        dealt = StructType([f for f in records.schema if f.name in ("key", "id")])
        for name in untouched:
            dealt.add(self._released_field(name))
        first, *more = derivations.in_steps({self._places[n]: d for n, d in self._derived.items()})
        zone = records.sparkSession.conf.get("spark.sql.session.timeZone")
        assembly = join.Assembly(
            records=to_arrow_schema(dealt, timezone=zone),
            released=to_arrow_schema(released, timezone=zone),
            masked={
                self._places[a.name]: a.categories if isinstance(a, CategorySettings) else None
                for a in self._masked.values()
            },
            names={self._places[name]: name for name in attributes},
            derived=first,
            systems=tuple(self._systems),
        )
        deal = partial(
            hidden.deal_hidden, hiding=self._hiding, schema=assembly.records, buckets=self._buckets
        )
        all_dealt = reduce(
            DataFrame.union, self._dealt.values(), map_batches(records, deal, join.DEALT_COLUMNS)
        )
        buckets = all_dealt.repartitionById(self._buckets, "bucket")
        together = map_batches(buckets, partial(join.assemble, assembly=assembly), released)
        written = self._scratch.write(together, "release")
        self._check_written(written)
        for number, step in enumerate(more):
            totals = derivations.with_totals(
                step, written, {n: self._places[n] for n in attributes}
            )
            work = partial(derivations.derive_more, names=assembly.names, derived=totals)
            written = self._scratch.write(map_batches(written, work, released), f"derived{number}")
            self._check_written(written)
        columns = [F.col(self._places[n]).alias(n, metadata={}) for n in attributes]
        return ReleasedOnSpark(
            written.select(*columns),
            written.orderBy("id").select(*columns),
            partial(self._beside, written, attributes),
            self._positions(written, attributes),
        )

    def _released_field(self, attribute: str) -> StructField:
        """Return the name inside, and the type, of a column as it is released."""
        found = self._staged.field(attribute)
        if found.name in self._hiding.pseudonyms:
            return StructField(found.name, StringType())
        return found

    def _positions(self, written: DataFrame, attributes: Sequence[str]) -> DataFrame:
        """Say which released record is whose, by fingerprints of both."""
        before = {n: self._places[n] for n in told_by(self._plan) if n in self._places}
        after = {n: self._places[n] for n in attributes}
        records = self._staged.copy.table.select(
            "id", fingerprint(self._staged.copy.table, before, self._plan).alias("o")
        )
        released = written.select("id", fingerprint(written, after, self._plan).alias("r"))
        both = released.join(records, "id")
        return both.toDF("record", "released", "original")

    def _beside(self, written: DataFrame, attributes: Sequence[str]) -> BesideOnSpark:
        """Put the staged original beside the release."""
        staged = [name for name in told_by(self._plan) if name in self._places]
        original, released = (
            table.select(*(F.col(self._places[n]).alias(n, metadata={}) for n in names))
            for table, names in ((self._staged.copy.table, staged), (written, attributes))
        )
        return BesideOnSpark(
            original,
            released,
            lambda share, seed: self._positions(written.sample(share, seed), attributes),
            self.clusters(list(self._masked)),
            self._plan,
        )

    def _check_written(self, written: DataFrame) -> None:
        """Raise what workers complained of, and make sure that every value found its record."""
        attributes = list(self._masked.values())
        values = [F.count(self._places[attribute.name]) for attribute in attributes]
        by = ["problem"] if self._derived else []  # without it there is nobody who could complain
        for row in written.groupBy(*by).agg(F.count("id"), *values).collect():
            problem, count, *found = row if by else (None, *row)
            name = next((n for n in self._derived if self._places[n] == problem), None)
            if name is not None:
                raise no_finite_result(name, count, self._staged.records)
            if problem is not None:
                raise unpacked(problem)
            for attribute, number in zip(attributes, found, strict=True):
                if (count, number) != (self._staged.records, self._present[attribute.name]):
                    raise _not_once(attribute)


class SparkTable(StagedTable):
    """A Spark table that plans can be checked against, and that can be masked."""

    @classmethod
    def open(cls, frame: DataFrame, plan: Plan, seed: int | None) -> "SparkTable":
        """Open a table for one plan."""
        return cls(stage_copy(frame, plan, seed), plan, seed)

    def engine(self) -> SparkEngine:
        """Return a new engine for this table, which has masked nothing yet."""
        return SparkEngine(self)


@dataclass(frozen=True, eq=False)
class ReleasedOnSpark:
    """A released table on Spark.

    It is read from files that were written once, so every action on it gives the same values. They
    are in a private scratch directory until Spark ends.
    """

    data: DataFrame
    in_order: DataFrame
    beside_original: Callable[[], Beside] = field(repr=False)
    positions: DataFrame
    row_order: Literal["random", "as in the original"] = "random"
    missing_codes: ClassVar[Mapping[str, pl.Series]] = {}  # tables on Spark declare none

    def shuffled(self, seed: int | None) -> Released:  # noqa: ARG002 - keys are random already
        """Return it as it is."""
        return self

    def arranged(
        self,
        *,
        keep_order: bool,
        seed: int | None,  # noqa: ARG002 - keys are random already
    ) -> tuple[DataFrame, DataFrame]:
        """Return the table in its original order, or in that of random keys, and who is who."""
        return (self.in_order if keep_order else self.data), self.positions


class _Clusters(Protocol):
    """The clusters of an attribute, on the workers.

    `number` is how many there are; `ranges` those that were cut each by itself, if they were.
    """

    number: int

    @property
    def ranges(self) -> workers.Ranges | None:
        """The ranges, if clusters lie within them."""

    @property
    def frame(self) -> DataFrame:
        """One row for each."""

    def map(self, work: Work, schema: pa.Schema) -> DataFrame:
        """Do the work on all of them."""


class _ClustersWithin:
    """Clusters that lie within ranges of ranks, which were cut each by itself."""

    def __init__(self, ranked: DataFrame, ranges: workers.Ranges) -> None:
        self._ranked = ranked.select("part", "steps", "keys", "sizes")
        self.ranges, self.number = ranges, int(ranges.first[-1])
        self._cut = partial(workers.clusters_of_ranges, ranges=ranges)

    @property
    def frame(self) -> DataFrame:
        """One row for each."""
        return map_batches(self._ranked, self._cut, workers.CLUSTER_PIECES)

    def map(self, work: Work, schema: pa.Schema) -> DataFrame:
        """Do the work on all of them, range by range."""
        return map_batches(self._ranked, _each(work, after=self._cut), schema)


class _ClustersAcross:
    """Clusters of k by rank: most lie within a range of ranks, a few across two."""

    ranges = None

    def __init__(self, ranked: DataFrame, cut: workers.Cut, number: int, tasks: int) -> None:
        self._ranked, self.number = ranked.select("part", "records", "steps", "keys"), number
        self._whole = partial(workers.whole_clusters, cut=cut)
        self._joined = partial(workers.join_pieces, cut=cut)
        ends = ranked.select("part", "records", "end_steps", "end_keys")
        pieces = map_batches(
            ends, partial(workers.pieces_of_clusters, cut=cut), workers.CLUSTER_PIECES
        )
        self._pieces = pieces.repartition(tasks, "cluster")

    @property
    def frame(self) -> DataFrame:
        """One row for each."""
        whole = map_batches(self._ranked, self._whole, workers.CLUSTER_PIECES)
        return whole.union(map_batches(self._pieces, self._joined, workers.CLUSTER_PIECES))

    def map(self, work: Work, schema: pa.Schema) -> DataFrame:
        """Do the work on all of them, where they are cut or put together."""
        whole = map_batches(self._ranked, _each(work, after=self._whole), schema)
        return whole.union(map_batches(self._pieces, _each(work, after=self._joined), schema))


def _each(work: Work, after: Callable[[Batches], Batches] = iter) -> BatchTask:
    return partial(workers.each_batch, work=work, after=after)


def _offsets(ranked: DataFrame) -> Integers:
    """How many records come before each range of ranks: all the driver learns of them."""
    lengths: dict[int, int] = dict(ranked.select("part", "records").collect())
    ends = np.cumsum([lengths.get(number, 0) for number in range(max(lengths) + 1)])
    return np.append(0, ends[:-1])


def _edges(ranked: DataFrame, enough: int) -> workers.Edges:
    """Collect the first and last values of ranges, if it matters who has a value."""
    found = sorted(ranked.select("part", "end_steps" if enough else F.lit(b"")).collect())
    values = {part: np.frombuffer(packed, dtype=np.int64) for part, packed in found}
    counts = [len(values.get(part, ())) for part in range(max(values) + 1)]
    together = np.concatenate([*values.values(), np.zeros(0, np.int64)])
    return workers.Edges(together, np.append(0, np.cumsum(counts)), enough)


def _scalings(gathered: DataFrame, pool: Pool) -> tuple[Scaling, ...]:
    """Find what coordinates are standardised by, in two looks at all records."""
    names = pooling.placed_by_columns(pool)
    ends = _one(
        gathered.agg(
            F.count("key").alias("records"), *(F.min(name).alias(f"{name} low") for name in names),
            *(F.max(name).alias(f"{name} high") for name in names),
            *(F.count(name).alias(f"{name} present") for name in names),
        )
    )  # fmt: skip
    low, high = ([ends[f"{name} {end}"] or 0.0 for name in names] for end in ("low", "high"))
    within = [
        (F.col(name) - F.lit(a)) / F.lit(b - a or 1.0)
        for name, a, b in zip(names, low, high, strict=True)
    ]
    means = _one(gathered.agg(*map(F.avg, within), *map(F.stddev_pop, within)))
    return tuple(
        Scaling(a, b, means[at] or 0.0, means[at + len(names)] if b > a else 0.0, absent)
        for at, (a, b, absent) in enumerate(
            zip(low, high, (ends[f"{n} present"] < ends["records"] for n in names), strict=True)
        )
    )


def _numbered(clusters: Mapping[int, int], trim: float, edges: workers.Edges) -> workers.Ranges:
    """Count clusters from range to range, given how many each has."""
    counts = [clusters.get(part, 0) for part in range(max(clusters) + 1)]
    return workers.Ranges(np.append(0, np.cumsum(counts)), trim, edges)


def _totals(clusters: _Clusters, settings: NumericSettings) -> Totals:
    """Add up what the noise of a cluster depends on in all others, where it does."""
    if settings.guarantee == "fixed-clusters" or settings.method.noise_covers_reclustering:
        return Totals(settings.records)
    parts = clusters.map(partial(workers.sum_totals, settings=settings), workers.TOTALS)
    return Totals(*_one(parts.agg(F.sum("records"), F.sum("up"), F.sum("down"))))


def _checked(masked: DataFrame, *counts: Column) -> Row:
    """Add up what a worker said of its clusters, and raise what it complained of."""
    problem = F.max("problem").alias("problem")
    found = _one(masked.agg(*counts, F.max("fixed").alias("fixed"), problem))
    if found["problem"]:
        raise unpacked(found["problem"])
    return found


def _one(frame: DataFrame) -> Row:
    return frame.collect()[0]


def _not_once(settings: AttributeSettings) -> RuntimeError:
    return RuntimeError(
        f"attribute {settings.name!r}: masked values were not written exactly once; does the "
        "scratch directory's file system commit tasks atomically?"
    )
