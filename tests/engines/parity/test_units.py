"""Units and strata give the same on every engine."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, DataError, Plan
from microveil.engines.spark import belonging
from microveil.engines.spark import spark_table as line
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
ROLES = {
    "home": "identifier", "region": "kept",
    "income": Confidential(per_unit=True, lower=0, upper=1000, method="iDP-CBLS"),
    "dwelling": Confidential(per_unit=True, kind="nominal", categories=["flat", "house"]),
    "age": Confidential(lower=0, upper=200),
}  # fmt: skip
BY_UNIT = {**ROLES, "age": Confidential(lower=0, upper=200, method="iDP-CBLS")}


def plan_of(**settings: Any) -> Plan:  # noqa: ANN401
    return Plan(**{
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
