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
from sklearn.tree import DecisionTreeClassifier

from bench.units import errors, plan_for, visits
from microveil import (
    Confidential,
    DataError,
    Plan,
    PlanError,
    ProtectedEstimator,
    audit,
    evaluate,
    protect,
    verdict,
)
from microveil.attacks.whole_units import UnitsLinked, link_units
from microveil.compare.examined import examine
from microveil.compare.figures import Figure
from microveil.compare.pairing import Pair, pair_tables
from microveil.core.choices import GuaranteeName, MethodName, Pooling
from microveil.core.joint_units import cluster_units
from microveil.core.methods import METHODS
from microveil.core.random_words import SeededWords
from microveil.engines.memory import ReleasedInMemory
from microveil.errors import noted
from microveil.judge.explore import explore
from microveil.judge.next_step import next_step
from microveil.plan.problems import plan_and_problems
from microveil.release.ledger import Ledger, declare
from microveil.release.release import Release
from microveil.show.verdicts import verdict_lines
from microveil.show.words.certificate_words import level_statement
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
PLAN = Plan.published(epsilon=3, k=3, unit="home", records_per_person=4, attributes=ROLES)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.none() | st.integers(0, 20)), min_size=8, max_size=20),
    st.sampled_from(list(METHODS)),
    st.sampled_from(["none", "exchange", "average"]),
    st.booleans(),
    st.integers(0, 2**20),
)
@settings(max_examples=40, deadline=None)
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
    plan = Plan.published(
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
            released = protect(table, plan, seed=seed, keep_order=True).data.with_columns(
                table["home"]
            )
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


@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_units_are_pooled_with_units_and_records_among_these(pooling: Pooling) -> None:
    release = protect(PEOPLE, PLAN.replace(anonymity=5, pooling=pooling), seed=1, keep_order=True)
    units, records = release.detail.joint["income, dwelling"], release.detail.joint["age"]
    joint = pl.DataFrame({"unit": units, "record": records, "home": PEOPLE["home"]})
    assert min(joint.group_by("unit").agg(pl.col("home").n_unique())["home"].to_list()) >= 5
    assert min(joint.group_by("record").len()["len"].to_list()) >= 5
    assert joint.select("unit", "record").n_unique() == joint["record"].n_unique()  # nested
    (group,) = release.certificate.groups
    assert (group.of_units, group.attributes) == (True, ("income", "dwelling", "age"))
    if pooling == "exchange":  # the same values, each as often
        alone, mixed = (r.data.with_columns(PEOPLE["home"]) for r in
                        (protect(PEOPLE, PLAN, seed=1, keep_order=True), release))  # fmt: skip
        homes = [frame.unique("home")["income"].sort() for frame in (alone, mixed)]
        assert homes[0].equals(homes[1])
        assert alone["age"].sort().equals(mixed["age"].sort())
        assert not alone["age"].equals(mixed["age"])


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 1)), min_size=10, max_size=30),
    st.integers(2, 5),
    st.integers(0, 2**20),
)
@settings(max_examples=150, deadline=None)
def test_what_the_theorem_on_pooled_units_rests_on(
    units: list[tuple[int, int]], k: int, seed: int
) -> None:
    """Units of a size that k have lie beside k or more of it, with records in the same clusters."""
    sizes, strata = (np.array(column) for column in zip(*units, strict=True))
    if min(np.bincount(strata)[np.unique(strata)]) < k:
        return
    random, unit = np.random.default_rng(seed), np.repeat(np.arange(len(units)), sizes)
    own, members = random.random((len(units), 1)), random.random((len(unit), 2))
    (records, label), _ = cluster_units(own, members, unit, k, SeededWords(seed), strata)
    assert label is not None
    assert min(np.bincount(records)) >= k
    for one, size in enumerate(sizes):
        beside = np.flatnonzero(label == label[one])
        assert len(beside) >= k
        assert set(strata[beside]) == {strata[one]}
        if np.count_nonzero((sizes == size) & (strata == strata[one])) >= k:
            same = [other for other in beside if sizes[other] == size]
            assert len(same) >= k
            assert all(sorted(records[unit == other]) == sorted(records[unit == one])
                       for other in same)  # fmt: skip


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
    plan = Plan.published(
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
    plan = Plan.published(
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
        ({"unit": "age"}, "unit 'age' must have role identifier", "unit"),
        ({"unit": None}, "per_unit = true needs a unit", "per_unit"),
        ({"attributes": {**ROLES, "age": Confidential(lower=0, upper=100)},
          "guarantee": "re-clustered"}, "covers one record of a unit", "guarantee"),
    ],
)  # fmt: skip
def test_a_plan_whose_units_cannot_be_kept(
    changes: dict[str, Any], said: str, setting: str
) -> None:
    with pytest.raises(PlanError, match=said) as raised:
        PLAN.replace(**changes)
    assert setting in [problem.setting for problem in raised.value.problems]


@pytest.mark.parametrize("unit", ["hom", "age", 3])
def test_a_wrong_unit_is_the_only_thing_that_is_wrong(unit: object) -> None:
    """Its column is there; attributes with `per_unit` need not ask for it a second time."""
    plan = {**PLAN.model_dump(exclude_none=True), "unit": unit}
    _, found = plan_and_problems(Plan, plan)
    assert [(problem.attribute, problem.setting) for problem in found] == [(None, "unit")]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pl.when(pl.col("home") == "h3").then(None).otherwise("home").alias("home"),
         r"the unit is missing in"),
        (pl.int_range(pl.len()).mod(50).alias("income"), r"\d+ units have records with different"),
        (pl.when(pl.int_range(pl.len()) < 9).then(None).otherwise("income").alias("income"),
         r"\d+ units have records with different values or missing codes, or with a value in some "
         "records only"),
        (pl.col("home").str.slice(0, 2).alias("home"), r"units have up to \d+ records, got "
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
    sentence = level_statement(release.certificate, release.certificate.levels[0])
    assert (
        "changing the confidential values of one unit (home) in all its records makes" in sentence
    )


def test_the_certificate_speaks_of_units() -> None:
    certificate = protect(PEOPLE, PLAN.replace(anonymity=5)).certificate
    assert (certificate.unit, certificate.records_per_person) == ("home", 4)
    one, two, three = (level_statement(certificate, level) for level in certificate.levels)
    for sentence in (one, two):
        assert "one unit (home) in all its records (at most 4)" in sentence
    assert "joint clusters of at least 5 units, values of records among records of the" in three
    assert "is at most 1/5, even for an attacker who can tell which rows belong to" in three
    assert any(
        "as far as only they agree in income" in x
        for x in certificate.reading["What is not protected"]
    )
    assert "epsilon             3 per unit (home)" in str(certificate)


def test_a_plan_with_units_and_strata_is_written_read_and_compared(tmp_path: Path) -> None:
    plan = PLAN.replace(within=["region"], attributes={**ROLES, "region": "kept"})
    plan.write(tmp_path / "plan.toml")
    assert Plan.read(tmp_path / "plan.toml") == plan
    other = plan.replace(unit=None, within=[], attributes={**plan.attributes, "income": "kept",
                                                            "dwelling": "kept"})  # fmt: skip
    assert 'unit: "home" → not set' in plan.diff(other)


def test_units_are_counted_in_the_evaluation_and_the_verdict() -> None:
    release = protect(PEOPLE, PLAN.replace(anonymity=5), seed=1, keep_order=True)
    assert evaluate(PEOPLE, release).value("utility.unit_consistency") == 1
    assert ("Units", "100% of 40 units have the same released values of income, dwelling in all "
            "their records.") in list(verdict_lines(verdict(PEOPLE, release, seed=1)))  # fmt: skip
    shuffled = release.data.with_columns(pl.col("income").shuffle(seed=1))
    found = evaluate(PEOPLE, shuffled, aligned=True)
    assert not [figure for figure in found.figures if "unit" in figure.measure]  # no plan


def test_a_unit_can_be_a_pseudonym() -> None:
    roles = {**ROLES, "home": "pseudonym"}
    release = protect(PEOPLE, PLAN.replace(attributes=roles, anonymity=5), seed=1, keep_order=True)
    found = release.data.group_by("home").agg(pl.col("income").n_unique())
    assert (found.height, found["income"].max()) == (40, 1)


def test_what_does_not_know_units_says_so() -> None:
    with pytest.raises(PlanError, match="units or strata"):
        audit(PEOPLE, PLAN)


def test_exploring_values_of_units() -> None:
    roles = {**ROLES, "age": "identifier", "dwelling": "identifier"}
    found = explore(PEOPLE, PLAN.replace(attributes=roles), epsilons=[1.0], runs=1)
    assert all(point.plan.unit == "home" for point in found.points)
    assert max(point.k or 0 for point in found.points) <= 20  # half of 40 units


def test_exploring_records_of_units() -> None:
    roles = {**ROLES, "age": Confidential(lower=0, upper=100), "dwelling": "identifier"}
    found = explore(PEOPLE, PLAN.replace(attributes=roles), epsilons=[1.0], runs=1)
    assert {point.method for point in found.points} == {"iDP-CBLS"}  # the only one for units


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


def beside(table: pl.DataFrame, release: Release) -> Pair:
    return pair_tables(table, release.data, release.detail, release.plan)


def test_pooling_hides_households_also_where_a_pseudonym_tells_who_they_are() -> None:
    """Without noise to speak of, and looked for by all their members at once."""
    table, found = households(300), {}
    for anonymity in (0, 25):
        plan = PLAN.replace(
            epsilon=3000, anonymity=anonymity, exact_from=10,
            attributes={**ROLES, "home": "pseudonym"},
        )  # fmt: skip
        release = protect(table, plan, seed=1)
        found[anonymity] = link_units(beside(table, release))
    assert found[0] is not None
    assert found[25] is not None
    assert found[0].share > 0.5
    assert found[25].share < 0.1
    told = verdict(table, release, seed=1)
    assert told.passed
    assert "risk.linkage_of_units" in {figure.measure for figure in told.figures}


def test_what_to_do_where_units_are_found() -> None:
    plan = PLAN.replace(anonymity=2, attributes={**ROLES, "home": "pseudonym"}, epsilon=3000)
    table = households(300)
    release = protect(table, plan, seed=1)
    with examine(table, release, random=np.random.default_rng(1)) as seen:
        change = next_step(seen, [Figure("risk.linkage_of_units", None, 0.4)], (), seed=1)
    assert change is not None
    assert (change.kind, change.most) == ("pool", 25)


def test_the_attack_on_units_by_hand() -> None:
    """Four households of two; only the first two, whose members changed places, are confused."""
    table = pl.DataFrame({"home": [0, 0, 1, 1, 2, 2, 3, 3], "age": [1, 2, 11, 12, 51, 52, 91, 92]})
    roles = {"home": "pseudonym", "age": Confidential(lower=0, upper=100, method="DP")}
    plan = Plan.published(epsilon=1, unit="home", records_per_person=2, attributes=roles)
    release = protect(table, plan, seed=1, keep_order=True)
    data = release.data.with_columns(age=pl.Series([11, 12, 1, 2, 51, 52, 91, 92]))
    pair = beside(table, replace(release, rows=ReleasedInMemory(data, np.arange(8))))
    assert link_units(pair) == UnitsLinked(share=0.5, chance=0.25, units=4, by=("home",))


def test_the_ledger_says_whose_epsilon_it_is(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger.json"
    declare(path, 10.0)
    protect(PEOPLE, PLAN, ledger=path)
    (entry,) = Ledger.read(path).releases
    assert (entry.unit, entry.epsilon) == ("home", 3)


def test_visits_of_a_patient_with_attributes_that_change_and_some_that_do_not() -> None:
    """A panel: what never changes is equal in all visits; who stays away longest is one of many."""
    visits = households(60, 3).rename({"home": "patient", "income": "born", "age": "pressure"})
    roles = {"patient": "pseudonym", "born": INCOME, "dwelling": "identifier", "pressure": AGE}
    plan = PLAN.replace(unit="patient", attributes=roles, anonymity=4)
    released = protect(visits, plan, seed=1, keep_order=True).data
    by_patient = released.group_by("patient").agg(pl.col("born").n_unique(), pl.len())
    assert by_patient["born"].max() == 1
    assert sorted(by_patient["len"]) == sorted(visits.group_by("patient").len()["len"])


def test_a_model_is_trained_on_values_of_units() -> None:
    model = ProtectedEstimator(DecisionTreeClassifier(), PLAN.replace(attributes={
        **ROLES, "dwelling": "identifier"}), random_state=1)  # fmt: skip
    model.fit(PEOPLE, PEOPLE["dwelling"].to_list())
    assert model.certificate_.unit == "home"
    with pytest.raises(PlanError, match="unit: no attribute 'home'"):
        model.fit(PEOPLE.drop("home"), PEOPLE["dwelling"].to_list())


def test_a_rule_that_ties_values_of_units_to_those_of_records_is_refused() -> None:
    with pytest.raises(PlanError, match="compares attributes with per_unit"):
        PLAN.replace(rules=["age <= income"])


def test_patients_with_several_visits_keep_their_use() -> None:
    """At ε = 1 errors stay small, and deaths that group privacy drowned in noise stay as rare."""
    table = visits()
    plan = plan_for("patient", {"born"}, table)
    with noted():
        release = protect(table, plan, seed=1, keep_order=True)
        found = errors(table, plan, seed=1)
    assert max(found.values()) <= 0.06
    deaths = release.data["died"].mean()
    assert table["died"].mean() == pytest.approx(0.014, abs=0.002)
    assert deaths == pytest.approx(table["died"].mean(), abs=0.002)
    assert release.certificate.levels[0].epsilon == 1
    assert release.certificate.levels[1].epsilon is None
    assert release.detail.losses["fixed_clusters"].max() <= release.detail.losses["epsilon"].max()  # type: ignore[operator]


@pytest.mark.parametrize("homes", [3, 40])
def test_what_all_homes_share_is_refused_where_they_are_few(homes: int) -> None:
    """A unit counts once, whether its value stands in all its records or was masked once."""
    table = pl.DataFrame({
        "home": [i // 2 for i in range(2 * homes)],
        "rent": [5] * 2 * homes,
        "x": range(2 * homes),
    })  # fmt: skip
    plan = Plan(
        epsilon=1.0, k=3, unit="home", anonymity=0, domain_from_data=True,
        attributes={
            "rent": Confidential(per_unit=True), "x": "confidential", "home": "identifier"
        },
    )  # fmt: skip
    if homes == 40:
        assert set(protect(table, plan, seed=1).data["rent"]) == {5}
    else:
        with pytest.raises(DataError, match="'rent': all of its values are the same, and 3 have"):
            protect(table, plan, seed=1)
