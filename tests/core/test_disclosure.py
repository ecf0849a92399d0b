"""Individual, global and household risk and l-diversity, against values worked out by hand."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nbinom

from microveil.core.disclosure import (
    class_diversity,
    conspicuous,
    household_risk,
    individual_risk,
    risk_threshold,
)


@pytest.mark.parametrize("shared", [1, 2])
@pytest.mark.parametrize("population", [2.5, 7.0, 100.0])
def test_risk_is_the_mean_of_one_over_a_negative_binomial(shared: int, population: float) -> None:
    outside = np.arange(200_000)
    chances = nbinom.pmf(outside, shared, shared / population)
    expected = np.sum(chances / (shared + outside))
    found = individual_risk(np.array([shared]), np.array([population]))
    assert found[0] == pytest.approx(expected, rel=1e-9)


def test_risk_by_hand() -> None:
    found = individual_risk(np.array([1, 2, 3, 3]), np.array([4.0, 4.0, 6.0, 3.0]))
    assert found.tolist() == pytest.approx([log(4) / 3, 1 - log(2), 0.5 / 2.5, 1 / 3])


@given(st.integers(1, 6), st.floats(0, 1e-3))
def test_risk_is_right_where_nearly_everybody_was_sampled(shared: int, more: float) -> None:
    found = individual_risk(np.array([shared]), np.array([shared * (1 + more)]))
    assert found[0] == pytest.approx(1 / shared, rel=1.1e-3)
    assert 0 < found[0] <= 1 / shared + 1e-12


def test_weights_below_one_are_no_more_than_everybody() -> None:
    assert individual_risk(np.array([1, 4]), np.array([0.2, 3.0])).tolist() == [1, 0.25]


def test_the_threshold_by_hand() -> None:
    risk = np.array([0.5, 0.1, 0.1, 0.1, 0.02])
    assert risk_threshold(risk, 0.2) is None  # 0.82 of 5 is lower
    assert risk_threshold(risk, 0.1) == 0.1  # 0.1 · 4 + 0.02 = 0.42 < 0.5
    assert risk_threshold(risk, 0.05) == 0.02
    assert risk_threshold(risk, 0.01) == 0


def test_households_by_hand() -> None:
    found = household_risk(np.array([0.5, 0.5, 1.0, 0.0, 0.3]), np.array([1, 1, 0, 0, -1]))
    assert found.tolist() == pytest.approx([0.75, 0.75, 1, 1, 0.3])


def test_conspicuous_records() -> None:
    assert conspicuous(np.array([0.01] * 9 + [0.5])) == 1
    assert conspicuous(np.array([0.01] * 9 + [0.09])) == 0  # not above 0.1


def test_diversity_by_hand() -> None:
    """Counts 4, 2, 1 and 1: 2 · (2 + 1 + 1) > 4 is, 2 · (1 + 1) > 4 is not: l = 2."""
    codes, label = np.array([0, 0, 0, 0, 7, 7, 2, 3, 5, 5]), np.repeat([0, 1], [8, 2])
    found = class_diversity(codes, label)
    assert found.distinct.tolist() == [4, 1]
    assert found.entropy.tolist() == pytest.approx([2 ** (0.5 + 0.5 + 0.75), 1])
    assert found.recursive.tolist() == [2, 1]
    assert class_diversity(codes, label, recursion=3).recursive.tolist() == [3, 1]
