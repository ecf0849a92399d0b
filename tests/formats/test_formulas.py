"""Text that a spreadsheet takes for a formula: warned of in CSV, or written as text."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pytest

from microveil import FileError, FileWarning, Plan, protect, protect_file
from microveil.formats import TableMeta, read_table, write_table

Run = Callable[[str], tuple[int, str, str]]
FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\uff1d1"]
HARMLESS = ["a=b", "1-2", "", None]
TABLE = pl.DataFrame(
    {
        "t": [*FORMULAS, *HARMLESS] * 4,
        "x": [-1, *range(47)],
        "y": [-0.5, *range(47)],
        "=z": ["a", "-b"] * 24,
    }
)
PLAN = Plan(
    epsilon=1.0,
    attributes={"t": "kept", "x": "confidential", "y": "confidential", "=z": "kept"},
)
SAID = (
    r"begins with =, \+, -, @, tab or return for a formula: 32 in column 't', "
    r"24 in column '=z', the name '=z'; .*--escape-formulas"
)


def of_pandas(table: pl.DataFrame) -> Any:  # noqa: ANN401
    return pd.DataFrame(table.to_dict(as_series=False))


@pytest.mark.parametrize(
    "like", [pl.DataFrame, pl.DataFrame.lazy, pl.DataFrame.to_arrow, of_pandas]
)
def test_formulas_are_warned_of_by_count_and_column(
    like: Callable[[pl.DataFrame], Any], tmp_path: Path
) -> None:
    with pytest.warns(FileWarning, match=SAID):
        write_table(like(TABLE), tmp_path / "out.csv")


@pytest.mark.parametrize(
    "like", [pl.DataFrame, pl.DataFrame.lazy, pl.DataFrame.to_arrow, of_pandas]
)
def test_formulas_are_written_as_text(like: Callable[[pl.DataFrame], Any], tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(like(TABLE), tmp_path / "out.csv", TableMeta(escape_formulas=True))
    written = read_table(tmp_path / "out.csv")
    assert written.columns == ["t", "x", "y", "'=z"]
    expected = [f"'{text}" if text in FORMULAS else text for text in TABLE["t"]]
    assert written["t"].to_list() == expected
    assert written["x"].to_list() == TABLE["x"].to_list()
    assert written["y"].to_list() == TABLE["y"].to_list()


def test_numbers_are_no_formulas(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(TABLE.select("x", "y"), tmp_path / "out.csv")


def test_cells_of_a_workbook_are_text(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_table(TABLE, tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    texts = [cell for row in sheet.iter_rows() for cell in (row[0], row[3]) if cell.value]
    assert {cell.data_type for cell in texts} == {"s"}


@pytest.mark.filterwarnings("ignore")
def test_every_way_to_write_a_release(run: Run, tmp_path: Path) -> None:
    TABLE.write_parquet("in.parquet")
    Path("plan.toml").write_text(PLAN.to_toml())
    protect(TABLE, PLAN).write("one.csv", escape_formulas=True)
    protect_file("in.parquet", PLAN, "two.csv", escape_formulas=True)
    code, _, err = run("protect in.parquet --plan plan.toml -o three.csv --escape-formulas")
    assert "for a formula" not in err
    assert code in (0, 4)
    for name in ("one", "two", "three"):
        written = read_table(f"{name}.csv")
        texts = [*written.columns, *written["t"].drop_nulls(), *written["'=z"]]
        assert not any(
            text.startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d")) for text in texts
        )
    _, _, err = run("protect in.parquet --plan plan.toml -o four.csv")
    assert "32 in column 't'" in " ".join(err.split())
    code, _, err = run("protect in.parquet --plan plan.toml -o five.xlsx --escape-formulas")
    assert code == 1
    assert "--escape-formulas) is for CSV files; remove it" in " ".join(err.split())
    with pytest.raises(FileError, match="is for CSV files"):
        protect(TABLE, PLAN).write(tmp_path / "six.parquet", escape_formulas=True)
