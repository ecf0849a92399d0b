"""`microveil benchmark`: what it takes, prints and writes; the attacks are tested elsewhere."""

from pathlib import Path

import polars as pl
import pytest

import microveil.lab.benchmark.results_file
from microveil import Plan
from microveil.lab.benchmark import Benchmark
from microveil.lab.benchmark.jobs import BENCHMARK_COLUMNS
from microveil.plan.sample import people
from tests.conftest import Run
from tests.lab.benchmark.test_benchmark import result


def test_it_prints_a_table_and_writes_results_and_maps(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def quickly(data: str, *_: object, **options: object) -> Benchmark:
        asked.append((data, options["quick"], options["epsilons"]))
        row = {**result("m", "linkability", 0.1, 0.2), "data": data, "records": 400}
        return Benchmark(pl.DataFrame([row], schema=BENCHMARK_COLUMNS))

    monkeypatch.setattr(microveil.lab.benchmark.results_file, "benchmark", quickly)
    code, printed, _ = run("benchmark census a.csv --quick --epsilon 2 -o out")
    assert code == 0
    assert asked == [("census", True, [2.0]), ("a.csv", True, [2.0])]
    assert "census, 400 records" in printed
    assert "20.0%" in printed
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == ["map-a-csv.svg", "map-census.svg", "results.parquet"]


def test_a_plan_is_for_one_table(run: Run, tmp_path: Path) -> None:
    people(300).write_csv(tmp_path / "a.csv")
    plan = Plan.published(epsilon=1, attributes={"age": "confidential"})
    (tmp_path / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    code, _, said = run("benchmark a.csv sample --plan plan.toml")
    assert code == 1
    assert "a plan or a target applies to one table; name one table, or leave both out" in said


def test_too_few_records_are_refused_before_any_work(run: Run, tmp_path: Path) -> None:
    people(60).write_csv(tmp_path / "a.csv")
    code, _, said = run("benchmark a.csv")
    assert code == 1
    assert "at least 200 records" in said
