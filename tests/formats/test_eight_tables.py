"""Tables as people have them, from the file to a release: no column is lost or mis-typed unsaid.

None of these people exists. The traits are those of sdcMicro's test data, a census, a table of
firms, a survey written by R, deaths with names and national dates, an SPSS file, a workbook with
notes, and Parquet with decimals.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import polars as pl
import pyreadstat
import pytest
from numpy.typing import NDArray

from microveil import Plan
from microveil.formats import Source, load_table, read_table

RECORDS = 240
Run = Callable[[str], tuple[int, str, str]]


class File(NamedTuple):
    """A file, the flags to read it with, and columns by what becomes of them and their types."""

    path: Path
    masked: Mapping[str, Any]
    nominal: AbstractSet[str] = frozenset()
    dropped: AbstractSet[str] = frozenset()
    kept: AbstractSet[str] = frozenset()
    flags: str = ""


random = np.random.default_rng(8)


def codes(*values: int) -> NDArray[np.int64]:
    return np.asarray(random.choice(values, RECORDS))


def money(scale: float = 20_000) -> NDArray[np.int64]:
    return np.asarray((random.lognormal(0, 0.8, RECORDS) * scale).astype(np.int64))


def days(first: date) -> list[date]:
    return [first + timedelta(days=int(n)) for n in random.integers(0, 9_000, RECORDS)]


def sdc(folder: Path) -> File:
    hid = np.repeat(np.arange(1, RECORDS), 3)[:RECORDS]
    frame = pl.DataFrame(
        {
            "urbrur": codes(1, 2), "roof": codes(2, 4, 5, 6, 9), "sex": codes(0, 1),
            "relat": codes(1, 2, 3, 4, 9), "age": random.integers(0, 96, RECORDS),
            "expend": money(), "income": money(), "savings": money(), "ori_hid": hid,
            "sampling_weight": np.full(RECORDS, 100),
            "household_weights": random.choice([20.0, 25.0, 50.0], RECORDS),
        }
    )  # fmt: skip
    frame.write_csv(folder / "in.csv")
    masked: dict[str, Any] = dict.fromkeys(("age", "expend", "income", "savings"), pl.Int64)
    masked["household_weights"] = pl.Float64  # fewer than ten households share one
    nominal = {"urbrur", "roof", "sex", "relat"}
    return File(folder / "in.csv", masked, nominal, {"ori_hid"},
                {"sampling_weight"})  # fmt: skip


def census(folder: Path) -> File:
    names = ("AGI", "EMCONTRB", "FEDTAX", "STATETAX", "WSALVAL")
    frame = pl.DataFrame({"AFNLWGT": random.integers(30_000, 400_000, RECORDS)})
    frame = frame.with_columns(pl.Series(name, money()) for name in names)
    frame.write_csv(folder / "in.csv", separator=";")
    return File(folder / "in.csv", dict.fromkeys(("AFNLWGT", *names), pl.Int64))


def firms(folder: Path) -> File:
    lines = ["Firmennummer;Rechtsform;Beschäftigte;Umsatz;Exportanteil;Gegründet"]
    for number, sales in enumerate(money(900_000)):
        written = f"{sales + 1_000:,}".replace(",", ".")
        lines.append(
            f"{31_007 + 13 * number};{number % 3 + 1};{number * 7 % 140};{written},50;"
            f"{number * 11 % 97},5 %;{number % 28 + 1}.{number % 12 + 1}.{1980 + number % 30}"
        )
    (folder / "in.csv").write_text("\n".join(lines), encoding="windows-1252")
    masked = {"Beschäftigte": pl.Int64, "Umsatz": pl.Float64, "Exportanteil": pl.Float64,
              "Gegründet": pl.Date}  # fmt: skip
    return File(folder / "in.csv", masked, {"Rechtsform"}, {"Firmennummer"})


def slid(folder: Path) -> File:
    lines = ['"","wages","education","age","sex","language"']
    for number, age in enumerate(random.integers(16, 90, RECORDS)):
        wages = "NA" if number % 2 else f"{5 + number * 37 % 400 / 10}"
        language = "NA" if number % 60 == 1 else f'"{("English", "French", "Other")[number % 3]}"'
        lines.append(f'"{number + 1}",{wages},{number % 20 + 0.5},{age},"Male",{language}')
        lines[-1] = lines[-1].replace("Male", "Female") if number % 2 else lines[-1]
    (folder / "in.csv").write_text("\n".join(lines) + "\n")
    masked = {"wages": pl.Float64, "education": pl.Float64, "age": pl.Int64}
    return File(folder / "in.csv", masked, {"sex", "language"}, {"row"}, flags="--na NA")


def deaths(folder: Path) -> File:
    born, died = days(date(1920, 1, 1)), days(date(1990, 1, 1))
    lines = ["Surname,First name,Date of birth,Date of death,Cause,Age at death"]
    for number, (one, other) in enumerate(zip(born, died, strict=True)):
        end = "" if number % 40 == 0 else f"{other:%m/%d/%Y}"
        lines.append(f"Name{number % 50},Anna,{one:%m/%d/%Y},{end},I{number % 4},{number % 90}")
    (folder / "in.csv").write_text("\n".join(lines))
    masked = {"Date of birth": pl.Date, "Date of death": pl.Date, "Age at death": pl.Int64}
    return File(folder / "in.csv", masked, {"Cause"}, {"Surname", "First name"})


def spss(folder: Path) -> File:
    frame = pl.DataFrame(
        {
            "resp": np.arange(1, RECORDS + 1), "v1": codes(1, 2, 9), "v2": codes(1, 2, 3, 4, 5),
            "v3": codes(3, 7, 8), "v4": random.normal(40, 9, RECORDS).round(1),
        }
    )  # fmt: skip
    pyreadstat.write_sav(
        frame,
        folder / "in.sav",
        variable_value_labels={
            "v1": {1: "male", 2: "female", 9: "refused"},
            "v2": {1: "never", 2: "rarely", 3: "at times", 4: "often", 5: "always"},
            "v3": {3: "north", 7: "south", 8: "west", 9: "east"},
        },
        missing_ranges={"v1": [9]},
        variable_measure={"v1": "nominal", "v2": "ordinal", "v3": "nominal", "v4": "scale"},
    )
    return File(folder / "in.sav", {"v4": pl.Float64}, {"v1", "v2", "v3"}, {"resp"})


def workbook(folder: Path) -> File:
    names = ["Region", "Beds", "Cost", "Opened", "Hospital no."]
    book = openpyxl.Workbook()
    for row in (["Hospitals, 2020"], ["Source: none, these are made up"], [], names):
        book.active.append(row)
    for number, opened in enumerate(days(date(1950, 1, 1))):
        beds, cost, key = number * 17 % 300, number * 7.25 % 990, 40_000 + number * 3
        book.active.append(["NESW"[number % 4], beds, cost, opened, key])
    book.save(folder / "in.xlsx")
    masked = {"Beds": pl.Int64, "Cost": pl.Float64, "Opened": pl.Date}
    return File(folder / "in.xlsx", masked, {"Region"}, {"Hospital no."})


def decimals(folder: Path) -> File:
    frame = pl.DataFrame(
        {
            "account_id": [f"AT{n:010d}" for n in random.permutation(RECORDS)],
            "balance": pl.Series([Decimal(int(m)) / 100 for m in money()], dtype=pl.Decimal(14, 2)),
            "call": pl.Series([timedelta(seconds=int(m % 7_000)) for m in money()]),
            "opened": days(date(2000, 1, 1)),
            "risk": pl.Series(
                random.choice(["low", "high"], RECORDS), dtype=pl.Enum(["low", "middle", "high"])
            ),
        }
    )
    frame.write_parquet(folder / "in.parquet")
    masked = {"balance": pl.Decimal(14, 2), "call": pl.Duration("us"), "opened": pl.Date}
    return File(folder / "in.parquet", masked, {"risk"}, {"account_id"})


@pytest.mark.parametrize(
    "make", [sdc, census, firms, slid, deaths, spss, workbook, decimals], ids=lambda m: m.__name__
)
@pytest.mark.filterwarnings("ignore::microveil.FileWarning")
def test_from_file_to_release(make: Callable[[Path], File], run: Run, tmp_path: Path) -> None:
    file = make(tmp_path)
    code, out, err = run(f"plan {file.path.name} -o plan.toml {file.flags}")
    assert code == 0, err
    plan = Plan.read(tmp_path / "plan.toml")
    categories = {name for name, a in plan.confidential.items() if a.is_category}
    assert set(plan.names("identifier")) == file.dropped
    assert all(f"{name} " in out for name in file.dropped)
    assert set(plan.kept) == file.kept
    assert categories == file.nominal
    assert plan.confidential.keys() - categories == file.masked.keys()
    code, out, err = run(f"protect {file.path.name} --plan plan.toml -o out.parquet --no-verdict")
    assert code == 0, err
    released = pl.read_parquet(tmp_path / "out.parquet")
    assert {name: released.schema[name] for name in file.masked} == file.masked
    assert set(released.columns) == {*file.masked, *file.nominal, *file.kept}


@pytest.mark.filterwarnings("ignore::microveil.FileWarning")
def test_missing_values_of_r_are_missing(tmp_path: Path) -> None:
    table = read_table(Source(slid(tmp_path).path, na=["NA"]))
    assert table["wages"].null_count() == RECORDS // 2
    assert table["language"].n_unique() == 4
    assert "NA" not in table["language"].to_list()


def test_labels_of_spss_are_in_the_plan(run: Run, tmp_path: Path) -> None:
    spss(tmp_path)
    assert run("plan in.sav -o plan.toml --quiet")[0] == 0
    text = (tmp_path / "plan.toml").read_text()
    plan = Plan.from_toml(text)
    assert "labelled in the file; 1 = male, 2 = female\n" in text
    assert plan.confidential["v1"].categories == (1, 2)
    assert plan.confidential["v2"].kind == "ordinal"
    assert plan.confidential["v2"].categories == (1, 2, 3, 4, 5)
    assert plan.confidential["v3"].categories == (3, 7, 8, 9)
    assert not [mark for mark in plan.from_data if mark.startswith("v") and "cat" in mark]
    assert load_table(tmp_path / "in.sav").meta.described["v1"].labels == {1: "male", 2: "female"}


def test_labels_of_stata_that_cover_a_column_are_its_categories(tmp_path: Path, run: Run) -> None:
    frame = pl.DataFrame({"a": codes(1, 2, 3), "b": codes(*range(50)), "c": money()})
    labels: dict[str, dict[int | float, str]] = {"a": {1: "x", 2: "y", 3: "z"}, "b": {0: "none"}}
    pyreadstat.write_dta(frame, tmp_path / "in.dta", variable_value_labels=labels)
    assert run("plan in.dta -o plan.toml --quiet")[0] == 0
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan.confidential["a"].categories == (1, 2, 3)
    assert not plan.confidential["b"].is_category
