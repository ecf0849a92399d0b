"""Measures of categories against values worked out by hand, brute force and simulation."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import DataError
from microveil.measures.category_distances import (
    association_differences,
    cramers_v,
    share_unchanged,
    total_variation,
)

ORIGINAL = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2])
MASKED = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 3])


def test_values_worked_out_by_hand() -> None:
    assert share_unchanged(ORIGINAL, MASKED) == 0.8
    # shares 0.3, 0.2, 0.5, 0 and 0.2, 0.3, 0.4, 0.1: differences of 0.1 each
    assert total_variation(ORIGINAL, MASKED) == pytest.approx(0.2)
    assert total_variation(ORIGINAL, ORIGINAL[::-1]) == 0
    assert total_variation(np.array([0, 0]), np.array([1])) == 1


def test_cramers_v_worked_out_by_hand() -> None:
    # counts 3 1 / 1 3: every expected count is 2, so χ² = 4 · 1/2 = 2 and V = sqrt(2/8)
    rows, columns = np.repeat([0, 1], 4), np.array([0, 0, 0, 1, 0, 1, 1, 1])
    assert cramers_v(rows, columns) == pytest.approx(0.5)
    assert cramers_v(rows, 5 * rows) == pytest.approx(1.0)  # the numbers themselves mean nothing


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=4, max_size=60))
def test_cramers_v_is_the_plain_one(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    if min(len(set(one)), len(set(other))) < 2:
        with pytest.raises(DataError, match="two categories or more in both"):
            cramers_v(one, other)
        return
    rows, columns, observed = Counter(one), Counter(other), Counter(zip(one, other, strict=True))
    expected = {(r, c): rows[r] * columns[c] / len(pairs) for r in rows for c in columns}
    chi_square = sum((observed[cell] - count) ** 2 / count for cell, count in expected.items())
    by_hand = (chi_square / len(pairs) / (min(len(rows), len(columns)) - 1)) ** 0.5
    assert cramers_v(one, other) == pytest.approx(by_hand, abs=1e-12)


def test_the_bias_of_cramers_v_is_what_its_description_says() -> None:
    rng = np.random.default_rng(0)
    squares = [cramers_v(rng.integers(0, 3, 50), rng.integers(0, 5, 50)) ** 2 for _ in range(2_000)]
    assert np.mean(squares) == pytest.approx(2 * 4 / (50 * 2), rel=0.05)


def test_differences_are_masked_minus_original_for_every_pair() -> None:
    rng = np.random.default_rng(1)
    original, masked = rng.integers(0, 3, (40, 3)), rng.integers(0, 2, (30, 3))
    change = association_differences(original, masked)
    by_hand = cramers_v(masked[:, 2], masked[:, 0]) - cramers_v(original[:, 2], original[:, 0])
    assert change[0, 2] == change[2, 0] == pytest.approx(by_hand)
    assert (np.diag(change) == 0).all()


def test_bad_input() -> None:
    for wrong in (np.array([0, -1]), np.array([0.5, 1.0])):
        with pytest.raises(DataError, match="whole numbers from 0, without missing"):
            total_variation(np.array([0, 1]), wrong)
    with pytest.raises(DataError, match="at least one record"):
        total_variation(np.array([0]), np.array([], dtype=np.int64))
    for measure in (share_unchanged, cramers_v):
        with pytest.raises(DataError, match="found 2 and 3 records"):
            measure(np.array([0, 1]), np.array([0, 1, 1]))
    with pytest.raises(DataError, match="the same attributes"):
        association_differences(np.zeros((2, 2), dtype=np.int64), np.zeros((2, 3), dtype=np.int64))
