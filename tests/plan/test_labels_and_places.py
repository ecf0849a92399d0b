"""What labels, orders and units say of a column: weights, years of education, places."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from microveil import Plan, protect
from microveil.formats import load_table
from microveil.plan.propose.columns import ColumnProfile, Described, propose_role
from microveil.plan.propose.proposal import propose, propose_plan

random = np.random.default_rng(5)
RECORDS = 240


@pytest.mark.parametrize(
    ("name", "label", "weighs"),
    [
        ("db090", "Household cross-sectional weight", True),
        ("v7", "Weighting factor", True),
        ("wt", "Body weight in kg", False),
        ("pweight", "Weight of person in kilograms", False),
        ("db090", "Household size", False),
        ("pweight", "As delivered", True),
    ],
)
def test_labels_decide_about_weights(name: str, label: str, weighs: bool) -> None:
    column = pl.Series(name, random.gamma(20, 10, RECORDS).round(3))
    proposal = propose_role(ColumnProfile(name, column, Described(label=label)))
    assert proposal.weighs == weighs
    assert proposal.masked != weighs


@pytest.mark.parametrize("suffix", [".sav", ".dta"])
def test_labels_of_files_reach_the_plan(suffix: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    weights = random.gamma(20, 10, RECORDS).round(3)
    bodies = random.gamma(20, 10, RECORDS).round(3)
    frame = pd.DataFrame({"db090": weights, "wt": bodies, "x": random.normal(size=RECORDS)})
    labels = ["Household cross-sectional weight", "Weight in kg", "A score"]
    path = tmp_path / f"people{suffix}"
    write = pyreadstat.write_sav if suffix == ".sav" else pyreadstat.write_dta
    write(frame, path, column_labels=labels)
    read = load_table(path)
    plan = Plan.from_toml(propose(read.data, "people", read.meta.described).toml)
    assert plan.confidential["db090"].sampling_weight
    assert not plan.confidential["wt"].sampling_weight


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("educ_years", (8, 10, 12, 16), None),
        ("eduyrs", tuple(range(8, 17)), None),
        ("years_of_schooling", tuple(range(21)), None),
        ("educ", (8, 9, 10, 11, 12, 13, 14, 16, 18), None),
        ("education", tuple(range(9)), "nominal"),
        ("educ", (100, 200, 300, 344, 500), "nominal"),
        ("school", (1, 2, 3), "nominal"),
    ],
)
def test_years_of_education_are_numbers(
    name: str, values: tuple[int, ...], kind: str | None
) -> None:
    table = pl.DataFrame({name: random.choice(values, RECORDS), "x": random.normal(size=RECORDS)})
    assert Plan.propose(table).confidential[name].kind == kind


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_ordered_categories_keep_their_order() -> None:
    words, levels = ["low", "mid", "high"], [1, 2, 3, 4]
    drawn = random.choice(words, RECORDS)
    frame = pd.DataFrame({
        "income": pd.Categorical(drawn, categories=words, ordered=True),
        "level": pd.Categorical(random.choice(levels, RECORDS), categories=levels, ordered=True),
        "side": pd.Categorical(random.choice(["left", "right"], RECORDS)),
    })  # fmt: skip
    plan = Plan.propose(frame)
    chosen = {name: (a.kind, a.categories) for name, a in plan.confidential.items()}
    assert chosen == {
        "income": ("ordinal", ("low", "mid", "high")),
        "level": ("ordinal", (1, 2, 3, 4)),
        "side": ("nominal", ("left", "right")),
    }
    assert protect(frame, plan, seed=1).data.dtypes.to_dict() == frame.dtypes.to_dict()
    enum = pl.DataFrame({"income": pl.Series(drawn, dtype=pl.Enum(words)), "x": range(RECORDS)})
    assert Plan.propose(enum).confidential["income"].kind == "ordinal"


def places(**changed: object) -> pl.DataFrame:
    centres = np.array([[48.2, 16.37], [47.07, 15.44], [47.27, 11.4]])
    town = random.integers(0, 3, RECORDS)
    points = centres[town] + random.normal(0, 0.05, (RECORDS, 2))
    table = {"lat": points[:, 0].round(5), "home_lng": points[:, 1].round(5)}
    return pl.DataFrame({**table, "age": random.integers(18, 90, RECORDS), **changed})


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_coordinates_are_coarsened_and_the_plan_says_what_becomes_of_them() -> None:
    table = places()
    toml = propose_plan(table, "places")
    plan = Plan.from_toml(toml)
    assert (plan.confidential["lat"].decimals, plan.confidential["home_lng"].decimals) == (2, 2)
    assert toml.count("not at an address; map areas, not single rows") == 2
    data = protect(table, plan, seed=1).data
    assert data["lat"].equals(data["lat"].round(2))


@pytest.mark.parametrize(
    "table",
    [places().drop("lat"), places(lat=random.uniform(0, 900, RECORDS).round(5)),
     places(home_lng=["x", "y"] * (RECORDS // 2))],
)  # fmt: skip
def test_what_is_no_pair_of_coordinates_is_left_as_it_is(table: pl.DataFrame) -> None:
    assert "geographic" not in propose_plan(table, "places")
