import numpy as np
import polars as pl
import pytest

from microveil import DataError, Plan, protect
from microveil.propose import propose_plan
from microveil.sample import people


@pytest.mark.filterwarnings("error")
def test_a_proposal_is_a_plan_that_works_unedited() -> None:
    table = people()
    plan = Plan.from_toml(propose_plan(table, "people.csv"))
    release = protect(table, plan)
    assert plan.missing == "keep"
    assert plan.names("identifier") == ("person", "region")
    assert plan.names("kept") == ()
    assert plan.derived["income"].expression == '"wages" + "other"'
    assert "weight: decimals" in plan.from_data
    assert "weight: decimals" in release.certificate.notes[0]
    assert (release.data["income"] == release.data["wages"] + release.data["other"]).all()


def test_domains_are_left_to_the_person_and_proposals_from_data_are_marked() -> None:
    text = propose_plan(people(), "people.csv")
    plan = Plan.from_toml(text)
    assert all(a.lower is None and a.upper is None for a in plan.confidential.values())
    assert text.count("# lower =") == len(plan.confidential)
    lines = text.splitlines()
    for proposal in ("expression =", "decimals ="):
        places = [i for i, line in enumerate(lines) if line.startswith(proposal)]
        assert places
        assert all("(from the data)" in "".join(lines[i - 2 : i]) for i in places)


@pytest.mark.parametrize(
    ("column", "role"),
    [
        (pl.Series("x", ["a", "b", "a", "b"]), "identifier"),
        (pl.Series("x", [True, False, True, True]), "identifier"),
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
    table = pl.DataFrame([column, pl.Series("other", [5, 5, 5, 5])])
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    assert plan.attributes[column.name].role == role


@pytest.mark.filterwarnings("error")
def test_unusual_numbers_and_names_still_give_a_working_plan() -> None:
    random = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            'a "quoted" name\n[x]\u2028': random.normal(size=50),
            "huge": random.integers(10**14, 10**15, 50) * 3 + random.integers(0, 2, 50),
            "tiny": random.normal(size=50) * 1e-30,
            "wide": random.normal(size=50) * 10.0 ** random.integers(-5, 12, 50),
            "single": pl.Series(random.normal(size=50), dtype=pl.Float32),
            "zero": [0.0] * 50,
        }
    )
    plan = Plan.from_toml(propose_plan(table, "odd\nname.csv"))
    assert set(plan.confidential) == set(table.columns)
    assert protect(table, plan).data.schema == table.schema


def test_names_that_are_words_of_sql() -> None:
    table = pl.DataFrame({"order": [1, 5, 2, 9], "group": [4, 4, 1, 3], "select": [5, 9, 3, 12]})
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    assert plan.derived["select"].inputs == {"order", "group"}


def test_nothing_to_protect() -> None:
    with pytest.raises(DataError, match="no column holds numbers"):
        propose_plan(pl.DataFrame({"a;b": ["1;2", "3;4", "5;6"]}), "t.csv")


def test_numbers_that_are_not_finite_are_left_to_protect() -> None:
    table = pl.DataFrame({"x": [1.0, float("inf"), 2.0], "y": [1e308, 2.0, float("nan")]})
    assert set(Plan.from_toml(propose_plan(table, "t.csv")).confidential) == {"x", "y"}


def test_few_records_get_a_smaller_k() -> None:
    table = pl.DataFrame({"x": [1, 1, 2, 2, 5]})
    text = propose_plan(table, "t.csv")
    assert Plan.from_toml(text).k == 5
    assert "k = 5  # records in a cluster (from the data)" in text
