"""Names, encodings, disks and plans at the edge of what files can hold."""

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from microveil import FileError, Plan, Source, protect
from microveil.app.downloads import release_files
from microveil.app.upload import Upload
from microveil.formats import read_table, write_table

Run = Callable[[str], tuple[int, str, str]]
LONG = "a" * 300


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", ["0", "1.5", "nan", " ", "", "\ufeffa"])
@pytest.mark.parametrize("like", [pl.DataFrame, pl.DataFrame.lazy, pl.DataFrame.to_arrow])
def test_names_that_are_values_are_not_written(
    like: Callable[[pl.DataFrame], Any], name: str, ending: str, tmp_path: Path
) -> None:
    table = pl.DataFrame({"x": [1, 2], name: [3, 4]})
    if ending == ".xlsx" and like is pl.DataFrame.lazy:
        pytest.skip("a lazy table is not written to a workbook")
    with pytest.raises(FileError, match="rename the column, or write Parquet"):
        write_table(like(table), tmp_path / f"out{ending}")


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_name_that_ends_a_text_in_other_programs(ending: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no names with NUL characters"):
        write_table(pl.DataFrame({"x": [1, 2], "a\0b": [3, 4]}), tmp_path / f"out{ending}")


def test_such_names_are_refused_before_the_work(run: Run) -> None:
    pd.DataFrame({"0": range(40), "x": range(40)}).to_parquet("in.parquet")
    code, _, err = run("protect in.parquet --epsilon 1 -o out.csv")
    assert code == 1
    assert "column '0': CSV files take a number" in " ".join(err.split())


@pytest.mark.parametrize("setting", ["lower", "upper", "top", "bottom"])
def test_a_bound_with_seconds_in_its_offset(setting: str) -> None:
    dublin = timezone(-timedelta(minutes=25, seconds=21))
    bound = {"role": "confidential", setting: datetime(1900, 1, 1, tzinfo=dublin)}
    plan = Plan(epsilon=1.0, attributes={"x": bound})
    assert Plan.from_toml(plan.to_toml()) == plan


@pytest.mark.parametrize("given", ["utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_utf_32_in_another_encoding(given: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(("name,b\n" + "".join(f"ä{i},{i}\n" for i in range(30))).encode("utf-32"))
    assert read_table(path).shape == (30, 2)
    with pytest.raises(FileError, match=f"expected {given} text, found NUL characters"):
        read_table(Source(path, encoding=given))


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_full_disk_leaves_one_message(tmp_path: Path) -> None:
    writing = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "import polars as pl\n"
        "from microveil.formats import moved_into_place, write_table\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "table = pl.DataFrame({'x': range(20_000)}).with_columns(y=pl.col('x') * 0.37)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "with moved_into_place([Path(sys.argv[1])]) as (path,):\n"
        "    write_table(table, path)\n"
    )
    for size in (10_000, 300_000):  # for rows, and for all of it
        command = [sys.executable, "-c", writing, str(tmp_path / "out.xlsx"), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        assert "out.xlsx: cannot be written" in done.stderr
        assert done.stderr.count("Traceback") == 1  # of that error
        assert "Exception ignored" not in done.stderr
        assert not [*tmp_path.iterdir()]


def test_names_of_300_characters(run: Run) -> None:
    for ending in (".csv", ".parquet", ".xlsx"):
        code, _, err = run(f"protect {LONG}{ending} --epsilon 1 -o out.csv")
        assert code == 1
        assert "cannot be read: File name too long" in " ".join(err.split())


def test_a_long_name_in_the_page() -> None:
    table, _ = Upload(f"{LONG}.csv", b"age\n31\n35\n").read()
    assert table.data["age"].to_list() == [31, 35]
    plan = Plan(epsilon=1.0, attributes={"x": "confidential"})
    release = protect(pl.DataFrame({"x": range(40)}), plan)
    assert release_files(release, f"{LONG}.csv", ".csv").protected[0].endswith("-protected.csv")
