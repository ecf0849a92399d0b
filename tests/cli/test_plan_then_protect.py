"""`microveil plan` and then `microveil protect`, without an edit, on tables that people have."""

import re
from pathlib import Path

import polars as pl
import pytest

from bench.units import households, visits
from microveil import Plan, protect, verdict
from tests.conftest import Run
from tests.plan.adult import adult

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")


def passes(run: Run, table: pl.DataFrame) -> tuple[Plan, pl.DataFrame, str]:
    table.write_csv("table.csv")
    code, _, problem = run("plan table.csv -o plan.toml")
    assert code == 0, problem
    code, out, problem = run("protect table.csv --plan plan.toml -o out.parquet")
    assert code == 0, problem
    assert re.search(r"(Low|Medium [(]inference of [^)]*[)]): passes", " ".join(out.split()))
    return Plan.read(Path("plan.toml")), pl.read_parquet("out.parquet"), out


def test_census_passes(run: Run, paper_data: Path) -> None:
    plan, released, out = passes(run, pl.read_csv(paper_data / "census.csv"))
    assert plan.kept == ()
    assert plan.sampling_weights == ("AFNLWGT",)
    assert released["AFNLWGT"].min() > 0  # type: ignore[operator]
    assert "High" not in out


@pytest.mark.filterwarnings("ignore::microveil.UsefulnessWarning")
def test_the_next_step_leaves_a_masked_weight_the_sampling_weight() -> None:
    table = adult(400).select("age", "fnlwgt", "capital-gain", "hours-per-week")
    roles = dict.fromkeys(table.columns, "confidential") | {"fnlwgt": "sampling_weight"}
    plan = Plan(epsilon=1, attributes=roles)
    change = verdict(table, protect(table, plan, seed=1), seed=1).change
    assert change is not None
    assert change.plan is not None
    assert change.kind == "mask kept"
    assert change.plan.confidential["fnlwgt"].sampling_weight


def test_adult_passes(run: Run) -> None:
    table = adult(2_000)
    plan, released, _ = passes(run, table)
    assert (plan.kept, plan.unit, plan.sampling_weights) == ((), None, ("fnlwgt",))
    assert set(released.columns) == set(table.columns)


def test_hospital_visits_pass(run: Run) -> None:
    """The first three of each patient: few patients of as many would be told by their number."""
    first = visits(300).filter(pl.int_range(pl.len()).over("patient") < 3)
    plan, released, out = passes(run, first)
    assert (plan.unit, plan.per_unit, plan.kept) == ("patient", ("born",), ())
    assert "patient" not in released.columns
    assert "of 300 units" in " ".join(out.split())


def test_persons_in_households_pass(run: Run) -> None:
    plan, released, out = passes(run, households(300))
    assert (plan.unit, set(plan.per_unit), plan.kept) == ("household", {"rooms", "rent"}, ())
    assert "household" not in released.columns
    assert "of 300 units" in " ".join(out.split())
