"""Categories and dates through the whole line, in every kind of table."""

from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from microveil import Confidential, DataError, Plan, PlanError, protect

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*iDP publishes the category", "ignore:.*the data decided", "ignore:.*voids the claim"
)
N = 120
NAMES = ("sex", "level", "smokes", "code", "born", "seen", "x", "y")
ATTRIBUTES: dict[str, Any] = {
    "sex": Confidential(kind="nominal", categories=["f", "m", "x"]),
    "level": Confidential(kind="ordinal", categories=["low", "middle", "high"]),
    "smokes": Confidential(kind="nominal", categories=[True, False]),
    "code": Confidential(kind="nominal", categories=[1, 2, 3, 4]),
    "born": Confidential(lower=date(1900, 1, 1), upper=date(2020, 12, 31)),
    "seen": Confidential(lower=date(2000, 1, 1), upper=date(2030, 1, 1), time_step="minute"),
    "x": Confidential(lower=-10, upper=10, decimals=2),
    "y": Confidential(lower=-10, upper=10, decimals=2),
}


def table() -> pl.DataFrame:
    random = np.random.default_rng(4)
    days = pl.lit(pl.Series(random.integers(0, 20_000, N)))
    seconds = pl.lit(pl.Series(random.integers(0, 10**8, N)))
    return pl.select(
        sex=pl.Series(random.choice(["f", "m"], N)),
        level=pl.Series(random.choice(["low", "middle", "high"], N)),
        smokes=pl.Series(random.random(N) < 0.3),
        code=pl.Series(random.integers(1, 5, N)),
        born=pl.lit(date(1940, 1, 1)) + pl.duration(days=days),
        seen=pl.lit(datetime(2010, 1, 1)) + pl.duration(seconds=seconds),
        x=pl.Series(random.normal(size=N).round(2)),
        y=pl.Series(random.normal(size=N).round(2)),
    ).with_columns(
        pl.when(pl.Series(random.random(N) < 0.1)).then(None).otherwise(pl.col(c)).alias(c)
        for c in ("sex", "smokes", "code", "born", "seen")
    )


def plan(**settings: Any) -> Plan:  # noqa: ANN401
    return Plan.published(
        **{"epsilon": 8.0, "k": 5, "missing": "keep", "attributes": ATTRIBUTES, **settings}
    )


METHODS = ["DP", "DP-UM", "iDP-LS", "iDP-CBLS"]


@pytest.mark.parametrize("method", METHODS)
def test_types_and_missing_values_come_back_as_they_were(method: str) -> None:
    before = table()
    after = protect(before, plan(method=method), seed=1, keep_order=True).data
    assert after.schema == before.schema
    assert_frame_equal(before.select(pl.all().is_null()), after.select(pl.all().is_null()))
    for name, attribute in ATTRIBUTES.items():
        released = after[name].drop_nulls()
        if attribute.is_category:
            assert set(released) <= set(attribute.categories)
        elif name == "born":
            assert released.is_between(attribute.lower, attribute.upper).all()
    assert (after["seen"].drop_nulls().dt.second() == 0).all()
    assert not after.drop("sex", "code").equals(before.drop("sex", "code"))


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_table_gives_the_same(method: str) -> None:
    expected = protect(table(), plan(method=method), seed=1, keep_order=True).data
    arrow = protect(table().to_arrow(), plan(method=method), seed=1, keep_order=True).data
    assert_frame_equal(pl.DataFrame(arrow), expected)
    pandas = table().to_pandas()
    assert pandas["code"].dtype == np.float64  # whole numbers with missing ones, as pandas has them
    released = protect(pandas, plan(method=method), seed=1, keep_order=True).data
    assert released.dtypes.equals(pandas.dtypes)
    back = pl.DataFrame(pl.from_pandas(released)).cast(dict(expected.schema))
    others = pl.exclude("born")  # pandas has dates as times, which have another noise grid
    assert_frame_equal(back.select(others), expected.select(others))


@pytest.mark.parametrize("dtype", [pl.Categorical(), pl.Enum(["m", "f", "x"])])
def test_categoricals_of_polars(dtype: pl.DataType) -> None:
    before = table().with_columns(pl.col("sex").cast(dtype))
    after = protect(before, plan(method="DP"), seed=1, keep_order=True).data
    assert after["sex"].dtype == before["sex"].dtype
    assert after["sex"].cast(pl.String).n_unique() == 4


def test_categoricals_of_pandas_must_know_every_declared_category() -> None:
    frame = table().to_pandas()
    frame["sex"] = frame["sex"].astype("category")
    with pytest.raises(DataError, match="'sex': 1 of the declared categories are not in the list"):
        protect(frame, plan())
    frame["sex"] = frame["sex"].cat.add_categories(["x"])
    after = protect(frame, plan(method="DP"), seed=1, keep_order=True).data
    assert isinstance(after["sex"].dtype, pd.CategoricalDtype)
    assert after["sex"].isna().equals(frame["sex"].isna())


def test_times_of_day_and_time_zones() -> None:
    before = (
        table()
        .drop_nulls()
        .select(
            at=pl.col("seen").dt.time(), zoned=pl.col("seen").dt.replace_time_zone("Europe/Vienna")
        )
    )
    attributes = {
        "at": Confidential(lower=time(0), upper=time(23, 59)),
        "zoned": Confidential(lower=date(2009, 1, 1), upper=datetime(2020, 1, 1)),
    }
    after = protect(
        before, Plan.published(epsilon=1e9, k=3, attributes=attributes), seed=1, keep_order=True
    ).data
    assert after.schema == before.schema
    # With next to no noise masked values are means of three neighbours in rank.
    for name in ("at", "zoned"):
        moved = (after[name].to_physical() - before[name].to_physical()).abs()
        assert moved.median() < before[name].to_physical().std() / 10  # type: ignore[operator]


def test_a_date_is_masked_like_its_number_of_days() -> None:
    born = [date(1970, 1, 1 + day) for day in (3, 9, 6, 20, 25, 22)]
    days = [value.toordinal() - date(1970, 1, 1).toordinal() for value in born]
    ends = date(1970, 1, 1), date(1970, 2, 1)
    as_dates = Plan.published(
        epsilon=2, k=3, attributes={"x": Confidential(lower=ends[0], upper=ends[1])}
    )
    as_days = Plan.published(epsilon=2, k=3, attributes={"x": Confidential(lower=0, upper=31)})
    dates = protect(pl.DataFrame({"x": born}), as_dates, seed=3, keep_order=True)
    numbers = protect(pl.DataFrame({"x": days}), as_days, seed=3, keep_order=True)
    assert dates.data["x"].to_physical().to_list() == numbers.data["x"].to_list()
    assert dates.certificate.attributes[0].lower == "1970-01-01"
    assert dates.certificate.attributes[0].time_step == "day"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"sex": Confidential(kind="nominal", categories=["f", "x"])},
         "'sex': 62 of 120 values are none of the declared categories; declare all"),
        ({"code": Confidential(kind="nominal", categories=["a", "b"])},
         "'code': the declared categories are text, but the column holds whole numbers"),
        ({"sex": Confidential(kind="nominal", categories=[1, 2])},
         "'sex': the declared categories are whole numbers, but the column holds text"),
        ({"x": Confidential(kind="nominal", categories=["a", "b"])},
         "'x': categories must be text, whole numbers of 64 bits or true/false values; convert"),
        ({"sex": "confidential"}, "'sex': a confidential attribute must be numeric, found text"),
        ({"born": Confidential(lower=0, upper=1)}, "'born': lower and upper must be dates, bec"),
        ({"x": Confidential(lower=date(2000, 1, 1), upper=date(2001, 1, 1))},
         "'x': lower and upper must be numbers, because the column holds numbers; got dates"),
        ({"born": Confidential(time_step="hour")}, "'born': time_step must be \"day\" for dates"),
        ({"x": Confidential(time_step="hour")}, "'x': time_step is for dates and times"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_table_is_said_without_values(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises((DataError, PlanError), match=message):
        protect(table(), plan(attributes=ATTRIBUTES | changed))


def test_categories_read_from_the_data_are_warned_about() -> None:
    attributes = ATTRIBUTES | {"sex": Confidential(kind="nominal")}
    with pytest.warns(match="'sex': the categories were read from the data, so the guarantee"):
        release = protect(table(), plan(attributes=attributes), seed=1)
    entry = release.certificate.attributes[0]
    assert (entry.domain, entry.categories) == ("data", None)
    assert release.certificate.levels[0].about("observed-categories-only") == ("sex",)
    assert "For sex this covers only categories observed in the data" in str(release.certificate)
    with pytest.raises(PlanError, match="'sex': DP needs declared categories"):
        plan(attributes=attributes, method="DP")


def test_truth_values_need_no_list() -> None:
    attributes = ATTRIBUTES | {"smokes": Confidential(kind="nominal")}
    release = protect(table(), plan(attributes=attributes), seed=1)
    assert release.certificate.attributes[2].domain == "declared"


def test_numerals_of_a_taxonomy_file_fit_a_column_of_codes(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text("parent,child\nodd,1\nodd,3\neven,2\neven,4\n")
    code = Confidential(kind="nominal", taxonomy=tmp_path / "codes.csv")
    release = protect(
        table(), plan(attributes=ATTRIBUTES | {"code": code}), seed=1, keep_order=True
    )
    assert set(release.data["code"].drop_nulls()) <= {1, 2, 3, 4}


def test_a_taxonomy_decides_which_categories_share_a_cluster() -> None:
    values = pl.DataFrame({"x": ["a"] * 2 + ["b"] * 3 + ["c"] * 1})
    near = Confidential(kind="nominal", taxonomy={"one": ["c", "a"], "two": ["b"]})
    clusters = protect(
        values, Plan.published(epsilon=1, k=3, attributes={"x": near}), seed=1
    ).detail.clusters
    assert clusters["category"].to_list() == ["a", "b"]
    assert clusters["lead"].to_list() == [1, 3]


def test_text_that_looks_like_numbers_stays_text_in_csv(tmp_path: Path) -> None:
    values = ["01", "02"] * 30
    (tmp_path / "in.csv").write_text("x\n" + "\n".join(values) + "\n")
    attribute = Confidential(kind="nominal", categories=["01", "02"])
    release = protect(
        tmp_path / "in.csv",
        Plan.published(epsilon=1, attributes={"x": attribute}),
        seed=1,
        keep_order=True,
    )
    assert release.data["x"].to_list() == values
