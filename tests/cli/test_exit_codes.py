"""A script learns from the exit code of `microveil protect`, and from an error, what is risky."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from microveil import MicroveilError, Plan, RiskError, protect, verdict
from tests.conftest import Run

RANDOM = np.random.default_rng(4)
TABLE = pl.DataFrame({"x": RANDOM.random(400).round(6), "y": RANDOM.random(400).round(6)})
ATTRIBUTES = dict.fromkeys(TABLE.columns, "confidential")
RISKY = "protect in.csv --epsilon 1 --anonymity 0 -o out.csv"
SAFE = "protect in.csv --epsilon 1 -o out.csv"


@pytest.fixture
def run_on_table(run: Run) -> Run:
    TABLE.write_csv("in.csv")
    return run


def test_what_does_not_pass_is_written_and_exits_with_4(run_on_table: Run) -> None:
    code, out, err = run_on_table(RISKY)
    assert code == 4
    assert "does not pass" in out
    assert "Publish these two" not in out
    assert err.startswith("risk: the release was written, but no verdict says that it passes")
    assert "--accept-risk" in err
    assert Path("out.csv").exists()
    assert Path("out.certificate.json").exists()


def test_quiet_is_no_way_past_the_verdict(run_on_table: Run) -> None:
    code, out, err = run_on_table(f"{RISKY} --quiet")
    assert (code, out) == (4, "")
    assert err.startswith("risk: ")
    assert run_on_table(f"{SAFE} --quiet --overwrite") == (0, "", "")


def test_a_risk_can_be_accepted_and_that_is_said(run_on_table: Run) -> None:
    code, out, err = run_on_table(f"{RISKY} --accept-risk")
    assert code == 0
    assert "does not pass" in out
    assert "--accept-risk accepted it" in err
    assert "accept" not in Path("out.certificate.json").read_text()


def test_what_passes_or_is_not_judged_exits_with_0(run_on_table: Run) -> None:
    code, out, err = run_on_table(SAFE)
    assert (code, err) == (0, "")
    assert "Publish these two" in out
    code, out, err = run_on_table(f"{RISKY} --no-verdict --overwrite")
    assert (code, err) == (0, "")
    assert "pass" not in out


def test_where_no_verdict_can_be_made_nothing_passes(run: Run) -> None:
    pl.DataFrame({"x": [1] * 40, "name": list("ab") * 20}).write_csv("in.csv")
    command = "protect in.csv --epsilon 1 --drop name --domain x=0:9 -o out.csv"
    code, out, err = run(command)
    assert code == 4
    assert "No verdict: no masked attribute varies" in out
    assert "no verdict says that it passes" in err
    assert run(f"{command} --overwrite --accept-risk")[0] == 0


def test_help_tells_the_exit_codes(run: Run) -> None:
    _, out, _ = run("--help")
    assert "4 a release that protect wrote does not pass its verdict" in " ".join(out.split())
    _, out, _ = run("protect --help")
    assert "the exit code is 4, unless --accept-risk or --no-verdict" in " ".join(out.split())


def test_a_program_can_be_stopped() -> None:
    risky = verdict(TABLE, protect(TABLE, Plan.published(epsilon=1.0, attributes=ATTRIBUTES)))
    with pytest.raises(RiskError) as error:
        risky.raise_unless_passed()
    assert isinstance(error.value, MicroveilError)
    text = str(error.value)
    assert text.startswith("the release does not pass its verdict: Risk: High: does not pass")
    assert "To change: add anonymity = 25" in text
    assert "\n" not in text
    verdict(TABLE, protect(TABLE, Plan(epsilon=1.0, attributes=ATTRIBUTES))).raise_unless_passed()
