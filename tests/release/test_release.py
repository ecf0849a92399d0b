import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from microveil import (
    Certificate,
    Confidential,
    Detail,
    FileError,
    Plan,
    PrivacyWarning,
    Release,
    evaluate,
    protect,
)
from microveil.release.certificate import Exposure
from tests.conftest import Run

PLAN = Plan.published(epsilon=1, k=3, attributes={"x": "confidential", "id": "kept"})
IN_ORDER = Exposure(kind="row-order")
TABLE = pl.DataFrame({"x": np.arange(60) ** 2, "id": np.arange(60)})


@pytest.fixture
def release() -> Release:
    return protect(TABLE, PLAN, keep_order=True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_writes_the_table_and_its_certificate(
    release: Release, tmp_path: Path, suffix: str
) -> None:
    written = release.write(tmp_path / f"out{suffix}")
    assert {path.name for path in tmp_path.iterdir()} == {f"out{suffix}", "out.certificate.json"}
    certificate = Certificate.read(written.certificate)
    assert certificate.file is not None
    assert certificate.file.sha256 == sha256(written.protected.read_bytes()).hexdigest()
    assert certificate.row_order == "random"
    assert IN_ORDER not in certificate.not_protected
    assert written.detail is None
    read = pl.read_csv if suffix == ".csv" else pl.read_parquet
    assert read(written.protected).sort("id").equals(release.data)


def test_rows_are_shuffled_unless_asked(release: Release, tmp_path: Path) -> None:
    random = pl.read_parquet(release.write(tmp_path / "a.parquet").protected)
    assert random["id"].to_list() != list(range(60))
    kept = release.write(tmp_path / "b.parquet", keep_order=True)
    assert pl.read_parquet(kept.protected).equals(release.data)
    certificate = Certificate.read(kept.certificate)
    assert certificate.row_order == "as in the original"
    assert IN_ORDER in certificate.not_protected


def test_rows_come_in_random_order_unless_they_are_to_keep_theirs(tmp_path: Path) -> None:
    release = protect(TABLE, PLAN)
    order = release.data["id"].to_list()
    assert sorted(order) == list(range(60)) != order
    assert protect(TABLE, PLAN).data["id"].to_list() != order
    assert release.certificate.row_order == "random"
    assert IN_ORDER not in release.certificate.not_protected
    assert np.array_equal(release.detail.positions, release.data["id"])  # type: ignore[arg-type]
    kept = protect(TABLE, PLAN, keep_order=True)
    assert kept.data["id"].to_list() == list(range(60))
    assert kept.certificate.row_order == "as in the original"
    assert IN_ORDER in kept.certificate.not_protected
    written = release.write(tmp_path / "as it is.parquet").protected
    assert pl.read_parquet(written)["id"].to_list() == order
    restored = release.write(tmp_path / "restored.parquet", keep_order=True).protected
    assert pl.read_parquet(restored)["id"].to_list() == list(range(60))


def test_a_seed_gives_one_order() -> None:
    first, again, other = (protect(TABLE, PLAN, seed=seed).data for seed in (1, 1, 2))
    assert first.equals(again)
    assert first["id"].to_list() != other["id"].to_list()
    kept = protect(TABLE, PLAN, keep_order=True, seed=1).data
    assert first.sort("id").equals(kept)


def test_the_detail_finds_every_record_again(release: Release, tmp_path: Path) -> None:
    written = release.write(tmp_path / "out.parquet", detail=True)
    assert written.detail is not None
    detail = Detail.read(written.detail)
    protected = pl.read_parquet(written.protected)
    assert detail.positions is not None
    assert detail.positions.tolist() == protected["id"].to_list()
    assert detail.clusters.equals(release.detail.clusters)
    with zipfile.ZipFile(written.detail) as archive:
        assert Plan.from_toml(archive.read("plan.toml").decode()) == PLAN


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_of_other_libraries_are_written(tmp_path: Path, library: str, suffix: str) -> None:
    table = TABLE.to_pandas() if library == "pandas" else TABLE.to_arrow()
    written = protect(table, PLAN, seed=1).write(tmp_path / f"out{suffix}")
    back = pd.read_csv(written.protected) if suffix == ".csv" else pq.read_table(written.protected)
    ours = protect(TABLE, PLAN, seed=1, keep_order=True).data
    assert pl.DataFrame(back).sort("id").equals(ours)


def test_existing_files_are_not_replaced_unless_asked(release: Release, tmp_path: Path) -> None:
    for name in ("out.csv", "out.certificate.json", "out.detail.zip"):
        (tmp_path / name).write_text("old", encoding="utf-8")
        with pytest.raises(FileError, match="exists"):
            release.write(tmp_path / "out.csv", detail=True)
        assert (tmp_path / name).read_text(encoding="utf-8") == "old"
        assert len(list(tmp_path.iterdir())) == 1
        release.write(tmp_path / "out.csv", detail=True, overwrite=True)
        assert (tmp_path / name).read_bytes() != b"old"
        for path in tmp_path.iterdir():
            path.unlink()


def test_a_failure_leaves_the_old_release_and_nothing_else(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release.write(tmp_path / "out.csv")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Certificate, "to_json", full)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        release.write(tmp_path / "out.csv", overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "message"),
    [("out.txt", "ending in"), ("none/out.csv", "does not exist"), ("d.csv", "found a directory")],
)
def test_paths_that_cannot_be_written(
    release: Release, tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(FileError, match=message):
        release.write(tmp_path / name, overwrite=True)


def test_the_input_is_never_replaced(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "in.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    release = protect(tmp_path / "in.csv", PLAN)
    for name in ("in.csv", "link.csv"):
        with pytest.raises(FileError, match="would replace the input"):
            release.write(tmp_path / name, overwrite=True)


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_categories_tell_of_no_other_rows_and_of_no_order(tmp_path: Path, library: str) -> None:
    names = [f"NAME{i:02d}" for i in (8, 11, 4, 0, 9, 3, 7, 1, 2, 10, 6, 5)]
    table = pl.DataFrame({"x": [None, *range(11)], "who": names})
    arrow = table.to_arrow()
    arrow = arrow.set_column(1, "who", arrow["who"].cast("string").dictionary_encode())
    plan = Plan.published(
        epsilon=1, k=3, missing="drop", attributes={"x": "confidential", "who": "kept"}
    )
    data = arrow.to_pandas().astype({"x": "Int64"}) if library == "pandas" else arrow
    written = protect(data, plan).write(tmp_path / "out.parquet")
    assert b"NAME08" not in written.protected.read_bytes()
    stored = pq.read_table(written.protected, read_dictionary=["who"])["who"].combine_chunks()
    assert stored.dictionary.to_pylist() != names[1:]


@pytest.mark.parametrize("kind", ["enum", "pandas", "pandas ordered"])
def test_in_memory_categories_tell_of_no_other_rows(kind: str) -> None:
    names = ["left out", "b", "a", "never seen"]
    who: Any = pl.Series("who", [names[0], *[names[1 + i % 2] for i in range(11)]])
    table: Any = pl.DataFrame({"x": [None, *range(11)], "who": who.cast(pl.Enum(names))})
    if kind != "enum":
        table = table.with_columns(pl.col("who").cast(pl.String)).to_pandas()
        dtype = pd.CategoricalDtype(names, ordered=kind == "pandas ordered")
        table = table.astype({"x": "Int64", "who": dtype})
    plan = Plan.published(
        epsilon=1, k=3, missing="drop", attributes={"x": "confidential", "who": "kept"}
    )
    released = protect(table, plan, keep_order=True).data["who"]
    listed = released.dtype.categories if kind == "enum" else released.cat.categories
    assert sorted(listed) == ["a", "b"]
    assert sorted(released.to_list()) == ["a"] * 5 + ["b"] * 6


def test_declared_categories_stay_in_the_type() -> None:
    table = pl.DataFrame({"sex": ["f", "m"] * 9}).cast(pl.Enum(["x", "m", "f", "secret"]))
    attribute = Confidential(kind="nominal", categories=["f", "m", "x"])
    plan = Plan.published(epsilon=1, k=3, attributes={"sex": attribute})
    with pytest.warns(PrivacyWarning, match="most records keep their true category"):
        released = protect(table, plan, keep_order=True).data["sex"]
    assert released.dtype == pl.Enum(["x", "m", "f"])


def test_types_that_a_format_cannot_hold(tmp_path: Path) -> None:
    table = TABLE.with_columns(id=pl.lit([1, 2]))
    with pytest.raises(FileError, match="column 'id': CSV files cannot hold type List"):
        protect(table, PLAN).write(tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_directories_in_the_way_are_noticed_before_anything_is_written(
    release: Release, tmp_path: Path
) -> None:
    (tmp_path / "out.certificate.json").mkdir()
    with pytest.raises(FileError, match="found a directory"):
        release.write(tmp_path / "out.csv", overwrite=True)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(FileError, match="cannot be written"):
        release.write(tmp_path / ("x" * 300 + ".csv"))


def test_the_detail_is_readable_by_its_owner_only(release: Release, tmp_path: Path) -> None:
    detail = release.write(tmp_path / "out.csv", detail=True).detail
    assert detail is not None
    assert detail.stat().st_mode & 0o077 == 0


def test_something_else_is_not_a_detail(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(FileError, match="not a readable private detail"):
        Detail.read(tmp_path / "x.zip")


def test_a_table_beside_the_certificate_of_another_release_is_refused(
    release: Release, tmp_path: Path, run: Run
) -> None:
    """As a kill leaves it that comes after the table was moved and before the certificate was."""
    TABLE.write_csv("in.csv")
    release.write(tmp_path / "out.csv", keep_order=True)
    (tmp_path / "other").mkdir()
    protect(TABLE, PLAN).write(tmp_path / "other" / "out.csv", keep_order=True)
    (tmp_path / "other" / "out.csv").replace(tmp_path / "out.csv")
    for command in ("certificate out.certificate.json", "evaluate in.csv out.csv --aligned"):
        code, out, err = run(command)
        assert (code, out) == (1, "")
        assert "it belongs to another release" in err
    with pytest.raises(FileError, match="it belongs to another release"):
        evaluate(TABLE, tmp_path / "out.csv", aligned=True)


def test_a_certificate_of_a_file_of_another_name_is_not_asked(
    release: Release, tmp_path: Path
) -> None:
    release.write(tmp_path / "out.csv", keep_order=True)
    pl.read_csv(tmp_path / "out.csv").write_parquet(tmp_path / "out.parquet")
    assert evaluate(TABLE, tmp_path / "out.parquet", aligned=True).figures


def test_an_ordered_dictionary_of_arrow_keeps_its_type_and_order() -> None:
    who = pl.Series("who", ["low", "high"] * 6).cast(pl.Enum(["unused", "low", "high"]))
    table = pl.DataFrame({"x": range(12), "who": who}).to_arrow()
    plan = Plan.published(epsilon=1, k=3, attributes={"x": "confidential", "who": "kept"})
    released = protect(table, plan, keep_order=True).data
    assert released.schema.types == table.schema.types
    assert released["who"].chunk(0).dictionary.to_pylist() == ["low", "high"]
    assert released["who"].to_pylist() == table["who"].to_pylist()
