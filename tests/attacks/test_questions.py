"""Singling out, linkability and inference: what a release gives away of the people in it alone."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Plan, Verdict, evaluate, protect, verdict
from microveil.attacks.attack_rows import GAINS, MOST_GAIN
from microveil.attacks.inference import by_nearest_row, share_of_people
from microveil.attacks.joint_inference import by_joint_cluster
from microveil.attacks.subject import ReleasedRows, Subject
from microveil.compare.figures import Figure
from microveil.errors import PrivacyWarning
from microveil.judge.grades import grade_of, how_risky, passes, worst_answer
from microveil.show.verdicts import verdict_lines
from microveil.types import Integers, Reals

NAMES = ("wages", "tax", "age", "hours")
RECOMMENDED = {
    "epsilon": 1.0, "method": "iDP-CBLS", "k": 3, "partition": "noise-optimal",
    "post": "penalised-isotonic",
}  # fmt: skip


def people(records: int = 1_200, seed: int = 3) -> pl.DataFrame:
    """Numbers that go together, and a sex that hours and wages tell of more often than not."""
    random = np.random.default_rng(seed)
    common = random.normal(size=(records, 1))
    values = np.exp(0.3 * common + 0.5 * random.normal(size=(records, 4))) * 1_000
    sex = np.where(common[:, 0] + random.normal(size=records) > 0, "m", "f")
    table = pl.DataFrame(values.round(), schema=list(NAMES))
    return table.with_columns(sex=pl.Series(sex))


def planned(**settings: Any) -> Plan:  # noqa: ANN401 - settings of a plan
    roles: dict[str, Any] = dict.fromkeys(NAMES, "confidential")
    roles["sex"] = {"role": "confidential", "kind": "nominal", "categories": ["f", "m"]}
    given = {**RECOMMENDED, "anonymity": 10, "attributes": roles, **settings}
    return Plan(**given)


def judged(table: pl.DataFrame, plan: Plan) -> Verdict:
    return verdict(table, protect(table, plan, seed=1), seed=1)


def gains(found: Verdict, measure: str) -> dict[str | None, Figure]:
    return {f.attribute: f for f in found.figures if f.measure == measure}


def test_a_release_that_is_not_pooled_gives_attributes_away_and_fails() -> None:
    with pytest.warns(PrivacyWarning, match="sex"):
        found = judged(people(), planned(anonymity=0, epsilon=10.0))
    told = worst_answer(found.figures, "Inference")
    assert told is not None
    assert told.sample is not None
    assert told.sample.low is not None
    assert told.sample.low > MOST_GAIN
    assert grade_of(told) == "poor"
    assert not passes([f for f in found.figures if f.measure in GAINS or not f.value])
    assert not found.passed
    linked = worst_answer(found.figures, "Linkability")
    assert linked is not None
    assert linked.counted > 0.5


def test_what_crowds_of_fifty_give_away_is_on_the_screen() -> None:
    found = judged(people(), planned(anonymity=50))
    told = worst_answer(found.figures, "Inference")
    assert told is not None
    assert told.measure == "risk.joint_inference"
    assert told.counted > 0.1
    assert how_risky(found.figures).grade == "fair"
    assert found.passed
    lines = dict(verdict_lines(found))
    assert str(told.attribute) in lines["Inference"]
    assert str(told.attribute) in lines["Risk"]
    assert {"Singling out", "Linkability", "Inference"} <= set(lines)


def test_pure_noise_gives_nothing_away() -> None:
    """Scales of hundreds of deviations: of 1,200 people five standard errors are 0.12."""
    bounded = {"role": "confidential", "lower": 0, "upper": 1e6}
    roles = {**dict.fromkeys(NAMES, bounded), "sex": "identifier"}
    plan = planned(epsilon=1e-4, method="DP", partition="fixed", post="none", attributes=roles,
                   anonymity=0)  # fmt: skip
    found = judged(people(), plan)
    for measure in GAINS:
        assert gains(found, measure)
        for figure in gains(found, measure).values():
            assert figure.value < 0.12
            assert grade_of(figure) == "good"


def test_a_control_of_nothing_would_take_what_is_known_of_everybody_for_a_gain() -> None:
    """All values follow from one: outsiders are guessed as well as members; nothing is gained."""

    def release(chosen: Integers, seed: int) -> ReleasedRows:
        random = np.random.default_rng(seed + 5)
        others = random.integers(0, 4, (len(chosen), 1)).repeat(3, axis=1)
        return ReleasedRows(others.astype(float))

    codes = np.random.default_rng(1).integers(0, 4, (400, 1)).repeat(3, axis=1).astype(float)
    for attack in (by_nearest_row, by_joint_cluster):
        for nominal in ((), (0, 1, 2)):
            for found in attack(Subject(codes, nominal, release), 1).values():
                assert found.rate == found.control == 1
                assert found.risk == 0


def crowds(values: Reals, size: int, seed: int) -> ReleasedRows:
    """Exchange every attribute in joint clusters of people who are alike in the first."""
    random = np.random.default_rng(seed)
    labels = np.empty(len(values), dtype=np.int64)
    labels[np.argsort(values[:, 0], kind="stable")] = np.arange(len(values)) // size
    rows = np.empty_like(values)
    for a in range(values.shape[1]):
        order = np.lexsort((random.random(len(values)), labels))
        rows[np.lexsort((random.random(len(values)), labels)), a] = values[order, a]
    return ReleasedRows(rows, np.repeat(labels[:, np.newaxis], values.shape[1], axis=1))


def test_the_joint_cluster_tells_what_the_nearest_row_does_not() -> None:
    """A crowd of five has a person's value among five: the nearest row finds it in one of five."""
    random = np.random.default_rng(1)
    values = random.permutation(np.arange(600.0))[:, np.newaxis] * np.ones(3)
    values[:, 1] += random.normal(scale=0.1, size=600)
    values[:, 2] = random.integers(0, 40, 600)  # of which the others tell nothing
    subject = Subject(values, (2,), lambda chosen, seed: crowds(values[chosen], 5, seed))
    joint, nearest = by_joint_cluster(subject, 1)[2], by_nearest_row(subject, 1)[2]
    assert joint.low > 0.1
    assert joint.risk < 0.35  # a fifth, and a little more where values repeat
    assert joint.risk >= nearest.risk - 0.05


def test_relations_pair_values_of_a_crowd_with_its_people() -> None:
    """What the others determine is told in a crowd of ten, though not from its set alone."""
    random = np.random.default_rng(2)
    known = random.normal(size=(1_000, 1))
    values = np.column_stack(
        [known.round(), known, 5 * known + 0.01 * random.normal(size=known.shape)]
    )
    subject = Subject(values, (), lambda chosen, seed: crowds(values[chosen], 10, seed))
    assert by_joint_cluster(subject, 1)[2].risk > 0.15


def test_people_count_once_whatever_they_have() -> None:
    right = np.array([1.0, 1.0, 1.0, 0.0, np.nan])
    assert share_of_people(right, np.array([1, 1, 1, 2, 3])) == (0.5, 2)


def visits() -> pl.DataFrame:
    random = np.random.default_rng(4)
    patient = np.repeat(np.arange(150), random.integers(1, 5, 150))
    return pl.DataFrame(
        {
            "patient": patient,
            "born": random.integers(1_930, 2_000, 150)[patient],
            "cost": random.gamma(2, 500, len(patient)).round(),
            "days": random.integers(1, 30, len(patient)),
        }
    )


def test_halves_are_of_persons() -> None:
    table = visits()
    plan = Plan(
        epsilon=1.0, k=3, anonymity=5, unit="patient", attributes={
            "patient": "identifier", "born": {"role": "confidential", "per_unit": True},
            "cost": "confidential", "days": "confidential"},
    )  # fmt: skip
    found = judged(table, plan)
    tried = {f.facts["tried"] for f in found.figures if f.measure == "risk.inference"}
    assert tried == {150}
    owner = np.arange(90) // 3
    values = np.random.default_rng(1).normal(size=(90, 2))
    subject = Subject(values, (), lambda chosen, _: ReleasedRows(values[chosen]), unit=owner)
    for scene in subject.halves(1):
        assert not set(scene.owner) & set(scene.owner_outside)
        assert len(scene.people) == 45


def cases() -> list[Any]:
    attributes, kept = planned().attributes, {"role": "kept"}
    gaps = people(400).with_columns(
        tax=pl.when(pl.col("tax") % 5 > 0).then("tax"),
        sex=pl.when(pl.col("age") % 7 > 0).then("sex"),
    )
    strata = people(400).with_columns(region=pl.Series(["n", "s"] * 200))
    roles = {**attributes, "region": kept}
    return [
        pytest.param(people(400), {"attributes": {**attributes, "sex": kept}}, id="kept"),
        pytest.param(gaps, {"missing": "keep"}, id="missing"),
        pytest.param(strata, {"within": ["region"], "attributes": roles}, id="strata"),
    ]


@pytest.mark.parametrize(("table", "settings"), cases())
def test_it_is_asked_of_every_kind_of_table(table: pl.DataFrame, settings: dict[str, Any]) -> None:
    found = judged(table, planned(**settings))
    assert {figure.measure for figure in found.figures} >= set(GAINS)
    secrets = set(gains(found, "risk.inference"))
    assert secrets <= {*NAMES, "sex"}
    assert secrets >= set(NAMES) - {"tax"}


def test_an_attacker_knows_kept_columns_too() -> None:
    """A kept column that is unique leads to the row, where nothing else does."""
    random = np.random.default_rng(1)
    values = random.normal(size=(400, 3))
    values[:, 0] = random.permutation(400)

    def release(chosen: Integers, _: int) -> ReleasedRows:
        rows = values[chosen].copy()
        rows[:, 2] = random.normal(size=len(rows))
        return ReleasedRows(rows)

    nearest = by_nearest_row(Subject(values, (), release, exact=(0,)), 1)
    assert set(nearest) == {1, 2}
    assert nearest[1].risk > 0.9
    assert nearest[2].low == 0


def test_too_few_people_are_said_to_be_too_few() -> None:
    table = people(30)
    found = judged(table, planned())
    lines = dict(verdict_lines(found))
    for name in ("Singling out", "Linkability", "Inference"):
        assert "not computed: halves of so few people" in lines[name]
    large = judged(people(60), planned(anonymity=40))
    assert "half of the people" in dict(verdict_lines(large))["Inference"]


def test_what_everybody_has_is_left_out() -> None:
    table = people(400).with_columns(sex=pl.Series(["f"] * 390 + ["m"] * 10))
    found = evaluate(table, protect(table, planned(), seed=1))
    [reason] = {
        x.reason for x in found.not_computed if x.attribute == "sex" and x.measures[0] in GAINS
    }
    assert reason == "known_anyway"
    assert found.value("risk.inference", "tax") >= 0
