"""SUDA2 against all subsets tried one by one, and values worked out by hand."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.core.suda import is_searchable, special_uniques
from microveil.types import Integers, Reals

Subset = tuple[int, ...]


@st.composite
def tables(draw: st.DrawFn) -> Integers:
    keys, records = draw(st.integers(1, 8)), draw(st.integers(1, 15))
    least = draw(st.sampled_from([-1, 0]))
    row = st.lists(st.integers(least, draw(st.integers(0, 3))), min_size=keys, max_size=keys)
    return np.array(draw(st.lists(row, min_size=records, max_size=records)))


def minimal_sets(table: Integers, record: int) -> list[Subset]:
    """Try every subset of keys, the smallest first."""
    found: list[Subset] = []
    for size in range(1, table.shape[1] + 1):
        for subset in combinations(range(table.shape[1]), size):
            own = table[record, subset]
            same = np.sum((table[:, subset] == own).all(axis=1))
            contained = any(set(smaller) <= set(subset) for smaller in found)
            if (own >= 0).all() and same == 1 and not contained:
                found.append(subset)
    return found


def scores(table: Integers) -> tuple[Reals, Reals]:
    keys = table.shape[1]
    score, of_key = np.zeros(len(table)), np.zeros(table.shape)
    for record in range(len(table)):
        for subset in minimal_sets(table, record):
            points = factorial(max(keys, 3) - len(subset))
            score[record] += points
            of_key[record, subset] += points
    return score, of_key


@given(tables())
@settings(max_examples=60, deadline=None)
def test_it_finds_what_trying_every_subset_finds(table: Integers) -> None:
    different, label, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    found = special_uniques(different, counts)
    label = label.ravel()
    score, of_key = scores(table)
    np.testing.assert_array_equal(found.score[label], score)
    np.testing.assert_allclose(found.shares[label] * score[:, np.newaxis], of_key, atol=1e-9)


def test_subsets_of_many_keys_fill_several_words() -> None:
    """A record that differs from each of 9 others in one key only is unique on all 9 alone."""
    table = np.vstack([np.zeros((1, 9), int), np.eye(9, dtype=int)])
    found = special_uniques(table, np.ones(10, int))
    assert found.score[0] == 1  # the set of all nine: 0!
    np.testing.assert_array_equal(found.shares[0], np.ones(9))
    assert found.score[1] == factorial(8)  # its own key alone


def test_values_of_the_guideline_of_sdc_practice() -> None:
    """Ten people by residence, gender, education and labour status; scores as published."""
    table = np.array([
        [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 0], [1, 0, 2, 2],
        [0, 1, 2, 0], [0, 0, 3, 1], [0, 1, 4, 2], [0, 0, 0, 1], [0, 0, 0, 1],
    ])  # fmt: skip
    different, label, counts = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    found = special_uniques(different, counts).score[label.ravel()]
    assert found.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]


def test_dis_by_hand() -> None:
    """Two uniques of score 2 and 1 and one pair: at 1/2 DIS is s / (s + 2), s = score^1.25 · Σ."""
    codes = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 1]])
    found = special_uniques(codes, np.array([2, 1, 1]), fraction=0.5)
    first, second = found.score[1:]
    total = first**-1.25 + second**-1.25
    strengths = np.array([first, second]) ** 1.25 * total
    np.testing.assert_allclose(found.dis, [0, *(strengths / (strengths + 2))])
    assert special_uniques(codes, np.array([3, 1, 1])).dis.tolist() == [0, 1, 1]  # no pairs


def test_what_nobody_has_alone_has_no_score() -> None:
    found = special_uniques(np.array([[0, 1], [1, 0]]), np.array([2, 3]))
    assert not found.score.any()
    assert not found.dis.any()


@pytest.mark.parametrize(("keys", "can"), [(6, True), (12, True), (13, False)])
def test_a_search_that_would_take_too_long_is_known_before(keys: int, *, can: bool) -> None:
    assert is_searchable(1_000_000, keys) == can
