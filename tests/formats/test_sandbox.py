"""Readers in a child process: a file of every format, damaged ones, and no memory or time left."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

from microveil import DataError, FileWarning, MicroveilError, Source
from microveil.formats import load_table, write_table
from microveil.formats.excel import read_excel
from microveil.formats.sandbox import sandboxed
from microveil.formats.statistical.reader import read_statistical

VALUE = "918273"  # stands for a data value: no message may contain it
SAS = Path(__file__).with_name("people.sas7bdat")
READERS = f"""
import os, time
import polars as pl
from microveil.errors import PlanError
from microveil.formats.metadata import LoadedTable

def hangs(source, verbatim):
    time.sleep(600)

def eats(source, verbatim):
    held = bytearray(10**10)

def eats_in_rust(source, verbatim):
    return LoadedTable(pl.DataFrame({{"x": pl.repeat({VALUE}, 10**12, eager=True)}}))

def crashes(source, verbatim):
    os.abort()

def fails(source, verbatim):
    raise KeyError("{VALUE}")

def refuses(source, verbatim):
    raise PlanError("it must not", attribute="age", setting="k")

def prints(source, verbatim):
    os.write(1, b"{VALUE}")
    os.write(2, b"{VALUE}")
    return LoadedTable(pl.DataFrame({{"x": [1]}}))
"""


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], pl.DataFrame]:
    """Read a file in a child process, with a reader that misbehaves."""
    (tmp_path / "sandbox_readers.py").write_text(READERS)
    (tmp_path / "in.sav").write_bytes(b"it is not looked at")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MICROVEIL_READ_MEMORY", "500")
    readers = import_module("sandbox_readers")

    def read(name: str) -> pl.DataFrame:
        files = files_in(tmp_path)
        try:
            frame: pl.DataFrame = sandboxed(getattr(readers, name))(
                Source(tmp_path / "in.sav"), ()
            ).data
        finally:
            assert files_in(tmp_path) == files
        return frame

    sys.modules.pop("sandbox_readers")
    return read


def files_in(folder: Path) -> list[Path]:
    """Find all files but those of Python, which a reader that is imported leaves."""
    return sorted(path for path in folder.rglob("*.*") if path.suffix != ".pyc")


def refused(read: Callable[[], object], kind: type[MicroveilError] = DataError) -> str:
    with pytest.raises(kind) as error:
        read()
    message = str(error.value)
    assert "\n" not in message
    assert VALUE not in message
    return message


@pytest.mark.parametrize("name", ["eats_in_rust", "crashes"])
def test_a_reader_that_is_ended_by_a_signal(
    name: str, reader: Callable[[str], pl.DataFrame], capfd: pytest.CaptureFixture[str]
) -> None:
    message = refused(lambda: reader(name))
    assert "in.sav: cannot be read: damaged, or it needs more than 500 MB" in message
    assert "MICROVEIL_READ_MEMORY" in message
    assert capfd.readouterr() == ("", "")


def test_a_reader_that_raises(reader: Callable[[str], pl.DataFrame]) -> None:
    assert "cannot be read: damaged (MemoryError)" in refused(lambda: reader("eats"))
    assert "cannot be read: damaged (KeyError)" in refused(lambda: reader("fails"))


def test_a_reader_that_hangs(
    reader: Callable[[str], pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MICROVEIL_READ_SECONDS", "1")
    assert "in.sav: not read within 1 seconds" in refused(lambda: reader("hangs"))


def test_an_error_of_a_reader_is_the_same_outside(reader: Callable[[str], pl.DataFrame]) -> None:
    with pytest.raises(MicroveilError) as error:
        reader("refuses")
    assert type(error.value).__name__ == "PlanError"
    assert str(error.value) == "attribute 'age': it must not"
    assert (error.value.attribute, error.value.setting) == ("age", "k")


def test_what_a_library_prints_is_no_answer(
    reader: Callable[[str], pl.DataFrame], capfd: pytest.CaptureFixture[str]
) -> None:
    assert reader("prints").rows() == [(1,)]
    assert capfd.readouterr() == ("", "")


def test_limits_are_whole_numbers(
    reader: Callable[[str], pl.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in ("much", "0", "-1"):
        monkeypatch.setenv("MICROVEIL_READ_MEMORY", given)
        with pytest.raises(MicroveilError, match="_READ_MEMORY must be an integer above 0"):
            reader("prints")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell of a parent's end")
def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    (tmp_path / "sandbox_readers.py").write_text(READERS)
    (tmp_path / "in.sav").write_bytes(b"it is not looked at")
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
from microveil import Source
from microveil.formats.sandbox import sandboxed
import sandbox_readers
sandboxed(sandbox_readers.hangs)(Source({str(tmp_path / "in.sav")!r}), ())
"""
    parent = subprocess.Popen([sys.executable, "-c", code])  # noqa: S603
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
    child = _soon(lambda: children.read_text().split())[0]
    _soon(lambda: b"\0-c\0" in Path(f"/proc/{child}/cmdline").read_bytes())
    time.sleep(0.5)  # until it has asked to be told
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    _soon(lambda: not _runs(child))


def _soon(happened: Callable[[], object], seconds: float = 20) -> list[str]:
    until = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found if isinstance(found, list) else []


def _runs(process: str) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def labelled(path: Path) -> Path:
    """Write a file of every type, with labels and declared missing values."""
    frame = pl.DataFrame(
        {
            "age": [31.0, 35.0, 99.0, None] * 20,
            "sex": [1, 2, 1, 2] * 20,
            "name": ["Anna", "", "Öz", VALUE] * 20,
            "day": pl.Series([18_000, 18_001, None, 3] * 20).cast(pl.Date),
            "at": pl.Series([10**15, 2 * 10**15, None, 0] * 20).cast(pl.Datetime("us")),
        }
    )
    about: dict[str, Any] = {
        "column_labels": {"age": "Age in years"},
        "variable_value_labels": {"sex": {1: "f", 2: "m"}},
    }
    if path.suffix == ".sav":
        pyreadstat.write_sav(
            frame, path, missing_ranges={"age": [{"lo": 90, "hi": 99}], "name": ["Öz"]}, **about
        )
    else:
        letters = pl.Series("sex", [1, "a", 2, "b"] * 20, dtype=pl.Object)
        frame = frame.with_columns(letters)
        pyreadstat.write_dta(frame, path, missing_user_values={"sex": ["a", "b"]}, **about)
    return path


def original(ending: str, directory: Path) -> Path:
    """Give a good file of a kind."""
    path = directory / f"good{ending}"
    if ending == ".sas7bdat":
        return SAS
    if ending == ".xlsx":
        write_table(pl.DataFrame({"age": [1.5, 2], "name": ["a", VALUE], "b": [True, None]}), path)
        return path
    return labelled(path)


@pytest.mark.parametrize("ending", [".xlsx", ".sav", ".dta", ".sas7bdat"])
def test_a_table_is_the_same_outside(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = original(ending, tmp_path)
    monkeypatch.setenv("MICROVEIL_READ_MEMORY", "1")  # which is enough for small files
    read = read_excel if ending == ".xlsx" else read_statistical
    here, there = read(Source(path), ()), load_table(path)
    assert_frame_equal(there.data, here.data)
    assert (there.meta.path, there.meta.family, there.meta.inferred, there.meta.dialect) == (
        here.meta.path, here.meta.family, here.meta.inferred, here.meta.dialect
    )  # fmt: skip
    assert list(there.meta.columns) == list(here.meta.columns)
    for name, column in here.meta.columns.items():
        other = there.meta.columns[name]
        assert repr(column) == repr(other)
        if column.codes is not None and other.codes is not None:
            pl.testing.assert_series_equal(column.codes, other.codes)


def test_a_warning_comes_from_whoever_reads(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["Wages, 2020"], [], ["name", "wage", "x"], ["p", 7, 1], ["q", 8, 2]):
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    with pytest.warns(FileWarning, match="above the column names") as caught:
        load_table(tmp_path / "in.xlsx")
    assert caught[0].filename == __file__


def damaged(content: bytes, seed: int) -> bytes:
    """Cut a file short, or change some of its bytes."""
    draw = random.Random(seed)
    if seed % 4 == 0:
        return content[: draw.randrange(1, len(content))]
    changed = bytearray(content)
    for _ in range(draw.choice([1, 4, 16])):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("ending", [".xlsx", ".sav", ".dta", ".sas7bdat"])
def test_damaged_files(ending: str, tmp_path: Path) -> None:
    content = original(ending, tmp_path).read_bytes()
    path = tmp_path / f"in{ending}"
    said = []
    for seed in range(2):
        path.write_bytes(damaged(content, seed))
        try:
            load_table(path)
        except MicroveilError as error:
            said.append(str(error))
    assert not [message for message in said if "\n" in message or VALUE in message]
