"""However a table lies in partitions, and whatever Spark makes of them, the release is the same."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil import Confidential, Plan, protect
from microveil.engines.spark import spark_table as line
from microveil.engines.spark.scratch_files import Scratch
from tests.engines.parity.conftest import Outcome, run_in_memory
from tests.engines.parity.test_parity import assert_same

RANDOM = np.random.default_rng(4)
RECORDS = 600
SKEWED = pl.DataFrame(
    {
        "x": np.where(RANDOM.random(RECORDS) < 0.9, 500, RANDOM.integers(0, 1000, RECORDS)),
        "who": range(RECORDS),
    }
)
DOMAIN = Confidential(lower=0, upper=1000)
PLAN = Plan.published(epsilon=1, k=5, attributes={"x": DOMAIN, "who": "kept"})


def session_that(spark: SparkSession, *, adapts: bool) -> SparkSession:
    """Return a session that merges what partitions it can at run time, or none."""
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", str(adapts).lower())
    session.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "1g")
    return session


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> dict[str, DataFrame]:
    """What is written to the scratch directory, by name, while it is there."""
    tables: dict[str, DataFrame] = {}
    write = Scratch.write

    def noted(self: Scratch, frame: DataFrame, name: str) -> DataFrame:
        tables[name] = write(self, frame, name)
        return tables[name]

    monkeypatch.setattr(Scratch, "write", noted)
    monkeypatch.setattr(Scratch, "delete", lambda *_: None)
    return tables


def outcome(frame: DataFrame, plan: Plan) -> tuple[Outcome, Any]:
    release: Any = protect(frame, plan)
    clusters = pl.DataFrame(release.detail.clusters.toArrow()).sort("attribute", "cluster")
    data = pl.DataFrame(release.data.toArrow())
    return Outcome(data, clusters, release.detail.losses, release.certificate), release


@pytest.mark.parametrize("adapts", [True, False])
def test_one_value_in_nine_tenths_of_the_records_and_empty_partitions(
    adapts: bool,
    spark: SparkSession,
    written: dict[str, DataFrame],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = session_that(spark, adapts=adapts)
    monkeypatch.setattr(line, "VALUES_PER_TASK", 300)
    frame = session.createDataFrame(SKEWED.to_arrow()).repartition(30, "x")
    sizes = frame.groupBy(F.spark_partition_id()).count().collect()
    assert len(sizes) < 30
    assert max(row["count"] for row in sizes) > 0.85 * RECORDS
    ours, _ = outcome(frame, PLAN)
    assert_same(ours, run_in_memory(SKEWED, PLAN))
    assert sorted(ours.data["who"]) == list(range(RECORDS))
    ranges = [row.records for row in written["c0/ranked"].select("records").collect()]
    assert len(ranges) == 6
    assert max(ranges) < 2 * RECORDS / 6  # equal values are parted by their ties


def test_blocks_of_neighbours_are_not_merged(
    spark: SparkSession, written: dict[str, DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 600)
    plan = Plan.published(
        epsilon=3e6, k=5, anonymity=8, pooling="exchange", post="isotonic",
        attributes={"x": DOMAIN, "y": DOMAIN, "who": "kept"},
    )  # fmt: skip
    table = pl.DataFrame({"x": RANDOM.permutation(RECORDS), "who": range(RECORDS)})
    table = table.with_columns(y=pl.col("x") // 5 * 5)
    session = session_that(spark, adapts=True)
    frame = session.createDataFrame(table.to_arrow()).repartition(3)
    ours, release = outcome(frame, plan)
    assert sorted(ours.data["who"]) == list(range(RECORDS))
    assert sorted(ours.data["x"]) == sorted(table["x"] // 5 * 5 + 2)
    (joint,) = release.detail.joint.values()
    sizes = pl.DataFrame(joint.toArrow()).group_by("block").len()["len"]
    assert len(sizes) > 4
    assert sizes.max() < 250  # type: ignore[operator]
    files = written["pool0/pooled"].inputFiles()
    assert len(files) == len(sizes)  # a task for every block


def test_two_thousand_partitions_of_ten_records(
    spark: SparkSession, written: dict[str, DataFrame]
) -> None:
    frame = spark.range(20_000, numPartitions=2000).selectExpr("id % 1000 as x", "id as who")
    ours, _ = outcome(frame, PLAN)
    assert sorted(ours.data["who"]) == list(range(20_000))
    assert ours.clusters["records"].sum() == 20_000
    records = written["records"]
    assert len(records.inputFiles()) <= 64  # of two cores: thousands of small files take minutes
    numbered = pl.DataFrame(records.select("id", "c1").toArrow()).sort("id")
    assert numbered["c1"].to_list() == list(range(20_000))  # what keeps the order, if asked for
