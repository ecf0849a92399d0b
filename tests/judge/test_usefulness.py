"""Usefulness goes by what people do with a table: with exchange, rows belong to nobody."""

import math

import numpy as np
import polars as pl
import pytest

from bench.units import plan_for, visits
from microveil import Plan, Release, Verdict, evaluate, protect, verdict
from microveil.core.choices import Pooling
from microveil.judge.grades import how_useful
from microveil.show.verdicts import verdict_lines
from microveil.show.words.grading import change_in_words, usefulness_card
from microveil.show.words.readings import reading

PATIENTS, PER_UNIT = 1_000, {"born"}
ROWS = ("utility.mean_sse", "utility.sse_sst", "utility.il1s")


@pytest.fixture(scope="module")
def hospital() -> tuple[pl.DataFrame, Release]:
    table = visits(PATIENTS)
    plan = plan_for("patient", PER_UNIT, table).replace(anonymity=10)
    return table, protect(table, plan, seed=1)


@pytest.fixture(scope="module")
def averaged(hospital: tuple[pl.DataFrame, Release]) -> Release:
    table, release = hospital
    return protect(table, release.plan.replace(pooling="average"), seed=1)


def said_of_use(found: Verdict) -> str:
    return dict(verdict_lines(found))["Usefulness"]


def test_a_hospital_table_whose_relations_are_kept_is_useful(
    hospital: tuple[pl.DataFrame, Release],
) -> None:
    """A row is 0.6 standard deviations from its record, which used to make it poor."""
    table, release = hospital
    found, evaluation = verdict(table, release, seed=1), evaluate(table, release, seed=1)
    assert math.sqrt(2) * evaluation.value("utility.il1s") > 0.5
    assert found.usefulness.grade == how_useful(evaluation.figures).grade == "good"
    assert not any(figure.measure in ROWS for figure in found.figures)
    assert "on average" not in said_of_use(found)
    assert usefulness_card(evaluation.figures).answer == "Good: little is lost"


def test_evaluate_says_why_the_distance_of_rows_means_little(
    hospital: tuple[pl.DataFrame, Release], averaged: Release
) -> None:
    table, release = hospital
    for made, little in ((release, True), (averaged, False)):
        found = {f.measure: f for f in evaluate(table, made, seed=1).figures}
        for measure in ROWS:
            assert ("rows belong to nobody" in reading(found[measure])) == little


def test_a_release_with_its_relations_destroyed_is_graded_down() -> None:
    """Every column has the very values it had, so that only relations tell."""
    random = np.random.default_rng(1)
    ages = random.integers(18, 90, 1_500)
    people = pl.DataFrame({"age": ages, "pressure": (80 + ages + random.normal(0, 9, 1_500)) // 1})
    plan = Plan(epsilon=1.0, attributes=dict.fromkeys(people.columns, "confidential"))
    release = protect(people, plan, seed=1)
    assert verdict(people, release, seed=1).usefulness.grade == "good"
    mixed = release.data.with_columns(pl.Series("age", random.permutation(release.data["age"])))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Release, "data", property(lambda _: mixed))
        lost = verdict(people, release, seed=1).usefulness
    assert lost.grade == "poor"
    assert lost.figures[0].measure == "utility.pearson"


def test_where_rows_belong_to_people_their_distance_counts(
    hospital: tuple[pl.DataFrame, Release], averaged: Release
) -> None:
    table, _ = hospital
    found = verdict(table, averaged, seed=1)
    assert any(figure.measure == "utility.il1s" for figure in found.usefulness.figures)
    assert "A number moves by " in said_of_use(found)


def test_what_pooling_would_cost_is_told_by_relations_if_values_are_exchanged() -> None:
    random = np.random.default_rng(2)
    people = pl.DataFrame({name: random.integers(0, 9_999, 300) for name in "abcd"})
    masked = dict.fromkeys(people.columns, "confidential")
    said: dict[Pooling, str] = {
        "exchange": "the largest change of a correlation ",
        "average": "the average move of a number, in standard deviations, ",
    }
    for pooling, what in said.items():
        plan = Plan(epsilon=1.0, anonymity=0, pooling=pooling, attributes=masked)
        change = verdict(people, protect(people, plan, seed=1), seed=1).change
        assert change is not None
        assert f"%; {what}" in change_in_words(change)
