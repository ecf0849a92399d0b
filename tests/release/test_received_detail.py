"""A private detail that somebody sent: it fits itself and the memory, or it is refused."""

import json
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from microveil import Detail, FileError, Plan, evaluate, protect
from microveil.release import detail_checks

N = 40
PEOPLE = pl.DataFrame({"x": range(N), "y": range(100, 100 + N)})
PLAN = Plan(
    epsilon=1.0,
    anonymity=4,
    attributes={"x": "confidential", "y": "confidential"},
    rules=["x <= y"],
)
Change = Callable[[pl.DataFrame], pl.DataFrame]


def to(**columns: Any) -> Change:  # noqa: ANN401 - an expression or a value
    return lambda table: table.with_columns(**columns)


def first(value: Any, column: str) -> Change:  # noqa: ANN401
    """Change one value."""
    there = pl.int_range(pl.len()) == 0
    own = pl.lit(value) if value is not None else pl.lit(None)
    return to(**{column: pl.when(there).then(own).otherwise(pl.col(column))})


ALTERED: list[tuple[str, Change]] = [
    ("rows", to(position=pl.lit(0, pl.Int64))),
    ("rows", to(position=pl.col("position") - 1)),
    ("rows", to(position=pl.col("position").cast(pl.Float64))),
    ("rows", first(None, "position")),
    ("rows", lambda table: table.head(0)),
    ("joint", lambda table: table.head(7)),
    ("joint", lambda table: table.rename({table.columns[0]: "other"})),
    ("joint", lambda table: table.select(pl.all().cast(pl.String))),
    ("joint", lambda table: table.select(pl.all() - 1)),
    ("joint", lambda table: table.select(pl.all() + 10**12)),
    ("joint", lambda table: first(None, table.columns[0])(table)),
    ("losses", lambda table: table.head(0)),
    ("losses", lambda table: table.select("attribute")),
    ("losses", to(attribute=pl.lit("x"))),
    ("losses", first(None, "epsilon")),
    ("clusters", to(records=pl.lit(0, pl.Int64))),
    ("clusters", first(None, "records")),
    ("clusters", first("z", "attribute")),
    ("clusters", first(float("nan"), "largest")),
    ("clusters", to(largest=pl.col("smallest"), smallest=pl.col("largest"))),
    ("clusters", first(-1.0, "scale")),
    ("clusters", to(scale=pl.lit("a"))),
    ("rules", to(records=pl.lit(0, pl.Int64))),
    ("rules", to(masked=pl.lit(10**6, pl.Int64))),
    ("rules", to(rule=pl.lit("x > y"))),
    ("rules", first(float("nan"), "moved")),
    ("rules", lambda table: table.head(0)),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("release") / "out.csv"
    protect(PEOPLE, PLAN).write(path, detail=True)
    return path.with_suffix(".detail.zip")


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(content: dict[str, bytes], path: Path, how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, part in content.items():
            archive.writestr(name, part)
    return path


def test_what_was_written_is_read(written: Path, tmp_path: Path) -> None:
    same = packed(parts(written), tmp_path / "same.zip")
    for scratch in (None, tmp_path):
        assert len(Detail.read(same, scratch).losses) == 2
    assert evaluate(PEOPLE, written.with_name("out.csv"), detail=same).figures


@pytest.mark.parametrize(("name", "change"), ALTERED)
def test_an_altered_table_is_refused(
    name: str, change: Change, written: Path, tmp_path: Path
) -> None:
    content, entry, altered = parts(written), f"{name}.parquet", BytesIO()
    change(pl.read_parquet(content[entry])).write_parquet(altered)
    path = packed(content | {entry: altered.getvalue()}, tmp_path / "altered.zip")
    for scratch in (None, tmp_path):
        with pytest.raises(FileError, match="not a readable private detail"):
            Detail.read(path, scratch)


def test_packed_entries_are_refused_before_they_are_read(written: Path, tmp_path: Path) -> None:
    large = parts(written) | {"losses.parquet": bytes(10**8)}
    path = packed(large, tmp_path / "bomb.zip", zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    with pytest.raises(FileError, match="not a readable private detail"):
        Detail.read(path)


def test_tables_that_do_not_fit_are_refused_before_they_are_read(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = pl.select(position=pl.repeat(0, 2_000_000, dtype=pl.Int64))
    equal.write_parquet(rows := BytesIO())
    path = packed(parts(written) | {"rows.parquet": rows.getvalue()}, tmp_path / "bomb.zip")
    assert path.stat().st_size < 10**5
    monkeypatch.setattr(detail_checks, "available_memory", lambda: 10**7)
    monkeypatch.setattr(pl, "read_parquet", pytest.fail)
    with zipfile.ZipFile(path) as archive, pytest.raises(ValueError, match=r"^$"):
        detail_checks.read_part(archive, "rows.parquet")


@pytest.mark.parametrize("digest", [1, [], {"a": 1}])
def test_a_digest_is_text(digest: object, written: Path, tmp_path: Path) -> None:
    about = json.dumps({"protected_sha256": digest}).encode()
    path = packed(parts(written) | {"about.json": about}, tmp_path / "about.zip")
    with pytest.raises(FileError, match="not a readable private detail"):
        Detail.read(path)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_text_that_unpacks_to_gigabytes_is_read_by_another_process(
    written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # details are read by that process, as for users
    monkeypatch.setenv("MICROVEIL_READ_MEMORY", "1")  # besides 2 GB for libraries
    assert len(Detail.read(written).losses) == 2
    content = parts(written)
    row = pl.read_parquet(content["clusters.parquet"]).head(1)
    row = row.with_columns(attribute=pl.lit(100_000 * "x"))  # alike, they take a few bytes
    clusters = row.select(pl.all().repeat_by(500).explode()).to_arrow()
    settings = {"use_dictionary": False, "column_encoding": {"attribute": "DELTA_BYTE_ARRAY"}}
    bomb = BytesIO()
    with pq.ParquetWriter(bomb, clusters.schema, write_statistics=False, **settings) as writer:
        for _ in range(30):
            writer.write_table(clusters)
    path = packed(content | {"clusters.parquet": bomb.getvalue()}, tmp_path / "bomb.zip")
    assert path.stat().st_size < 10**6
    monkeypatch.setattr(detail_checks, "read_part", pytest.fail)
    with pytest.raises(FileError, match="or it needs more memory than there is"):
        Detail.read(path)
