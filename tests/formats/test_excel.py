"""Excel workbooks, written by openpyxl and by microveil, read by both."""

from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest

from microveil import DataError, FileError, FileWarning, MicroveilError, Plan, Source, protect
from microveil.formats import excel, load_table, read_table, write_table

VALUE = "918273"  # stands for a data value: no message may contain it


def workbook(tmp_path: Path, *rows: list[Any], sheet: str = "people", **more: list[Any]) -> Path:
    book = openpyxl.Workbook()
    book.active.title = sheet
    for row in rows:
        book.active.append(row)
    for name, one in more.items():
        book.create_sheet(name).append(one)
    path = tmp_path / "in.xlsx"
    book.save(path)
    return path


def test_types_are_what_people_see(tmp_path: Path) -> None:
    path = workbook(
        tmp_path,
        ["n", "x", "t", "zip", "b", "day", "at", "hour", "lasts", "mixed", "none"],
        [1, 0.5, "ä", "007", True, date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5), time(1, 2, 3),
         timedelta(hours=30), 1, None],
        [None] * 11,
        [-3, 2, "", "1", False, date(1999, 1, 2), datetime(2020, 1, 2), time(23, 0), None, "a"],
    )  # fmt: skip
    book = openpyxl.load_workbook(path)
    book.active.delete_rows(3)
    book.active.append([None, None, None, None, None, None, None, None, None, "z", None])
    book.save(path)
    table = read_table(path)
    assert table.to_dict(as_series=False) == {
        "n": [1, -3, None],
        "x": [0.5, 2.0, None],
        "t": ["ä", None, None],
        "zip": ["007", "1", None],
        "b": [True, False, None],
        "day": [date(2020, 1, 2), date(1999, 1, 2), None],
        "at": [datetime(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2), None],
        "hour": [time(1, 2, 3), time(23, 0), None],
        "lasts": [timedelta(hours=30), None, None],
        "mixed": ["1", "a", "z"],
        "none": [None, None, None],
    }
    assert table.schema["n"] == pl.Int64


def test_errors_and_formulas_without_a_result_are_missing(tmp_path: Path) -> None:
    path = workbook(tmp_path, ["x", "y"], [1, "=1+1"], ["#N/A", 2], [3, 3])
    assert read_table(path).rows() == [(1, None), (None, 2), (3, 3)]


def test_the_first_sheet_or_one_by_name(tmp_path: Path) -> None:
    path = workbook(tmp_path, ["x"], [1], other=["y"])
    assert read_table(path).columns == ["x"]
    with pytest.raises(FileError, match="found only column names"):
        read_table(Source(path, sheet="other"))
    with pytest.raises(FileError, match="expected a sheet named 'Other'"):
        read_table(Source(path, sheet="Other"))


def test_empty_rows(tmp_path: Path) -> None:
    path = workbook(tmp_path, ["x", "y"], [1, 2], [None, None], [3, 4])
    with pytest.raises(FileError, match="record 2: all cells are empty"):
        read_table(path)
    path = workbook(tmp_path, ["x", "y"], [1, 2], [3, ""], [None, ""], ["", None])
    assert read_table(path).rows() == [(1, 2), (3, None)]
    path = workbook(tmp_path, ["x"], [1], [None], [3])
    assert read_table(path)["x"].to_list() == [1, None, 3]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (["a", None, "b"], "expected column names in the first line"),
        (["a", " ", "b"], "expected column names in the first line"),
        (["a", 2020, "b"], "expected column names in the first line"),
        (["a", "b", "a"], "same name twice"),
    ],
)
def test_headers_that_are_none(tmp_path: Path, header: list[Any], message: str) -> None:
    path = workbook(tmp_path, header, [1, VALUE, 3])
    with pytest.raises(DataError, match=message) as error:
        read_table(path)
    assert VALUE not in str(error.value)


def test_a_merged_header(tmp_path: Path) -> None:
    path = workbook(tmp_path, ["a", "b", "c"], [1, 2, 3])
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("A1:B1")
    book.save(path)
    with pytest.raises(DataError, match="expected column names in the first line"):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 and more", b"x,y\n1,2\n"])
def test_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.xlsx"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"is empty|not an Excel workbook"):
        read_table(path)


def test_nothing_in_the_sheet(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="sheet 'people' is empty"):
        read_table(workbook(tmp_path))
    with pytest.raises(FileError, match="expected records"):
        read_table(workbook(tmp_path, ["x", "y"]))
    with pytest.raises(FileError, match="expected records"):
        read_table(workbook(tmp_path, ["x", "y"], ["", ""]))


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    table = pl.DataFrame(
        {
            "n": [1, None, 2**53],
            "x": [0.1, None, 1e300],
            "=name": ["=1+1", None, "http://x.org"],
            "X": ["007", " a ", "ä\nb"],
            "b": [True, None, False],
            "day": [date(1900, 3, 1), None, date(2030, 1, 1)],
            "at": [datetime(2020, 1, 2, 3, 4, 5), None, datetime(2030, 1, 1)],
            "hour": [time(1, 2, 3), None, time(23, 59, 59)],
            "lasts": [timedelta(hours=30), None, timedelta(seconds=1)],
        }
    )
    write_table(table, tmp_path / "out.xlsx")
    back = read_table(tmp_path / "out.xlsx")
    assert back.schema == table.schema
    assert back.equals(table)
    cells = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert [cell.data_type for cell in cells["C"]] == ["s", "s", "n", "s"]  # no formula, no link
    assert cells["C2"].value == "=1+1"
    assert cells["C4"].hyperlink is None
    assert cells["F2"].number_format == "yyyy-mm-dd"


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.Series([2**53 + 1]), "integers up to 2\\^53"),
        (pl.Series(["x" * 32_768]), "Excel cells hold 32,767 characters"),
        (pl.Series([[1, 2]]), "cannot hold type"),
        (pl.Series([float("nan")]), "found larger, infinite or NaN"),
        (
            pl.Series([datetime(2020, 1, 1)]).dt.replace_time_zone("UTC"),
            "cannot hold type",
        ),
        (pl.Series([date(1900, 2, 28)]), "dates start on 1900-03-01, found earlier ones"),
    ],
)
def test_what_a_cell_cannot_hold(tmp_path: Path, column: pl.Series, message: str) -> None:
    with pytest.raises(FileError, match=message) as error:
        write_table(pl.DataFrame({"x": column}), tmp_path / "out.xlsx")
    assert "2020" not in str(error.value)


def test_too_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel, "_MOST_ROWS", 2)
    with pytest.raises(FileError, match="hold 2 records and 16,384 columns, found 3 and 1"):
        write_table(pl.DataFrame({"x": [1, 2, 3]}), tmp_path / "out.xlsx")


def test_a_release_of_a_workbook(tmp_path: Path) -> None:
    rows = [[f"P{i}", i % 3, 1000 + i * i, date(2000, 1, 1 + i % 28)] for i in range(60)]
    path = workbook(tmp_path, ["person", "region", "income", "day"], *rows)
    roles = {"person": "identifier", "region": "kept", "income": "confidential", "day": "kept"}
    release = protect(path, Plan.published(epsilon=1, k=5, attributes=roles), keep_order=True)
    assert release.store.meta.path == path
    written = release.write(tmp_path / "out.xlsx", keep_order=True)
    back = load_table(written.protected).data
    assert back.equals(release.data)
    with pytest.raises(MicroveilError, match="would replace the input"):
        release.write(path, overwrite=True)


def sheets(path: Path, contents: dict[str, list[list[Any]]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in contents.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


ROWS: list[list[Any]] = [["name", "wage", "x"], ["p", 2.5, 1], ["q", "NA", 2], ["r", 7, "none"]]


def test_notes_above_the_names_are_skipped_and_said(tmp_path: Path) -> None:
    path = sheets(tmp_path / "in.xlsx", {"Data": [["Wages, 2020"], ["Source: us"], [], *ROWS]})
    with pytest.warns(FileWarning, match=r"skipped 3 row\(s\) above the column names"):
        table = read_table(Source(path, na=["none"]))
    assert table.columns == ["name", "wage", "x"]
    assert table["wage"].to_list() == [2.5, None, 7.0]
    assert table["x"].to_list() == [1, 2, None]
    assert read_table(Source(path, skip_rows=3)).columns == ["name", "wage", "x"]


def test_where_the_names_are_not_found_the_error_says_how(tmp_path: Path) -> None:
    rows = [["a", "note"], ["x", "y", "z"], ["p", "q", "r"]]
    path = sheets(tmp_path / "in.xlsx", {"Notes": [], "Data": list(map(list, rows))})
    with pytest.raises(FileError, match=r"'Notes' is empty; other sheets \(--sheet\): 'Data'"):
        read_table(path)
    with pytest.raises(FileError, match="expected a sheet named 'data', found 'Notes', 'Data'"):
        read_table(Source(path, sheet="data"))
    with pytest.raises(DataError, match=r"with --skip-rows; other sheets \(--sheet\): 'Notes'"):
        read_table(Source(path, sheet="Data"))
    assert read_table(Source(path, sheet="Data", skip_rows=1)).columns == ["x", "y", "z"]
    with pytest.raises(FileError, match="skip_rows must be below the number of rows, got 9"):
        read_table(Source(path, sheet="Data", skip_rows=9))


def test_the_index_of_pandas_is_called_row(tmp_path: Path) -> None:
    path = sheets(tmp_path / "in.xlsx", {"Data": [[None, "a", "b"], [0, 1, 2], [1, 3, 4]]})
    assert read_table(path).columns == ["row", "a", "b"]


@pytest.mark.parametrize("first", ["A1", "XFD1048576"])
def test_a_cell_in_the_last_corner(first: str, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active[first] = "age"
    book.active["XFD1048576"] = VALUE
    book.create_sheet("people").append(["age"])
    book["people"].append([31])
    book.save(tmp_path / "in.xlsx")
    with pytest.raises(DataError) as error:
        read_table(tmp_path / "in.xlsx")
    assert str(error.value) == (
        f"{tmp_path}/in.xlsx: expected at most 100,000,000 cells, found sheet 'Sheet' with a "
        "cell in row 1,048,576, column 16,384; delete stray cells, or save it as CSV"
    )
    if first == "A1":
        assert read_table(Source(tmp_path / "in.xlsx", sheet="people")).rows() == [(31,)]


def test_cells_far_away_that_are_only_coloured(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["age", "zip"], [31, "007"]):
        book.active.append(row)
    book.active["XFD1048576"].font = openpyxl.styles.Font(bold=True)
    book.save(tmp_path / "in.xlsx")
    assert read_table(tmp_path / "in.xlsx").rows() == [(31, "007")]


@pytest.mark.parametrize("empty", [None, ""])
def test_records_without_any_value_are_refused_since_sheets_lose_them(
    empty: str | None, tmp_path: Path
) -> None:
    table = pl.DataFrame({"x": [1, None, 3, None], "t": [empty, empty, "a", empty]})
    with pytest.raises(FileError, match=r"^Excel sheets lose records .* found 2; .* Parquet"):
        write_table(table, tmp_path / "out.xlsx")
    write_table(table.with_columns(n=pl.int_range(pl.len())), tmp_path / "out.xlsx")
    assert len(read_table(tmp_path / "out.xlsx")) == 4


def test_a_release_without_any_value_in_a_record_is_refused(tmp_path: Path) -> None:
    people = pl.DataFrame({"x": [*range(40), None], "y": [*range(40), None]})
    roles = {"x": "confidential", "y": "confidential"}
    plan = Plan.published(epsilon=1.0, missing="keep", attributes=roles)
    with pytest.raises(FileError, match="Excel sheets lose records"):
        protect(people, plan).write(tmp_path / "out.xlsx")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("others", [[1.0], [0.5], [0.0, -3.0]])
def test_minus_zero_survives(others: list[float], tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [-0.0, *others]})
    write_table(table, tmp_path / "out.xlsx")
    read = read_table(tmp_path / "out.xlsx")["x"].to_list()
    assert list(map(str, read)) == list(map(str, table["x"]))
