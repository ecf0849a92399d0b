from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microveil import DataError, FileError, MicroveilError
from microveil.formats import read_table

VALUE = "918273"  # stands for a data value: no message may contain it


def csv(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_are_read_as_what_they_hold(tmp_path: Path) -> None:
    text = "i,f,t,b,z,n,m\n1,0.5,x,true,007,,1\n-2,1e3,,false,010,,\n"
    table = read_table(csv(tmp_path, text))
    assert table.to_dict(as_series=False) == {
        "i": [1, -2],
        "f": [0.5, 1000.0],
        "t": ["x", None],
        "b": [True, False],
        "z": ["007", "010"],
        "n": [None, None],
        "m": [1, None],
    }


def test_columns_that_are_published_as_they_are_keep_their_text(tmp_path: Path) -> None:
    text = "a,b,c,long\n28.10,3e2,1,12345678901234567890\n3.25,4,2,12345678901234567891\n"
    path = csv(tmp_path, text)
    table = read_table(path, verbatim=["a", "b", "c", "long"])
    assert table.to_dict(as_series=False) == {
        "a": ["28.10", "3.25"],
        "b": ["3e2", "4"],
        "c": [1, 2],
        "long": ["12345678901234567890", "12345678901234567891"],
    }
    assert read_table(path)["a"].to_list() == [28.1, 3.25]


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n\r\n"])
def test_empty_lines_at_the_end_are_no_records(tmp_path: Path, end: str) -> None:
    assert read_table(csv(tmp_path, "x,y\n1,2\n3," + end)).height == 2


def test_a_single_column_may_have_missing_values(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "x\n1\n\n3\n"))["x"].to_list() == [1, None, 3]


def test_long_fields(tmp_path: Path) -> None:
    long = "z" * 200_000
    assert read_table(csv(tmp_path, f"x,y\n{long},1\na,\n"))["x"][0] == long


def test_a_number_far_down_does_not_surprise(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "x\n" + "1\n" * 5000 + "0.5\n"))
    assert table["x"].dtype == pl.Float64


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "\ufeffx,y\n1,2\n")).columns == ["x", "y"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("x,y\n", "a header but no records"),
        (f"x,y\n1,2\n{VALUE},4,5\n", r"line 3: expected 2 fields, found 3"),
        (f"x,y\n1,2\n3,4\n{VALUE}\n", r"line 4: expected 2 fields, found 1"),
        ("x,y\n1,2\n\n3,4\n", r"line 3: expected 2 fields, found 0"),
        (f'x,y\n1,"{VALUE}\n3,4\n', r"line \d: broken quotes"),
        (f'x,y\n1,"{VALUE}"z\n', r"line 2: broken quotes"),
        ("x,y\n1,\xe9\n".encode("latin-1"), "expected UTF-8"),
        ("x\xe9,y\n1,2\n".encode("latin-1"), "expected UTF-8"),
        (f"x,x\n1,{VALUE}\n", "same name twice"),
        (f"{VALUE},b\n1,2\n", "the first line must hold column names"),
        ("x,,y\n1,2,3\n", "the first line must hold column names"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(MicroveilError, match=message) as error:
        read_table(csv(tmp_path, content))
    assert VALUE not in str(error.value)
    assert "\n" not in str(error.value)


def test_parquet_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    path.write_bytes(b"something else")
    with pytest.raises(FileError, match="not a Parquet file"):
        read_table(path)
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), path)
    with pytest.raises(DataError, match="same name twice"):
        read_table(path)


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileError, match=r"ending in \.csv or \.parquet"):
        read_table(tmp_path / "in.xls")


def test_dates_and_times_of_csv_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(
        "day,moment,at,no,code\n2020-01-02,2020-01-02T03:04:05,03:04:05,2020-13-01,0123\n"
    )
    table = read_table(path)
    assert table.dtypes == [pl.Date, pl.Datetime("us"), pl.Time, pl.String, pl.String]
    assert read_table(path, verbatim=["day"])["day"].to_list() == ["2020-01-02"]
