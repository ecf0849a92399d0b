from datetime import date

import numpy as np
import polars as pl
import pytest

from microveil import DataError, Plan, protect
from microveil.plan.propose.proposal import propose_plan
from microveil.plan.sample import people
from microveil.plan.settings import RECOMMENDED


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_proposal_is_a_plan_that_works_unedited() -> None:
    table = people()
    plan = Plan.from_toml(propose_plan(table, "people.csv"))
    assert {name: getattr(plan, name) for name in RECOMMENDED} == RECOMMENDED
    release = protect(table, plan, keep_order=True)
    assert plan.missing == "keep"
    assert plan.names("identifier") == ("person",)
    assert plan.confidential["education"].kind == "nominal"
    assert plan.confidential["since"].kind is None
    assert "education: categories" in plan.from_data
    assert plan.names("kept") == ()
    assert plan.derived["income"].expression == '"wages" + "other"'
    assert "weight: decimals" in plan.from_data
    told = {line.partition(":")[0]: line for line in release.certificate.reading["By attribute"]}
    assert "decimals" in told["weight"]
    assert (release.data["income"] == release.data["wages"] + release.data["other"]).all()


def test_domains_are_left_to_the_person_and_proposals_from_data_are_marked() -> None:
    text = propose_plan(people(), "people.csv")
    plan = Plan.from_toml(text)
    assert all(a.lower is None and a.upper is None for a in plan.confidential.values())
    numbers = [a for a in plan.confidential.values() if not a.is_category]
    assert text.count("# lower =") == len(numbers)
    lines = text.splitlines()
    for proposal in ("expression =", "decimals =", "categories ="):
        places = [i for i, line in enumerate(lines) if line.startswith(proposal)]
        assert places
        assert all("(from the data)" in "".join(lines[i - 3 : i]) for i in places)


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (pl.Series("x", ["a", "b", "a", "b"]), "identifier"),
        (pl.Series("x", [True, False, True, True]), "confidential"),
        (pl.Series("x", [date(2000, 1, day) for day in (1, 2, 3, 4)]), "confidential"),
        (pl.Series("x", [None] * 4, dtype=pl.Int64), "identifier"),
        (pl.Series("x", [None, None, 5, 6]), "identifier"),
        (pl.Series("row", [1, 2, 3, 4]), "identifier"),
        (pl.Series("person_id", [11, 25, 3, 47]), "identifier"),
        (pl.Series("income", [11, 25, 3, 47]), "confidential"),
        (pl.Series("valid", [11, 25, 3, 47]), "confidential"),
        (pl.Series("x", [0.5, 1.0, 2.0, 2.0]), "confidential"),
    ],
)
def test_roles(column: pl.Series, role: str) -> None:
    table = pl.DataFrame([column, pl.Series("other", [5, 9, 5, 4])])
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    assert plan.attributes[column.name].role == role


@pytest.mark.filterwarnings("error", "ignore:.*noise grid was read from the data")
def test_unusual_numbers_and_names_still_give_a_working_plan() -> None:
    random = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            'a "quoted" name\n[x]\u2028': random.normal(size=50),
            "huge amount": random.integers(10**14, 10**15, 50) * 3 + random.integers(0, 2, 50),
            "tiny": random.normal(size=50) * 1e-30,
            "wide": random.normal(size=50) * 10.0 ** random.integers(-5, 12, 50),
            "single": pl.Series(random.normal(size=50), dtype=pl.Float32),
            "zero": [0.0] * 50,
        }
    )
    plan = Plan.from_toml(propose_plan(table, "odd\nname.csv"))
    assert {*plan.confidential, "zero"} == set(table.columns)
    assert plan.names("kept") == ("zero",)
    assert protect(table, plan, keep_order=True).data.schema == table.schema


def test_names_that_are_words_of_sql() -> None:
    amounts = np.random.default_rng(3).lognormal(6, 1, (3, 40)).round(2)
    table = pl.DataFrame(dict(zip(("order", "where", "select"), amounts, strict=True)))
    table = table.with_columns(having=pl.col("where") + pl.col("select"))
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    assert plan.derived["having"].inputs == {"select", "where"}


def test_nothing_to_protect() -> None:
    with pytest.raises(DataError, match="no column can be protected"):
        propose_plan(pl.DataFrame({"a;b": ["1;2", "3;4", "5;6"]}), "t.csv")


def test_numbers_that_are_not_finite_are_left_to_protect() -> None:
    table = pl.DataFrame({"x": [1.0, float("inf"), 2.0], "y": [1e308, 2.0, float("nan")]})
    assert set(Plan.from_toml(propose_plan(table, "t.csv")).confidential) == {"x", "y"}


def test_few_records_get_a_smaller_anonymity() -> None:
    table = pl.DataFrame({"x": [1, 1, 2, 2, 5]})
    text = propose_plan(table, "t.csv")
    assert Plan.from_toml(text).anonymity == 5
    assert "0 turns pooling off; (from the data): few records" in text


def test_text_of_few_categories_is_nominal_and_of_many_is_dropped() -> None:
    table = pl.DataFrame({"few": ["a", "b"] * 20, "many": [f"n{i % 20}" for i in range(40)]})
    text = propose_plan(table.with_columns(x=pl.Series(range(40)) % 7), "t.csv")
    plan = Plan.from_toml(text)
    assert plan.confidential["few"].categories == ("a", "b")
    assert plan.names("identifier") == ("many",)
