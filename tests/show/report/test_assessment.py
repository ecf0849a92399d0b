"""What a data protection officer reads: three questions, four steps, and gaps for a person."""

import re

import polars as pl
import pytest

from microveil import Confidential, Evaluation, Plan, Release, evaluate, protect
from microveil.compare.figures import Figure, Sample
from microveil.judge.registry import MEASURES
from microveil.plan.sample import people
from microveil.show.report import report
from microveil.show.report.assessment import answered, assessed, determination
from microveil.show.words.scales import ends_of, scale_of


@pytest.fixture(scope="module")
def evaluated() -> tuple[pl.DataFrame, Release, Evaluation]:
    table = people(160).drop("person", "occupation")
    chosen = table.select("age", "wages", "children")
    masked = Confidential(lower=0, upper=1_000_000)
    plan = Plan(epsilon=1.0, attributes=dict.fromkeys(chosen.columns, masked))
    release = protect(chosen, plan, seed=1)
    return chosen, release, evaluate(chosen, release)


def gained(measure: str, attribute: str | None, value: float) -> Figure:
    facts = {"rate": 0.3, "control": 0.125, "tried": 40.0}
    return Figure(measure, attribute, value, facts, Sample(40, 80, low=0.0625, high=0.25))


def test_each_question_is_answered_by_the_attack_that_gains_most() -> None:
    figures = [
        gained("risk.singling_out", None, 0.0),
        gained("risk.inference", "age", 0.125),
        gained("risk.joint_inference", "wages", 0.2),
    ]
    rows = list(answered(figures))
    assert [(one.question, one.about, one.gain) for one in rows] == [
        ("Singling out", "all attributes", "0% (6.25% to 25%)"),
        ("Inference", "wages", "20% (6.25% to 25%)"),
    ]
    assert {(one.released, one.control, one.scale) for one in rows} == {
        ("30%", "12.5%", "good to 10%, fair to 33%")
    }


@pytest.mark.parametrize("measure", MEASURES)
def test_every_figure_has_a_scale(measure: str) -> None:
    assert ends_of(measure)
    facts = {"control": 0.25} if measure.startswith("risk.") else {}
    assert scale_of(Figure(measure, None, 0.5, facts)).startswith("control 25%; " * bool(facts))


def test_steps_say_what_is_known_and_leave_the_rest_to_a_person(
    evaluated: tuple[pl.DataFrame, Release, Evaluation],
) -> None:
    _, release, evaluation = evaluated
    steps = assessed(evaluation, release.certificate)
    assert [one.title for one in steps] == ["Context", "Data", "Identifiability", "Governance"]
    assert all(one.known and one.gaps for one in steps)
    assert "Masked: age, wages, children." in steps[1].known
    assert any("random numbers: seeded" in line for line in steps[3].known)
    expert = determination(evaluation, release.certificate)
    assert expert.known[0].startswith("Method: iDP-CBLS at ε = 1, masked values pooled among 25")
    assert "it is not a determination" in expert.gaps[-1]
    unknown = assessed(evaluation, None)
    assert any("no certificate" in line for one in unknown for line in one.known)


def test_the_page_has_every_heading_and_marks_every_gap(
    evaluated: tuple[pl.DataFrame, Release, Evaluation],
) -> None:
    table, release, evaluation = evaluated
    page = report(table, release, evaluation=evaluation)
    steps = [*assessed(evaluation, None), determination(evaluation, None)]
    assert page.count('class="gap"') == sum(len(one.gaps) for one in steps) == 14
    for title in ("Singling out, linkability and inference", *(one.title for one in steps)):
        assert re.search(f">{re.escape(title)}</h[23]>", page)
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"\de-\d\d", text)  # such as 2.22e-14%
