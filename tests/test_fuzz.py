"""The fuzzers: half a minute of their cases holds, and planted bugs are found."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from fuzz import csv_files, details, formats, kills, ledgers, pages, plans, risks, tables
from fuzz.checks import Broken
from fuzz.workers import Case, Worker, run_case, wait_for
from microveil import DataError, Plan, protect, risk
from microveil.app.gate import Gate
from microveil.release.ledger import Ledger
from microveil.release.release import Release

ROOT = Path(__file__).parent.parent
Fuzzer = Callable[[Random, Path], str]


def test_half_a_minute_of_cases_holds() -> None:
    command = [sys.executable, "-m", "fuzz", "30", "--seed", "1", "--workers", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr[-4000:]


def first_broken(fuzzer: Fuzzer, folder: Path, cases: int = 60) -> str:
    for seed in range(cases):
        own = folder / str(seed)
        own.mkdir()
        try:
            fuzzer(Random(seed), own)
        except Broken as broken:
            return broken.kind
    return "nothing"


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, Any], None]:
    """Let a fuzzer call a `protect` that does something wrong to every release."""

    def replace(fuzzer: Any, wrong: Any) -> None:  # noqa: ANN401
        right = fuzzer.protect
        monkeypatch.setattr(fuzzer, "protect", lambda *a, **k: wrong(right(*a, **k)))

    return replace


def with_data(release: Release, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Release:
    if isinstance(release.data, pl.DataFrame):
        object.__setattr__(release.rows, "data", change(release.data))
    return release


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda frame: frame.head(-1), ["rows", "certificate"]),
        (lambda frame: frame.select(reversed(frame.columns)), ["columns"]),
        (lambda frame: frame.select(pl.all().reverse()), ["changed value", "engines"]),
    ],
)
def test_a_wrong_release_is_found(
    change: Any,  # noqa: ANN401
    kinds: list[str],
    plant: Callable[[Any, Any], None],
    tmp_path: Path,
) -> None:
    plant(tables, lambda release: with_data(release, change))
    assert first_broken(tables.run, tmp_path) in kinds


def test_noise_that_was_left_out_is_found(
    plant: Callable[[Any, Any], None], tmp_path: Path
) -> None:
    def bare(release: Release) -> Release:
        clusters = release.detail.clusters.with_columns(scale=0.0, shared_by=pl.lit(3, pl.Int64))
        object.__setattr__(release.detail, "clusters", clusters)
        return release

    plant(tables, bare)
    assert first_broken(tables.run, tmp_path) == "without noise"


def test_a_value_that_a_file_changed_is_found(
    plant: Callable[[Any, Any], None], tmp_path: Path
) -> None:
    plant(
        formats, lambda release: with_data(release, lambda frame: frame.select(pl.all().reverse()))
    )
    assert first_broken(formats.run, tmp_path) == "changed value"


def test_a_wrong_risk_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def wrong(*tables: Any, **options: Any) -> Any:  # noqa: ANN401
        found = risk(*tables, **options)
        return replace(found, sample_uniques=found.sample_uniques // 2)

    monkeypatch.setattr(risks, "risk", wrong)
    assert first_broken(risks.run, tmp_path) == "risk"


def test_a_lost_record_of_a_csv_file_is_found(
    plant: Callable[[Any, Any], None], tmp_path: Path
) -> None:
    def shorter(release: Release) -> Release:
        positions: Any = release.rows.positions
        object.__setattr__(release.rows, "positions", positions[:-1])
        return with_data(release, lambda frame: frame.head(-1))

    plant(csv_files, shorter)
    assert first_broken(csv_files.run, tmp_path) == "engines"


def test_a_quoted_value_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def quote(table: pl.DataFrame, _plan: Plan, **_: object) -> Release:
        raise DataError(f"found {table['a'][0]}")

    monkeypatch.setattr(plans, "protect", quote)
    assert first_broken(plans.run, tmp_path) == "data in an error"


def test_a_release_that_spends_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ledgers, "protect", lambda table, plan, **_: protect(table, plan))
    assert first_broken(ledgers.run, tmp_path) == "ledger"


def test_a_ledger_that_is_read_whatever_it_says_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sealed = Ledger.read

    def read(path: str | Path) -> Ledger:
        try:
            return sealed(path)
        except OSError:
            return Ledger.model_validate({"budgets": [{"epsilon": 9.0, "declared": ""}]})

    monkeypatch.setattr(Ledger, "read", read)
    assert first_broken(ledgers.run, tmp_path) == "ledger"


def test_a_detail_that_ends_in_another_error_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError

    monkeypatch.setattr(details, "evaluate", fails)
    outcome = run_case(Case("details", 1), tmp_path)
    assert outcome.broken == "crash"
    assert "KeyError" in outcome.what


@pytest.mark.parametrize("check", ["_is_known", "_is_own"])
def test_a_gate_that_lets_strangers_in_is_found(
    check: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Gate, check, lambda *_: True)
    assert first_broken(pages.run, tmp_path) == "page"


def test_a_certificate_of_another_table_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*_: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(["true"], stderr=subprocess.PIPE, text=True)  # noqa: S607

    monkeypatch.setattr(kills, "_start", nothing)
    (tmp_path / "out.csv").write_text("age\n1\n", encoding="utf-8")
    certificate = json.dumps({"file": {"sha256": "of another table"}})
    (tmp_path / "out.certificate.json").write_text(certificate, encoding="utf-8")
    with pytest.raises(Broken, match="mixed release: of three runs"):
        kills._race(tmp_path, tmp_path / "out.csv")


def test_a_process_that_dies_is_a_crash_and_is_replaced(tmp_path: Path) -> None:
    worker = Worker()
    try:
        worker.give(Case("plans", 1), tmp_path)
        worker._process.kill()
        while (outcome := worker.collect()) is None:
            wait_for([worker])
        assert outcome.broken == "crash"
        assert "ended with status -9" in outcome.what
        assert worker.is_free
    finally:
        worker.end()


def test_a_case_is_the_same_again(tmp_path: Path) -> None:
    run_case(Case("plans", 7), tmp_path)
    plan = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    run_case(Case("plans", 8), tmp_path)
    assert (tmp_path / "plan.toml").read_text(encoding="utf-8") != plan
    run_case(Case("plans", 7), tmp_path)
    assert (tmp_path / "plan.toml").read_text(encoding="utf-8") == plan
