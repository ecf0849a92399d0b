from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microveil import DataError, Plan, protect
from microveil.core.grid import Reals
from microveil.evaluation import risk


def _column(*values: float) -> Reals:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def _linkage_by_definition(original: Reals, masked: Reals) -> float:
    deviations = original.std(axis=0, ddof=1)
    scale = np.where(np.ptp(original, axis=0) > 0, deviations, 1)
    shares = []
    for i, record in enumerate(original):
        distances = np.linalg.norm((record - masked) / scale, axis=1)
        nearest = np.isclose(distances, distances.min(), rtol=1e-10, atol=0)
        shares.append(nearest[i] / nearest.sum())
    return float(np.mean(shares))


def test_linkage_by_hand() -> None:
    original, masked = _column(1, 2, 8, 9, 20), _column(1, 3, 8.5, 8.5, 1)
    # 1: its own and that of 20 are nearest; 2: 1, 1 and 3 are; 8 and 9 share theirs; 20: 8.5 is.
    by_hand = (1 / 2 + 1 / 3 + 1 / 2 + 1 / 2 + 0) / 5
    linkage = risk.record_linkage(original, masked)
    assert linkage.share == pytest.approx(by_hand)
    assert (linkage.chance, linkage.queried, linkage.records) == (1 / 5, 5, 5)
    assert linkage.low == linkage.share == linkage.high


def test_linkage_of_an_unchanged_table_and_of_one_point() -> None:
    original = np.random.default_rng(0).normal(size=(50, 3))
    assert risk.record_linkage(original, original).share == 1
    assert risk.record_linkage(original, np.ones_like(original)).share == pytest.approx(1 / 50)


grids = st.integers(1, 3).flatmap(
    lambda m: arrays(np.float64, (2, 15, m), elements=st.integers(0, 4).map(lambda x: x / 10))
)


@given(grids)
def test_linkage_is_what_its_definition_says(pair: Reals) -> None:
    """On a coarse grid ties and duplicates abound."""
    original, masked = pair
    expected = _linkage_by_definition(original, masked)
    assert risk.record_linkage(original, masked).share == pytest.approx(expected)


@pytest.mark.parametrize("noise", [0.05, 0.3, 2])
def test_linkage_with_noise_is_what_its_definition_says(noise: float) -> None:
    rng = np.random.default_rng(5)
    original = rng.normal(size=(300, 6))
    masked = original + rng.laplace(scale=noise, size=original.shape)
    expected = _linkage_by_definition(original, masked)
    assert risk.record_linkage(original, masked).share == pytest.approx(expected)


def test_linkage_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(6)
    original = rng.normal(size=(100, 2))
    masked = original + rng.normal(scale=0.3, size=original.shape)
    units = np.array([1.0, 1e6])
    plain = risk.record_linkage(original, masked)
    assert risk.record_linkage(original * units, masked * units) == plain


def test_sampled_linkage_covers_the_exact_one() -> None:
    rng = np.random.default_rng(7)
    original = rng.normal(size=(3000, 3))
    masked = original + rng.laplace(scale=0.1, size=original.shape)
    exact = risk.record_linkage(original, masked)
    sampled = [risk.record_linkage(original, masked, sample=500, seed=seed) for seed in range(40)]
    assert {(s.queried, s.records, s.chance) for s in sampled} == {(500, 3000, 1 / 3000)}
    covered = [s.low <= exact.share <= s.high for s in sampled]
    assert sum(covered) >= 35  # 38 expected at 95%
    assert all(s.high - s.low < 0.1 for s in sampled)


def test_a_sample_without_links_bounds_the_share() -> None:
    original = np.arange(1000.0)[:, np.newaxis]
    masked = np.roll(original, 500, axis=0)
    linkage = risk.record_linkage(original, masked, sample=100)
    assert (linkage.share, linkage.low) == (0, 0)
    assert linkage.high == pytest.approx(1.96**2 / (100 + 1.96**2))  # Wilson at 0


def test_linkage_sample_must_be_positive() -> None:
    with pytest.raises(DataError, match="sample must be 1 or more"):
        risk.record_linkage(_column(1, 2), _column(1, 2), sample=0)


def test_rank_disclosure_by_hand() -> None:
    original, masked = np.arange(10.0), np.array([0, 1, 2, 3, 4, 9, 8, 7, 6, 5]) * 100.0
    # The last five ranks move by 4, 2, 0, 2, 4.
    measured = risk.rank_disclosure(original, masked, percent=20)
    assert measured.share == pytest.approx(0.8)
    # Pairs of ranks at most 2 apart: 10 + 2·9 + 2·8 = 44 of 100.
    assert measured.chance == pytest.approx(0.44)
    assert risk.rank_disclosure(original, masked, percent=10).share == pytest.approx(0.6)


def test_rank_disclosure_shares_the_ranks_of_ties() -> None:
    original, masked = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 5.0, 5.0, 9.0])
    # Masked ranks 2, 2, 2, 4 against 1, 2, 3, 4.
    assert risk.rank_disclosure(original, masked, percent=24).share == pytest.approx(0.5)
    assert risk.rank_disclosure(original, masked, percent=25).share == 1


def test_value_disclosure_by_hand() -> None:
    original, masked = np.array([0.0, 2.0, 4.0]), np.array([0.2, 2.3, 3.0])  # deviation 2
    measured = risk.value_disclosure(original, masked, deviations=0.1)
    assert measured.share == pytest.approx(1 / 3)
    assert measured.chance == pytest.approx(1 / 9)
    assert risk.value_disclosure(original, masked, deviations=0.5).share == 1


@given(arrays(np.float64, (2, 20), elements=st.floats(-5, 5)))
def test_disclosure_is_a_share_that_grows_with_the_window(pair: Reals) -> None:
    original, masked = pair
    for windows in ((0, 5, 50, 100), (0, 1, 10, 100)):
        shares = [risk.rank_disclosure(original, masked, percent=w) for w in windows]
        assert shares == sorted(shares, key=lambda d: d.share)
        assert shares[-1].share == 1
        assert all(0 <= d.chance <= 1 for d in shares)


PEOPLE = {
    "sex": ["f", "f", "m", "m", None, None],
    "key 1": [1, 1, 2, 3, 4, 4],
    "records": [0.5, 0.5, 0.5, 0.5, 0.5, 0.5],
}


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table])
def test_classes_by_hand(kind: Any) -> None:  # noqa: ANN401 - three libraries
    table = kind(PEOPLE)
    both = risk.quasi_identifier_classes(table, ["sex", "key 1", "records", "sex"])
    assert both == risk.Classes(unique=2 / 6, smallest=1, records=6)
    assert risk.quasi_identifier_classes(table, ["sex"]) == risk.Classes(0.0, 2, 6)


def test_quasi_identifiers_that_are_not_there() -> None:
    with pytest.raises(DataError, match=r"got 'age', which is not there \(columns: sex, key 1"):
        risk.quasi_identifier_classes(pl.DataFrame(PEOPLE), ["sex", "age"])
    with pytest.raises(DataError, match="got none"):
        risk.quasi_identifier_classes(pl.DataFrame(PEOPLE), [])


def test_cluster_widths_by_hand() -> None:
    clusters = pl.DataFrame(
        {
            "attribute": ["a"] * 3 + ["b"],
            "records": [3, 3, 14, 20],
            "smallest": [0.0, 10.0, 20.0, None],
            "largest": [0.5, 40.0, 40.0, None],
        }
    )
    widths = risk.cluster_widths(clusters, {"a": 10.0, "b": 1.0})
    # 3 records at 0.05, 14 at 2, 3 at 3; b was masked without clusters.
    assert widths == {
        "a": risk.Widths(median=2.0, ninth_decile=3.0, largest=3.0, narrow=3 / 20),
    }


def test_cluster_widths_of_a_release() -> None:
    people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58, 59]})
    plan = Plan(epsilon=1, k=3, attributes={"age": "confidential"})
    clusters = protect(people, plan, seed=1).detail.clusters
    widths = risk.cluster_widths(clusters, {"age": 2.0})["age"]
    assert widths == risk.Widths(median=3.5, ninth_decile=3.5, largest=3.5, narrow=0.0)
