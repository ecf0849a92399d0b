"""Files by Arrow's interface, on this machine and on a store of another kind."""

from pathlib import Path

import pytest

from microveil.engines.spark.shared_files import SharedFiles
from microveil.errors import FileError


@pytest.fixture(params=["on this machine", "elsewhere"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"file:{tmp_path}/a b%20" if request.param == "on this machine" else "mock:///store/a b"


def test_what_is_written_is_moved_and_deleted(folder: str) -> None:
    files = SharedFiles(folder)
    files.make_private(folder)
    files.write_text(f"{folder}/out", "text")
    files.make_private(f"{folder}/table")
    files.write_text(f"{folder}/table/part", "text")
    assert files.exists(f"{folder}/out")
    files.move(f"{folder}/out", f"{folder}/moved")
    files.move(f"{folder}/table", f"{folder}/new")
    names = ("out", "moved", "table", "table/part", "new/part")
    assert [files.exists(f"{folder}/{name}") for name in names] == [False, True, False, False, True]
    assert not files.make_new(f"{folder}/moved")
    assert files.make_new(f"{folder}/lock")
    assert not files.make_new(f"{folder}/lock")
    files.delete(f"{folder}/lock")
    files.delete(f"{folder}/lock")
    files.delete(folder)
    assert not files.exists(folder)


def test_addresses_are_hadoops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = SharedFiles(str(tmp_path))
    for path in (f"{tmp_path}/x", f"file:{tmp_path}/x", f"file://{tmp_path}/x", "x"):
        assert files.whole(path) == f"file://{tmp_path}/x"
        assert files.on_this_machine(path) == tmp_path / "x"
    assert files.whole("s3a://bucket/x") == "s3://bucket/x"
    assert SharedFiles("mock:///store").on_this_machine("mock:///store/x") is None


def test_private_directories_are_for_their_owner(tmp_path: Path) -> None:
    files = SharedFiles(str(tmp_path))
    files.make_private(f"{tmp_path}/private")
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700


def test_what_cannot_be_reached_or_moved_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="not reachable from this machine"):
        SharedFiles("dbfs:/tmp")
    with pytest.raises(FileError, match="cannot be written"):
        SharedFiles(str(tmp_path)).move(f"{tmp_path}/none", f"{tmp_path}/new")
