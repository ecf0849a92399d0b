"""The bundled survey: the same every time, and one that its plan fits."""

from hashlib import sha256

import polars as pl

from microveil import check
from microveil.errors import noted
from microveil.plan.survey import survey, survey_plan


def test_a_survey_of_households_that_its_plan_fits() -> None:
    table, plan = survey(), survey_plan()
    assert (table.height, table["household_id"].n_unique()) == (30_000, 12_000)
    of_home = ["region", "area", "weight", *plan.per_unit]
    assert table.select("household_id", *of_home).n_unique() == 12_000
    assert table["person_id"].n_unique() == 30_000
    sizes = table.group_by("household_id").len()["len"].to_list()
    assert max(sizes) == plan.records_per_person
    weighted = table.select((pl.col("weight") * (pl.col("wage") > 0)).sum()).item()
    assert 2e6 < weighted < 8e6  # a country of some millions
    with noted() as warnings:
        assert check(table, plan) == ()
    assert ["sampling weights are published" in text for text in warnings] == [True]


def test_it_is_the_same_every_time() -> None:
    drawn = survey(400).drop("wage", "household_income")  # logarithms may differ in the last digit
    digest = sha256(drawn.write_csv().encode()).hexdigest()
    assert digest[:16] == "7b941cd8e1db668c"
