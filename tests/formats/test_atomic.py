"""Files that belong together are moved into place together, and nothing is left behind."""

import ctypes
import errno
import os
import re
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from filelock import FileLock

from microveil.errors import FileError
from microveil.formats import atomic, moved_into_place

START = f".microveil-{re.sub(r'[^a-zA-Z0-9_]', '_', socket.gethostname())}-"
NAMES = ("out.csv", "out.detail.zip", "out.certificate.json")
DEAD = 2**22 + 1  # no process has such a number


def write(directory: Path, text: str, names: tuple[str, ...] = NAMES) -> None:
    with moved_into_place([directory / name for name in names]) as temporary:
        for path in temporary:
            path.write_text(text)


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


@pytest.mark.parametrize("stopped_at", NAMES)
@pytest.mark.parametrize("how", [PermissionError(13, "Permission denied"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [NAMES, NAMES[::2], ()])
def test_what_was_there_stays_whole_if_one_file_cannot_be_moved(
    stopped_at: str,
    how: BaseException,
    before: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if before:
        write(tmp_path, "old", before)
    replace = Path.replace

    def stop(source: Path, target: Path) -> Path:
        if source.name == stopped_at:
            raise how
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises((FileError, KeyboardInterrupt)):
        write(tmp_path, "new")
    assert contents(tmp_path) == dict.fromkeys(before, "old")
    assert len(list(tmp_path.iterdir())) == len(before)


def test_a_directory_in_the_way_of_the_certificate_leaves_the_old_table(tmp_path: Path) -> None:
    write(tmp_path, "old", NAMES[:1])
    (tmp_path / NAMES[-1] / "inside").mkdir(parents=True)
    with pytest.raises(FileError, match="cannot be written"):
        write(tmp_path, "new")
    assert contents(tmp_path) == {"out.csv": "old"}


def test_old_files_are_put_back_where_the_file_system_has_no_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "old", NAMES[:1])
    (tmp_path / NAMES[-1]).mkdir()

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(FileError):
        write(tmp_path, "new")
    assert contents(tmp_path) == {"out.csv": "old"}


def test_an_interruption_after_the_last_file_takes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "old")
    replace = Path.replace

    def stop(source: Path, target: Path) -> None:
        replace(source, target)
        if target.name == NAMES[-1]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, "new")
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


def test_three_writers_at_once_never_mix_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def slowly(source: Path, target: Path) -> None:
        replace(source, target)
        time.sleep(0.001)

    monkeypatch.setattr(Path, "replace", slowly)
    with ThreadPoolExecutor(3) as pool:
        for turn in range(50):
            list(pool.map(lambda who, turn=turn: write(tmp_path, f"{turn} {who}"), range(3)))
            assert len(set(contents(tmp_path).values())) == 1


def test_a_process_that_keeps_others_waiting_too_long_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_PATIENCE", 0.05)
    with atomic.exclusive(tmp_path), ThreadPoolExecutor(1) as pool:
        other = pool.submit(write, tmp_path, "new")
        with pytest.raises(FileError, match="another process has been moving files here"):
            other.result()
    assert not list(tmp_path.iterdir())


def test_a_lock_left_by_a_killed_run_is_removed(tmp_path: Path) -> None:
    (tmp_path / atomic.LOCK).touch()
    write(tmp_path, "new")
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


def test_files_are_moved_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    write(tmp_path, "new")
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


def test_leftovers_of_killed_runs_are_removed(tmp_path: Path) -> None:
    (tmp_path / f"{START}{DEAD}-0123" / "deep").mkdir(parents=True)
    (tmp_path / f"{START}{DEAD}-0123-out.csv").touch()
    write(tmp_path, "new")
    assert set(contents(tmp_path)) == {path.name for path in tmp_path.iterdir()} == set(NAMES)


@pytest.mark.parametrize("name", ["abc", "", "12x-00", f"{10**30}-00", "-5-00"])
def test_names_that_are_not_of_microveil_are_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{START}{name}").touch()
    write(tmp_path, "new")
    assert (tmp_path / f"{START}{name}").exists()


def test_a_link_in_place_of_a_leftover_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "precious").touch()
    (tmp_path / f"{START}{DEAD}-00").symlink_to(tmp_path / "else")
    write(tmp_path, "new")
    assert (tmp_path / "else" / "precious").exists()


def test_leftovers_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = tmp_path / f"{START}{DEAD}-00"
    stray.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: stray.stat().st_uid + 1)
    write(tmp_path, "new")
    assert stray.exists()


def test_leftovers_that_cannot_be_removed_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{START}{DEAD}-00").mkdir()
    remove = shutil.rmtree

    def refuse(path: Path, *, ignore_errors: bool = False) -> None:
        if str(DEAD) in path.name:
            raise PermissionError
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", refuse)
    write(tmp_path, "new")
    assert contents(tmp_path) == dict.fromkeys(NAMES, "new")


@pytest.mark.skipif(os.name == "nt", reason="modes of Windows are others")
def test_what_is_not_yet_in_place_can_be_opened_by_its_owner_only(tmp_path: Path) -> None:
    with moved_into_place([tmp_path / "out.csv"]) as (path,):
        assert path.parent.parent == tmp_path
        assert path.parent.stat().st_mode & 0o777 == 0o700
        path.touch()


def test_long_names_can_be_written(tmp_path: Path) -> None:
    write(tmp_path, "new", ("x" * 251 + ".csv",))


def test_errors_of_windows_are_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(ctypes, "FormatError", {112: "not enough space"}.get, raising=False)
    full = pl.exceptions.ComputeError("failed (os error 112)")
    with (
        pytest.raises(FileError, match=r"out\.csv: cannot be written: not enough space"),
        atomic.disk_errors(Path("out.csv")),
    ):
        raise full
