from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from microveil import Plan

Run = Callable[[str], tuple[int, str, str]]


def test_plan_prints_a_line_for_every_column(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    pl.DataFrame(
        {
            "household_number": [n // 3 * 7 for n in range(90)],
            "store_id": [f"S{n % 30}" for n in range(90)],
            "sex": [1, 2, 2] * 30,
            "wages": [None if n % 10 == 0 else 100 + n * 37 % 80 for n in range(90)],
            "remark": [f"said {n}" for n in range(90)],
            "a very long name of a column that goes on": [n * 0.25 for n in range(90)],
            "country": ["AT"] * 90,
        }
    ).write_csv(tmp_path / "in.csv")
    code, out, err = run("plan in.csv -o plan.toml")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines[:-1])
    assert lines[0].split() == ["column", "holds", "values", "missing", "role", "why"]
    told = {line.split()[0]: line.split()[1:] for line in lines[1:]}
    assert " ".join(told["household_number"]) == "integers 30 dropped says which records"
    assert told["sex"] == ["integers", "2", "nominal", "its", "name", "suggests"]
    assert told["wages"][:4] == ["integers", "72", "9", "masked"]
    assert told["remark"][:3] == ["text", "90", "dropped"]
    assert 'or role = "kept"' in out
    assert "up to 3 records share one value: if it identifies persons" in " ".join(out.split())
    assert lines[-4:-1] == [
        "Dropped: household_number, store_id, remark",
        "Published unchanged: country",
        "Unit, found in the data: household_number (30 units of up to 3 records)",
    ]
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan.names("identifier") == ("household_number", "store_id", "remark")
    assert plan.unit == "household_number"


def test_plan_prints_nothing_if_quiet(run: Run, tmp_path: Path) -> None:
    pl.DataFrame({"x": [n * n % 97 for n in range(40)]}).write_csv(tmp_path / "in.csv")
    assert run("plan in.csv -o plan.toml --quiet") == (0, "", "")
