"""What a release is used for, from the original and from the release: by hand and by NumPy."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import (
    Confidential,
    DataError,
    Plan,
    PlanError,
    PrivacyWarning,
    Use,
    evaluate,
    protect,
    verdict,
)
from microveil.compare.estimates import Estimate, Interval
from microveil.compare.figures import Figure
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import how_useful
from microveil.measures.regressions import linear_regression, logistic_regression
from microveil.measures.use_estimates import SideBySide
from microveil.release.dry_run import check
from microveil.show.words.readings import read_aloud

ORIGINAL = pl.DataFrame(
    {
        "age": [*range(20, 40)] * 6,
        "ward": ["a"] * 90 + ["b"] * 30,
        "bp": [100.0] * 90 + [120.0, 140.0] * 15,
        "died": [False] * 90 + [True] * 15 + [False] * 15,
        "site": [1] * 114 + [12] * 6,
        "born": [datetime(1949, 12, 31, 23)] * 60 + [datetime(1969, 1, 1)] * 59 + [None],
        "seen": pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 4, 29), eager=True),
    }
)


def facts(evaluation: Evaluation, use: str, group: str = "") -> dict[str, Any]:
    about = f"{use}: {group}" if group else use
    (figure,) = [f for f in evaluation.figures if f.attribute == about]
    return {**figure.facts, "moved": figure.value}


def test_estimates_by_hand() -> None:
    """What the release is does not matter here: each table's figures are its own."""
    released = ORIGINAL.with_columns(bp=pl.col("bp") * 1.1, ward=pl.lit("a"))
    uses = ["mean bp by ward", "total bp", "table ward, site", "share died by ward", "share ward",
            "median age by ward", "mean bp by site", "share ward = b",
            "table seen(1)", "table born(10)", "table age(10)"]  # fmt: skip
    found = evaluate(ORIGINAL, released, aligned=True, uses=uses)
    b = facts(found, "mean bp by ward", "b")
    assert (b["original"], b["released"], b["moved"], b["overlap"]) == (130.0, None, 1.0, 0.0)
    error = np.std([120.0, 140.0] * 15, ddof=1) / np.sqrt(30)
    assert b["original_high"] == pytest.approx(130 + 1.959964 * error)
    total = facts(found, "total bp")
    assert total["original"] == 12_900
    assert total["released"] == pytest.approx(14_190)
    assert total["moved"] == pytest.approx(0.1 * 12_900 / max(12_900, 20 * _reach(total)))
    spread = 1.959964 * np.sqrt(120) * np.std(ORIGINAL["bp"].to_numpy(), ddof=1)
    assert total["original_high"] == pytest.approx(12_900 + spread)
    assert facts(found, "table seen(1)", "2020 to under 2021")["original"] == 120
    decades = [f"{start} to under {start + 10}" for start in (1940, 1960)]
    assert [facts(found, "table born(10)", group)["original"] for group in decades] == [60, 59]
    cell = facts(found, "table ward, site", "b, 12")
    assert (cell["original"], cell["released"]) == (6.0, 0.0)
    assert facts(found, "table ward, site", "a, 12")["original"] == 0.0
    assert facts(found, "share died by ward", "b")["original"] == 0.5
    assert facts(found, "share died by ward", "a")["original"] == 0.0
    assert facts(found, "share ward", "b")["released"] == 0.0
    assert facts(found, "share ward = b")["original"] == 0.25
    assert facts(found, "median age by ward", "b")["original"] == 32
    groups = [f.facts["group"] for f in found.figures if f.facts.get("use") == "mean bp by site"]
    assert groups == ["1"]  # of 12 there are too few records
    by_number = [f.facts["group"] for f in found.figures if f.facts.get("use") == uses[2]]
    assert by_number == ["a, 1", "a, 12", "b, 1", "b, 12"]


def _reach(found: dict[str, Any]) -> float:
    return float(found["original_high"] - found["original_low"]) / 2


def test_weights_multiply_records() -> None:
    """A weight of 2 is a record twice in every estimate, though not in its interval."""
    table = ORIGINAL.select("age", "ward", "bp", "died").with_columns(w=pl.Series([1, 2] * 60))
    twice = pl.concat([table, table.filter(pl.col("w") == 2)])
    plan = Plan(
        epsilon=1.0,
        attributes={**dict.fromkeys(table.columns, "kept"), "w": "sampling_weight",
                    "age": Confidential(lower=0, upper=100)},
        uses=["mean bp by ward", "total bp", "table ward", "share died", "bp ~ died",
              "died ~ bp + ward"],
    )  # fmt: skip
    with pytest.warns(PrivacyWarning):
        weighted = evaluate(table, protect(table, plan, seed=1))
    repeated = protect(twice, plan.replace(attributes={**plan.attributes, "w": "kept"}), seed=1)
    found = evaluate(twice, repeated)
    estimates = [f for f in weighted.figures if f.measure == "use.estimate"]
    assert len(estimates) == 7  # of the logistic regression there is none: ward b tells who died
    for figure in estimates:
        assert figure.weighted
        (same,) = [f for f in found.figures if f.attribute == figure.attribute]
        assert figure.facts["original"] == pytest.approx(same.facts["original"])
    assert "the original does not determine" in _why(weighted, "died ~ bp + ward")


def _why(found: Evaluation, use: str) -> str:
    with pytest.raises(DataError) as raised:
        found.value("use.estimate", use)
    return str(raised.value)


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (Estimate(100, Interval(99, 101)), Estimate(94, Interval(90, 98)), 0.06),
        (Estimate(10, Interval(0, 20)), Estimate(20, Interval(10, 30)), 0.05),
        (Estimate(10, Interval(0, 20)), Estimate(50, Interval(40, 60)), 0.2),
        (Estimate(0, Interval(0, 0)), Estimate(0, Interval(0, 0)), 0.0),
        (Estimate(0, Interval(0, 0)), Estimate(1, Interval(1, 1)), 1.0),
        (Estimate(-100, Interval(-101, -99)), Estimate(-95, Interval(-96, -94)), 0.05),
    ],
)
def test_how_far_an_estimate_moves(before: Estimate, after: Estimate, moved: float) -> None:
    assert SideBySide("", before, after).moved == pytest.approx(moved)


def test_regressions_are_those_of_others() -> None:
    """Least squares by NumPy, errors by the formula of White; the logistic one by its maximum."""
    random = np.random.default_rng(3)
    terms = np.column_stack([random.normal(1e4, 5, 400), random.random(400) < 0.3])
    target = terms @ [2.0, -30.0] + random.normal(0, 1 + 3 * terms[:, 1])
    weights = random.uniform(0.5, 2, 400)
    found = linear_regression(terms, target, weights)
    design = np.column_stack([np.ones(400), terms])
    roots = np.sqrt(weights)
    exact, *_ = np.linalg.lstsq(design * roots[:, None], target * roots, rcond=None)
    assert found is not None
    np.testing.assert_allclose(found.values, exact[1:], rtol=1e-6)
    residuals = (weights * (target - design @ exact))[:, None] * design
    bread = np.linalg.inv(design.T @ (weights[:, None] * design))
    white = bread @ residuals.T @ residuals @ bread * 400 / 397
    np.testing.assert_allclose(found.errors, np.sqrt(np.diag(white))[1:], rtol=1e-4)

    chance = 1 / (1 + np.exp(-(terms[:, 1] - 0.2 * (terms[:, 0] - 1e4))))
    died = (random.random(400) < chance).astype(float)
    logistic = logistic_regression(terms, died, weights)
    assert logistic is not None

    def likelihood(slopes: Any) -> float:  # noqa: ANN401 - an array, or a list
        """Of these slopes, with the best intercept."""
        return max(
            float(weights @ (died * line - np.logaddexp(0, line)))
            for line in ((terms - [1e4, 0]) @ slopes + add for add in np.linspace(-1, 1, 2_001))
        )

    best = likelihood(logistic.values)
    for step in ([0.02, 0], [-0.02, 0], [0, 0.1], [0, -0.1]):
        assert likelihood(logistic.values + step) < best
    assert linear_regression(np.column_stack([terms, terms[:, 0]]), target, weights) is None
    assert logistic_regression(terms, (terms[:, 1] > 0).astype(float), weights) is None


def test_intervals_hold_what_they_estimate() -> None:
    """Of 400 samples, 95% of intervals: between 89% and 99%, but once in a million."""
    random = np.random.default_rng(5)
    held = np.zeros(3)
    for _ in range(400):
        terms = random.normal(size=(60, 1))
        target = 2 * terms.ravel() + random.normal(size=60) * (1 + np.abs(terms.ravel()))
        table = pl.DataFrame({"x": random.exponential(size=60), "g": list("ab") * 30})
        found = linear_regression(terms, target, np.ones(60))
        assert found is not None
        (slope,) = found.estimates
        seen = evaluate_only(table, ["median x", "total x"])
        for place, (interval, truth) in enumerate(
            [(slope.interval, 2.0), (seen[0], np.log(2)), (seen[1], 60.0)]
        ):
            held[place] += interval[0] <= truth <= interval[1]
    assert np.all((held / 400 > 0.88) & (held / 400 < 0.99))


def evaluate_only(table: pl.DataFrame, uses: list[str]) -> list[tuple[float, float]]:
    from microveil.compare.pairing import pair_tables
    from microveil.compare.use_columns import UseColumns
    from microveil.measures.use_estimates import side_by_side

    columns = UseColumns(pair_tables(table, table))
    rows = [next(iter(side_by_side(Use.parse(use), columns, (1.0, 1.0)))) for use in uses]
    return [row.original.interval for row in rows if isinstance(row, SideBySide)]


PATIENTS = 1_500


@pytest.fixture(scope="module")
def patients() -> pl.DataFrame:
    random = np.random.default_rng(0)
    age = random.integers(18, 95, PATIENTS)
    return pl.DataFrame(
        {
            "age": age,
            "bp": (100 + age / 2 + random.normal(0, 8, PATIENTS)).round(),
            "ward": random.choice(["north", "south", "east"], PATIENTS, p=[0.5, 0.3, 0.2]),
            "died": random.random(PATIENTS) < 1 / (1 + np.exp(8 - age / 9)),
        }
    )


def plan(*uses: str, **settings: Any) -> Plan:  # noqa: ANN401 - whatever a plan takes
    attributes = {
        "age": Confidential(),
        "bp": Confidential(),
        "ward": Confidential(kind="nominal", categories=["north", "south", "east"]),
        "died": Confidential(kind="nominal", categories=[True, False]),
    }
    return Plan(**{"epsilon": 1.0, "attributes": attributes, "uses": uses, **settings})


def test_uses_decide_on_usefulness_and_a_masked_target_is_learned(patients: pl.DataFrame) -> None:
    pytest.importorskip("sklearn")
    made = plan("mean bp by age(20)", "predict died", "predict bp", "table ward", "bp ~ age + ward")
    release = protect(patients, made, seed=1)
    found = verdict(patients, release, seed=1)
    scores = {f.attribute: f.facts for f in found.figures if f.measure == "use.model"}
    assert {each["score"] for each in scores.values()} == {"AUC", "R²"}
    assert 0.8 < float(str(scores["predict died"]["original"])) < 0.97
    assert all(abs(each["released"] - each["original"]) < 0.1 for each in scores.values())  # type: ignore[operator]
    assert {f.measure for f in found.usefulness.figures} == {"use.estimate", "use.model"}
    assert found.usefulness.grade in ("good", "fair")
    told = [read_aloud(f) for f in found.figures if f.attribute == "predict died"]
    assert told[0].startswith(f"Model on original {scores['predict died']['original']:.3f}, on")

    noisy = plan("mean bp by age(20)", "predict died", anonymity=500, pooling="average")
    worse = verdict(patients, protect(patients, noisy, seed=1), seed=1)
    assert worse.usefulness.grade == "poor"
    assert worse.usefulness.figures[0].measure.startswith("use.")


def test_models_do_not_see_those_they_are_tested_on() -> None:
    """A class that nothing tells: a model that saw the tested records would be above guessing."""
    pytest.importorskip("sklearn")
    random = np.random.default_rng(2)
    table = pl.DataFrame(
        {"x": random.normal(size=1_200), "y": random.normal(size=1_200),
         "luck": random.random(1_200) < 0.5}
    )  # fmt: skip
    attributes = {"x": Confidential(), "y": Confidential(),
                  "luck": Confidential(kind="nominal", categories=[True, False])}  # fmt: skip
    made = Plan(epsilon=1e6, anonymity=2, attributes=attributes, uses=["predict luck"])
    (figure,) = [
        f for f in evaluate(table, protect(table, made, seed=1)).figures if f.measure == "use.model"
    ]
    assert abs(float(str(figure.facts["released"])) - 0.5) < 0.13


def test_a_poor_grade_needs_no_other_figure() -> None:
    moved = Figure("use.estimate", "mean a", 0.21, {"use": "mean a"})
    fine = Figure("utility.il1s", None, 0.0)
    assert how_useful([moved, fine]).grade == "poor"
    assert how_useful([fine]).grade == "good"


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        ("mean seen", "'seen' holds dates, which only a model can take"),
        ("share bp", "'bp' holds numbers; group them into bands, such as bp(10)"),
        ("mean ward", "'ward' holds categories"),
        ("mean nobody", "'nobody'"),
    ],
)
def test_what_does_not_fit_the_table_is_refused_before_any_work(use: str, problem: str) -> None:
    kept = Plan(
        epsilon=1.0, attributes={**dict.fromkeys(ORIGINAL.columns, "kept"), "age": "confidential"}
    )
    if "nobody" not in use:
        (found,) = check(ORIGINAL, kept.replace(uses=[use]))
        assert problem in str(found)
        with pytest.raises(PlanError, match=problem[:12]):
            protect(ORIGINAL, kept.replace(uses=[use]))
    with pytest.raises(PlanError) as raised:
        evaluate(ORIGINAL, ORIGINAL, aligned=True, uses=[use])
    assert problem in str(raised.value)


def test_uses_are_private(patients: pl.DataFrame, tmp_path: Path) -> None:
    """Neither the certificate nor the release says a word of them, and they change nothing."""
    with_uses = protect(patients, plan("mean bp by age(20)", "died ~ age"), seed=7)
    without = protect(patients, plan(), seed=7)
    assert with_uses.data.equals(without.data)
    texts = []
    for name, release in (("with", with_uses), ("without", without)):
        written = release.write(tmp_path / f"{name}.parquet", keep_order=True)
        told = json.loads(written.certificate.read_text(encoding="utf-8"))
        del told["file"], told["created"]
        texts.append(json.dumps(told))
        raw = written.protected.read_bytes()
        assert b"mean bp" not in raw
        assert b"died ~" not in raw
    assert texts[0] == texts[1]
    assert "uses" not in texts[0]
