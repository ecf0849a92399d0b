"""Work that is done once: a plan is checked, a path looked at and a file read no more often."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from microveil.formats import atomic, file_formats
from microveil.plan import plan as plan_module
from microveil.plan.sample import people, people_plan
from microveil.release import protect_file
from tests.conftest import Run

FLAGS = "--drop person --nominal region --nominal education --nominal occupation --missing keep"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[object]:
    """Count checks of plans, of paths that are written and read, and openings of files."""
    counted: Counter[object] = Counter()

    def count(owner: object, name: str, key: Callable[[Any], object]) -> None:
        function = getattr(owner, name)

        def call(first: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            counted[key(first)] += 1
            return function(first, *arguments, **options)

        monkeypatch.setattr(owner, name, call)

    count(plan_module, "check_settings", lambda _: "plan")
    count(atomic, "_check_place", lambda path: ("written", path.name))
    for module in (file_formats, protect_file):
        count(module, "check_readable", lambda path: ("read", path.name))
    for owner, name in ((Path, "open"), (pl, "read_csv"), (pl, "scan_csv")):
        count(owner, name, lambda what: ("opened", what.name if isinstance(what, Path) else ""))
    count(pl, "read_parquet_schema", lambda path: ("schema", path.name))
    return counted


def write_people() -> None:
    people(300).write_csv("people.csv")
    Path("plan.toml").write_text(people_plan().to_toml(), encoding="utf-8")


@pytest.mark.parametrize("flags", ["--plan plan.toml --k 7 --keep hours", f"--epsilon 1 {FLAGS}"])
@pytest.mark.parametrize("large", [False, True])
def test_protect(
    flags: str, large: bool, run: Run, counts: Counter[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people()
    counts.clear()
    if large:
        monkeypatch.setattr(protect_file, "available_memory", lambda: 64)
    assert run(f"protect people.csv -o out.csv --detail --quiet --no-verdict {flags}")[0] == 0
    assert counts["plan"] == 1
    for name in ("out.csv", "out.certificate.json", "out.detail.zip"):
        assert counts["written", name] == 1
    assert counts["read", "people.csv"] == 1
    looked_at_for_columns = large and "--plan" not in flags
    assert counts["opened", "people.csv"] == (3 if looked_at_for_columns else 2)


def test_protect_with_a_report(
    run: Run, counts: Counter[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people()
    monkeypatch.setattr(
        "microveil.show.report.report_words.next_step_after", lambda _: None
    )  # other plans
    counts.clear()
    flags = "--plan plan.toml --keep-order --report out.html --quiet --no-verdict"
    assert run(f"protect people.csv -o out.csv {flags}")[0] == 0
    assert counts["plan"] == 1 + 2  # two halves are protected for the attacks with a control
    assert counts["written", "out.html"] == counts["read", "people.csv"] == 1
    assert counts["opened", "people.csv"] == 2
    counts.clear()
    assert run("certificate out.certificate.json --html certificate.html")[0] == 0
    assert counts["written", "certificate.html"] == 1
    counts.clear()
    assert run("evaluate people.csv out.csv --report evaluated.html")[0] == 0
    assert counts["written", "evaluated.html"] == 1
    assert counts["read", "people.csv"] == counts["read", "out.csv"] == 1
    assert counts["opened", "people.csv"] == 2
    assert counts["opened", "out.csv"] == 4  # twice for its SHA-256
    assert Path("evaluated.html").stat().st_mode & 0o777 == 0o600


def test_a_fallback_encoding_is_said_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("in.csv").write_bytes("größe;x\n1;1\n2;2\n3;3\n".encode("latin-1"))
    monkeypatch.setattr(protect_file, "available_memory", lambda: 16)
    code, _, err = run("protect in.csv -o out.csv --epsilon 1 --k 3 --anonymity 0 --no-verdict")
    assert (code, err.count("not UTF-8")) == (0, 1)


def test_plan(run: Run, counts: Counter[object]) -> None:
    people().select("age", "hours").head(60).write_csv("people.csv")
    counts.clear()
    assert run("plan people.csv -o plan.toml")[0] == 0
    assert counts["written", "plan.toml"] == counts["read", "people.csv"] == 1
    assert counts["opened", "people.csv"] == 2


def test_the_schema_of_a_large_file_is_read_a_few_times_however_many_columns_it_has(
    run: Run, counts: Counter[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    pl.DataFrame({f"x{i}": range(30) for i in range(9)}).write_parquet("in.parquet")
    monkeypatch.setattr(protect_file, "available_memory", lambda: 64)
    assert run("protect in.parquet -o out.parquet --epsilon 1 --no-verdict")[0] == 0
    assert counts["schema", "in.parquet"] == 4  # its size, its names, its columns, their types
