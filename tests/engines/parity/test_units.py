"""Units and strata give the same on every engine."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

from microveil import Confidential, DataError, Plan, PrivacyWarning, evaluate, protect, verdict
from microveil.engines.beside_here import BesideHere
from microveil.engines.spark import belonging
from microveil.engines.spark import spark_table as line
from microveil.engines.spark.beside_spark import fingerprint, staged_columns
from tests.engines.parity.conftest import Outcome, RunOn, run_in_memory

RANDOM = np.random.default_rng(9)
HOME = np.repeat(np.arange(60), RANDOM.integers(1, 4, 60))
TABLE = pl.DataFrame({
    "home": [f"h{x}" for x in HOME],
    "region": np.array(["a", "b"])[HOME % 2],
    "income": pl.Series(RANDOM.permutation(900)[:60][HOME]),
    "dwelling": np.array(["flat", "house"])[RANDOM.integers(0, 2, 60)][HOME],
    "age": RANDOM.permutation(len(HOME)),
}).with_columns(income=pl.when(pl.col("home") == "h7").then(None).otherwise("income"))  # fmt: skip
AGE = Confidential(lower=0, upper=200)
ROLES = {
    "home": "identifier", "region": "kept",
    "income": Confidential(per_unit=True, lower=0, upper=1000, method="iDP-CBLS"),
    "dwelling": Confidential(per_unit=True, kind="nominal", categories=["flat", "house"]),
    "age": AGE,
}  # fmt: skip
CBLS = Confidential(lower=0, upper=200, method="iDP-CBLS", k="auto")
BY_UNIT = {**ROLES, "age": CBLS, "dwelling": Confidential(
    per_unit=True, kind="nominal", categories=["flat", "house"], method="DP")}  # fmt: skip


def plan_of(**settings: Any) -> Plan:  # noqa: ANN401
    return Plan.published(**{
        "epsilon": 3, "k": 3, "method": "DP-UM", "unit": "home", "records_per_person": 3,
        "within": ["region"], "missing": "keep", "attributes": ROLES, **settings,
    })  # fmt: skip


def assert_alike(ours: Outcome, theirs: Outcome, *, order: bool) -> None:
    """On Spark records of equal value come in another order, so that noise and seeds differ."""
    assert ours.losses.equals(theirs.losses)
    assert ours.facts == theirs.facts
    if order:
        assert ours.clusters.equals(theirs.clusters)
        assert ours.data.sort(pl.all()).equals(theirs.data.sort(pl.all()))
    else:
        unique = pl.col("attribute") != "dwelling"
        assert ours.clusters.filter(unique).equals(theirs.clusters.filter(unique))
        assert ours.data.null_count().equals(theirs.data.null_count())


@pytest.mark.parametrize(
    ("anonymity", "pooling"), [(0, "exchange"), (4, "exchange"), (4, "average")]
)
def test_units_and_strata(run_elsewhere: RunOn, anonymity: int, pooling: str) -> None:
    plan = plan_of(anonymity=anonymity, pooling=pooling)
    ours, theirs = run_in_memory(TABLE, plan, seed=1), run_elsewhere(TABLE, plan, seed=1)
    assert_alike(ours, theirs, order=run_elsewhere.engine != "spark")


def test_clusters_of_units(run_elsewhere: RunOn, monkeypatch: pytest.MonkeyPatch) -> None:
    """iDP-CBLS by unit; on Spark each stratum is a part, one of them without any income."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", 100)
    table = TABLE.with_columns(income=pl.when(pl.col("region") == "a").then("income"))
    plan = plan_of(attributes=BY_UNIT, anonymity=4, epsilon=30, guarantee="fixed-clusters")
    ours, theirs = run_in_memory(table, plan, seed=1), run_elsewhere(table, plan, seed=1)
    assert ours.certificate.attributes[0].k == theirs.certificate.attributes[0].k
    assert_alike(ours, theirs, order=run_elsewhere.engine != "spark")
    assert theirs.data.filter(pl.col("region") == "b")["income"].null_count() == (
        table.filter(pl.col("region") == "b").height
    )
    before, after = (
        data.group_by("region").agg(pl.col("age").mean()).sort("region")["age"]
        for data in (table, theirs.data)
    )  # fmt: skip
    assert np.abs(before - after).max() < 10


def frame_of(spark: SparkSession, table: pl.DataFrame) -> DataFrame:
    return spark.createDataFrame(table.to_arrow()).repartition(3)


def test_spark_refuses_what_memory_refuses(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, large = pl.int_range(pl.len()) == 0, TABLE.filter(pl.len().over("home") == 3)["age"][0]
    moved = TABLE.filter(home="h1").head(1).with_columns(region=pl.lit("a"), age=pl.lit(199))
    wrong = {
        "the unit is missing in 1 of": TABLE.with_columns(home=pl.when(~first).then("home")),
        "1 units have records in several strata": pl.concat([TABLE, moved.cast(TABLE.schema)]),
        "per_unit = true, but 1 units have records": TABLE.with_columns(
            income=pl.when(pl.col("age") != large).then("income")
        ),
    }
    for message, table in wrong.items():
        for data in (table, frame_of(spark, table)):
            with pytest.raises(DataError, match=message):
                protect(data, plan_of(records_per_person=4))
    monkeypatch.setattr(belonging, "MOST_TOGETHER", 100)
    with pytest.raises(DataError, match="12 records at most by this plan, found"):
        protect(frame_of(spark, TABLE), plan_of())


def test_the_informed_attacker_and_whole_units_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Counted on the workers as in memory from the same joint clusters and rows.

    A verdict on Spark takes sampling weights as well, which it did not find before.
    """
    frame = frame_of(spark, TABLE.with_columns(weight=pl.lit(2.5)))
    plan = plan_of(anonymity=4, attributes={**ROLES, "weight": "sampling_weight"})
    with pytest.warns(PrivacyWarning, match="sampling weights are published unchanged"):
        release: Any = protect(frame, plan)
    staged = staged_columns(frame, plan)
    original = pl.DataFrame(staged.toArrow())
    columns = dict(zip(staged.columns, staged.columns, strict=True))
    was = [row[0] for row in staged.select(fingerprint(staged, columns, plan)).collect()]
    at = {row.record: was.index(row.original) for row in release.detail.positions.collect()}
    joint = {}
    for names, labels in release.detail.joint.items():
        joint[names] = np.empty(len(TABLE), dtype=np.int64)
        for row in labels.collect():
            joint[names][at[row.record]] = row.joint + 1000 * row.block
    here = BesideHere(original, original, np.arange(len(original)))
    for unit in ("home", None):
        expected = here.indistinct(joint, ["region"], unit)
        assert release.rows.beside_original().indistinct(
            release.detail.joint, ["region"], unit
        ) == expected  # fmt: skip
    units = here.indistinct(joint, ["region"], "home")
    assert units is not None
    assert units.people == 60
    assert units.smallest >= 1
    found = verdict(frame, release)
    (informed,) = [f for f in found.figures if f.measure == "linkage.informed"]
    assert informed.value == units.classes / 60
    assert informed.facts["of"] == "units"

    release.write(tmp_path / "out.parquet", detail=True)
    read = spark.read.parquet(str(tmp_path / "out.parquet"))
    later = evaluate(frame, read, detail=tmp_path / "out.detail")
    assert later.value("linkage.informed") == informed.value
    assert later.value("risk.linkage_of_units") >= 0
