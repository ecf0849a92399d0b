"""What SPSS and Stata files can hold, and how masked values keep clear of missing codes."""

import subprocess
import sys
from datetime import date, datetime, time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import FileError, FileWarning
from microveil.formats import Domain, read_table, write_table
from microveil.formats.metadata import ColumnMeta
from microveil.formats.statistical.reader import within
from microveil.formats.statistical.writer import clear_of_codes

VALUE = 918_273  # stands for a data value: no message may contain it

numbers = st.integers(-20, 20)


@given(
    st.lists(numbers, min_size=1),
    st.lists(st.tuples(numbers, st.integers(0, 3)), min_size=1, max_size=3),
    st.sampled_from([0, 1, None]),
)
def test_masked_values_move_to_the_nearest_place_beside_the_codes(
    values: list[int], ranges: list[tuple[int, int]], decimals: int | None
) -> None:
    missing = tuple((float(low), float(low + wide)) for low, wide in ranges)
    column = pl.Series("x", values, dtype=pl.Int64 if decimals == 0 else pl.Float64)
    about = ColumnMeta(missing=missing, masked=Domain(-np.inf, np.inf, decimals))
    moved = clear_of_codes(column, about)
    assert not within(moved, missing).any()
    assert moved.dtype == column.dtype
    hit = within(column, missing)
    assert moved.filter(~hit).equals(column.filter(~hit))
    if decimals == 0:
        free = [x for x in range(-50, 50) if not any(low <= x <= high for low, high in missing)]
        for value, place in zip(column.filter(hit), moved.filter(hit), strict=True):
            assert abs(value - place) == min(abs(value - x) for x in free)


def test_masked_values_stay_in_their_domain_when_they_move() -> None:
    column = pl.Series("x", [99, 100, 98, None])
    about = ColumnMeta(missing=((99.0, 100.0),), masked=Domain(0, 100, None))
    assert clear_of_codes(column, about).to_list() == [98, 98, 98, None]
    real = ColumnMeta(missing=((99.0, np.inf),), masked=Domain(0, 120, 2))
    assert clear_of_codes(pl.Series([99.5, 3.0]), real).to_list() == [98.99, 3.0]


EVERY_TYPE = pl.DataFrame(
    {
        "whole": [1, None, -3],
        "large": [2**40, None, 1],
        "real": [0.1, None, -2.5],
        "text": ["ä", None, "b" * 300],
        "day": [date(1850, 1, 1), None, date(2030, 1, 1)],
        "moment": [datetime(1850, 1, 1, 1, 2, 3), None, datetime(2030, 1, 1)],
        "hour": [time(1, 2, 3), None, time(23, 59, 59)],
        "kind": pl.Series(["b", "a", None], dtype=pl.Categorical),
        "nothing": pl.Series([None, None, None], dtype=pl.Null),
    }
)


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_tables_from_elsewhere_come_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    write_table(EVERY_TYPE, path)
    expected = EVERY_TYPE.with_columns(
        pl.col("kind").cast(pl.String), pl.col("nothing").cast(pl.Float64)
    )
    back = read_table(path)
    assert back.schema == expected.schema
    assert back.equals(expected)


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_truth_values_become_numbers_and_that_is_said(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out{ending}"
    with pytest.warns(FileWarning, match="true/false values .now 0 and 1"):
        write_table(pl.DataFrame({"x": [True, None, False]}), path)
    assert read_table(path)["x"].to_list() == [1, None, 0]


@pytest.mark.parametrize(
    ("column", "kinds", "message"),
    [
        (pl.Series("a b", [1]), ".sav .dta", "column 'a b': not a valid"),
        (pl.Series("1x", [1]), ".sav .dta", "column '1x': not a valid"),
        (pl.Series("With", [1]), ".sav", "column 'With': not a valid SPSS name"),
        (pl.Series("x" * 33, [1]), ".dta", "not a valid Stata name"),
        (pl.Series("x" * 65, [1]), ".sav", "not a valid SPSS name"),
        (pl.Series("x", [[VALUE]]), ".sav .dta", r"column 'x': .* cannot hold type List"),
        (pl.Series("x", [2**60]), ".sav .dta", r"column 'x': .* integers up to 2\^53"),
        (pl.Series("x", [b"918273"]), ".sav .dta", r"cannot hold type Binary"),
        (
            pl.Series("x", ["9182730000000000000001"], dtype=pl.Decimal),
            ".sav .dta",
            r"cannot hold type Decimal",
        ),
    ],
)
def test_what_these_files_cannot_hold(
    tmp_path: Path, column: pl.Series, kinds: str, message: str
) -> None:
    for kind in kinds.split():
        with pytest.raises(FileError, match=message) as error:
            write_table(column.to_frame(), tmp_path / f"out{kind}")
        assert str(VALUE) not in str(error.value)


def test_names_that_differ_in_case_only(tmp_path: Path) -> None:
    both = pl.DataFrame({"x": [1], "X": [2]})
    with pytest.raises(FileError, match="differ only in case"):
        write_table(both, tmp_path / "out.sav")
    write_table(both, tmp_path / "out.dta")
    assert read_table(tmp_path / "out.dta").equals(both)


FULL_DISK = """
import resource, sys
import polars as pl
from microveil import Plan, protect
from microveil.errors import FileError
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
roles = {"x": "confidential", "y": "kept"}
table = pl.DataFrame({"x": range(9_000), "y": [i**4 for i in range(9_000)]})
release = protect(table, Plan.published(epsilon=1, attributes=roles))
for path in sys.argv[1:]:
    try:
        release.write(path, overwrite=True)
    except FileError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    endings = (".sav", ".dta", ".xlsx", ".arrow", ".parquet", ".csv")  # one process for all
    paths = [tmp_path / f"out{number}{ending}" for number, ending in enumerate(endings)]
    for path in paths:
        path.write_bytes(b"old")
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", FULL_DISK, *paths], capture_output=True, text=True, check=True
    )
    for path, line in zip(paths, run.stdout.splitlines(), strict=True):
        assert line.startswith(f"{path}: cannot be written")
        assert path.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == paths
