"""Three questions of `microveil plan`, on a terminal and without one."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from microveil import Plan, Use

Run = Callable[[str], tuple[int, str, str]]

VISITS = pl.DataFrame(
    {
        "patient_id": [f"P{n // 3 * 7}" for n in range(120)],
        "sex": [("f", "m")[n // 3 * 5 % 2] for n in range(120)],
        "doctor": [n % 30 for n in range(120)],
        "ward": ["north", "south", "east"] * 40,
        "bp": [110 + n * 37 % 41 for n in range(120)],
    }
)


def asked(
    monkeypatch: pytest.MonkeyPatch, run: Run, answers: list[str], options: str = ""
) -> tuple[Plan, list[str], str]:
    """Return the plan, what was asked, and what was printed."""
    VISITS.write_csv("visits.csv")
    questions, left = list[str](), iter(answers)

    def answer(prompt: str) -> str:
        questions.append(prompt)
        return next(left)

    monkeypatch.setattr("microveil.cli.asking.on_terminal", lambda: True)
    monkeypatch.setattr("builtins.input", answer)
    code, out, err = run(f"plan visits.csv -o plan.toml --overwrite {options}")
    assert (code, err) == (0, "")
    assert not list(left)
    return Plan.read("plan.toml"), questions, " ".join(out.split())


def test_what_is_proposed_is_taken_by_enter_by_yes_and_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    plan, questions, out = asked(monkeypatch, run, ["", "", ""])
    assert len(questions) == 3
    assert "patient_id says so: 40 persons or households of up to 3 rows." in out
    assert "2. What could an attacker know about a person? sex" in out
    assert (plan.unit, plan.scenarios[0].known) == ("patient_id", ("sex",))
    assert Use.mean("bp", by="sex") in plan.uses
    assert len(plan.uses) > 2
    assert asked(monkeypatch, run, [], "--yes")[0] == plan
    assert asked(monkeypatch, run, [], "--quiet")[0] == plan
    monkeypatch.setattr("microveil.cli.asking.on_terminal", lambda: False)
    assert run("plan visits.csv -o again.toml")[0] == 0
    assert Plan.read("again.toml") == plan
    text = Path("again.toml").read_text(encoding="utf-8")
    assert "[[uses]]\n# What the release will be used for" in text
    assert "[[scenarios]]\n# What an attacker could know of a person" in text


def test_other_answers_are_asked_again_until_they_can_be_read(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    answers = ["docter", "doctor", "sex, patient", "sex , ward", "mean bpp; table sex", "avg bp",
               "mean bp by ward; table sex"]  # fmt: skip
    plan, questions, out = asked(monkeypatch, run, answers)
    assert len(questions) == 7
    assert "did you mean 'doctor'?" in out
    assert "no column 'patient'; did you mean 'patient_id'?" in out
    assert "did you mean 'bp'?" in out
    assert "at character 1, found 'avg'" in out
    assert (plan.unit, plan.records_per_person) == ("doctor", 4)
    assert plan.attributes["doctor"].role == "identifier"
    assert plan.scenarios[0].known == ("sex", "ward")
    assert list(map(str, plan.uses)) == ["mean bp by ward", "table sex"]


def test_none_is_an_answer_and_uses_may_be_said_before(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    plan, questions, _ = asked(monkeypatch, run, ["none", "none"], "--use 'median bp'")
    assert len(questions) == 2
    assert (plan.unit, plan.records_per_person, plan.per_unit) == (None, 1, ())
    assert (plan.scenarios, list(map(str, plan.uses))) == ((), ["median bp"])
    code, _, err = run("plan visits.csv -o wrong.toml --yes --use 'mean bpp'")
    assert (code, "did you mean 'bp'?" in err) == (1, True)
    assert not Path("wrong.toml").exists()
