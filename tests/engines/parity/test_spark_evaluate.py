"""Releases on Spark are evaluated where they are, and people hidden there as in memory."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession

from microveil import DataError, Plan, evaluate, protect
from microveil.compare.figures import Sample
from microveil.release.key import Key
from tests.conftest import Run
from tests.engines.parity.conftest import RunOn, run_in_memory

RANDOM = np.random.default_rng(3)
COMMON = RANDOM.normal(size=1_500)
TABLE = pl.DataFrame({
    "x.1": (100 * (COMMON + RANDOM.normal(size=1_500))).round(),
    "y": (100 * (COMMON + RANDOM.normal(size=1_500))).round(),
    "job": np.array(list("abc"))[RANDOM.integers(0, 3, 1_500)],
    "region": RANDOM.integers(0, 20, 1_500),
})  # fmt: skip
JOB = {"role": "confidential", "kind": "nominal", "categories": list("abc"), "method": "DP"}
ROLES: dict[str, Any] = {"x.1": "confidential", "y": "confidential", "job": JOB, "region": "kept"}
PLAN = Plan.published(epsilon=1, k=5, anonymity=10, attributes=ROLES)


def test_a_release_is_evaluated_on_spark_as_in_memory(
    spark: SparkSession, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the session and, from its directories, afterwards; figures are those of memory."""
    monkeypatch.setattr("microveil.compare.examined.DRAWN_OF_LARGE", 1_000)
    monkeypatch.setattr("microveil.attacks.structure._TRIAL", 200)
    TABLE.write_parquet(tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet")).repartition(3)
    release: Any = protect(frame, PLAN.replace(uses=["table job", "mean y by job"]), seed=1)
    ours = evaluate(frame, release)
    data = pl.DataFrame(release.data.toArrow())
    assert (ours.records, ours.released, ours.drawn) == (1_500, 1_500, 1_000)
    whole = evaluate(TABLE, data, attributes=["x.1", "y", "job"])  # without who is who
    assert ours.value("utility.means", "y") == pytest.approx(
        whole.value("utility.means", "y"), abs=0.1
    )
    assert ours.value("linkage.structure") < 0.12
    for measure in ("linkage.nearest", "linkage.one_to_one"):
        assert 0.01 < ours.value(measure) < 0.12  # 1 in 10 or fewer: 0.001 if records were mixed up
    assert ours.value("risk.unique_kept", "region") == 0
    combinations = whole.value("risk.unique_combinations")
    assert ours.value("risk.unique_combinations") == combinations
    assert ours.value("risk.width_median", "y") > 0
    used = [f for f in ours.figures if f.measure == "use.estimate"]
    assert len(used) == 6
    assert all(f.sample == Sample(1_000, 1_500) for f in used)
    counts = [float(str(f.facts["original"])) for f in used[:3]]
    assert sum(counts) == pytest.approx(1_500)  # scaled from those drawn

    release.write(tmp_path / "out.parquet", detail=True)
    code, out, err = run("evaluate people.parquet out.parquet --engine spark --report page.html")
    assert (code, err) == (0, "")
    assert "from a sample of 1,000 of 1,500 people" in " ".join(out.split())
    assert "1,500 released records" in (tmp_path / "page.html").read_text(encoding="utf-8")
    other = spark.createDataFrame(TABLE.with_columns(y=pl.col("y") + 1).to_arrow())
    with pytest.raises(DataError, match="are not in the original; use the tables of the same"):
        evaluate(
            other, spark.read.parquet(f"{tmp_path}/out.parquet"), detail=tmp_path / "out.detail"
        )


def test_people_have_the_same_pseudonyms_and_shifts(run_on_spark: RunOn, tmp_path: Path) -> None:
    key = tmp_path / "people.key"
    Key.make(key)
    table = pl.DataFrame({
        "person": [*range(1, 21), *range(1, 20), None], "n": range(40), "x": range(100, 140),
        "born": [date(1950 + i, 3, 1) for i in range(39)] + [None],
        "seen": [datetime(2020, 1, 1) + timedelta(hours=i) for i in range(40)],
    }).with_columns(seen=pl.when(pl.col("person").is_not_null()).then("seen"))  # fmt: skip
    roles: dict[str, Any] = {
        "person": "pseudonym", "n": "kept",
        "x": {"role": "confidential", "lower": 0, "upper": 200, "method": "iDP-LS"},
        "born": {"role": "shifted", "days": 30}, "seen": {"role": "shifted", "days": 5},
    }  # fmt: skip
    plan = Plan.published(epsilon=1, k=5, records_per_person=2, attributes=roles)
    ours, theirs = (
        run(table, plan, key=key).data.sort("n") for run in (run_on_spark, run_in_memory)
    )
    assert ours["person"].to_list() == theirs["person"].to_list()
    assert ours["born"].to_list() == theirs["born"].to_list()
    assert ours["seen"].dt.replace_time_zone(None).to_list() == theirs["seen"].to_list()
    with pytest.raises(DataError, match="up to 2 records by these pseudonyms"):
        run_on_spark(table, plan.replace(records_per_person=1), key=key)
    late = table.with_columns(born=pl.lit(date(9999, 12, 31)))
    with pytest.raises(DataError, match="would fall outside the calendar"):
        run_on_spark(late.drop_nulls("person"), plan, key=key)
