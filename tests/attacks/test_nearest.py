"""Linkage to the nearest record: by hand, by its definition, and from samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microveil import DataError
from microveil.attacks.nearest import nearest_linkage
from microveil.types import Reals


def _column(*values: float) -> Reals:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def _linkage_by_definition(original: Reals, masked: Reals) -> float:
    deviations = original.std(axis=0, ddof=1)
    scale = np.where(np.ptp(original, axis=0) > 0, deviations, 1)
    shares = []
    for i, record in enumerate(original):
        distances = np.linalg.norm((record - masked) / scale, axis=1)
        closest = np.isclose(distances, distances.min(), rtol=1e-10, atol=0)
        shares.append(closest[i] / closest.sum())
    return float(np.mean(shares))


def test_linkage_by_hand() -> None:
    original, masked = _column(1, 2, 8, 9, 20), _column(1, 3, 8.5, 8.5, 1)
    # 1: its own and that of 20 are nearest; 2: 1, 1 and 3 are; 8 and 9 share theirs; 20: 8.5 is.
    by_hand = (1 / 2 + 1 / 3 + 1 / 2 + 1 / 2 + 0) / 5
    linked = nearest_linkage(original, masked)
    assert linked.share == pytest.approx(by_hand)
    assert (linked.chance, linked.attacked, linked.records) == (1 / 5, 5, 5)
    assert linked.low == linked.share == linked.high


def test_linkage_of_an_unchanged_table_and_of_one_point() -> None:
    original = np.random.default_rng(0).normal(size=(50, 3))
    assert nearest_linkage(original, original).share == 1
    assert nearest_linkage(original, np.ones_like(original)).share == pytest.approx(1 / 50)


grids = st.integers(1, 3).flatmap(
    lambda m: arrays(np.float64, (2, 15, m), elements=st.integers(0, 4).map(lambda x: x / 10))
)


@given(grids)
def test_linkage_is_what_its_definition_says(pair: Reals) -> None:
    """On a coarse grid ties and duplicates abound."""
    original, masked = pair
    expected = _linkage_by_definition(original, masked)
    assert nearest_linkage(original, masked).share == pytest.approx(expected)


@pytest.mark.parametrize("noise", [0.05, 0.3, 2])
def test_linkage_with_noise_is_what_its_definition_says(noise: float) -> None:
    rng = np.random.default_rng(5)
    original = rng.normal(size=(300, 6))
    masked = original + rng.laplace(scale=noise, size=original.shape)
    expected = _linkage_by_definition(original, masked)
    assert nearest_linkage(original, masked).share == pytest.approx(expected)


def test_linkage_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(6)
    original = rng.normal(size=(100, 2))
    masked = original + rng.normal(scale=0.3, size=original.shape)
    units = np.array([1.0, 1e6])
    plain = nearest_linkage(original, masked)
    assert nearest_linkage(original * units, masked * units) == plain


def test_sampled_linkage_covers_the_exact_one() -> None:
    rng = np.random.default_rng(7)
    original = rng.normal(size=(3000, 3))
    masked = original + rng.laplace(scale=0.1, size=original.shape)
    exact = nearest_linkage(original, masked)
    sampled = [nearest_linkage(original, masked, sample=500, seed=seed) for seed in range(40)]
    assert {(s.attacked, s.records, s.chance) for s in sampled} == {(500, 3000, 1 / 3000)}
    covered = [s.low <= exact.share <= s.high for s in sampled]
    assert sum(covered) >= 35  # 38 expected at 95%
    assert all(s.high - s.low < 0.1 for s in sampled)


def test_a_sample_without_links_bounds_the_share() -> None:
    original = np.arange(1000.0)[:, np.newaxis]
    masked = np.roll(original, 500, axis=0)
    linked = nearest_linkage(original, masked, sample=100)
    assert (linked.share, linked.low) == (0, 0)
    assert linked.high == pytest.approx(1.96**2 / (100 + 1.96**2))  # Wilson at 0


def test_linkage_sample_must_be_positive() -> None:
    with pytest.raises(DataError, match="sample must be 1 or more"):
        nearest_linkage(_column(1, 2), _column(1, 2), sample=0)
