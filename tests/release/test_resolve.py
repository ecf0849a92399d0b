"""A table that does not fit its plan: one message, which names the attribute and no value."""

import math
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from microveil import Confidential, DataError, MicroveilError, Plan, PlanError, protect

SECRET = 918_273  # stands for a data value: no message may contain it


def plan(**settings: Any) -> Plan:  # noqa: ANN401
    attributes = settings.pop("attributes", {"x": "confidential"})
    return Plan.published(**{"epsilon": 1.0, "k": 3, **settings}, attributes=attributes)


def domain(lower: float, upper: float, **settings: Any) -> dict[str, Confidential]:  # noqa: ANN401
    return {"x": Confidential(lower=lower, upper=upper, **settings)}


GOOD = [SECRET, 1, 2, 3]


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ([], {}, "at least 2 records, found 0"),
        ([SECRET], {}, "at least 2 records, found 1"),
        ([SECRET], {"method": "DP", "attributes": domain(0, 10**6)}, "at least 2 records, found 1"),
        (GOOD, {"k": 5}, "attribute 'x': k must be at most the number of records with a value"),
        (GOOD, {"attributes": domain(0, 10)}, "attribute 'x': 1 of 4 values lie outside"),
        ([1.0, math.nan, SECRET], {}, "'x': values must be finite, found 1 that are infinite"),
        ([1.0, math.inf, SECRET], {}, "'x': values must be finite, found 1 that are infinite"),
        ([1, None, SECRET], {}, "attribute 'x': 1 of 3 values are missing; set missing = \"keep\""),
        ([None, None, None], {"missing": "keep"}, "attribute 'x': every value is missing"),
        (
            pl.Series([None, None, None], dtype=pl.Int64),
            {"missing": "keep"},
            "attribute 'x': every value is missing",
        ),
        ([None, 1, SECRET], {"missing": "drop", "attributes": {"x": "confidential"}}, "k must be"),
        ([None, SECRET, None], {"missing": "drop"}, "found 1 after records with missing"),
        ([f"{SECRET}", "a", "b", "4"], {}, "found text (2 of 4 records are not numbers)"),
        ([True, False, True], {}, "attribute 'x': a confidential attribute must be numeric"),
        (GOOD, {"attributes": {"x": Confidential(decimals=1)}}, "decimals are for real values"),
        (
            [0.5, 1, SECRET],
            {"attributes": {"x": Confidential(kind="integer")}},
            "attribute 'x': kind is integer but 1 of 3 values are not whole",
        ),
        ([2**41, 1, SECRET], {}, "attribute 'x': values too large for its noise grid"),
        (
            [2**39, -(2**39), SECRET] * 600,
            {"k": 1800},
            "'x': values too large for its noise grid when 1800 of them are added",
        ),
        (
            [1.5, 2.5, float(SECRET)],
            {"attributes": {"x": Confidential(decimals=15)}},
            "attribute 'x': values too large for its noise grid",
        ),
        (
            GOOD,
            {"attributes": {"x": Confidential(resolution=1e300)}},
            "attribute 'x': its resolution is so coarse that all values become the same",
        ),
        (
            pl.Series(["1", "2", "3"]).cast(pl.Categorical),
            {},
            "found numbers stored as text",
        ),
        (GOOD, {"epsilon": 1e-12}, "attribute 'x': epsilon is too small for its noise grid"),
        (
            [SECRET] * 4,
            {"method": "iDP-LS"},
            "attribute 'x': every value is the same, so no domain can be read from the data",
        ),
    ],
)
def test_values_that_do_not_fit(values: Any, settings: dict[str, Any], message: str) -> None:  # noqa: ANN401
    with pytest.raises(DataError) as error:
        protect(pl.DataFrame({"x": values}), plan(**settings))
    assert message in str(error.value)
    assert str(SECRET) not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "settings", "setting"),
    [
        (GOOD, {"k": 5}, "k"),
        ([1, None, SECRET], {}, "missing"),
        ([None, None, None], {"missing": "keep"}, "role"),
        (["a", "b", "c"], {}, "kind"),
        (GOOD, {"attributes": {"x": Confidential(decimals=1)}}, "decimals"),
        (GOOD, {"attributes": {"x": Confidential(time_step="day")}}, "time_step"),
        (GOOD, {"attributes": domain(0, 10)}, "lower"),
        (GOOD, {"attributes": domain(0.2, 0.7)}, "lower"),
        (GOOD, {"attributes": {"x": Confidential(resolution=1e300)}}, "resolution"),
        (GOOD, {"epsilon": 1e-12}, "epsilon"),
        (
            GOOD,
            {"attributes": {"x": Confidential(kind="nominal", categories=[1, 2])}},
            "categories",
        ),
    ],
)
def test_an_error_says_which_attribute_and_which_setting(
    values: Any,  # noqa: ANN401
    settings: dict[str, Any],
    setting: str,
) -> None:
    with pytest.raises(MicroveilError) as error:
        protect(pl.DataFrame({"x": values}), plan(**settings))
    assert (error.value.attribute, error.value.setting) == ("x", setting)
    assert str(error.value) == f"attribute 'x': {error.value.message}"


def test_domains_that_cannot_be_used() -> None:
    with pytest.raises(PlanError, match="attribute 'x': the domain is too wide"):
        protect(pl.DataFrame({"x": [1, 2, 3]}), plan(attributes=domain(-1e308, 1e308)))
    with pytest.raises(PlanError, match="attribute 'x': the domain is too wide"):
        protect(
            pl.DataFrame({"x": [1, 2, 3]}), plan(attributes=domain(-1e6, 1.7976931348623157e308))
        )
    with pytest.raises(DataError, match="attribute 'x': its domain must be at least 1e-290 wide"):
        protect(pl.DataFrame({"x": [0.0, 0.0, 0.0]}), plan(attributes=domain(0, 5e-324)))


def test_columns_and_attributes_must_agree() -> None:
    table = pl.DataFrame({"x": GOOD, "y": GOOD, "z": GOOD})
    with pytest.raises(DataError, match=r"'w': in the plan, but not in the data \(columns"):
        protect(table, plan(attributes={"x": "confidential", "w": "kept"}))
    with pytest.raises(DataError, match=r"every column needs a role, .* none for 'y', 'z'; add"):
        protect(table, plan())
    with pytest.raises(DataError, match="no columns"):
        protect(pl.DataFrame(), plan())


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2]] * 5, columns=["x", "x"]),
        pa.table([pa.array([1, 2, 3]), pa.array([1, 2, 3])], names=["x", "x"]),
    ],
)
def test_the_same_column_name_twice(table: Any) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match="same name twice"):
        protect(table, plan())


@pytest.mark.parametrize("table", [{"x": [1]}, [[1]], None])
def test_data_that_is_no_table(table: Any) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match="data must be a Polars or pandas DataFrame"):
        protect(table, plan())


def test_column_names_that_are_not_text() -> None:
    with pytest.raises(MicroveilError, match="column names must be text"):
        protect(pd.DataFrame([[1], [2], [3]]), plan())
