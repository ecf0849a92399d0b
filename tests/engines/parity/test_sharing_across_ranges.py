"""Who has a value is counted alike on every engine, also where it goes on in other ranges."""

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan
from microveil.engines.spark import spark_table as line
from tests.engines.parity.conftest import Outcome, RunOn, run_in_memory

RANDOM = np.random.default_rng(5)
TABLE = pl.DataFrame({
    "few": np.repeat(np.arange(100) ** 2, 3),
    "some": np.sort(RANDOM.integers(0, 30, 300)),
    "job": np.repeat(["a", "b", "c", "d"], [150, 138, 7, 5]),
})  # fmt: skip
ATTRIBUTES = {
    "few": Confidential(),
    "some": Confidential(),
    "job": Confidential(kind="nominal", categories=[*"abcd"]),
}
TOLD = ("cluster", "records", "scale", "shared_by", "sensitivity", "unmoved")


def told(found: Outcome, attribute: str) -> list[tuple[object, ...]]:
    """Return what a cluster says of who has its value, in rank order."""
    clusters = found.clusters.filter(pl.col("attribute") == attribute).sort("cluster")
    return clusters.select(TOLD).rows()


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("trim", [0.0, 0.25])
def test_noise_about_few_is_the_same_on_every_engine(
    trim: float, run_on: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 100)  # many ranges, shorter than a run of values
    plan = Plan.published(epsilon=2, k=5, trim=trim, exact_from=10, attributes=ATTRIBUTES)
    found, expected = run_on(TABLE, plan), run_in_memory(TABLE, plan)
    for attribute in TABLE.columns:
        assert told(found, attribute) == told(expected, attribute)
    few = expected.clusters.filter(attribute="few")
    assert few["scale"].to_numpy().min() > 0
    rare = expected.clusters.filter(attribute="job", category="c")
    assert rare["sensitivity"].to_list() == [1.0]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_ranges_that_are_cut_by_themselves_know_who_stands_beside_them(
    run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "RECORDS_PER_RANGE", 20)
    monkeypatch.setattr(line, "VALUES_PER_TASK", 100)
    plan = Plan(epsilon=2, anonymity=0, attributes=ATTRIBUTES)
    clusters = run_on_spark(TABLE, plan).clusters
    counts = dict(TABLE["some"].value_counts().iter_rows())
    bare = clusters.filter((pl.col("attribute") == "some") & (pl.col("scale") == 0))
    assert all(counts[round(value)] >= 10 for value in bare["centroid"])
    for value, shared_by in (
        clusters.filter((pl.col("attribute") == "some") & (pl.col("smallest") == pl.col("largest")))
        .select("smallest", "shared_by")
        .iter_rows()
    ):
        assert shared_by == min(10, counts[round(value)])
    assert clusters.filter(attribute="few")["scale"].to_numpy().min() > 0
