"""Candidates on tables, what is measured of them, and the points of the map."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, DataError, Plan, PlanError, benchmark
from microveil.attacks.attack_rows import ATTACKS
from microveil.lab.benchmark import run_candidates
from microveil.lab.benchmark.benchmark_data import Data, open_data
from microveil.lab.benchmark.jobs import BENCHMARK_COLUMNS, BenchmarkJob, subject_of
from microveil.lab.benchmark.map_points import points_of_map
from microveil.lab.benchmark.peers import Candidate, PromiseKind, list_candidates
from microveil.lab.benchmark.results_file import write_benchmark
from microveil.plan.sample import people

ONE = (ATTACKS["linkage.nearest"],)


def a_table(records: int = 240) -> Data:
    random = np.random.default_rng(3)
    values = random.gamma(2.0, 100.0, (records, 3)).round(1)
    table = pl.DataFrame(values, schema=["a", "b", "c"])
    roles = dict.fromkeys(table.columns, Confidential(lower=0, upper=2_000))
    plan = Plan.published(epsilon=1.0, attributes=roles)
    return Data("Tiny", table, plan, classes=values[:, 0] > np.median(values[:, 0]))


def test_there_are_the_papers_methods_what_is_recommended_and_references() -> None:
    found = list_candidates(a_table(), [0.1, 1.0])
    names = [candidate.name for candidate in found if candidate.epsilon == 1.0]
    assert len(names) == 13
    assert {"DP", "recommended, not pooled", "exchange 25", "average 5"} <= set(names)
    assert [c.name for c in found if c.epsilon is None] == ["original", "shuffled"]
    pooled = {c.name: c.anonymity for c in found if c.promise == PromiseKind.IDP_POOLED}
    assert pooled == {f"{how} {n}": n for how in ("exchange", "average") for n in (5, 10, 25)}


def test_methods_that_need_a_domain_are_left_out_without_one() -> None:
    data = a_table()
    undeclared = Plan.published(
        epsilon=1.0, attributes=dict.fromkeys(data.table.columns, "confidential")
    )
    names = {c.name for c in list_candidates(Data("Tiny", data.table, undeclared), [1.0])}
    assert "DP" not in names
    assert "iDP-CBLS, k = 10" in names


def test_rows_stay_with_their_people_and_categories_have_the_same_codes() -> None:
    data = open_data("sample").some(200)
    original = next(c for c in list_candidates(data, [1.0]) if c.name == "original")
    subject = subject_of(data, original)
    chosen = np.array([7, 3, 3])
    assert np.array_equal(subject.release(chosen, 1).rows, subject.people[chosen], equal_nan=True)
    names = data.table.columns
    assert [names[a] for a in subject.nominal] == ["region", "occupation"]


def test_what_one_job_measures() -> None:
    data = a_table()
    recommended = next(c for c in list_candidates(data, [1.0]) if c.name == "exchange 10")
    found = BenchmarkJob(data, recommended, 0, attacks=(ATTACKS["linkage.nearest"],))()
    assert found.schema == BENCHMARK_COLUMNS
    row = found.row(0, named=True)
    assert row["rate"] < 0.2
    assert 0.5 < row["auc_forest"] <= 1
    assert row["error"] > 0


def result(method: str, attack: str, risk: float, high: float, seed: int = 0) -> dict[str, object]:
    return {
        "data": "t", "method": method, "family": "f", "epsilon": 1.0, "promise": "idp",
        "seed": seed, "attack": attack, "rate": risk, "control": 0.0, "risk": risk, "low": 0.0,
        "high": high, "error": 0.5,
    }  # fmt: skip


def test_a_point_is_no_better_than_its_worst_attack_and_seed() -> None:
    rows = [
        result("m", "nearest linkage", 0.1, 0.2), result("m", "nearest linkage", 0.3, 0.5, seed=1),
        result("m", "linkability", 0.25, 0.3), result("m", "neighbour reconstruction", 0.9, 1.0),
        result("n", "linkability", 0.0, 0.05),
    ]  # fmt: skip
    found = points_of_map(pl.DataFrame(rows, schema=BENCHMARK_COLUMNS)).to_dicts()
    assert [row["number"] for row in found] == [1, 2]
    assert found[0]["attack"] == "nearest linkage"
    assert found[0]["risk"] == pytest.approx(0.2)
    assert found[0]["high"] == pytest.approx(0.5)
    assert found[0]["informed_high"] == 1.0
    assert found[1]["informed"] is None


def test_what_is_done_is_kept_and_drawn(tmp_path: Path) -> None:
    data = a_table()
    compared = [c for c in list_candidates(data, [1.0]) if c.name == "exchange 10"]
    parts = tmp_path / "parts"
    first = run_candidates(data, compared, 1, parts, None, ONE)
    assert first.results.height == 1
    seen: list[tuple[str, int, int]] = []
    again = run_candidates(data, compared, 1, parts, lambda *step: seen.append(step), ONE)
    assert again.results.equals(first.results)
    assert seen == [("attacking", 1, 1)]
    [written, drawn] = write_benchmark(again, tmp_path)
    assert pl.read_parquet(written).equals(first.results)
    assert "exchange 10: individual differential privacy" in drawn.read_text(encoding="utf-8")
    assert (written.stat().st_mode | parts.stat().st_mode) & 0o077 == 0


def test_the_users_own_plan_is_a_candidate_and_other_columns_take_no_part() -> None:
    plan = Plan.published(epsilon=2.0, missing="drop", attributes={
        "person": "identifier", "age": Confidential(lower=0, upper=120), "hours": "confidential",
        "region": "kept", "weight": "confidential",
    })  # fmt: skip
    table = people(400).select(plan.attributes.keys())
    data = open_data(table, plan, "region")
    assert data.table.columns == ["age", "hours", "weight"]
    assert data.table.height == table.drop_nulls("weight").height
    assert data.classes is not None
    own: Candidate = list_candidates(data, [1.0])[0]
    assert (own.name, own.epsilon) == ("your plan", 2.0)
    assert own.mask(data.table, 1).height == data.table.height


def test_rules_about_masked_attributes_stay_and_strata_are_refused() -> None:
    roles = {"age": "confidential", "hours": "confidential", "region": "kept"}
    rules = ["hours <= age", "hours <= children"]
    plan = Plan.published(
        epsilon=1, missing="keep", rules=rules, attributes={**roles, "children": "kept"}
    )  # fmt: skip
    table = people(300).select(plan.attributes.keys())
    data = open_data(table, plan)
    assert data.own is not None
    assert data.own.rules == ("hours <= age",)
    with pytest.raises(PlanError, match="without units or strata"):
        open_data(table, plan.replace(rules=(), within=("region",)))


def test_what_cannot_be_benchmarked_is_refused() -> None:
    with pytest.raises(DataError, match="at least 200 records"):
        benchmark(people(150))
    with pytest.raises(DataError, match="'region' is a confidential attribute; choose"):
        open_data(people(300), Plan.published(epsilon=1, missing="keep", attributes={
            "age": "confidential", "region": {"role": "confidential", "kind": "nominal"},
        }), "region")  # fmt: skip
