"""Classical risk of a table: sdcMicro's figures, missing keys, weights and what is refused."""

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microveil
from microveil import DataError, risk
from microveil.measures import classical
from microveil.measures.frequencies import combinations_of
from microveil.show.risks import risk_rows, risk_sentence

KEYS = ["Key1", "Key2", "Key3", "Key4"]
FRANCDAT = pl.DataFrame({  # of Capobianchi, Polettini and Lucarelli
    "Key1": [1, 1, 1, 3, 4, 4, 6, 1],
    "Key2": [2, 2, 2, 3, 3, 3, 2, 2],
    "Key3": [5, 1, 1, 1, 1, 1, 1, 5],
    "Key4": [1, 1, 1, 5, 4, 1, 5, 1],
    "w": [18.0, 45.5, 39, 17, 541, 8, 5, 92],
    "house": [1, 1, 2, 2, 2, 3, 3, 3],
    "ill": [1, 2, 1, 1, 3, 3, 2, 2],
})  # fmt: skip
MISSING = FRANCDAT.with_columns(
    Key1=pl.Series([1, 1, 1, None, 4, None, 6, 1]),
    Key2=pl.Series([2, 2, 2, None, 3, 3, 2, 2]),
    Key3=pl.Series([5, 1, None, 1, 1, 1, 1, 5]),
    Key4=pl.Series([1, 1, 1, 5, None, 1, 5, 1]),
)


def test_francdat_as_sdcmicro_has_it() -> None:
    """Figures of sdcMicro 5.8: measure_risk with hid, suda2, ldiversity."""
    found = risk(FRANCDAT, keys=KEYS, weight="w", household="house")
    records = found.per_record
    assert records["fk"].to_list() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert records["Fk"].to_list() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    assert records["risk"].to_list() == pytest.approx(
        [0.0171442615962852, 0.0220423261832562, 0.0220423261832562, 0.177075834003514,
         0.011654480146012, 0.297063077382834, 0.402359478108525, 0.0171442615962852]
    )  # fmt: skip
    assert records["household_risk"].to_list() == pytest.approx(
        [0.0388086883733] * 2 + [0.2045943477350] * 3 + [0.5870987765426] * 3
    )
    assert records["suda_score"].to_list() == [0, 0, 0, 8, 6, 4, 8, 0]
    assert records["dis"].to_list() == pytest.approx(
        [0, 0, 0, 0.0142134863245872, 0.0101060150120893, 0.00623684035040827,
         0.0142134863245872, 0], rel=1e-6
    )  # fmt: skip
    assert found.expected_reidentifications == pytest.approx(0.966526045199967)
    assert found.global_risk == pytest.approx(0.120815755649996)
    assert found.threshold == 0
    assert found.conspicuous == 3
    assert found.violations == {2: 4, 3: 8, 5: 8}
    assert found.household is not None
    assert found.household.households == 3
    assert found.household.expected_reidentifications == pytest.approx(2.45269674958)
    assert found.suda is not None
    assert [*found.suda.contributions.values()] == pytest.approx([14 / 26, 6 / 26, 0, 14 / 26])
    assert found.suda.dis_intervals["(0.0, 0.1]"] == found.suda.dis_intervals["0"] == 4


def test_francdat_with_missing_keys_as_sdcmicro_has_it() -> None:
    found = risk(MISSING, keys=KEYS, weight="w")
    records = found.per_record
    assert records["fk"].to_list() == [3, 2, 4, 3, 3, 2, 2, 3]
    assert records["Fk"].to_list() == [149, 84.5, 194.5, 563, 566, 549, 22, 149]
    assert records["suda_score"].to_list() == [0, 3, 0, 0, 6, 2, 8, 0]
    assert records["dis"][6] == pytest.approx(0.0523365810341673, rel=1e-6)
    assert found.expected_reidentifications == pytest.approx(0.133687072689103)
    assert found.threshold == pytest.approx(0.0220423261832562)
    assert found.incomplete == 4


def test_diversity_of_a_sensitive_column() -> None:
    found = risk(FRANCDAT, keys=["Key1", "Key3"], sensitive="ill")
    (ill,) = found.sensitive
    records = found.per_record
    assert records["ill: distinct"].to_list() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert records["ill: entropy"].to_list() == pytest.approx([2, 2, 2, 1, 1, 1, 1, 2])
    assert records["ill: recursive"].to_list() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert (ill.least_distinct, ill.distinct_below) == (1, {2: 4, 3: 8, 5: 8})
    # of 8 records 3 have 1, 3 have 2 and 2 have 3: all in 3 is (3 + 6) / 8 / 2 away
    assert ill.largest_distance == pytest.approx(9 / 16)


def test_a_missing_sensitive_value_is_one_more_and_has_no_distance() -> None:
    table = pl.DataFrame({"k": [1, 1, 1, 2], "s": ["a", None, None, None]})
    found = risk(table, keys="k", sensitive="s")
    assert found.per_record["s: distinct"].to_list() == [2, 2, 2, 1]
    assert found.per_record["s: distance"].to_list() == [0, 0, 0, None]


def test_a_column_of_missing_values_only() -> None:
    table = pl.DataFrame({"k": [None, None], "s": [None, None]})
    found = risk(table, keys="k", sensitive="s")
    assert found.per_record["fk"].to_list() == [2, 2]
    assert found.sensitive[0].largest_distance is None
    assert found.to_dict()["sensitive"][0]["mean_distance"] is None


@st.composite
def keys_with_gaps(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    width, records = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    row = st.lists(st.integers(-1, 2), min_size=width, max_size=width)
    return np.array(draw(st.lists(row, min_size=records, max_size=records)))


@given(keys_with_gaps())
@settings(max_examples=40, deadline=None)
def test_missing_keys_match_anything(codes: np.ndarray[Any, Any]) -> None:
    """Every pair of records tried; what misses all of several keys is not counted for complete."""
    gaps = codes < 0
    agree = (codes[:, None] == codes[None]) | gaps[:, None] | gaps[None]
    match = agree.all(axis=2)
    if codes.shape[1] > 1:
        match &= ~np.outer(~gaps.any(axis=1), gaps.all(axis=1))
    weights = np.arange(1.0, len(codes) + 1)
    table = pl.DataFrame(
        {f"c{i}": [None if x < 0 else x for x in c.tolist()] for i, c in enumerate(codes.T)},
        schema_overrides={f"c{i}": pl.Int64 for i in range(codes.shape[1])},
    )
    found = combinations_of(table.get_columns(), pl.Series(weights))
    np.testing.assert_array_equal(found.shared[found.label], match.sum(axis=1))
    np.testing.assert_allclose(found.population[found.label], match @ weights)


def test_without_a_weight_the_table_is_the_population() -> None:
    found = risk(FRANCDAT, keys=KEYS)
    assert found.expected_reidentifications == found.combinations == 6
    assert found.population_uniques == found.sample_uniques == 4
    assert "since no weight was given" in risk_sentence(found)


def test_uniques_expected_in_the_population() -> None:
    found = risk(FRANCDAT, keys=KEYS, weight="w")
    assert found.population_uniques == pytest.approx(1 / 17 + 1 / 541 + 1 / 8 + 1 / 5)


def test_every_kind_of_column_and_table() -> None:
    table = pl.DataFrame({
        "text": ["b", "a", None, "b"], "real": [0.5, 1.5, float("nan"), 0.5],
        "flag": [True, False, None, True], "born": [date(1990, 1, 1), None, None, date(1990, 1, 1)],
        "kind": pl.Series(["x", "y", None, "x"], dtype=pl.Categorical),
    })  # fmt: skip
    expected = [3, 2, 4, 3]
    for kind in (table, table.to_pandas(), table.to_arrow()):
        assert isinstance(kind, pl.DataFrame | pd.DataFrame | pa.Table)
        found = risk(kind, keys=["text", "real", "flag", "kind"])
        assert found.per_record["fk"].to_list() == [2, 1, 4, 2], kind
    assert risk(table, keys="born").per_record["fk"].to_list() == [4] * 4
    assert risk(table, keys="text").per_record["fk"].to_list() == expected


def test_columns_may_have_any_name() -> None:
    table = pl.DataFrame({"*": ["x", "y"], "^x$": [1, 2], "len": [1, 1], "key 0": [1.5, 1.5]})
    found = risk(table, keys=["*", "^x$", "key 0"], sensitive="len")
    assert found.sample_uniques == 2
    assert risk(table, keys="len", sensitive=["^x$", "*"], weight="key 0").sample_uniques == 0
    assert risk(table, keys="len", household="*", weight="^x$").household is not None


def test_too_many_keys_for_suda_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classical, "is_searchable", lambda *_: False)
    found = risk(FRANCDAT, keys=KEYS, weight="w")
    assert found.suda is None
    assert "suda_score" not in found.per_record.columns
    assert found.violations[2] == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keys": []}, "one or more keys"),
        ({"keys": ["age"]}, r"attribute 'age': is not in the table \(columns: Key1, "),
        ({"keys": ["Key1", "Key1"]}, "attribute 'Key1': is given twice"),
        ({"keys": ["Key1"], "sensitive": "Key1"}, "attribute 'Key1': is given twice"),
        ({"keys": ["Key1"], "weight": "sex"}, "attribute 'sex': a weight must be a number"),
        ({"keys": ["Key1"], "weight": "bad"}, "attribute 'bad': .*found 3 records"),
        ({"keys": ["list"]}, "attribute 'list': expected text, numbers"),
        ({"keys": ["Key1"], "sampling_fraction": 1.5}, "sampling_fraction must be between"),
        ({"keys": ["Key1"], "max_global_risk": 0}, "max_global_risk must be between"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    table = FRANCDAT.with_columns(
        sex=pl.lit("f"), list=pl.lit([1]), bad=pl.Series([1, 0, -1, None, 2, 2, 2, 2])
    )
    with pytest.raises(DataError, match=message):
        risk(table, **given)


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(DataError, match="no records"):
        risk(FRANCDAT.clear(), keys=KEYS)


def test_values_never_appear_in_what_is_said() -> None:
    table = pl.DataFrame({"key": ["Zanzibar", "Zanzibar", "Xanthi"], "s": ["secret", "s", "t"]})
    found = microveil.risk(table, keys="key", sensitive="s")
    said = f"{found} {found.to_dict()} {list(risk_rows(found))} {risk_sentence(found)}"
    assert not any(value in said for value in ("Zanzibar", "Xanthi", "secret"))
