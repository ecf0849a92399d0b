"""One rule for bins, one for categories."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil.show.charts.histograms import (
    MOST_BINS,
    MOST_DRAWN,
    Shares,
    bin_edges,
    shares_of_categories,
    shares_of_numbers,
)

NUMBERS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300)


def test_few_whole_numbers_have_a_bin_each() -> None:
    shares = shares_of_numbers("a", np.array([1.0, 1.0, 3.0, 4.0]), np.array([2.0, 3.0]))
    assert shares.edges == (0.5, 1.5, 2.5, 3.5, 4.5)
    assert shares.before == (0.5, 0.0, 0.25, 0.25)
    assert shares.after == (0.0, 0.5, 0.5, 0.0)
    assert (shares.outside, shares.note) == ((0, 0), "")


def test_many_whole_numbers_are_counted_in_bins_of_whole_numbers() -> None:
    values = np.arange(1_000.0)
    edges = bin_edges(values, values)
    width = np.diff(edges)
    assert (width == width[0]).all()
    assert width[0] == round(width[0]) > 1
    assert edges[0] == -0.5
    assert edges[-1] >= 999


def test_a_few_far_values_stay_outside_and_are_counted() -> None:
    near = np.linspace(0, 1, 10_000)
    far = np.where(near > 0.9999, 1e6, near)
    shares = shares_of_numbers("a", near, far)
    assert shares.edges[-1] <= 1
    assert shares.outside[1] >= np.sum(far > 1)
    assert shares.note.startswith("Values outside the chart: ")
    assert sum(shares.after) == pytest.approx(1 - shares.outside[1] / len(far))


@given(NUMBERS, NUMBERS)
def test_every_value_is_in_a_bin_or_outside(before: list[float], after: list[float]) -> None:
    shares = shares_of_numbers("a", np.array(before), np.array(after))
    assert 1 <= len(shares.before) == len(shares.after) <= MOST_BINS + 1
    assert all(x < y for x, y in zip(shares.edges, shares.edges[1:], strict=False))
    for values, drawn, outside in zip(
        (before, after), (shares.before, shares.after), shares.outside, strict=True
    ):
        assert sum(drawn) * len(values) + outside == pytest.approx(len(values))
        assert outside <= 0.002 * (len(before) + len(after)) + 2


@pytest.mark.parametrize("step", [0.1, 0.5, 3.0, 5.0, 250.0])
def test_bins_follow_the_step_of_the_data(step: float) -> None:
    """Every value there can be occurs once, so every bin but the last holds as many."""
    values = np.round(7 + step * np.arange(437.0), 1)
    edges = bin_edges(values, values + step / 3)
    counts = np.histogram(values, edges)[0]
    assert len(set(counts[1:-2].tolist())) == 1
    assert counts[0] <= counts[1]
    assert np.all(np.abs((edges - 7) / step % 1 - 0.5) < 1e-6)


def test_few_steps_have_a_bin_each_and_continuous_values_equal_ones() -> None:
    halves = np.repeat([20.0, 20.5, 21.5], 4)
    assert bin_edges(halves, halves).tolist() == [19.75, 20.25, 20.75, 21.25, 21.75]
    random = np.random.default_rng(3)
    continuous = random.normal(size=500)
    width = np.diff(bin_edges(continuous, continuous))
    assert np.allclose(width, width[0])
    same = np.full(3, 4.0)
    assert bin_edges(same, same).tolist() == [3.5, 4.5]


def test_times_have_edges_in_milliseconds() -> None:
    days = np.array([0.0, 1.0])
    shares = shares_of_numbers("a", days, days, clock="date", milliseconds=86_400_000)
    assert shares.edges == (-43_200_000, 43_200_000, 129_600_000)
    assert shares.clock == "date"


def test_nothing_has_no_bins() -> None:
    empty = np.empty(0)
    assert shares_of_numbers("a", empty, np.array([1.0])) == Shares("a", (), ())
    assert shares_of_numbers("a", np.array([7.5]), np.array([7.5])).before == (1.0,)


def test_categories_are_the_most_frequent_first_unless_they_are_ordered() -> None:
    before, after = np.array([0, 2, 2, 2]), np.array([1, 1, 2, 0])
    labels = ["low", "middle", "high", "never"]
    nominal = shares_of_categories("a", labels, before, after, ordered=False)
    assert nominal.labels == ("high", "low", "middle")
    assert nominal.before == (0.75, 0.25, 0.0)
    assert nominal.after == (0.25, 0.25, 0.5)
    ordinal = shares_of_categories("a", labels, before, after, ordered=True)
    assert ordinal.labels == ("low", "middle", "high")


@pytest.mark.parametrize("ordered", [True, False])
def test_rare_categories_are_put_together(ordered: bool) -> None:
    codes = np.repeat(np.arange(50), np.arange(1, 51))
    labels = [f"kind {i}" for i in range(50)]
    shares = shares_of_categories("a", labels, codes, codes[:1], ordered=ordered)
    assert shares.labels[0] == "kind 49"
    assert shares.labels[-1] == "… 30 more categories"
    assert len(shares.labels) == MOST_DRAWN + 1
    assert sum(shares.before) == pytest.approx(1)
    assert shares.after[-1] == 1
