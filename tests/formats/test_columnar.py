"""Arrow and Parquet files, written by PyArrow and by microveil."""

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from microveil import DataError, FileError, Plan, protect
from microveil.formats import load_table, read_table, write_table

EVERY_TYPE = pl.DataFrame(
    {
        "i8": pl.Series([1, None, -3], dtype=pl.Int8),
        "u64": pl.Series([2**63, 1, None], dtype=pl.UInt64),
        "f32": pl.Series([0.5, None, 1.5], dtype=pl.Float32),
        "f64": [0.1, 0.2, None],
        "text": ["ä", None, ""],
        "truth": [True, None, False],
        "day": [date(1899, 12, 31), None, date(2030, 1, 1)],
        "moment": [datetime(1850, 1, 1, 1, 2, 3, 456), None, datetime(2030, 1, 1)],
        "zoned": [datetime(2020, 1, 1, tzinfo=UTC), None, datetime(2030, 1, 1, tzinfo=UTC)],
        "hour": [time(1, 2, 3), None, time(23, 59, 59)],
        "lasting": [timedelta(hours=30), None, timedelta(seconds=1)],
        "kind": pl.Series(["b", "a", None], dtype=pl.Categorical),
    }
)


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".feather", ".FEATHER"])
def test_every_type_comes_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    write_table(EVERY_TYPE, path)
    back = read_table(path)
    assert back.schema == EVERY_TYPE.schema
    assert back.equals(EVERY_TYPE)


def test_files_and_streams_of_pyarrow(tmp_path: Path) -> None:
    table = pa.table({"x": [1, None, 3], "y": pa.array(["a", "b", "a"]).dictionary_encode()})
    feather.write_feather(table, tmp_path / "a.feather")
    with (
        pa.OSFile(str(tmp_path / "b.arrow"), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    for name in ("a.feather", "b.arrow"):
        read = load_table(tmp_path / name)
        assert read.data["x"].to_list() == [1, None, 3]
        assert read.data["y"].to_list() == ["a", "b", "a"]
        assert read.meta.path == tmp_path / name


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_tables_of_other_libraries_become_arrow_files(tmp_path: Path, library: str) -> None:
    table = pl.DataFrame({"x": range(30), "who": [f"N{i}" for i in range(30)]})
    data = table.to_pandas() if library == "pandas" else table.to_arrow()
    plan = Plan.published(epsilon=1, k=3, attributes={"x": "confidential", "who": "kept"})
    written = protect(data, plan).write(tmp_path / "out.arrow", keep_order=True)
    assert pl.read_ipc(written.protected)["who"].to_list() == table["who"].to_list()


def test_categories_tell_of_no_other_rows_and_of_no_order(tmp_path: Path) -> None:
    names = [f"NAME{i:02d}" for i in (8, 11, 4, 0, 9, 3, 7, 1, 2, 10, 6, 5)]
    who = pl.Series(names, dtype=pl.Categorical)
    table = pl.DataFrame({"x": [None, *range(11)], "who": who})
    plan = Plan.published(
        epsilon=1, k=3, missing="drop", attributes={"x": "confidential", "who": "kept"}
    )
    written = protect(table, plan).write(tmp_path / "out.arrow")
    stored = feather.read_table(written.protected)["who"].combine_chunks()
    assert stored.dictionary.to_pylist() == pl.read_ipc(written.protected)["who"].to_list()
    assert "NAME08" not in stored.dictionary.to_pylist()


@pytest.mark.parametrize(
    ("ending", "kind"),
    [(".parquet", "a Parquet"), (".arrow", "an Arrow"), (".feather", "an Arrow")],
)
@pytest.mark.parametrize("content", [b"something else", b"ARROW1 and more", b"PK\x03\x04" * 9])
def test_something_else(tmp_path: Path, ending: str, kind: str, content: bytes) -> None:
    path = tmp_path / f"in{ending}"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"not {kind} file that can be read"):
        read_table(path)


def test_names_that_are_there_twice(tmp_path: Path) -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(twice, tmp_path / "in.parquet")
    with (
        pa.OSFile(str(tmp_path / "in.arrow"), "wb") as file,
        pa.ipc.new_file(file, twice.schema) as writer,
    ):
        writer.write_table(twice)
    with pytest.raises(DataError, match="same name twice"):
        read_table(tmp_path / "in.parquet")
    with pytest.raises(FileError, match="duplicate column name"):
        read_table(tmp_path / "in.arrow")


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_no_records(tmp_path: Path, ending: str) -> None:
    write_table(EVERY_TYPE.clear(), tmp_path / f"in{ending}")
    with pytest.raises(FileError, match="expected records"):
        read_table(tmp_path / f"in{ending}")
