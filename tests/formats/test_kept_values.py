"""Values that are published as they are: a file holds them exactly, or refuses them by name."""

import math
from collections.abc import Callable
from datetime import datetime, time, timedelta
from pathlib import Path

import polars as pl
import pytest

from microveil import FileError, FileWarning
from microveil.formats import TableMeta, load_table, read_table, write_table
from microveil.formats.metadata import ColumnMeta

Run = Callable[[str], tuple[int, str, str]]
NUMBERS = [0.1 + 0.2, 1 / 3, -5e-324, 2.0**60 + 256, 1.2345678901234567e-7]


@pytest.mark.parametrize("ending", ["xlsx", "sav", "dta"])
def test_numbers_keep_every_digit(ending: str, tmp_path: Path) -> None:
    half = pl.Series([0.1, 65504, -1.5, 0, 1]).cast(pl.Float16)
    write_table(pl.DataFrame({"x": NUMBERS, "half": half}), tmp_path / f"out.{ending}")
    written = read_table(tmp_path / f"out.{ending}")
    assert written["x"].to_list() == NUMBERS
    assert written["half"].to_list() == half.to_list()


@pytest.mark.parametrize(
    ("ending", "values"),
    [
        ("xlsx", [time(1, 2, 3, 4000)]), ("xlsx", [datetime(2020, 1, 2, 3, 4, 5, 678_000)]),
        ("xlsx", [timedelta(milliseconds=1)]), ("xlsx", ["a\0b", "\x1f", "=1", "_x0041_"]),
        ("sav", [time(1, 2, 3, 4000)]), ("sav", [datetime(2020, 1, 2, 3, 4, 5)]),
        ("dta", [time(1, 2, 3)]), ("dta", [datetime(2020, 1, 2, 3, 4, 5, 678_000)]),
    ],
)  # fmt: skip
def test_times_and_text_are_kept(ending: str, values: list[object], tmp_path: Path) -> None:
    write_table(pl.DataFrame({"x": values}), tmp_path / f"out.{ending}")
    assert read_table(tmp_path / f"out.{ending}")["x"].to_list() == values


MICROSECOND = [datetime(2020, 1, 1, 0, 0, 0, 1)]


@pytest.mark.parametrize(
    ("ending", "values", "message"),
    [
        ("xlsx", [1.7976931348623157e308], "hold numbers up to 1e\\+308"),
        ("xlsx", [math.nan], "found larger, infinite or NaN"),
        ("xlsx", pl.Series([math.inf], dtype=pl.Float32), "found larger, infinite or NaN"),
        ("xlsx", MICROSECOND, "hold times to the millisecond"),
        ("xlsx", [time(0, 0, 0, 1)], "hold times to the millisecond"),
        ("xlsx", [timedelta(microseconds=1)], "hold times to the millisecond"),
        ("xlsx", ["\ufffe"], "cannot hold U\\+FFFE"),
        ("xlsx", [b"x"], "cannot hold type Binary"),
        ("sav", [-1.7976931348623157e308], "hold numbers up to"),
        ("sav", [math.nan], "found larger, infinite or NaN"),
        ("sav", ["a\0b"], "cannot hold NUL characters"),
        ("sav", MICROSECOND, "hold times to the second"),
        ("dta", [9e307], "hold numbers up to"),
        ("dta", ["a\0b"], "cannot hold NUL characters"),
        ("dta", ["é" * 1023], "hold text up to 2,045 bytes"),
        ("sav", ["é" * 16384], "hold text up to 32,767 bytes"),
        ("csv", [[1]], "CSV files cannot hold type List"),
        ("csv", [b"x"], "CSV files cannot hold type Binary"),
        ("csv", [timedelta(150_000)], "durations of at most 285 years"),
        ("dta", MICROSECOND, "hold times to the millisecond"),
        ("dta", [time(0, 0, 0, 1000)], "hold times to the second"),
    ],
)
def test_what_would_change_is_refused_by_name(
    ending: str, values: list[object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileError, match=f"column 'x': .*{message}"):
        write_table(pl.DataFrame({"x": values}), tmp_path / f"out.{ending}")


def test_spaces_that_spss_cuts_are_told(tmp_path: Path) -> None:
    with pytest.warns(FileWarning, match=r"lost: spaces at the end of text \(columns: 1\)"):
        write_table(pl.DataFrame({"x": ["a "], "y": ["b"]}), tmp_path / "out.sav")


@pytest.mark.parametrize(
    ("ending", "of_column", "of_value"), [("sav", 256, 120), ("dta", 80, 32_000)]
)
def test_long_labels_are_cut_with_a_warning(
    ending: str, of_column: int, of_value: int, tmp_path: Path
) -> None:
    about = ColumnMeta(label="é" * of_column, value_labels={1: "v" * (of_value + 1)})
    table, meta = pl.DataFrame({"x": [1, 2]}), TableMeta(None, "spss", columns={"x": about})
    with pytest.warns(FileWarning, match=r"lost: ends of long labels \(columns: 1\)"):
        write_table(table, tmp_path / f"out.{ending}", meta)
    written = load_table(tmp_path / f"out.{ending}").meta.columns["x"]
    assert written.label == "é" * (of_column // 2)
    assert written.value_labels == {1: "v" * of_value}


def test_kept_values_are_checked_before_any_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("microveil.cli.job.protect", no_work)
    pl.DataFrame({"x": range(9), "at": MICROSECOND * 9}).write_parquet("in.parquet")
    code, _, err = run("protect in.parquet -o out.xlsx --epsilon 1 --k 3 --keep at")
    assert code == 1
    assert "column 'at': Excel files hold times to the millisecond" in err


@pytest.mark.parametrize(
    ("ending", "names", "message"),
    [
        ("sav", ["2nd", "age"], "column '2nd': not a valid SPSS name"),
        ("sav", ["Age", "age"], "SPSS ignores case"),
        ("dta", ["a b", "age"], "column 'a b': not a valid Stata name"),
    ],
)
def test_names_are_checked_before_any_work(
    ending: str, names: list[str], message: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_work(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("microveil.cli.job.protect", no_work)
    pl.DataFrame({name: range(9) for name in names}).write_parquet("in.parquet")
    code, _, err = run(f"protect in.parquet -o out.{ending} --epsilon 1 --k 3")
    assert code == 1
    assert message in err


@pytest.mark.parametrize("lazy", [False, True])
def test_csv_holds_no_nul_and_times_with_the_digits_they_need(lazy: bool, tmp_path: Path) -> None:
    text = pl.DataFrame({"^x$": ["a\0b"], "y": [1]})
    with pytest.raises(FileError, match=r"column '\^x\$': CSV files cannot hold NUL characters"):
        write_table(text.lazy() if lazy else text, tmp_path / "out.csv")
    day = datetime(2020, 1, 2)
    times = pl.DataFrame({"t": [time(1, 2, 3), time(4, 5, 6, 500_000)], "d": [day, day]})
    write_table(times.lazy() if lazy else times, tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").split()
    assert lines == ["t,d", "01:02:03,2020-01-02T00:00:00", "04:05:06.500,2020-01-02T00:00:00"]
