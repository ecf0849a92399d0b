"""Discrete Gaussian noise and the exponential mechanism against their exact distributions."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy import stats

from microveil.core import random_words
from microveil.core.noise import (
    LARGEST_DEVIATION,
    add_discrete_gaussian,
    add_discrete_laplace,
    exponential_mechanism,
)
from microveil.core.random_words import SeededWords, SystemWords
from microveil.types import Integers, Reals

DRAWS = 100_000
VARIANCES = [
    Fraction(1, 4), Fraction(1, 3), Fraction(1), Fraction(169, 100), Fraction(1000, 7),
    Fraction(2**41 + 5), Fraction(2**52),
]  # fmt: skip


def draw(variance: Fraction, count: int = DRAWS, seed: int = 7) -> Integers:
    return add_discrete_gaussian(np.zeros(count, dtype=np.int64), variance, SeededWords(seed))


def p_value(sample: Integers, variance: float) -> float:
    """Chi-square test of a sample against the discrete Gaussian distribution of a variance."""
    deviation = variance**0.5
    step = max(1, round(deviation / 4))
    edges = (np.arange(-16, 17)) * step  # cells (a, b], the first and last without an end
    if deviation < 50:
        x = np.arange(-40 * max(1, round(deviation)), 40 * max(1, round(deviation)) + 1)
        mass = np.exp(-(x**2) / (2 * variance))
        place = np.searchsorted(edges, x)
        expected = np.bincount(place, mass / mass.sum(), len(edges) + 1)
    else:  # where the sum is the integral but for far less than chance
        inside = stats.norm.cdf((edges + 0.5) / deviation)
        expected = np.diff(np.concatenate([[0], inside, [1]]))
    expected = expected * len(sample)
    observed = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    wide = expected > 5
    return float(
        stats.chisquare(
            np.append(observed[wide], observed[~wide].sum()),
            np.append(expected[wide], expected[~wide].sum() + 1e-9),
            sum_check=False,
        ).pvalue
    )


@pytest.mark.parametrize("variance", VARIANCES)
def test_accepts_the_true_variance_and_rejects_others(variance: Fraction) -> None:
    sample = draw(variance)
    assert p_value(sample, float(variance)) > 1e-4
    assert p_value(sample, float(variance) * 1.2) < 1e-12
    assert p_value(sample, float(variance) * 0.8) < 1e-12


def test_tells_discrete_from_rounded_gaussian() -> None:
    # At σ² = 1/3 a rounded Gaussian has P(0) = 0.61, the discrete one 0.69.
    zero = 1 / sum(exp(-1.5 * x * x) for x in range(-9, 10))
    count = int(np.count_nonzero(draw(Fraction(1, 3)) == 0))
    assert stats.binomtest(count, DRAWS, zero).pvalue > 1e-4
    rounded = stats.norm.cdf(0.5 * 3**0.5) - stats.norm.cdf(-0.5 * 3**0.5)
    assert stats.binomtest(count, DRAWS, float(rounded)).pvalue < 1e-12


def test_system_words_give_the_same_distribution() -> None:
    sample = add_discrete_gaussian(np.zeros(DRAWS, dtype=np.int64), Fraction(50), SystemWords())
    assert p_value(sample, 50) > 1e-6
    assert p_value(sample, 60) < 1e-12


def test_agrees_with_opendp() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    count, deviation = 20_000, 6
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    mechanism = space >> dp.m.then_gaussian(scale=float(deviation))
    oracle = np.array(mechanism([0] * count))
    edges = np.arange(-12, 13) * 2

    def same(ours: Integers) -> float:
        table = [np.bincount(np.searchsorted(edges, x), minlength=26) for x in (ours, oracle)]
        filled = np.array(table)[:, np.sum(table, axis=0) > 10]
        return float(stats.chi2_contingency(filled).pvalue)

    assert same(draw(Fraction(deviation**2), count)) > 1e-6
    assert same(draw(Fraction(deviation**2) * Fraction(14, 10), count)) < 1e-9
    assert same(draw(Fraction(deviation**2) * Fraction(7, 10), count)) < 1e-9


@pytest.mark.parametrize("most", [1, 13, 1000])
def test_how_words_are_cut_does_not_matter(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(Fraction(1000), 300)
    monkeypatch.setattr(random_words, "_MOST_WORDS", most)
    assert np.array_equal(draw(Fraction(1000), 300), whole)


@pytest.mark.parametrize(
    "variance", [Fraction(0), Fraction(-1), Fraction(LARGEST_DEVIATION**2 + 1)]
)
def test_refuses_a_variance_that_it_cannot_draw(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="variance must be above 0"):
        draw(variance)


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(10, 3)])
def test_laplace_scales_may_be_fractions(scale: Fraction) -> None:
    sample = add_discrete_laplace(
        np.zeros(DRAWS, dtype=np.int64),
        np.full(DRAWS, scale.numerator),
        SeededWords(3),
        parts=scale.denominator,
    )
    law = stats.dlaplace(float(1 / scale))
    cells = np.arange(-3, 4)
    observed = np.bincount(np.searchsorted(cells, sample), minlength=8)
    expected = np.diff(np.concatenate([[0], law.cdf(cells), [1]])) * DRAWS
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-4
    other = stats.dlaplace(float(1 / scale) * 1.1)
    wrong = np.diff(np.concatenate([[0], other.cdf(cells), [1]])) * DRAWS
    assert stats.chisquare(observed, wrong, sum_check=False).pvalue < 1e-12


@pytest.mark.parametrize("rate", [Fraction(1, 7), Fraction(3, 2)])
def test_exponential_mechanism_has_its_distribution(rate: Fraction) -> None:
    scores = np.array([3, 0, -4, 3, 1])
    source, draws = SeededWords(5), 8000
    chosen = [exponential_mechanism(scores, rate, source) for _ in range(draws)]
    observed = np.bincount(chosen, minlength=len(scores))

    def expected(rate: float) -> Reals:
        weights = np.exp(rate * scores)
        shares: Reals = weights / weights.sum() * draws
        return shares

    assert stats.chisquare(observed, expected(float(rate))).pvalue > 1e-4
    assert stats.chisquare(observed, expected(float(rate) * 1.5)).pvalue < 1e-9


def test_exponential_mechanism_takes_scores_that_are_far_apart() -> None:
    scores = np.array([-(2**50), 0, 2**50])
    assert exponential_mechanism(scores, Fraction(2**20, 3), SeededWords(1)) == 2
    even = [exponential_mechanism(scores, Fraction(1, 2**70), SeededWords(i)) for i in range(300)]
    assert min(np.bincount(even, minlength=3)) > 50
