"""The compiled passes against NumPy's own, and random ties against chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from microveil.core.grid import Grid
from microveil.core.kernels import sorting as column_kernels
from microveil.core.random_words import SeededWords
from microveil.engines.local import _rank
from microveil.engines.strata import _shuffle_ties
from microveil.types import Integers

LARGE = 2**60


def integers(low: int, high: int, size: int) -> Integers:
    return np.random.default_rng(size).integers(low, high, size)


@given(
    st.one_of(
        st.lists(st.integers(-LARGE, LARGE), min_size=1, max_size=50),
        st.lists(st.sampled_from([-5, 0, 3, 2**40]), min_size=1, max_size=50),
        st.lists(st.integers(-9, 9).map(lambda x: x * 2**30), min_size=1, max_size=50),
    )
)
def test_ranks_are_those_of_a_stable_sort(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    order, ranked = _rank(array)
    np.testing.assert_array_equal(order, np.argsort(array, kind="stable"))
    np.testing.assert_array_equal(ranked, np.sort(array))


@pytest.mark.parametrize(
    "values",
    [integers(-LARGE, LARGE, 100_000), integers(0, 2, 70_000), integers(0, 2**22, 80_001),
     np.zeros(9, dtype=np.int64), integers(-(2**11), 2**11, 5_000) << 20],
)  # fmt: skip
def test_ranks_of_many_values_and_of_few_bits(values: Integers) -> None:
    order, ranked = _rank(values)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(ranked, np.sort(values))


def test_looking_once_tells_what_looking_five_times_does() -> None:
    values = np.array([3.0, -1.5, np.inf, 7.0, np.nan, 2.5, -np.inf, 8.0])
    assert column_kernels.look_through(values, -1.0, 7.0) == (3, 2, 2, -1.5, 8.0)
    assert column_kernels.look_through(np.array([np.nan]), 0, 1) == (1, 0, 0, np.inf, -np.inf)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.integers(-30, 3))
def test_units_are_those_of_the_grid(values: list[float], power: int) -> None:
    grid = Grid(2.0**power, origin=2.0**power * 5)
    array = np.array(values)
    units = column_kernels.to_steps(array, grid.step, grid.origin)
    np.testing.assert_array_equal(units, grid.to_steps(array))


@given(
    st.lists(st.integers(0, 4), min_size=6, max_size=30),
    st.integers(1, 6),
)
def test_only_ties_across_clusters_are_shuffled(values: list[int], k: int) -> None:
    order, ranked = _rank(np.array(values, dtype=np.int64))
    before = order.copy()
    sizes = np.full(len(values) // k, k)
    sizes[-1] += len(values) % k
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    across = [v for v in set(values) if len(set(cluster[ranked == v])) > 1]
    tied = np.isin(ranked, across)
    assert column_kernels.tied_across(ranked, np.cumsum(sizes)) == int(tied.sum())
    _shuffle_ties(order, ranked, sizes, SeededWords(1))
    np.testing.assert_array_equal(order[~tied], before[~tied])
    for value in across:
        assert set(order[ranked == value]) == set(before[ranked == value])


@pytest.mark.parametrize("trickle", [False, True])
def test_every_order_of_tied_records_is_equally_likely(trickle: bool) -> None:
    class Few(SeededWords):
        def words(self, count: int) -> np.typing.NDArray[np.uint64]:
            return super().words(1 if trickle else count)

    counts: dict[tuple[int, ...], int] = {}
    ranked, sizes = np.array([1, 4, 4, 4, 9]), np.array([2, 3])
    for seed in range(3_000):
        order = np.arange(5)
        _shuffle_ties(order, ranked, sizes, Few(seed))
        counts[tuple(order.tolist())] = counts.get(tuple(order.tolist()), 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_spreading_is_repeating_in_rank_order() -> None:
    order, sizes = np.array([3, 0, 4, 1, 2]), np.array([2, 3])
    spread = np.empty(5)
    column_kernels.spread(np.array([1.5, 2.5]), sizes, order, spread)
    assert spread.tolist() == [1.5, 2.5, 2.5, 1.5, 2.5]
