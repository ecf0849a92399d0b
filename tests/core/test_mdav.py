"""MDAV against a straightforward implementation, worked examples and published figures."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microveil.core.kernels.mdav_steps import project
from microveil.core.mdav import Effort, cut_blocks, joint_clusters, mdav, standardise, swapped
from microveil.errors import DataError, PlanError
from microveil.lab.paper.datasets import CENSUS, WINE, load_data_set
from microveil.types import Integers, Reals

PUBLISHED = {3: 5.6922, 5: 9.0884, 10: 14.1559}  # 100 · SSE/SST of MDAV on Census


def squared_distances(points: Reals, centre: Reals) -> Reals:
    distance = np.zeros(len(points))
    for attribute in range(points.shape[1]):  # in this order: sums round, and ties depend on it
        distance += (points[:, attribute] - centre[attribute]) ** 2
    return distance


def straightforward(points: Reals, k: int) -> Integers:
    """MDAV as published, on lists of record numbers in ascending order."""
    remaining = list(range(len(points)))
    clusters: list[list[int]] = []

    def farthest(centre: Reals) -> int:
        return remaining[int(np.argmax(squared_distances(points[remaining], centre)))]

    def form(record: int) -> None:
        remaining.remove(record)
        order = np.argsort(squared_distances(points[remaining], points[record]), kind="stable")
        clusters.append([record, *[remaining[place] for place in order[: k - 1]]])
        for member in clusters[-1][1:]:
            remaining.remove(member)

    while len(remaining) >= 3 * k:
        r = farthest(points[remaining].mean(axis=0))
        s = farthest(points[r])
        form(r)
        form(s if s in remaining else farthest(points[r]))
    if len(remaining) >= 2 * k:
        form(farthest(points[remaining].mean(axis=0)))
    clusters.append(remaining)
    label = np.empty(len(points), dtype=np.int64)
    for number, members in enumerate(clusters):
        label[members] = number
    return label


@st.composite
def tables(draw: st.DrawFn, most: int = 300) -> Reals:
    """Draw small whole numbers full of ties, or reals that have none, with an offset or not."""
    shape = draw(st.integers(1, most)), draw(st.integers(1, 12))
    if draw(st.booleans()):
        top = draw(st.integers(0, 9))
        return draw(arrays(np.float64, shape, elements=st.integers(0, top).map(float)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return random.standard_normal(shape) + draw(st.sampled_from([0.0, 1e6]))


@given(points=tables(), k=st.integers(1, 12))
def test_partitions_are_those_of_a_straightforward_implementation(points: Reals, k: int) -> None:
    if len(points) < k:
        with pytest.raises(DataError, match=f"need {k} records or more, found {len(points)}$"):
            mdav(points, k)
        return
    before = points.copy()
    label = mdav(points, k)
    np.testing.assert_array_equal(label, straightforward(points, k))
    np.testing.assert_array_equal(points, before)
    sizes = np.bincount(label)
    assert np.all(sizes[:-1] == k)
    assert k <= sizes[-1] < 2 * k


@pytest.mark.parametrize("k", [1, 2, 7, 40, 1000])
@pytest.mark.parametrize("top", [1, 3, 50, None])
def test_longer_tables(k: int, top: int | None) -> None:
    random = np.random.default_rng(k)
    points = random.standard_normal((2_500, 4))
    if top is not None:
        points = random.integers(0, top, points.shape).astype(np.float64)
    expected = straightforward(points, k)
    np.testing.assert_array_equal(mdav(points, k), expected)
    np.testing.assert_array_equal(mdav(np.asfortranarray(points), k), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # 7 ≥ 3k: 51 is farthest from the mean, 0 from 51; the other three are fewer than 2k.
        ([0, 5, 1, 6, 2, 50, 51], [1, 2, 1, 2, 2, 0, 0]),
        # 5 < 3k: 10 is farthest from the mean 3.2, 3 is nearest to it, the others form one.
        ([0, 1, 2, 3, 10], [1, 1, 1, 0, 0]),
        # 0 and 8 are equally far from the mean: the first record wins.
        ([8, 0, 1, 7], [0, 1, 1, 0]),
        ([0, 8, 7, 1], [0, 1, 1, 0]),
        # Nothing but ties: records in their order.
        ([4, 4, 4, 4, 4, 4, 4], [0, 0, 1, 1, 2, 2, 2]),
        ([1, 9, 5], [0, 0, 0]),
    ],
)
def test_worked_examples(values: list[int], expected: list[int]) -> None:
    points = np.array(values, dtype=np.float64)[:, np.newaxis]
    assert mdav(points, k=2).tolist() == expected


@given(
    points=tables(),
    k=st.integers(1, 8),
    most=st.integers(1, 60),
    seed=st.none() | st.integers(0, 9),
)
def test_blocks(points: Reals, k: int, most: int, seed: int | None) -> None:
    order = np.arange(len(points))
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    blocks = cut_blocks(points, order, most)
    assert len(blocks) == -(-len(points) // most)
    sizes = {len(block) for block in blocks}
    assert sizes <= {len(points) // len(blocks), -(-len(points) // len(blocks))}
    assert sorted(np.concatenate(blocks)) == sorted(order)
    place = np.argsort(order)
    assert all(np.all(np.diff(place[block]) > 0) for block in blocks)
    if len(points) < k:
        return
    without_swaps = Effort(most, most, near=0, passes=0)
    label, count = joint_clusters(points, k, None if seed is None else order, without_swaps)
    assert np.all((np.bincount(label) >= k) & (np.bincount(label) < 2 * k))
    blocks = cut_blocks(points, order, max(most, 2 * k))
    assert count == len(blocks)
    first = 0
    for block in blocks:
        np.testing.assert_array_equal(label[block], first + straightforward(points[block], k))
        first = label[block].max() + 1


def squares(points: Reals, label: Integers) -> float:
    """Squares within clusters, as one would write them."""
    return sum(
        float(np.sum((points[label == j] - points[label == j].mean(axis=0)) ** 2))
        for j in np.unique(label)
    )


@given(points=tables(), k=st.integers(1, 8), near=st.integers(1, 4), passes=st.integers(1, 3))
def test_swaps_keep_sizes_and_lower_squares(points: Reals, k: int, near: int, passes: int) -> None:
    assume(len(points) >= k)
    label = mdav(points, k)
    better = swapped(points, label, near, passes)
    np.testing.assert_array_equal(np.bincount(better), np.bincount(label))
    before, after = squares(points, label), squares(points, better)
    assert after <= before + 1e-9 * (1 + before)


@pytest.mark.parametrize("seed", range(20))
def test_no_swap_is_left_that_lowers_squares(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = standardise(np.exp(random.normal(size=(40, 1 + seed % 4))))
    better = swapped(points, mdav(points, 4), near=9, passes=1_000)
    least = squares(points, better)
    for one, other in combinations(range(len(points)), 2):
        tried = better.copy()
        tried[[one, other]] = better[[other, one]]
        assert squares(points, tried) > least - 1e-6


def test_a_swap_worked_by_hand() -> None:
    # Clusters {0, 1, 10} and {2, 11, 12}: squares 60.67 + 60.67. Exchanging 10 and 2 is the only
    # good swap: {0, 1, 2} and {10, 11, 12} have 2 + 2.
    points = np.array([[0.0], [1.0], [10.0], [2.0], [11.0], [12.0]])
    better = swapped(points, np.array([0, 0, 0, 1, 1, 1]), near=1, passes=1)
    assert better.tolist() == [0, 0, 1, 0, 1, 1]


def test_joint_clusters_are_closer_than_those_of_mdav(paper_data: Path) -> None:
    for data_set in (CENSUS, WINE):
        points = standardise(load_data_set(data_set, paper_data).attributes.to_numpy())
        label, _ = joint_clusters(points, 10)
        assert np.bincount(label).min() >= 10
        assert squares(points, label) < 0.9 * squares(points, mdav(points, 10))


def test_cuts_are_across_the_direction_of_largest_variance() -> None:
    # Along x + y the records lie at 0 2 4 6 8 10 (twice each), across it at ±1: neither attribute
    # by itself parts the lower six from the upper six.
    along, across = np.repeat([0, 2, 4, 6, 8, 10], 2), np.tile([1, -1], 6)
    points = np.column_stack([along + 2 * across, along - 2 * across]).astype(float) / 2
    order = np.array([11, 0, 10, 1, 9, 2, 8, 3, 7, 4, 6, 5])
    halves = [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert [sorted(block) for block in cut_blocks(points, order, 6)] == halves
    thirds = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert [sorted(block) for block in cut_blocks(points, order, 4)] == thirds
    # Of records on a cut, the first in order go below.
    same = cut_blocks(np.ones((5, 2)), np.array([3, 0, 4, 1, 2]), 3)
    assert [block.tolist() for block in same] == [[3, 0], [4, 1, 2]]


def test_the_direction_is_the_first_principal_component() -> None:
    random = np.random.default_rng(4)
    points = random.normal(size=(50_000, 4)) @ random.normal(size=(4, 4))
    points[:, 0] += 3 * points[:, 1]
    along = project(points, np.arange(len(points)))
    first = np.linalg.eigh(np.cov(points.T))[1][:, -1]
    expected = (points - points.mean(axis=0)) @ first
    assert abs(np.corrcoef(along, expected)[0, 1]) > 0.9999


def test_standardised_columns() -> None:
    random = np.random.default_rng(1)
    columns = random.lognormal(1, 1, (500, 2)) * [1.0, 1e300] + [1e9, 0.0]
    z = standardise(np.column_stack([columns, np.full(500, 0.1)]))
    np.testing.assert_allclose(z[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z[:, :2].std(axis=0), 1)
    np.testing.assert_allclose(np.corrcoef(z[:, 0], columns[:, 0])[0, 1], 1)
    assert np.all(z[:, 2] == 0)
    assert standardise(np.array([[1.0], [2.0], [6.0]])).ravel() == pytest.approx(
        np.array([-2, -1, 3]) / np.sqrt(14 / 3)
    )


def test_what_cannot_be_clustered() -> None:
    points = np.zeros((5, 2))
    with pytest.raises(PlanError, match="k must be 1 or more, got 0"):
        mdav(points, 0)
    with pytest.raises(PlanError, match="room for 1 record or more, got 0"):
        cut_blocks(points, np.arange(5), 0)
    for bad in (np.nan, np.inf, 1e200):
        points[3, 1] = bad
        with pytest.raises(DataError, match="need finite numbers whose squares can be added"):
            joint_clusters(points, 2)


@pytest.mark.parametrize("k", PUBLISHED)
def test_published_error_on_census(k: int, paper_data: Path) -> None:
    every_column = replace(CENSUS, attributes=tuple(CENSUS.columns))
    points = standardise(load_data_set(every_column, paper_data).attributes.to_numpy())
    assert points.shape == (1_080, 13)
    label = mdav(points, k)
    np.testing.assert_array_equal(label, straightforward(points, k))
    sse = sum(
        np.sum((points[label == j] - points[label == j].mean(axis=0)) ** 2)
        for j in range(label.max() + 1)
    )
    assert round(100 * sse / np.sum(points**2), 4) == PUBLISHED[k]


@pytest.mark.parametrize("k", [3, 10])
def test_a_table_with_many_equal_records(k: int, paper_data: Path) -> None:
    points = standardise(load_data_set(WINE, paper_data).attributes.to_numpy())
    assert len(np.unique(points, axis=0)) < len(points) - 900
    np.testing.assert_array_equal(mdav(points, k), straightforward(points, k))
