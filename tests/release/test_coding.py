"""Before masking: top and bottom coding, rounding, and categories recoded by level."""

import math
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import (
    Confidential,
    DataError,
    Plan,
    PlanError,
    evaluate,
    protect,
    protect_file,
    verdict,
)
from microveil.core.coding import Coding
from microveil.plan.taxonomy import groups_at
from microveil.show.words.certificate_words import domain_text

WAGES = [float(x) for x in [-3, *range(0, 2000, 100), 9_999, 70_000]]
TREE = {"health": ["nurse", "doctor"], "craft": {"wood": ["joiner", "carver"], "smith": []}}
JOBS = ["nurse", "doctor", "joiner", "carver", "smith", "nurse"] * 4


def plan(attribute: Confidential, **settings: Any) -> Plan:  # noqa: ANN401
    return Plan.published(**{"epsilon": 1.0, "k": 3, **settings}, attributes={"x": attribute})


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1), st.booleans(), st.booleans(),
    st.sampled_from([0.0, 0.5, 7.0, 1e5]),
)  # fmt: skip
def test_a_coded_value_follows_from_the_value_alone(
    values: list[float], bottom: bool, top: bool, step: float
) -> None:
    coding = Coding(-1000.0, 5000.0, bottom, top, step)
    coded = coding.of(np.array(values))
    assert coded.tolist() == [coding.of(np.array([value]))[0] for value in values]
    for before, after in zip(values, coded, strict=True):
        if -1000 <= before <= 5000:
            assert -1000 <= after <= 5000
            assert abs(after - before) <= step / 2 + 1e-9
        else:
            end, moved = (5000, top) if before > 5000 else (-1000, bottom)
            assert after == (end if moved else before)


def test_what_is_not_finite_stays_to_be_refused() -> None:
    coded = Coding(0.0, 9.0, bottom=True, top=True).of(np.array([math.inf, -math.inf, math.nan]))
    assert np.isinf(coded[:2]).all()
    assert np.isnan(coded[2])


@pytest.mark.parametrize("method", ["DP-UM", "iDP-LS"])
def test_top_and_bottom_are_the_domain_to_which_values_are_moved(method: Any) -> None:  # noqa: ANN401
    table = pl.DataFrame({"x": WAGES})
    with pytest.raises(DataError, match="lie outside the declared domain"):
        protect(table, plan(Confidential(lower=0, upper=1500), method=method))
    release = protect(table, plan(Confidential(bottom=0, top=1500), method=method), keep_order=True)
    assert release.data["x"].is_between(0, 1500).all()
    moved = table.with_columns(pl.col("x").clip(0, 1500))
    same = protect(moved, plan(Confidential(lower=0, upper=1500), method=method), keep_order=True)
    assert release.detail.clusters.equals(same.detail.clusters)
    (entry,) = release.certificate.attributes
    assert (entry.lower, entry.upper, entry.domain) == (0, 1500, "declared")
    assert (entry.bottom, entry.top) == (0, 1500)
    assert domain_text(entry) == "0 to 1,500, bottom and top coded"


def test_coding_is_the_same_for_files_dates_and_other_libraries(tmp_path: Path) -> None:
    attribute = Confidential(bottom=0, top=1500, round_to=500, kind="real")
    table = pl.DataFrame({"x": WAGES})
    table.write_parquet(tmp_path / "in.parquet")
    written = protect_file(tmp_path / "in.parquet", plan(attribute), tmp_path / "out.parquet",
                           detail=True, seed=1, keep_order=True)  # fmt: skip
    expected = protect(table, plan(attribute), seed=1, keep_order=True)
    assert pl.read_parquet(written.protected).equals(expected.data)
    for other in (table.to_pandas(), table.to_arrow()):
        assert pl.DataFrame(protect(other, plan(attribute), seed=1, keep_order=True).data).equals(
            expected.data
        )
    ends = Confidential(bottom=date(2000, 1, 1), top=date(2000, 12, 31))
    days = pl.DataFrame({"x": [date(1990 + i, 6, 1) for i in range(20)]})
    assert protect(days, plan(ends), keep_order=True).data["x"].dt.year().unique().to_list() == [
        2000
    ]


def test_values_are_rounded_before_they_are_masked() -> None:
    table = pl.DataFrame({"x": [10.0, 20.0, 40.0, 90.0, 110.0, 140.0]})
    release = protect(table, plan(Confidential(lower=0, upper=1000, round_to=100)), keep_order=True)
    assert release.data["x"].to_list() == [0.0] * 3 + [100.0] * 3  # without noise, as all agree
    assert domain_text(release.certificate.attributes[0]) == "0 to 1,000, rounded to 100"
    whole = pl.DataFrame({"x": range(60)})
    with pytest.raises(DataError, match=r"got round_to = 0\.5"):
        protect(whole, plan(Confidential(round_to=0.5)))
    with pytest.raises(DataError, match="round_to is for numbers, found dates; use time_step"):
        protect(whole.select(pl.col("x").cast(pl.Date)), plan(Confidential(round_to=7)))


def test_categories_become_the_groups_of_a_level() -> None:
    assert set(groups_at(TREE, 1).values()) == {("health",), ("craft",)}
    release = protect(
        pl.DataFrame({"x": JOBS}),
        plan(Confidential(kind="nominal", taxonomy=TREE, level=2), method="DP"),
        keep_order=True,
    )
    assert set(release.data["x"]) <= {"nurse", "doctor", "wood", "smith"}
    (entry,) = release.certificate.attributes
    assert (entry.categories, entry.level) == (4, 2)
    assert domain_text(entry) == "4 categories, recoded to level 2"


def test_recoded_columns_are_text_in_every_library_and_measured_as_such(tmp_path: Path) -> None:
    codes = {"a": [1, 2], "b": [3, 4]}
    attribute = Confidential(kind="nominal", taxonomy=codes, level=1)
    hidden, values = plan(attribute, anonymity=4), [1, 2, 3, 4] * 6
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "in.parquet")
    tables = [
        pl.DataFrame({"x": values}),
        pl.DataFrame({"x": pl.Series(map(str, values)).cast(pl.Enum(["1", "2", "3", "4"]))}),
        pd.DataFrame({"x": pd.Categorical(values)}),
        pa.table({"x": values}),
    ]
    for table in tables:
        release = protect(table, hidden, keep_order=True)
        assert set(pl.DataFrame(release.data)["x"]) == {"a", "b"}
        if isinstance(table, pl.DataFrame):
            assert evaluate(table, release).value("utility.unchanged", "x") > 0.5
            assert verdict(table, release, seed=1).records == 24
    out = protect_file(tmp_path / "in.parquet", hidden, tmp_path / "out.csv").protected
    assert set(pl.read_csv(out)["x"]) == {"a", "b"}


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(PlanError, match="top is the upper end of the domain, got another upper"):
        Confidential(top=5, upper=9)
    with pytest.raises(PlanError, match="lower must be below upper"):
        Confidential(top=5, bottom=9)
    with pytest.raises(PlanError, match="round_to must be above 0"):
        Confidential(round_to=0.0)
    with pytest.raises(PlanError, match="level must be 1 or more and needs a taxonomy"):
        Confidential(kind="nominal", categories=["a", "b"], level=1)
    with pytest.raises(PlanError, match="top is for numbers"):
        Confidential(kind="nominal", top=3)
    with pytest.raises(PlanError, match="one name at level 2"):
        Confidential(kind="nominal", taxonomy={"a": {"x": ["p"]}, "b": {"x": ["q"]}}, level=2)
    with pytest.raises(PlanError, match="must be two or more, got 1"):
        Confidential(kind="nominal", taxonomy={"a": ["p", "q"]}, level=1)
    with pytest.raises(PlanError, match="but from_data lists upper"):
        Plan.published(epsilon=1, method="DP-UM", from_data=["x: top"],
             attributes={"x": Confidential(bottom=0, top=9)})  # fmt: skip


def test_a_plan_has_one_line_for_each() -> None:
    given = Plan.published(epsilon=1, attributes={
        "x": Confidential(bottom=0, top=150_000, round_to=100),
        "job": Confidential(kind="nominal", taxonomy=TREE, level=1),
    })  # fmt: skip
    text = given.to_toml()
    assert [line for line in text.splitlines() if "top" in line] == ["top = 150000.0"]
    assert "upper" not in text
    assert Plan.from_toml(text) == given
