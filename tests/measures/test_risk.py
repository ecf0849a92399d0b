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
from microveil.engines.classes import Classes, quasi_identifier_classes
from microveil.measures import disclosure_risk as risk
from microveil.types import Reals


def _column(*values: float) -> Reals:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


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
    both = quasi_identifier_classes(table, ["sex", "key 1", "records", "sex"])
    assert both == Classes(unique=2 / 6, smallest=1, records=6)
    assert quasi_identifier_classes(table, ["sex"]) == Classes(0.0, 2, 6)


def test_quasi_identifiers_that_are_not_there() -> None:
    with pytest.raises(DataError, match=r"got 'age', which is not there \(columns: sex, key 1"):
        quasi_identifier_classes(pl.DataFrame(PEOPLE), ["sex", "age"])
    with pytest.raises(DataError, match="got none"):
        quasi_identifier_classes(pl.DataFrame(PEOPLE), [])


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
    plan = Plan.published(epsilon=1, k=3, attributes={"age": "confidential"})
    clusters = protect(people, plan, seed=1).detail.clusters
    widths = risk.cluster_widths(clusters, {"age": 2.0})["age"]
    assert widths == risk.Widths(median=3.5, ninth_decile=3.5, largest=3.5, narrow=0.0)
