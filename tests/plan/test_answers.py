"""What people are asked before their table is protected."""

import polars as pl

from microveil import Plan
from microveil.plan.propose.answers import with_known, with_unit
from microveil.plan.propose.purposes import proposed_known, proposed_uses
from microveil.plan.survey import survey

VISITS = pl.DataFrame(
    {
        "patient": ["a", "a", "b", "b", "b", "c"],
        "born": [1950, 1950, 1961, 1961, 1961, 1961],
        "ward": ["x", "x", "y", None, "y", "x"],
        "bp": [120, 130, 111, 140, 125, 119],
    }
)
PLAN = Plan(
    epsilon=1.0,
    attributes={
        "patient": "identifier",
        "born": "confidential",
        "ward": {"role": "confidential", "kind": "nominal", "categories": ["x", "y"]},
        "bp": "confidential",
    },
    from_data=["ward: categories", "records_per_person", "bp: per_unit"],
)


def test_a_unit_brings_what_it_needs_and_leaves_what_it_does_not() -> None:
    by_patient = with_unit(PLAN, VISITS, "patient")
    assert (by_patient.unit, by_patient.records_per_person) == ("patient", 3)
    assert by_patient.per_unit == ("born",)  # one visit of b has no ward
    assert set(by_patient.from_data) == {"ward: categories", "records_per_person", "born: per_unit"}
    alone = with_unit(by_patient, VISITS, None)
    assert (alone.unit, alone.records_per_person, alone.per_unit) == (None, 1, ())
    assert alone.from_data == ("ward: categories",)
    assert with_unit(PLAN, VISITS, "born").attributes["born"].role == "identifier"


def test_the_unit_of_a_survey_is_as_it_would_have_been_proposed() -> None:
    homes = survey(60)
    proposed = Plan.propose(homes)
    assert proposed.unit == "household_id"
    again = with_unit(with_unit(proposed, homes, None), homes, "household_id")
    assert again.records_per_person == proposed.records_per_person
    assert set(proposed.per_unit) <= set(again.per_unit)


def test_what_others_may_know_is_found_by_name_and_kept_where_it_was_said() -> None:
    assert proposed_known(PLAN) == ("born",)
    said = with_known(PLAN, ["bp", "ward"], 0.5)
    assert proposed_known(said) == ("bp", "ward")
    assert said.scenarios[0].people == 0.5
    assert with_known(said, []).scenarios == ()


def test_uses_are_proposed_that_the_plan_takes() -> None:
    uses = [str(use) for use in proposed_uses(PLAN, VISITS)]
    assert uses == ["mean bp by ward", "mean bp by born(10)", "share ward"]
    taken = PLAN.replace(uses=uses)
    assert proposed_uses(taken, VISITS) == taken.uses
    homes = survey(60)
    proposed = Plan.propose(homes)
    with_uses = proposed.replace(uses=proposed_uses(proposed, homes))
    assert len(with_uses.uses) > 2


def test_names_that_are_patterns_stay_names() -> None:
    table = VISITS.rename({"patient": "^p.*$", "born": "*"})
    attributes = {"^p.*$": "identifier", "*": "confidential", "ward": "kept", "bp": "confidential"}
    plan = with_unit(Plan(epsilon=1.0, attributes=attributes), table, "^p.*$")
    assert (plan.records_per_person, plan.per_unit) == (3, ("*",))
