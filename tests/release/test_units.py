"""Units: one value for all records of a household or patient, whose ε it is."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil import Confidential, DataError, Plan, PlanError, audit, evaluate, protect, verdict
from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.methods import METHODS
from microveil.engines.memory import ReleasedInMemory
from microveil.engines.spark.engine import _check as check_on_spark
from microveil.errors import noted
from microveil.evaluation.pairing import pair_up
from microveil.evaluation.unit_linkage import UnitsLinked, link_units
from microveil.exploration import explore
from tests.release.brute import centroids_of

RANDOM = np.random.default_rng(5)


def households(number: int = 40, most: int = 4) -> pl.DataFrame:
    """Persons of households, in random order."""
    home = np.repeat(np.arange(number), RANDOM.integers(1, most + 1, number))
    dwelling = np.array(["flat", "house", "other"])[RANDOM.integers(0, 3, number)]
    return pl.DataFrame({
        "home": [f"h{x}" for x in home],
        "income": RANDOM.integers(0, 100, number)[home],
        "dwelling": dwelling[home],
        "age": RANDOM.integers(0, 100, len(home)),
    }).sample(fraction=1, shuffle=True, seed=1)  # fmt: skip


PEOPLE = households()
INCOME = Confidential(per_unit=True, lower=0, upper=100)
DWELLING = Confidential(
    per_unit=True, kind="nominal", categories=["flat", "house", "other"], method="DP-UM"
)
AGE = Confidential(lower=0, upper=100, method="DP-UM")
ROLES = {"home": "identifier", "income": INCOME, "dwelling": DWELLING, "age": AGE}
PLAN = Plan(epsilon=3, k=3, unit="home", records_per_person=4, attributes=ROLES)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 20)), min_size=8, max_size=20),
    st.sampled_from(list(METHODS)),
    st.sampled_from(["none", "exchange", "average"]),
    st.booleans(),
    st.integers(0, 2**20),
)
@settings(max_examples=60, deadline=None)
def test_released_values_are_equal_in_all_records_of_a_unit(
    units: list[tuple[int, int | None]], method: MethodName, pooling: str, strata: bool, seed: int
) -> None:
    rows = [
        {"home": home, "income": income, "dwelling": "ab"[home % 2], "side": home % 2, "age": age}
        for home, (size, income) in enumerate(units)
        for age in range(size)
    ]
    order = np.random.default_rng(seed).permutation(len(rows))
    table = pl.DataFrame([rows[i] for i in order], schema_overrides={"income": pl.Int64})
    plan = Plan(
        epsilon=2, k=3, method=method, unit="home", records_per_person=3, missing="keep",
        anonymity=0 if pooling == "none" else 3,
        pooling="average" if pooling == "average" else "exchange",
        within=["side"] if strata else [],
        attributes={
            "home": "identifier", "side": "kept",
            "age": Confidential(lower=0, upper=3, method="DP"),
            "income": Confidential(per_unit=True, lower=0, upper=20),
            "dwelling": Confidential(per_unit=True, kind="nominal", categories=["a", "b"]),
        },
    )  # fmt: skip
    try:
        with noted():
            released = protect(table, plan, seed=seed).data.with_columns(table["home"])
    except DataError:  # too few units with a value, or persons, of a stratum
        return
    by_home = released.group_by("home").agg(pl.col("income", "dwelling").n_unique())
    assert by_home["income"].max() == by_home["dwelling"].max() == 1
    if pooling == "none":
        assert released["income"].null_count() == table["income"].null_count()


def test_a_unit_counts_once() -> None:
    release = protect(PEOPLE, PLAN, seed=1)
    clusters = release.detail.clusters.group_by("attribute").agg(pl.col("records").sum())
    counted = dict(clusters.iter_rows())
    assert counted == {"income": 40, "dwelling": 40, "age": len(PEOPLE)}
    by_name = {a.name: a for a in release.certificate.attributes}
    assert [by_name[name].per_unit for name in ("income", "dwelling", "age")] == [True, True, False]
    spent = dict(release.detail.losses.select("attribute", "epsilon").iter_rows())
    assert spent == {"income": 1, "dwelling": 1, "age": 0.25}  # divided by 4 records, or by none


def test_joint_clusters_are_of_as_many_units_and_each_record_of_another_one() -> None:
    for pooling in ("exchange", "average"):
        release = protect(PEOPLE, PLAN.replace(anonymity=5, pooling=pooling), seed=1)
        joint = release.detail.joint
        assert set(joint) == {"income, dwelling", "age"}
        for name, label in joint.items():
            members = pl.DataFrame({"joint": label, "home": PEOPLE["home"]}).group_by("joint")
            found = members.agg(pl.len(), pl.col("home").n_unique())
            assert min(found["home"].to_list()) >= 5
            assert name != "age" or found["len"].equals(found["home"], check_names=False)
        per_unit = [group.per_unit for group in release.certificate.groups]
        assert per_unit == [True, False]
        if pooling == "exchange":  # units' values change places: the same ones, each as often
            alone = protect(PEOPLE, PLAN, seed=1).data.with_columns(PEOPLE["home"]).unique("home")
            mixed = release.data.with_columns(PEOPLE["home"]).unique("home")
            assert alone["income"].sort().equals(mixed["income"].sort())


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(0, 6)), min_size=6, max_size=9),
    st.sampled_from(["DP-UM", "iDP-LS", "iDP-CBLS"]),
)
@settings(max_examples=25, deadline=None)
def test_the_guarantee_of_one_value_per_unit_over_all_neighbours(
    units: list[tuple[int, int]], method: MethodName
) -> None:
    """Brute force: one unit takes any other value, and clusters are formed again."""
    home = np.repeat(np.arange(len(units)), [size for size, _ in units])
    values = [value for _, value in units]
    table = pl.DataFrame({"home": home, "x": np.array(values)[home]})
    plan = Plan(
        epsilon=1, k=3, method=method, unit="home", guarantee="re-clustered",
        attributes={"home": "identifier", "x": Confidential(per_unit=True, lower=0, upper=6)},
    )  # fmt: skip
    clusters = protect(table, plan, seed=1).detail.clusters
    here = centroids_of(values, 3, method)
    assert clusters["centroid"].to_numpy() == pytest.approx(here, abs=1e-9)
    scales = clusters["scale"].to_numpy()
    for unit, new in product(range(len(units)), range(7)):
        there = centroids_of([*values[:unit], new, *values[unit + 1 :]], 3, method)
        assert _loss(here, there, scales) <= 1 + 1e-9


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=4, max_size=5))
@settings(max_examples=15, deadline=None)
def test_the_guarantee_of_all_records_of_a_unit_over_all_neighbours(
    units: list[tuple[int, int]],
) -> None:
    """Brute force: both records of a unit take any values, and clusters are formed again."""
    values = [value for unit in units for value in unit]
    table = pl.DataFrame({"home": np.repeat(np.arange(len(units)), 2), "x": values})
    attributes = {"home": "identifier", "x": Confidential(lower=0, upper=4)}
    plan = Plan(
        epsilon=1, k=2, method="DP-UM", unit="home", records_per_person=2,
        guarantee="re-clustered", attributes=attributes,
    )  # fmt: skip
    clusters = protect(table, plan, seed=1).detail.clusters
    here, scales = centroids_of(values, 2, "DP-UM"), clusters["scale"].to_numpy()
    for unit, one, two in product(range(len(units)), range(5), range(5)):
        others = [*values[: 2 * unit], one, two, *values[2 * unit + 2 :]]
        assert _loss(here, centroids_of(others, 2, "DP-UM"), scales) <= 1 + 1e-9


def _loss(here: Any, there: Any, scales: Any) -> float:  # noqa: ANN401
    moves = np.abs(np.array(here) - np.array(there))
    return float(np.sum(np.divide(moves, scales, out=np.where(moves > 1e-9, np.inf, 0.0),
                                  where=scales > 0)))  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said", "setting"),
    [
        ({"unit": "house"}, "unit: no attribute 'house'", "unit"),
        ({"unit": "age"}, "unit 'age' must be of role identifier", "unit"),
        ({"unit": None}, "needs to know which records are of one unit", "per_unit"),
        ({"groups": [["income", "age"]], "anonymity": 3}, "are pooled by unit", "groups"),
        ({"together": [["income", "age"]], "anonymity": 3}, "are pooled by unit", "together"),
        ({"attributes": {**ROLES, "age": Confidential()}}, "covers one record in a cluster",
         "method"),
    ],
)  # fmt: skip
def test_a_plan_whose_units_cannot_be_kept(
    changes: dict[str, Any], said: str, setting: str
) -> None:
    with pytest.raises(PlanError, match=said) as raised:
        PLAN.replace(**changes)
    assert setting in [problem.setting for problem in raised.value.problems]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pl.when(pl.col("home") == "h3").then(None).otherwise("home").alias("home"),
         r"of no unit, since it is missing"),
        (pl.int_range(pl.len()).mod(50).alias("income"), r"\d+ units have records with different"),
        (pl.when(pl.int_range(pl.len()) < 9).then(None).otherwise("income").alias("income"),
         r"\d+ units have records with different values, or have it in some records only"),
        (pl.col("home").str.slice(0, 2).alias("home"), r"which has up to \d+ records, got "
         "records_per_person = 4"),
    ],
)  # fmt: skip
def test_units_that_are_not_as_the_plan_says(change: pl.Expr, said: str) -> None:
    with pytest.raises(DataError, match=said) as raised:
        protect(PEOPLE.with_columns(change), PLAN.replace(missing="keep"))
    assert "h3" not in str(raised.value)


def test_units_of_attributes_that_all_are_per_unit_have_any_number_of_records() -> None:
    roles = {**ROLES, "age": "identifier"}
    release = protect(PEOPLE, PLAN.replace(records_per_person=1, attributes=roles), seed=1)
    sentence = release.certificate.levels[0].statement
    assert (
        "changing the confidential values of one unit (home) in all its records, makes" in sentence
    )


def test_the_certificate_speaks_of_units() -> None:
    certificate = protect(PEOPLE, PLAN.replace(anonymity=5)).certificate
    assert (certificate.unit, certificate.records_per_person) == ("home", 4)
    one, two, three = (level.statement for level in certificate.levels)
    for sentence in (one, two):
        assert "one unit (home) in all its records, 4 at most," in sentence
    assert "joint clusters of 5 units or more" in three
    assert "joint clusters of 5 records or more, each of another unit" in three
    assert "rows that agree in income, dwelling are often of one unit" in three
    assert "epsilon             3 per unit (home)" in str(certificate)


def test_a_plan_with_units_and_strata_is_written_read_and_compared(tmp_path: Path) -> None:
    plan = PLAN.replace(within=["region"], attributes={**ROLES, "region": "kept"})
    plan.write(tmp_path / "plan.toml")
    assert Plan.read(tmp_path / "plan.toml") == plan
    other = plan.replace(unit=None, within=[], attributes={**plan.attributes, "income": "kept",
                                                            "dwelling": "kept"})  # fmt: skip
    assert 'unit: "home" → not set' in plan.diff(other)


def test_units_are_counted_in_the_evaluation_and_the_verdict() -> None:
    release = protect(PEOPLE, PLAN.replace(anonymity=5), seed=1)
    assert evaluate(PEOPLE, release).value("utility.unit_consistency") == 1
    assert ("Units", "100% of 40 units have the same released values of income, dwelling in all "
            "their records.") in list(verdict(PEOPLE, release, seed=1).lines())  # fmt: skip
    shuffled = release.data.with_columns(pl.col("income").shuffle(seed=1))
    found = evaluate(PEOPLE, shuffled, aligned=True)
    assert not [figure for figure in found.figures if "unit" in figure.measure]  # no plan


def test_a_unit_can_be_a_pseudonym() -> None:
    roles = {**ROLES, "home": "pseudonym"}
    release = protect(PEOPLE, PLAN.replace(attributes=roles, anonymity=5), seed=1)
    found = release.data.group_by("home").agg(pl.col("income").n_unique())
    assert (found.height, found["income"].max()) == (40, 1)


def test_what_does_not_know_units_says_so() -> None:
    with pytest.raises(PlanError, match="units and strata"):
        audit(PEOPLE, PLAN)
    with pytest.raises(PlanError, match="does not cover units of 4 records"):
        explore(PEOPLE, PLAN)
    frame: Any = object()
    with pytest.raises(PlanError, match="units and strata are not for Spark yet"):
        check_on_spark(frame, PLAN)


def test_exploring_values_of_units() -> None:
    roles = {**ROLES, "age": "identifier", "dwelling": "identifier"}
    found = explore(PEOPLE, PLAN.replace(attributes=roles), epsilons=[1.0], runs=1)
    assert all(point.plan.unit == "home" for point in found.points)
    assert max(point.k or 0 for point in found.points) <= 20  # half of 40 units


def test_a_guarantee_is_refused_or_holds_for_every_method_and_level() -> None:
    for method, guarantee in product(METHODS, ("fixed-clusters", "re-clustered")):
        _refused_or_bounded(method, guarantee)  # type: ignore[arg-type]


def _refused_or_bounded(method: MethodName, guarantee: GuaranteeName) -> None:
    age = Confidential(lower=0, upper=100)
    try:
        plan = PLAN.replace(method=method, guarantee=guarantee, attributes={**ROLES, "age": age})
    except PlanError:
        assert METHODS[method].promise.name == "iDP"
        return
    levels = protect(PEOPLE, plan).certificate.levels
    assert levels[0 if guarantee == "fixed-clusters" else 1].epsilon == pytest.approx(3)


def test_households_are_found_by_all_their_members_where_a_pseudonym_tells_who_they_are() -> None:
    table = households(300)
    found = {}
    for role, pooling in (("pseudonym", "exchange"), ("identifier", "average")):
        roles = {**ROLES, "home": role}
        plan = PLAN.replace(epsilon=3000, anonymity=10, pooling=pooling, attributes=roles)
        told = verdict(table, protect(table, plan, seed=1), seed=1)
        (figure,) = (f for f in told.figures if f.measure == "risk.linkage_of_units")
        found[role] = figure.value, told.passed, told.change
    assert found["pseudonym"][:2] == (pytest.approx(0.35, abs=0.2), False)
    assert found["identifier"][:2] == (pytest.approx(0.03, abs=0.03), True)
    change = found["pseudonym"][2]
    assert change is not None
    assert change.what == 'make home an identifier and set pooling = "average" and anonymity = 10'


def test_the_attack_on_units_by_hand() -> None:
    """Four households of two; only the first two, whose members changed places, are confused."""
    table = pl.DataFrame({"home": [0, 0, 1, 1, 2, 2, 3, 3], "age": [1, 2, 11, 12, 51, 52, 91, 92]})
    roles = {"home": "pseudonym", "age": Confidential(lower=0, upper=100, method="DP")}
    plan = Plan(epsilon=1, unit="home", records_per_person=2, attributes=roles)
    release = protect(table, plan, seed=1)
    data = release.data.with_columns(age=pl.Series([11, 12, 1, 2, 51, 52, 91, 92]))
    pair = pair_up(table, replace(release, rows=ReleasedInMemory(data, np.arange(8))),
                   detail=None, aligned=False, attributes=None, target=None)  # fmt: skip
    assert link_units(pair) == UnitsLinked(share=0.5, chance=0.25, units=4, by=("home",))
