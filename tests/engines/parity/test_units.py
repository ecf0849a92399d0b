"""Units and strata give the same on every engine that has them."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, PlanError
from microveil.engines.spark.spark_table import refuse_units
from tests.engines.parity.conftest import RunOn, run_in_memory

RANDOM = np.random.default_rng(9)
HOME = np.repeat(np.arange(60), RANDOM.integers(1, 4, 60))
TABLE = pl.DataFrame({
    "home": [f"h{x}" for x in HOME],
    "region": np.array(["a", "b"])[HOME % 2],
    "income": pl.Series(RANDOM.integers(0, 900, 60)[HOME]),
    "dwelling": np.array(["flat", "house"])[RANDOM.integers(0, 2, 60)][HOME],
    "age": RANDOM.integers(0, 99, len(HOME)),
}).with_columns(income=pl.when(pl.col("home") == "h7").then(None).otherwise("income"))  # fmt: skip
ROLES = {
    "home": "identifier", "region": "kept",
    "income": Confidential(per_unit=True, lower=0, upper=1000, method="iDP-CBLS"),
    "dwelling": Confidential(per_unit=True, kind="nominal", categories=["flat", "house"]),
    "age": Confidential(lower=0, upper=100),
}  # fmt: skip


def test_units_and_strata(run_elsewhere: RunOn) -> None:
    run_elsewhere.needs("units and strata")
    for anonymity, pooling in ((0, "exchange"), (4, "exchange"), (4, "average")):
        plan = Plan.published(
            epsilon=3, k=3, method="DP-UM", unit="home", records_per_person=3, within=["region"],
            missing="keep", anonymity=anonymity, pooling=pooling, attributes=ROLES,  # type: ignore[arg-type]
        )  # fmt: skip
        ours, theirs = run_in_memory(TABLE, plan, seed=1), run_elsewhere(TABLE, plan, seed=1)
        assert ours.clusters.equals(theirs.clusters)
        assert ours.losses.equals(theirs.losses)
        assert ours.facts == theirs.facts
        assert ours.data.sort(pl.all()).equals(theirs.data.sort(pl.all()))


@pytest.mark.parametrize("setting", ["unit", "within"])
def test_spark_refuses_them_before_any_work(setting: str) -> None:
    roles = {"home": "identifier", "age": "confidential"}
    value: Any = "home" if setting == "unit" else ["home"]
    with pytest.raises(PlanError, match="units and strata are not supported on Spark"):
        refuse_units(Plan.published(epsilon=1, attributes=roles, **{setting: value}))
