from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, PlanError, expected_error, protect
from microveil.core.choices import Pooling
from microveil.measures.distances import mean_sse

RANDOM = np.random.default_rng(4)
# Evenly spread, so that no single cluster's noise decides the mean of a few runs.
TABLE = pl.DataFrame(
    {"x": RANDOM.uniform(0, 10, 1500).round(3), "y": RANDOM.integers(0, 999, 1500) / 8}
)
WIDE = Confidential(lower=-1e6, upper=1e6)  # so wide that nothing is ever clamped
OPEN = Confidential(resolution=2.0**-20)


@pytest.mark.parametrize(
    ("settings", "attribute"),
    [
        ({"k": 5}, OPEN),
        ({"k": 25, "epsilon": 0.3}, OPEN),
        ({"k": 25, "trim": 0.2}, OPEN),
        ({"k": "auto", "post": "none"}, OPEN),
        ({"partition": "noise-optimal", "k": 3, "post": "none"}, OPEN),
        ({"partition": "least-squares", "k": 6, "post": "none"}, OPEN),
        ({"k": 40, "guarantee": "re-clustered"}, OPEN),
        ({"method": "iDP-LS", "k": 20, "epsilon": 3000.0}, WIDE),
        ({"method": "DP-UM", "k": 20, "epsilon": 3000.0}, WIDE),
        ({"method": "DP", "epsilon": 3000.0}, WIDE),
    ],
)
def test_the_prediction_is_within_five_percent_of_many_runs(
    settings: dict[str, Any], attribute: Confidential
) -> None:
    plan = Plan.published(
        **{"epsilon": 2.0, "attributes": dict.fromkeys(TABLE.columns, attribute), **settings}
    )
    predicted = expected_error(TABLE, plan)
    original = TABLE.to_numpy()
    errors = [
        mean_sse(original, protect(TABLE, plan, seed=s, keep_order=True).data.to_numpy())
        for s in range(100)
    ]
    assert predicted.mean_sse == pytest.approx(np.mean(errors), rel=0.05)
    assert predicted.attributes["mean_sse"].sum() == pytest.approx(predicted.mean_sse)


def test_by_hand() -> None:
    # {1, 2, 4} and {5, 7, 11, 20}: pulled in to 2 and 9; squares 1 + 0 + 4 and 16 + 4 + 4 + 121;
    # b = 2/2 and 6.5/2: noise 3·2·1² and 4·2·3.25² = 6 and 84.5. The variance is 44.476.
    table = pl.DataFrame({"x": [7, 1, 20, 4, 5, 2, 11]})
    outcome = expected_error(
        table, Plan.published(epsilon=2.0, k=3, attributes={"x": "confidential"})
    )
    variance = np.var([7, 1, 20, 4, 5, 2, 11], ddof=1)
    row = outcome.attributes.row(0, named=True)
    assert row["within"] == pytest.approx(150 / 7 / variance, rel=1e-5)
    assert row["noise"] == pytest.approx(90.5 / 7 / variance, rel=1e-5)
    assert outcome.mean_sse == pytest.approx(240.5 / 7 / variance, rel=1e-5)


def test_a_trimmed_cluster_by_hand() -> None:
    # {1, 2, 4}: too small for a tenth. {5, 7, 11, 20} of a quarter each: 7 and 11, mean 9, squares
    # 145 as above; up (20 − 7)/2 and down (11 − 5)/2, b = 6.5/2 for four records.
    table = pl.DataFrame({"x": [7, 1, 20, 4, 5, 2, 11]})
    plan = Plan.published(epsilon=2.0, k=3, trim=0.25, attributes={"x": "confidential"})
    row = expected_error(table, plan).attributes.row(0, named=True)
    variance = np.var([7, 1, 20, 4, 5, 2, 11], ddof=1)
    assert row["within"] == pytest.approx(150 / 7 / variance, rel=1e-5)
    assert row["noise"] == pytest.approx((6 + 4 * 2 * 3.25**2) / 7 / variance, rel=1e-5)
    wide = expected_error(table, plan.replace(trim=0.1)).attributes.row(0, named=True)
    assert wide["noise"] == pytest.approx(90.5 / 7 / variance, rel=1e-5)


def test_constant_attributes_do_not_count_as_in_evaluate() -> None:
    table = TABLE.with_columns(constant=pl.lit(7.0))
    plan = Plan.published(epsilon=2.0, k=5, attributes=dict.fromkeys(table.columns, OPEN))
    two = plan.replace(
        epsilon=2.0 * 2 / 3, attributes=dict.fromkeys(TABLE.columns, OPEN)
    )  # the same share of ε for both
    assert expected_error(table, plan).mean_sse == pytest.approx(
        expected_error(TABLE, two).mean_sse, rel=1e-6
    )


def test_clamping_lowers_what_is_expected() -> None:
    attributes = dict.fromkeys(TABLE.columns, Confidential(lower=0, upper=200))
    plan = Plan.published(epsilon=0.0001, k=5, attributes=attributes)
    free, clamped = (expected_error(TABLE, plan, clamped=c).mean_sse for c in (False, True))
    measured = mean_sse(
        TABLE.to_numpy(), protect(TABLE, plan, seed=1, keep_order=True).data.to_numpy()
    )
    assert clamped < free / 10
    assert measured / 5 < clamped < measured * 5


def test_a_constant_attribute_loses_nothing() -> None:
    table = pl.DataFrame({"x": [3] * 9})
    outcome = expected_error(
        table, Plan.published(epsilon=1.0, k=3, attributes={"x": "confidential"})
    )
    assert outcome.mean_sse == 0


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_categories_alone_are_refused() -> None:
    table = pl.DataFrame({"a": range(20), "b": ["x", "y"] * 10})
    nominal = Confidential(kind="nominal", categories=["x", "y"])
    with pytest.raises(PlanError, match="categories have no squared error"):
        expected_error(
            table.select("b"), Plan.published(epsilon=1.0, k=3, attributes={"b": nominal})
        )


@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_pooling_is_expected_to_add_the_squares_within_joint_clusters(
    pooling: Pooling,
) -> None:
    random = np.random.default_rng(3)
    table = pl.DataFrame({name: random.normal(size=500) for name in "xyz"})
    attributes = dict.fromkeys("xyz", Confidential(lower=-9, upper=9))
    plan = Plan.published(epsilon=60.0, k=3, anonymity=10, pooling=pooling, attributes=attributes)
    expected = expected_error(table, plan)
    runs = [protect(table, plan, seed=seed, keep_order=True).data.to_numpy() for seed in range(5)]
    measured = np.mean([mean_sse(table.to_numpy(), run) for run in runs])
    assert expected.mean_sse == pytest.approx(measured, rel=0.15)
    shares = expected.attributes
    assert (shares["pooled"] > 5 * shares["within"]).all()
    alone = expected_error(table, plan.replace(anonymity=0))
    assert alone.attributes["pooled"].to_list() == [0, 0, 0]
