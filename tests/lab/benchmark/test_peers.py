"""Peers of the benchmark, against values worked out by hand."""

import numpy as np
import pytest

from bench.peers import aggregated, noisy, peers, swapped
from microveil.lab.benchmark.peers import PromiseKind, list_candidates
from tests.lab.benchmark.test_benchmark import a_table


def test_mdav_replaces_records_by_the_means_of_their_clusters() -> None:
    original = np.array(
        [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [20.0, 21.0], [22.0, 21.0], [21.0, 21.0]]
    )
    released = aggregated(3, original, np.random.default_rng(1))
    assert released[:3] == pytest.approx(np.array([[2.0, 2.0]] * 3))
    assert released[3:] == pytest.approx(np.array([[21.0, 21.0]] * 3))


def test_swapped_values_are_the_same_and_move_few_ranks() -> None:
    original = np.random.default_rng(1).permutation(100.0 * np.arange(100))[:, np.newaxis]
    released = swapped(0.1, original, np.random.default_rng(2))
    assert sorted(released[:, 0]) == sorted(original[:, 0])
    moved = np.abs(released - original)
    assert moved.max() <= 1_000
    assert np.mean(moved > 0) > 0.9


def test_two_values_next_to_each_other_change_places() -> None:
    released = swapped(0.5, np.array([[1.0], [2.0]]), np.random.default_rng(1))
    assert released.tolist() == [[2.0], [1.0]]


def test_noise_has_its_share_of_the_deviations_and_the_correlations() -> None:
    random = np.random.default_rng(1)
    original = random.multivariate_normal([0, 0], [[4.0, 1.8], [1.8, 1.0]], 40_000)
    noise = noisy(0.5, original, random) - original
    assert np.cov(noise, rowvar=False) == pytest.approx(
        0.25 * np.cov(original, rowvar=False), rel=0.05
    )


def test_peers_are_candidates_that_state_their_promise() -> None:
    data = a_table()
    names = {candidate.name for candidate in list_candidates(data, [1.0])}
    for peer in peers():
        assert peer.name not in names
        assert peer.promise in (PromiseKind.K_ANONYMITY, PromiseKind.NOTHING)
        released = peer.mask(data.table, 1)
        assert released.shape == data.table.shape
