"""SPSS, Stata and SAS files: what is written by pyreadstat survives a release."""

from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import (
    Certificate,
    Confidential,
    DataError,
    Derived,
    FileError,
    FileWarning,
    Plan,
    Source,
    evaluate,
    protect,
)
from microveil.formats import load_table, read_table, write_table

pyreadstat: Any = import_module("pyreadstat")  # whose types do not know what it takes

SAS = Path(__file__).parents[1] / "people.sas7bdat"
"""Written with the SAS writer of the ReadStat library, which no Python library offers."""

N = 60
VALUE = 918_273  # stands for a data value: no message may contain it


def spss(path: Path) -> Path:
    """Write a survey in which 99 of age, −9 to −8 of income and "XX" of region are no values."""
    i = np.arange(N)
    frame = pl.DataFrame(
        {
            "person": [f"P{n}" for n in i],
            "age": np.where(i % 10 == 0, 99, 20 + i % 40).astype(float),
            "income": np.where(i % 12 == 0, -9.0, np.where(i % 12 == 1, -8.0, 1000.25 + i)),
            "school": (1 + i % 4).astype(float),
            "sex": np.where(i == 7, 9.0, i % 2),
            "region": np.where(i % 15 == 0, "XX", np.where(i % 15 == 1, "", "N")),
            "born": [date(1950, 1, 1 + n % 28) for n in i],
            "seen": [datetime(2020, 1, 1, n % 24, 5, 6) for n in i],
            "wake": [time(n % 24, 30) for n in i],
            "lasts": [30.0 * 3600 + n for n in i],
        }
    ).with_columns(school=pl.when(pl.Series(i) != 3).then("school"))
    pyreadstat.write_sav(
        frame,
        path,
        column_labels={"age": "Age in years", "region": "Région", "person": "Name, as given"},
        variable_value_labels={
            "school": {1: "none", 2: "primary", 3: "secondary", 4: "tertiary", 5: "unknown"},
            "sex": {0: "male", 1: "female", 9: "refused"},
            "region": {"N": "North", "XX": "nowhere"},
        },
        missing_ranges={
            "age": [99],
            "income": [{"lo": -9, "hi": -8}, 0],
            "sex": [9],
            "region": ["XX"],
        },
        variable_measure={"school": "ordinal", "age": "scale"},
        variable_format={"age": "F3.0", "income": "F12.2", "born": "EDATE10", "lasts": "TIME8"},
    )
    return path


def stata(path: Path) -> Path:
    i = np.arange(N)
    age = [("a" if n % 10 == 0 else "z" if n % 10 == 1 else 20 + n % 40) for n in i.tolist()]
    income = [("b" if n == 5 else None if n == 6 else 1000.25 + n) for n in i.tolist()]
    frame = pl.DataFrame(
        {
            "person": [f"P{n}" for n in i],
            "age": pl.Series(age, dtype=pl.Object),
            "income": pl.Series(income, dtype=pl.Object),
            "school": pl.Series(1 + i % 4, dtype=pl.Int32),
            "born": [date(1950, 1, 1 + n % 28) for n in i],
            "seen": [datetime(2020, 1, 1, n % 24, 5, 6) for n in i],
            "month": pl.Series(i, dtype=pl.Int32),
        }
    )
    pyreadstat.write_dta(
        frame,
        path,
        column_labels={"age": "Age in years"},
        variable_value_labels={"school": {1: "none", 4: "tertiary"}, "age": {"a": "refused"}},
        missing_user_values={"age": ["a", "z"], "income": ["b"]},
        variable_format={"income": "%12.2f", "born": "%tdD_m_Y", "month": "%tm"},
    )
    return path


def plan(table: Path, **settings: Any) -> Plan:  # noqa: ANN401 - of the plan
    masked = {"age": Confidential(lower=0, upper=120), "income": Confidential(decimals=2)}
    roles: dict[str, Any] = dict.fromkeys(read_table(table).columns, "kept")
    roles |= masked | {"person": "identifier"}
    return Plan.published(
        **{"epsilon": 1000.0, "k": 5, "missing": "keep", "attributes": roles, **settings}
    )


def opened(path: Path) -> tuple[pl.DataFrame, Any]:
    reader = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
    frame, about = reader(path, user_missing=True, output_format="polars")
    return frame, about


def test_declared_missing_values_are_missing_and_codes_wait(tmp_path: Path) -> None:
    data, meta = load_table(spss(tmp_path / "in.sav"))
    assert data["age"].null_count() == 6
    assert data["age"].max() == 59
    assert data["age"].dtype == data["school"].dtype == data["sex"].dtype == pl.Int64
    assert data["income"].dtype == pl.Float64
    assert data["region"].null_count() == 8
    codes = meta.columns["income"].codes
    assert codes is not None
    assert codes.head(3).to_list() == [-9, -8, None]
    assert meta.columns["school"].codes is None


def test_a_release_keeps_labels_codes_and_formats_of_spss(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    written = protect(path, plan(path)).write(tmp_path / "out.sav", keep_order=True)
    (before, said), (after, says) = opened(path), opened(written.protected)
    assert b"as given" not in written.protected.read_bytes()
    released = [name for name in before.columns if name != "person"]
    assert after.columns == released
    for what in (
        "column_names_to_labels",
        "variable_value_labels",
        "missing_ranges",
        "original_variable_types",
        "variable_measure",
    ):
        kept = {name: v for name, v in getattr(said, what).items() if name != "person"}
        assert getattr(says, what) == kept, what
    masked = ["age", "income"]
    assert after.drop(masked).equals(before.select(released).drop(masked))
    for name, codes in (("age", [99.0]), ("income", [-9.0, -8.0])):
        coded = before[name].is_in(codes)
        assert coded.any()
        assert after[name].filter(coded).sort().equals(before[name].filter(coded).sort())
        values, were = (table[name].filter(~coded).to_numpy() for table in (after, before))
        assert not np.isin(values, codes).any()
        assert were.min() - 1 < values.min() <= values.max() < were.max() + 1  # no code clustered
        assert len(np.unique(values)) < len(np.unique(were))


def test_kept_attributes_keep_their_own_codes(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    roles = {**plan(path).attributes, "person": "kept"}
    release = protect(path, plan(path, attributes=roles))
    after, _ = opened(release.write(tmp_path / "out.sav").protected)
    before, _ = opened(path)
    assert after["person"].to_list() != before["person"].to_list()
    both = after.join(before, on="person", suffix="_before")
    for name, codes in (
        ("sex", [9.0]),
        ("region", ["XX"]),
    ):
        now, was = both[name], both[f"{name}_before"]
        assert now.is_in(codes).equals(was.is_in(codes).alias(name))
        assert now.filter(now.is_in(codes)).equals(was.filter(now.is_in(codes)).alias(name))


def test_a_release_keeps_labels_codes_and_formats_of_stata(tmp_path: Path) -> None:
    path = stata(tmp_path / "in.dta")
    data, _ = load_table(path)
    assert data["age"].dtype == data["school"].dtype == pl.Int64
    written = protect(path, plan(path)).write(tmp_path / "out.dta", keep_order=True)
    (before, said), (after, says) = opened(path), opened(written.protected)
    for what in ("column_names_to_labels", "variable_value_labels", "original_variable_types"):
        kept = {name: v for name, v in getattr(said, what).items() if name != "person"}
        assert getattr(says, what) == kept, what
    assert says.missing_user_values == {"age": ["a", "z"], "income": ["b"]}
    assert says.readstat_variable_types["age"] == "int32"
    assert after.drop("age", "income").equals(before.drop("person", "age", "income"))
    for name in ("age", "income"):
        was, now = before[name].to_list(), after[name].to_list()
        coded, expected = ([e for e in each if isinstance(e, str)] for each in (now, was))
        assert sorted(coded) == sorted(expected)


@pytest.mark.parametrize("write", [spss, stata])
def test_the_plan_decides_what_becomes_of_declared_missing_values(
    tmp_path: Path,
    write: Any,  # noqa: ANN401
) -> None:
    path = write(tmp_path / ("in.sav" if write is spss else "in.dta"))
    with pytest.raises(DataError, match=r"attribute 'age': (6|12) of 60 values are missing"):
        protect(path, plan(path, missing="error"))
    dropped = protect(path, plan(path, missing="drop"), keep_order=True)
    assert dropped.data["age"].null_count() == dropped.data["income"].null_count() == 0
    after, _ = opened(dropped.write(tmp_path / f"out{path.suffix}").protected)
    assert after.height == dropped.certificate.records < N


def test_the_certificate_says_that_codes_and_labels_are_shown(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    release = protect(path, plan(path))
    written = Certificate.read(release.write(tmp_path / "out.sav").certificate)
    text = " ".join(written.reading["What is not protected"])
    assert "Which declared missing code stands for a missing value" in text
    assert "codes stay on their record: sex, region." in text
    assert "but not in which records: age, income." in text
    assert "Labels of columns and of values" in text
    with pytest.warns(FileWarning):
        plain = Certificate.read(release.write(tmp_path / "plain.parquet").certificate)
    assert "Labels" not in " ".join(plain.reading["What is not protected"])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".xlsx"])
def test_files_that_hold_values_only_lose_labels_and_codes_and_say_so(
    tmp_path: Path, ending: str
) -> None:
    path = spss(tmp_path / "in.sav")
    release = protect(path, plan(path), keep_order=True)
    with pytest.warns(FileWarning) as caught:
        written = release.write(tmp_path / f"out{ending}", keep_order=True)
    message = str(caught[0].message)
    for what in ("column labels (columns: 2)", "value labels (columns: 3)"):
        assert what in message
    assert "declared missing codes (now missing) (columns: 4)" in message
    back = read_table(written.protected)
    assert back["age"].null_count() == 6
    if ending != ".csv":
        assert back.equals(release.data)


def test_from_spss_to_stata_and_back_to_spss(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    release = protect(path, plan(path), keep_order=True)
    with pytest.warns(FileWarning) as caught:
        written = release.write(tmp_path / "out.dta", keep_order=True)
    assert "declared missing codes (now missing) (columns: 4)" in str(caught[0].message)
    assert "value labels (columns: 1)" in str(caught[0].message)  # of text
    table = load_table(written.protected)
    assert table.data.equals(release.data)
    assert table.meta.columns["sex"].value_labels == {0: "male", 1: "female", 9: "refused"}
    write_table(table.data, tmp_path / "back.sav", table.meta)
    back = load_table(tmp_path / "back.sav")
    assert back.data.equals(release.data)
    assert back.meta.columns["age"].label == "Age in years"


def test_from_stata_to_spss(tmp_path: Path) -> None:
    path = stata(tmp_path / "in.dta")
    release = protect(path, plan(path), keep_order=True)
    with pytest.warns(FileWarning, match=r"value labels \(columns: 1\); declared missing codes"):
        written = release.write(tmp_path / "out.sav", keep_order=True)
    table = load_table(written.protected)
    assert table.data.equals(release.data)
    assert table.meta.columns["school"].value_labels == {1: "none", 4: "tertiary"}


def test_sas_files_are_read(tmp_path: Path) -> None:
    data, meta = load_table(SAS)
    assert data.schema == {
        "name": pl.String,
        "age": pl.Int64,
        "income": pl.Float64,
        "born": pl.Date,
        "seen": pl.Datetime("us"),
    }
    assert data["age"].to_list() == [20, 23, 26, 29, 32, None, 38, 41, 44, 47, 50, 53]
    assert data["income"].null_count() == 2
    assert data["name"][3] is None
    assert data["born"].head(3).to_list() == [date(1949, 12, 31), date(1952, 9, 26), None]
    assert data["seen"][1] == datetime(2020, 1, 1, 1)
    assert meta.columns["age"].label == "Age in years"
    roles: dict[str, Any] = dict.fromkeys(data.columns, "kept") | {"age": "confidential"}
    release = protect(SAS, Plan.published(epsilon=1, k=3, missing="keep", attributes=roles))
    after, says = opened(release.write(tmp_path / "out.dta", keep_order=True).protected)
    assert after["age"].to_list()[5] == "a"
    assert after["income"].to_list()[7:9] == [None, "b"]
    assert says.column_names_to_labels["income"] == "Income, thousands"
    with pytest.raises(FileError, match="SAS files are only read"):
        release.write(tmp_path / "out.sas7bdat")


def test_masked_values_keep_clear_of_codes(tmp_path: Path) -> None:
    i = np.arange(40)
    frame = pl.DataFrame({"x": np.where(i < 4, 50, 40 + i % 21 + (i % 21 == 10)).astype(float)})
    pyreadstat.write_sav(
        frame, tmp_path / "in.sav", missing_ranges={"x": [50]}, variable_format={"x": "F3.0"}
    )
    attributes = {"x": Confidential(lower=0, upper=100)}
    only = Plan.published(epsilon=0.05, k=3, missing="keep", attributes=attributes, post="none")
    for seed in range(30):
        release = protect(tmp_path / "in.sav", only, seed=seed, keep_order=True)
        if (release.data["x"] == 50).any():
            break
    else:
        pytest.fail("no seed makes a masked value equal to the code")
    after, _ = opened(release.write(tmp_path / "out.sav", keep_order=True).protected)
    assert (after["x"] == 50).to_list() == [True] * 4 + [False] * 36
    moved = release.data["x"] == 50
    assert set(after["x"].filter(moved)) == {49.0}


def test_derived_columns_have_no_declared_missing_values(tmp_path: Path) -> None:
    i = np.arange(30.0)
    frame = pl.DataFrame({"a": i, "b": i, "sum": np.where(i == 3, 99, 2 * i)})
    pyreadstat.write_sav(frame, tmp_path / "in.sav", missing_ranges={"sum": [99], "a": [77]})
    roles = {"a": Confidential(decimals=0), "b": Confidential(decimals=0)}
    derived = {"sum": Derived(expression="a + b")}
    release = protect(
        tmp_path / "in.sav", Plan.published(epsilon=1, k=3, attributes={**roles, **derived})
    )
    after, says = opened(release.write(tmp_path / "out.sav").protected)
    assert says.missing_ranges == {"a": [{"lo": 77, "hi": 77}]}
    assert after["sum"].equals((after["a"] + after["b"]).alias("sum"))


def test_dates_declared_to_be_missing_are_missing_and_keep_their_codes(tmp_path: Path) -> None:
    seconds = [150_462 * 86_400.0, 86_400.0, 151_620 * 86_400.0]
    pyreadstat.write_sav(
        pl.DataFrame({"d": seconds, "x": [1.0, 2.0, 3.0]}),
        tmp_path / "in.sav",
        missing_ranges={"d": [86_400]},
        variable_format={"d": "DATE11"},
    )
    data, meta = load_table(tmp_path / "in.sav")
    assert data["d"].dtype == pl.Date
    assert data["d"].is_null().to_list() == [False, True, False]
    assert meta.columns["d"].missing == ((86_400, 86_400),)
    write_table(data, tmp_path / "out.sav", meta)
    again = load_table(tmp_path / "out.sav")
    assert again.data.equals(data)
    stored = [
        pyreadstat.read_sav(
            tmp_path / name, user_missing=True, disable_datetime_conversion=True,
            output_format="polars",
        )[0]["d"].to_list()
        for name in ("in.sav", "out.sav")
    ]  # fmt: skip
    assert stored == [seconds, seconds]


def test_times_of_a_day_and_more_stay_numbers(tmp_path: Path) -> None:
    data, _ = load_table(spss(tmp_path / "in.sav"))
    assert data["wake"].dtype == pl.Time
    assert data["lasts"].head(2).to_list() == [108_000, 108_001]


@pytest.mark.parametrize("ending", [".sav", ".dta", ".sas7bdat"])
@pytest.mark.parametrize("content", [b"", b"garbage" * 50, b"$FL2@(#) IBM SPSS" + b"\0" * 200])
def test_something_else(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"in{ending}"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"the file is empty|not an? \w+ file that can be read"):
        read_table(path)


def test_a_file_that_was_cut_short(tmp_path: Path) -> None:
    for path in (spss(tmp_path / "in.sav"), stata(tmp_path / "in.dta")):
        path.write_bytes(path.read_bytes()[:-400])
        with pytest.raises(FileError, match="file that can be read"):
            read_table(path)


def test_no_records(tmp_path: Path) -> None:
    pyreadstat.write_sav(pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)}), tmp_path / "in.sav")
    with pytest.raises(FileError, match="expected records"):
        read_table(tmp_path / "in.sav")


def test_an_encoding_can_be_given(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    assert load_table(Source(path, encoding="utf-8")).meta.columns["region"].label == "Région"
    with pytest.raises(FileError, match="delimiter does not apply to SPSS"):
        load_table(Source(path, delimiter=";"))


def test_a_release_is_measured_against_its_original(tmp_path: Path) -> None:
    path = spss(tmp_path / "in.sav")
    written = protect(path, plan(path)).write(tmp_path / "out.sav", detail=True)
    outcome = evaluate(path, written.protected, detail=written.detail)
    assert outcome.to_dict()["records"] == N
