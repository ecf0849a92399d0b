"""The budget: what it spends, what it refuses, and that its noise fits."""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest
from scipy import stats

from microveil.core.budget import (
    ONE_RECORD,
    PrivacyBudget,
    Sensitivity,
    delta_of,
    epsilon_within,
    rho_within,
)
from microveil.core.random_words import SeededWords

HALF = Fraction(1, 2)


def budget(epsilon: float = 1.0, delta: float = 1e-5) -> PrivacyBudget:
    return PrivacyBudget(epsilon, delta, SeededWords(1))


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_refuses_to_spend_more_than_there_is(delta: float) -> None:
    one = budget(delta=delta)
    one.counts(np.zeros(2, int), HALF, ONE_RECORD, "first")
    one.choose([np.zeros(3, int)], Fraction(1, 4), ONE_RECORD, "second")
    with pytest.raises(ValueError, match="third: the budget does not hold"):
        one.counts(np.zeros(1, int), Fraction(1, 4) + Fraction(1, 10**12), ONE_RECORD, "third")
    one.counts(np.zeros(1, int), Fraction(1, 4), ONE_RECORD, "third")
    assert one.left == 0
    assert [(spent.purpose, spent.amount / one.total) for spent in one.spent] == [
        ("first", HALF), ("second", Fraction(1, 4)), ("third", Fraction(1, 4)),
    ]  # fmt: skip


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1)])
def test_refuses_shares_that_are_none(share: Fraction) -> None:
    with pytest.raises(ValueError, match="does not hold"):
        budget().counts(np.zeros(1, int), share, ONE_RECORD, "none")


def exact_delta(epsilon: float, sigma: float) -> float:
    """δ of a continuous Gaussian with sensitivity 1 (Balle and Wang 2018): no bound goes below."""
    a, b = 1 / (2 * sigma), epsilon * sigma
    return float(stats.norm.cdf(a - b) - exp(epsilon) * stats.norm.cdf(-a - b))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-5), (4.0, 1e-9)])
def test_conversion_is_a_bound_and_not_far_above(epsilon: float, delta: float) -> None:
    rho = float(rho_within(epsilon, delta))
    assert delta_of(rho, epsilon) <= delta < delta_of(rho * 1.01, epsilon)
    assert exact_delta(epsilon, sqrt(1 / (2 * rho))) <= delta
    assert exact_delta(epsilon, sqrt(1 / (2 * rho)) / 1.25) > delta
    assert epsilon_within(rho, delta) == pytest.approx(epsilon, rel=1e-6)
    # the bound of Bun and Steinke (2016), which is weaker: ε = ρ + 2·sqrt(ρ·ln(1/δ))
    assert rho + 2 * sqrt(rho * np.log(1 / delta)) > epsilon


def test_noise_is_that_of_the_share() -> None:
    for delta in (0.0, 1e-5):
        one = budget(delta=delta)
        noise = one.counts(np.zeros(20_000, int), HALF, Sensitivity(6, 9), "noise")
        expected = sqrt(2) * 6 / 0.5 if delta == 0 else 3 / sqrt(float(one.total))
        assert one.deviation(HALF, Sensitivity(6, 9)) == pytest.approx(expected)
        assert noise.std() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_choices_have_the_rate_of_the_share(delta: float) -> None:
    one = PrivacyBudget(3.0, delta, SeededWords(2))
    lists = [np.array([0, 1])] * 20_000
    chosen = one.choose(lists, HALF, Sensitivity(2, 4), "pairs")
    epsilon = 1.5 if delta == 0 else sqrt(8 * float(one.total) / 2)
    chance = 1 / (1 + exp(-epsilon / 4))
    assert stats.binomtest(sum(chosen), len(lists), chance).pvalue > 1e-4
    assert stats.binomtest(sum(chosen), len(lists), 1 / (1 + exp(-epsilon / 2))).pvalue < 1e-9


def test_keeps_the_shape_of_counts() -> None:
    assert budget().counts(np.zeros((3, 4), int), HALF, ONE_RECORD, "table").shape == (3, 4)
