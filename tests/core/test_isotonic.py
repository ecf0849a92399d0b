from collections.abc import Callable
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import isotonic_regression

from microveil import Confidential, Plan, protect
from microveil.core.isotonic import (
    across_ranges,
    expected_squares_of_noise,
    isotonic,
    penalised_isotonic,
    reflected,
    weights_of,
)
from microveil.types import Reals

Regression = Callable[..., Reals]

noisy = st.lists(st.tuples(st.floats(-100, 100), st.integers(1, 50)), min_size=1, max_size=40)
Clusters = list[tuple[float, int]]


@given(noisy)
def test_agrees_with_an_independent_isotonic_regression(clusters: Clusters) -> None:
    values, scales = (np.array(column, dtype=float) for column in zip(*clusters, strict=True))
    expected = isotonic_regression(values, weights=1 / scales**2).x
    assert np.allclose(isotonic(values, scales), expected, atol=1e-9)


@given(noisy, st.lists(st.floats(-100, 100), min_size=0, max_size=5), st.randoms())
def test_centroids_without_noise_keep_their_values(
    clusters: Clusters, exact: list[float], random: object
) -> None:
    places = sorted(random.sample(range(len(clusters)), min(len(exact), len(clusters))))  # type: ignore[attr-defined]
    for place, value in zip(places, sorted(exact), strict=False):
        clusters[place] = (value, 0)
    values, scales = (np.array(column, dtype=float) for column in zip(*clusters, strict=True))
    result = isotonic(values, scales)
    assert np.all(np.diff(result) >= 0)
    assert np.array_equal(result[scales == 0], values[scales == 0])
    # The limit of ever larger weights for the exact ones.
    heavy = np.where(scales == 0, 1e12, 1 / np.maximum(scales, 1) ** 2)
    assert np.allclose(result, isotonic_regression(values, weights=heavy).x, atol=1e-3)


def test_expected_squares_of_noise_agree_with_numerical_integration() -> None:
    for scale, ceiling in ((1.0, 0.5), (2.0, 3.0), (5.0, 1.0), (0.3, 100.0)):
        inside = quad(lambda x, b=scale: x**2 / b * np.exp(-x / b), 0, ceiling)[0]
        expected = inside + ceiling**2 * np.exp(-ceiling / scale)
        assert expected_squares_of_noise(np.array([scale]), ceiling)[0] == pytest.approx(expected)


def test_values_beyond_the_domain_are_reflected_before_they_can_pull_others() -> None:
    result = isotonic(np.array([0.0, 1e9 + 7.0, 4.0]), np.array([0.1, 50.0, 0.1]), 0.0, 10.0)
    assert result[0] == 0
    assert 4 <= result[1] == result[2] < 4.01  # 7 before it was pooled


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(0.0, 10.0, [4.0, 0.5, 8.0, 5.0]), (0.0, np.inf, [4.0, 0.5, 12.0, 25.0]),
     (-np.inf, 10.0, [4.0, -0.5, 8.0, -5.0]), (-np.inf, np.inf, [4.0, -0.5, 12.0, 25.0])],
)  # fmt: skip
def test_values_are_reflected_at_either_end(
    lower: float, upper: float, expected: list[float]
) -> None:
    assert reflected(np.array([4.0, -0.5, 12.0, 25.0]), lower, upper).tolist() == expected


def test_what_is_beyond_all_doubles_is_clamped() -> None:
    most = np.finfo(np.float64).max
    assert reflected(np.array([np.inf, -np.inf, 1.0]), -most, most).tolist() == [most, -most, 1.0]


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 4000)), min_size=2, max_size=30),
    st.sampled_from([isotonic, penalised_isotonic]),
    st.integers(1, 6),
    st.integers(0, 2**32),
)
def test_no_published_value_is_a_function_of_scales_and_domain(
    clusters: list[tuple[int, int]], regression: Regression, ranges: int, seed: int
) -> None:
    """Values that come again when all noise is drawn anew are the ends of the domain, no others.

    The same centroids and scales are masked twice. Clamped before they were pooled, a first value
    at the lower end became this end plus a deviation in half of all draws, and thus in a quarter of
    all pairs of them; this is what told a private scale.
    """
    centroids, scales = (np.array(c, dtype=float) for c in zip(*clusters, strict=True))
    centroids.sort()
    random = np.random.default_rng(seed)
    first, second = (
        _regressed(centroids + random.laplace(scale=scales), scales, regression, ranges)
        for _ in range(2)
    )
    again = np.intersect1d(first, second)
    assert set(again.tolist()) <= {0.0, 1000.0}


def _regressed(masked: Reals, scales: Reals, regression: Regression, ranges: int) -> Reals:
    """Regress ranges of clusters by themselves, put them together, as Spark does, and publish."""
    parts = np.array_split(np.arange(len(masked)), min(ranges, len(masked)))
    owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    fitted = []
    for number, part in enumerate(parts):
        kind = {"ends": (number == 0, number == len(parts) - 1)}
        own = kind if regression is penalised_isotonic else {}
        fitted.append(regression(masked[part], scales[part], 0.0, 1000.0, **own))
    values = np.concatenate(fitted)
    lowest, highest = across_ranges(owner, values, weights_of(scales, 0.0, 1000.0))
    return np.clip(np.clip(values, lowest[owner], highest[owner]), 0.0, 1000.0)


def test_a_release_is_in_rising_order_and_nearer_to_the_truth() -> None:
    table = pl.DataFrame({"x": np.arange(2000)})
    error = {}
    domain = Confidential(lower=0, upper=2000)
    for post in ("none", "isotonic"):
        plan = Plan.published(epsilon=0.1, k=5, post=post, attributes={"x": domain})
        masked = protect(table, plan, seed=1, keep_order=True).data["x"]
        error[post] = ((masked - table["x"]) ** 2).mean()
        assert masked.is_sorted() == (post == "isotonic")
    assert error["isotonic"] < error["none"] / 2


@given(noisy, st.randoms())
def test_ranges_put_together_are_regressed_as_in_one_pass(
    clusters: Clusters, random: Random
) -> None:
    values, scales = (np.array(column, dtype=float) for column in zip(*clusters, strict=True))
    values += 5 * np.arange(len(values))
    cuts = sorted(random.choices(range(len(values) + 1), k=4))
    ranges = [part for part in np.split(np.arange(len(values)), cuts) if len(part)]
    owner = np.repeat(np.arange(len(ranges)), [len(part) for part in ranges])
    fitted = np.concatenate([isotonic(values[part], scales[part]) for part in ranges])
    lowest, highest = across_ranges(owner, fitted, weights_of(scales))
    together = np.clip(fitted, lowest[owner], highest[owner])
    assert np.allclose(together, isotonic(values, scales), rtol=1e-12, atol=1e-9)
    first = np.array([fitted[owner == part].min() for part in range(len(ranges))])
    last = np.array([fitted[owner == part].max() for part in range(len(ranges))])
    above = np.append(np.minimum.accumulate(first[::-1])[::-1][1:], np.inf)
    below = np.append(-np.inf, np.maximum.accumulate(last)[:-1])
    some = (fitted < below[owner]) | (fitted > above[owner])
    if some.any():  # the others need not be given
        fewer = across_ranges(owner[some], fitted[some], weights_of(scales)[some])
        for of_all, of_some in zip((lowest, highest), fewer, strict=True):
            assert np.allclose(of_all[: len(of_some)], of_some, rtol=1e-12)
