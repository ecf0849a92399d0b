import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil.core.grid import (
    Grid,
    grid_of_decimals,
    grid_of_domain,
    grid_of_observed,
    observed_decimals,
    power_of_two_below,
)


def test_grid_of_a_domain_is_the_power_of_two_below_its_fraction() -> None:
    # 500000·2^−40 = 4.547e−7, and 2^−22 = 2.384e−7 ≤ 4.547e−7 < 2^−21.
    assert grid_of_domain(0, 500_000) == Grid(2.0**-22)
    assert grid_of_domain(10, 10 + 2**40) == Grid(1.0, origin=10.0)


def test_grid_of_decimals_is_a_million_times_finer() -> None:
    assert grid_of_decimals(0) == Grid(2.0**-20)
    # 0.01·2^−20 = 9.537e−9 lies between 2^−27 = 7.45e−9 and 2^−26 = 1.49e−8.
    assert grid_of_decimals(2) == Grid(2.0**-27)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_power_of_two_below(value: float) -> None:
    power = power_of_two_below(value)
    assert power <= value < 2 * power


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=20))
def test_whole_numbers_survive_the_grid(values: list[int]) -> None:
    column = np.array(values, dtype=np.float64)
    for grid in (grid_of_decimals(0), grid_of_domain(-1_000_000, 1_000_000)):
        assert np.array_equal(grid.to_values(grid.to_steps(column)), column)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20), st.floats(-1e3, 1e3))
def test_rounding_is_monotone_and_near(values: list[float], lower: float) -> None:
    grid = grid_of_domain(lower, lower + 2e3)
    column = np.sort(np.array(values))
    units = grid.to_steps(column)
    assert np.all(np.diff(units) >= 0)
    assert np.allclose(grid.to_values(units), column, rtol=0, atol=grid.step)


def test_origin_is_a_multiple_of_the_step() -> None:
    grid = grid_of_domain(0.1, 0.7)
    assert grid.origin / grid.step == round(grid.origin / grid.step)
    assert grid.origin <= 0.1 < grid.origin + grid.step


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([1.0, -3.0], 0), ([0.1, 12.25], 2), ([0.1 + 0.2], 15), ([1e-9], 9), ([0.0], 0)],
)
def test_decimals_seen(values: list[float], decimals: int) -> None:
    assert observed_decimals(np.array(values)) == decimals


def test_decimals_seen_in_single_precision() -> None:
    values = np.array([0.1, 0.25], dtype=np.float32).astype(np.float64)
    assert observed_decimals(values) > 8
    assert observed_decimals(values, single_precision=True) == 2


def test_a_grid_from_the_data_is_no_finer_than_doubles() -> None:
    values = np.array([1e15 / 3, 2.0])
    grid = grid_of_observed(values)
    assert grid.holds(2.0, 1e15 / 3)
    assert not Grid(2.0**-70).holds(2.0, 1e15 / 3)
