"""`microveil risk` as a steward uses it."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

Run = Callable[[str], tuple[int, str, str]]

PEOPLE = pl.DataFrame({
    "age": [30, 30, 31, 99], "region": ["north", "north", "south", "south"], "w": [10, 10, 5, 1],
    "home": [1, 1, 2, 2], "income": [1, 2, 3, 918_273],
})  # fmt: skip
FLAGS = (
    "--quasi-identifier age --quasi-identifier region --weight w --household home "
    "--sensitive income"
)


def test_one_table_and_a_sentence(run: Run) -> None:
    PEOPLE.write_csv("people.csv")
    code, out, err = run(f"risk people.csv {FLAGS}")
    assert (code, err) == (0, "")
    assert "2 of 4 records (50%) are unique on age and region." in out
    for label in ("5-anonymity", "household", "SUDA2", "l-diversity", "t-closeness"):
        assert label in out
    assert "918" not in out
    assert "south" not in out


def test_json_has_every_figure(run: Run) -> None:
    PEOPLE.write_parquet("people.parquet")
    code, out, _ = run(f"risk people.parquet {FLAGS} --json")
    found = json.loads(out)
    assert code == 0
    assert found["violations"] == {"2": 2, "3": 4, "5": 4}
    assert found["household"]["households"] == 2
    assert found["sensitive"][0]["least_distinct"] == 1
    assert found["suda"]["records"] == 2
    assert "918" not in out


def test_before_and_after(run: Run) -> None:
    PEOPLE.write_csv("people.csv")
    PEOPLE.with_columns(age=30, region=pl.lit("north")).write_parquet("safe.parquet")
    code, out, _ = run(f"risk people.csv {FLAGS} --release safe.parquet")
    assert code == 0
    assert out.split()[:2] == ["original", "release"]
    assert "release: 0 of 4 records (0%)" in out
    _, out, _ = run(f"risk people.csv {FLAGS} --release safe.parquet --json")
    found = json.loads(out)
    assert (found["original"]["sample_uniques"], found["release"]["sample_uniques"]) == (2, 0)


def test_mistakes_are_one_line(run: Run) -> None:
    PEOPLE.write_csv("people.csv")
    code, _, err = run("risk people.csv --quasi-identifier sex")
    assert code == 1
    assert err == (
        "error: attribute 'sex': is not in people.csv (columns: age, region, w, home, income)\n"
    )
    assert run("risk people.csv")[0] == 2  # keys must be given


def test_codes_with_leading_zeros_stay_different(run: Run) -> None:
    Path("people.csv").write_text("code,x\n01,1\n1,2\n", encoding="utf-8")
    _, out, _ = run("risk people.csv --quasi-identifier code --json")
    assert json.loads(out)["combinations"] == 2
