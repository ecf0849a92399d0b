"""Sampling weights: the role, what is refused, and estimates that are weighted."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

from microveil import (
    Confidential,
    DataError,
    Plan,
    PlanError,
    PrivacyWarning,
    evaluate,
    protect,
    protect_file,
    risk,
    verdict,
)
from microveil.cli.commands import app
from microveil.compare import estimates
from microveil.compare.estimates import Interval, Weights
from microveil.measures import category_distances as categorical
from microveil.measures import distances as utility
from microveil.show.words.readings import label_of, reading

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
random = np.random.default_rng(5)
WEIGHTED = (
    "utility.means", "utility.totals", "utility.variances", "utility.quantiles",
    "utility.interval_overlap", "utility.pearson", "utility.spearman", "utility.total_variation",
    "utility.cramers_v",
)  # fmt: skip


def survey(records: int = 120) -> pl.DataFrame:
    income = random.gamma(3, 1_000, records).round()
    return pl.DataFrame(
        {
            "income": income,
            "spent": (income * random.uniform(0.3, 0.9, records)).round(),
            "sex": random.choice(["f", "m"], records),
            "job": random.choice(["a", "b", "c"], records),
            "w": random.choice([10.0, 25.0, 250.0], records),
        }
    )


def plan(weight: object = "sampling_weight", **settings: Any) -> Plan:  # noqa: ANN401
    numbers = dict.fromkeys(("income", "spent"), Confidential(lower=0, upper=100_000))
    kinds = dict.fromkeys(("sex", "job"), Confidential(kind="nominal"))
    return Plan.published(
        epsilon=1.0, k=5, **settings, attributes={**numbers, **kinds, "w": weight}
    )


def test_worked_by_hand() -> None:
    values, weights = np.array([[1.0], [2.0], [6.0]]), np.array([1.0, 2.0, 1.0])
    assert estimates.means(values, weights) == pytest.approx([11 / 4])
    squares = (1 * 1.75**2 + 2 * 0.75**2 + 1 * 3.25**2) / 4 * 3 / 2
    assert estimates.variances(values, weights) == pytest.approx([squares])
    # places of the three values: 0, 1·2 + 2·1 = 4, 2·1 + 2·3 = 8, of 8
    assert estimates.quantiles(values[:, 0], weights, (0.25, 0.5, 0.75)).tolist() == [1.5, 2, 4]
    assert estimates.weighted_ranks(np.array([[3.0], [3.0], [1.0]]), weights)[:, 0].tolist() == [
        2.5,
        2.5,
        0.5,
    ]
    assert utility.total_difference(
        np.array([1.0, 2.0]),
        np.array([2.0, 2.0]),
        Weights(np.array([1.0, 4.0]), np.array([1.0, 4.0])),
    ) == pytest.approx(1 / 9)
    assert estimates.weighted_shares(np.array([0, 1, 1]), weights, 3).tolist() == [0.25, 0.75, 0]
    error = 1.959963984540054 * np.sqrt((1.75**2 + 1.5**2 + 3.25**2) * 3 / 2) / 4
    found = estimates.interval_of_mean(values[:, 0], weights)
    assert found == pytest.approx((2.75 - error, 2.75 + error))


def test_intervals_overlap_as_karr_has_it() -> None:
    assert estimates.overlap(Interval(0, 10), Interval(5, 15)) == 0.5
    assert estimates.overlap(Interval(0, 10), Interval(2, 4)) == pytest.approx((0.2 + 1) / 2)
    assert estimates.overlap(Interval(0, 1), Interval(3, 4)) == 0
    assert estimates.overlap(Interval(1, 1), Interval(1, 1)) == 1


def test_weighted_estimates_are_those_of_records_repeated_so_often() -> None:
    values, counts = random.normal(size=(60, 3)), random.integers(1, 6, 60)
    repeated, weights = np.repeat(values, counts, axis=0), counts.astype(float)
    assert estimates.means(values, weights) == pytest.approx(repeated.mean(axis=0))
    factor = 60 / 59
    assert estimates.variances(values, weights) == pytest.approx(repeated.var(axis=0) * factor)
    assert estimates.weighted_correlations(values, weights) == pytest.approx(
        np.corrcoef(repeated, rowvar=False)
    )
    covariance = np.cov(values, rowvar=False, aweights=weights, ddof=0) * factor
    assert estimates.variances(values, weights) == pytest.approx(np.diag(covariance))
    ranked, by_weight = utility.ranks(repeated), estimates.weighted_ranks(values, weights)
    assert np.repeat(by_weight, counts, axis=0) + 0.5 == pytest.approx(ranked)
    one, other = random.integers(0, 3, 60), random.integers(0, 4, 60)
    assert categorical.cramers_v(one, other, weights) == pytest.approx(
        categorical.cramers_v(np.repeat(one, counts), np.repeat(other, counts))
    )


@given(
    arrays(np.float64, (12, 2), elements=st.integers(-50, 50).map(float), unique=True),
    arrays(np.float64, (9, 2), elements=st.integers(-50, 50).map(float), unique=True),
    st.floats(0.01, 1_000),
)
def test_equal_weights_are_none_and_their_scale_does_not_matter(
    original: Any,  # noqa: ANN401
    masked: Any,  # noqa: ANN401
    scale: float,
) -> None:
    equal = Weights(np.full(12, scale), np.full(9, scale))
    uneven = Weights(np.arange(1.0, 13), np.arange(1.0, 10))
    scaled = Weights(uneven.original * scale, uneven.released * scale)
    for measure in (
        utility.mean_differences, utility.variance_differences, utility.quantile_differences,
        lambda x, y, weights=None: utility.correlation_differences(x, y, "pearson", weights),
        lambda x, y, weights=None: utility.correlation_differences(x, y, "spearman", weights),
        lambda x, y, weights=None: utility.interval_overlap(x[:, 0], y[:, 0], weights),
    ):  # fmt: skip
        assert measure(original, masked, equal) == pytest.approx(
            measure(original, masked), rel=1e-7, abs=1e-7
        )
        assert measure(original, masked, scaled) == pytest.approx(
            measure(original, masked, uneven), rel=1e-7, abs=1e-7
        )
    codes, others = original[:, 0].astype(int) % 3, masked[:, 0].astype(int) % 3
    assert categorical.share_overlap(codes, others, equal) == pytest.approx(
        categorical.share_overlap(codes, others)
    )
    assert categorical.total_variation(codes, others, equal) == pytest.approx(
        categorical.total_variation(codes, others)
    )


def test_evaluate_weighs_by_the_plans_weight_and_says_so() -> None:
    table = survey()
    with pytest.warns(PrivacyWarning, match="reveals their stratum or household"):
        release = protect(table, plan(), seed=1)
    found = evaluate(table, release)
    assert {f.measure for f in found.figures if f.weighted} == set(WEIGHTED)
    assert {f.measure for f in found.figures if not f.weighted}.isdisjoint(WEIGHTED)
    weights, masked = table["w"].to_numpy(), release.data
    before = np.average(table["income"].to_numpy(), weights=weights)
    after = np.average(masked["income"].to_numpy(), weights=masked["w"].to_numpy())
    spread = np.sqrt(np.cov(table["income"].to_numpy(), aweights=weights, ddof=0) * 120 / 119)
    assert found.value("utility.means", "income") == pytest.approx((after - before) / spread)
    assert found.value("utility.totals", "income") == pytest.approx(after / before - 1)
    figure = next(f for f in found.figures if f.measure == "utility.means")
    assert label_of(figure) == "difference in means, weighted"
    assert "the weighted mean" in reading(figure)
    assert found.to_frame()["weighted"].any()
    unweighted = evaluate(table, protect(table, plan("kept"), seed=1, keep_order=True))
    assert not any(f.weighted for f in unweighted.figures)


def test_weights_count_as_kept_columns() -> None:
    table = survey().with_columns(w=pl.arange(1, 121).cast(pl.Float64))
    release = protect(table, plan(anonymity=25), seed=1, keep_order=True)
    assert release.data["w"].equals(table["w"])
    assert release.certificate.kept == ("w",)
    found = verdict(table, release)
    assert not found.may_publish(release.certificate)
    assert found.linkage.measure == "linkage.informed"
    assert found.linkage.value == 1


def test_a_masked_weight_is_an_attribute_like_others_by_which_estimates_are_weighted() -> None:
    table = survey().with_columns(w=random.gamma(5, 20, 120).clip(1, 500))
    masked = plan(Confidential(lower=1, upper=500, sampling_weight=True))
    assert Plan.from_toml(masked.to_toml()) == masked
    release = protect(table, masked, seed=2, keep_order=True)
    assert not release.data["w"].equals(table["w"])
    assert (release.data["w"] >= 1).all()
    found = evaluate(table, release)
    after = np.average(release.data["income"].to_numpy(), weights=release.data["w"].to_numpy())
    before = np.average(table["income"].to_numpy(), weights=table["w"].to_numpy())
    assert np.sign(found.value("utility.means", "income")) == np.sign(after - before)
    assert any(f.measure == "utility.means" and f.weighted for f in found.figures)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([None, None, 1.0], "2 that are missing"),
        ([float("nan"), 0.0, -1.0], "1 that are infinite or NaN and 11 that are 0 or negative"),
        (["a", "b", "c"], "sampling weights are numbers, found text"),
    ],
)
def test_weights_that_cannot_weigh_are_refused(weights: list[object], problem: str) -> None:
    table = pl.DataFrame({"x": range(12), "w": pl.Series([*weights, *weights[-1:] * 9])})
    with pytest.raises(DataError, match=problem) as caught:
        protect(
            table,
            Plan.published(
                epsilon=1.0, k=3, attributes={"x": "confidential", "w": "sampling_weight"}
            ),
        )
    assert caught.value.attribute == "w"


def test_plans_with_two_weights_or_one_that_could_become_negative_are_refused() -> None:
    with pytest.raises(PlanError, match="one sampling weight, got 2"):
        Plan.published(
            epsilon=1,
            attributes={
                "x": "confidential",
                "w": "sampling_weight",
                "v": {"role": "sampling_weight"},
            },
        )
    with pytest.raises(PlanError, match="its lower must be above 0"):
        Confidential(sampling_weight=True, lower=0, upper=9)


def test_weights_in_files_are_numbers_and_stay_as_they_are(tmp_path: Path) -> None:
    survey().write_csv(tmp_path / "survey.csv")
    protect_file(tmp_path / "survey.csv", plan(), tmp_path / "out.parquet", keep_order=True, seed=1)
    written = pl.read_parquet(tmp_path / "out.parquet")
    assert written["w"].equals(pl.read_csv(tmp_path / "survey.csv")["w"])


def test_risk_takes_the_plans_weight(tmp_path: Path) -> None:
    table = survey()
    by_plan = risk(table, keys=["sex", "job"], plan=plan())
    assert by_plan.weight == "w"
    assert by_plan.to_dict() == risk(table, keys=["sex", "job"], weight="w").to_dict()
    table.write_csv(tmp_path / "survey.csv")
    plan().write(tmp_path / "plan.toml")
    options = ["--quasi-identifier", "sex", "--json", "--plan", str(tmp_path / "plan.toml")]
    shown = CliRunner().invoke(app, ["risk", str(tmp_path / "survey.csv"), *options])
    assert '"weight": "w"' in shown.output
