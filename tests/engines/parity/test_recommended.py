"""What makes a release good is done on every engine: partitions, k from the data, regression."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession

from microveil import Confidential, Plan, protect, verdict
from microveil.core.choices import Pooling
from microveil.engines.spark import spark_table as line
from tests.engines.parity.conftest import Outcome, RunOn, run_in_memory
from tests.engines.parity.test_parity import assert_same

RANDOM = np.random.default_rng(11)
SKEWED = RANDOM.lognormal(3, 1, 600).round(2).clip(0, 1000)
TABLE = pl.DataFrame({"x": SKEWED, "y": RANDOM.permutation(600)})


def plan(**settings: Any) -> Plan:  # noqa: ANN401
    domain = Confidential(lower=0, upper=1000)
    return Plan.published(epsilon=3, attributes=dict.fromkeys(TABLE.columns, domain), **settings)


PLANS = {
    "auto": plan(k="auto", post="penalised-isotonic"),
    "recommended": Plan(epsilon=3, anonymity=0, attributes=plan().attributes),
    "isotonic": plan(k=5, post="isotonic"),
}


@pytest.mark.parametrize("name", PLANS)
def test_one_range_of_ranks_is_cut_as_in_memory(name: str, run_elsewhere: RunOn) -> None:
    assert_same(run_elsewhere(TABLE, PLANS[name]), run_in_memory(TABLE, PLANS[name]))


def squares(found: Outcome) -> dict[str, float]:
    """Expected squares of noise plus squares within clusters of one width, by attribute."""
    width = pl.col("largest") - pl.col("smallest")
    clusters = found.clusters.with_columns(
        cost=pl.col("records") * (2 * pl.col("scale") ** 2 + width**2 / 12)
    )
    return dict(clusters.group_by("attribute").agg(pl.col("cost").sum()).rows())


def test_many_ranges_cost_little(run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "RECORDS_PER_RANGE", 100)
    monkeypatch.setattr(line, "VALUES_PER_TASK", 200)
    plan = PLANS["recommended"]
    ours, theirs = run_on_spark(TABLE, plan), run_in_memory(TABLE, plan)
    for attribute in TABLE.columns:
        own = ours.clusters.filter(attribute=attribute)
        assert own["cluster"].to_list() == list(range(len(own)))
        assert own["records"].sum() == 600
        assert own["records"].to_numpy().min() >= 3
        assert own["smallest"].is_sorted()
        assert own["largest"].is_sorted()
    before = squares(theirs)
    assert all(cost <= 1.35 * before[name] + 1e-9 for name, cost in squares(ours).items())
    assert ours.facts == theirs.facts


@pytest.mark.parametrize("name", ["recommended", "isotonic"])
def test_masked_values_are_in_order_across_ranges(
    name: str, run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an ε so small that ranges overlap by far."""
    monkeypatch.setattr(line, "RECORDS_PER_RANGE", 100)
    monkeypatch.setattr(line, "VALUES_PER_TASK", 200)
    table = TABLE.with_columns(rank=pl.col("y"))
    roles = {"y": Confidential(lower=0, upper=1000), "rank": "kept", "x": "identifier"}
    noisy = PLANS[name].replace(epsilon=0.05, attributes=roles)
    masked = run_on_spark(table, noisy).data.sort("rank")["y"]
    assert masked.is_sorted()
    assert masked.n_unique() > 1
    assert masked.is_between(0, 1000).all()


POOLED = pl.DataFrame(
    {
        "x": RANDOM.permutation(600), "y": [None if i % 7 == 0 else i % 97 for i in range(600)],
        "kind": [["a", "b", "c"][i % 3] for i in range(600)], "who": range(600),
    }
)  # fmt: skip


def pooled(pooling: Pooling, **settings: Any) -> Plan:  # noqa: ANN401
    kinds = Confidential(kind="nominal", categories=["a", "b", "c"], method="DP-UM", k=20)
    domain = Confidential(lower=0, upper=1000)
    return Plan.published(
        epsilon=3e6, k=5, missing="keep", anonymity=8, pooling=pooling,
        attributes={"x": domain, "y": domain, "kind": kinds, "who": "kept"}, **settings,
    )  # fmt: skip


def test_exchanged_values_stay_in_joint_clusters_of_many_blocks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At an ε so large that masked values are those of individual clusters."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", 1100)
    plan = pooled("exchange")
    release: Any = protect(spark.createDataFrame(POOLED.to_arrow()).repartition(3), plan)
    data = pl.DataFrame(release.data.toArrow()).sort("who")
    (joint,) = release.detail.joint.values()
    joint = pl.DataFrame(joint.toArrow())
    assert len(joint) == 600
    assert joint["block"].n_unique() > 4
    assert joint.group_by("block", "joint").len()["len"].min() >= 8  # type: ignore[operator]
    assert release.certificate.groups[0].anonymity == 8
    x = POOLED["x"].to_numpy()
    masked = (x // 5) * 5 + 2  # the mean of five in a row
    moved = data["x"].to_numpy()
    assert sorted(moved) == sorted(masked)
    assert np.mean(moved != masked) > 0.6
    assert np.abs(moved - x).mean() < 120  # within a neighbourhood
    assert data["y"].null_count() == POOLED["y"].null_count()
    assert sorted(data["kind"]) == sorted(POOLED["kind"])


def test_averages_are_shared_by_as_many_on_every_engine(
    run_on: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 1100)
    found = run_on(POOLED, pooled("average"))
    assert found.data.group_by("x", "y", "kind").len()["len"].min() >= 8  # type: ignore[operator]
    assert found.certificate.groups[0].anonymity == 8


def test_a_pool_of_one_block_has_the_certificate_of_memory(run_elsewhere: RunOn) -> None:
    plan = pooled("exchange")
    assert run_elsewhere(POOLED, plan).facts == run_in_memory(POOLED, plan).facts


def living(records: int) -> pl.DataFrame:
    """Make people whose income goes with rent, work, and what is kept: where and since when."""
    random = np.random.default_rng(5)
    where, since = random.integers(0, 4, records), random.integers(0, 20_000, records)
    z = random.normal(size=records) + 0.8 * (where == 0) - since / 10_000
    income, rent = (np.exp(0.4 * (2 * z + random.normal(size=records))).round(3) for _ in range(2))
    work = np.where(z + random.normal(size=records) > 0, "office", "field")
    return pl.DataFrame({
        "income": income, "rent": pl.Series(rent), "work": work,
        "since": pl.Series(since).cast(pl.Int32).cast(pl.Date),
        "where": np.array(["North", "East", "South", "West"])[where],
        "side": np.array(["left", "right"])[random.integers(0, 2, records)],
    })  # fmt: skip


def kept_relations(data: pl.DataFrame) -> list[float]:
    """Return how much of income goes with rent, work, since when, and where."""
    income, rent = (data[name].log().to_numpy() for name in ("income", "rent"))
    others = rent, data["work"] == "office", data["since"].to_physical(), data["where"] == "North"
    return [float(np.corrcoef(income, one)[0, 1]) for one in others]


@pytest.mark.parametrize("strata", [(), ("side",)])
def test_relations_survive_on_spark_in_blocks_and_in_strata(
    run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch, strata: tuple[str, ...]
) -> None:
    """Independent exchange among a thousand people is 0.07 away or more."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", 20_000)
    table = living(4_000)
    roles = dict.fromkeys(("income", "rent"), Confidential(lower=0, upper=200))
    roles["work"] = Confidential(kind="nominal", categories=["field", "office"])
    kept = dict.fromkeys(("since", "where", "side"), "kept")
    plan = Plan(epsilon=8, anonymity=1_000, within=strata, attributes={**roles, **kept})
    found = run_on_spark(table, plan)
    (group,) = found.certificate.groups
    assert group.related
    assert group.parts >= 2
    was, now = kept_relations(table), kept_relations(found.data)
    assert now == pytest.approx(was, abs=0.06)
    assert min(map(abs, was)) > 0.2


def test_people_are_looked_for_in_a_release_of_spark(spark: SparkSession) -> None:
    """A verdict on Spark is about that of memory."""
    table = TABLE.with_columns(where=pl.col("y") % 4)
    roles = {"x": "confidential", "y": "confidential", "where": "identifier"}
    plan = Plan.published(epsilon=1, k=5, anonymity=50, attributes=roles)
    frame = spark.createDataFrame(table.to_arrow()).repartition(2)
    ours = verdict(frame, protect(frame, plan), seed=1)
    theirs = verdict(table, protect(table, plan), seed=1)
    assert ours.passed
    assert theirs.passed
    assert (ours.records, ours.looked_at) == (600, 600)
    assert abs(ours.linkage.value - theirs.linkage.value) < 0.1
    measure = "risk.clusters_without_noise"
    shares = [[f.value for f in v.figures if f.measure == measure] for v in (ours, theirs)]
    assert shares[0] == pytest.approx(shares[1])
    assert len(shares[0]) == 2
