"""What makes a release good is done on every engine: partitions, k from the data, regression."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan
from microveil.engines.spark import engine as line
from tests.engines.parity.conftest import Outcome, RunOn, run_in_memory
from tests.engines.parity.test_parity import assert_same

RANDOM = np.random.default_rng(11)
SKEWED = RANDOM.lognormal(3, 1, 600).round(2).clip(0, 1000)
TABLE = pl.DataFrame({"x": SKEWED, "y": RANDOM.permutation(600)})


def plan(**settings: Any) -> Plan:  # noqa: ANN401
    domain = Confidential(lower=0, upper=1000)
    return Plan(epsilon=3, attributes=dict.fromkeys(TABLE.columns, domain), **settings)


PLANS = {
    "least-squares": plan(partition="least-squares", k=4, post="none"),
    "auto": plan(k="auto"),
    "recommended": Plan.recommended(epsilon=3, anonymity=0, attributes=plan().attributes),
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
