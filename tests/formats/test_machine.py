"""What each operating system is asked: Linux for real, Windows by a kernel32 made up here."""

import ctypes
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from microveil import FileError
from microveil.formats import machine
from microveil.formats.paths import disk_errors
from tests.conftest import Run

RUNNING, ENDED, FOREIGN, NOBODY = 11, 12, 13, 14
MEMORY = 12_345_678_901  # more than 32 bits hold


def test_the_memory_of_this_machine() -> None:
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        pytest.skip("only Linux has /proc/meminfo")
    kibibytes = int(re.search(r"MemTotal:\s+(\d+)", meminfo.read_text())[1])  # type: ignore[index]
    assert machine.memory_of_this_machine() == kibibytes * 1024


def test_processes_of_this_machine() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert machine.is_alive(process.pid)
        process.communicate(b"\n")
    assert not machine.is_alive(process.pid)
    assert machine.is_alive(os.getpid())


def test_a_process_of_somebody_else_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert machine.is_alive(1)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make the module believe it runs on Windows; return the handles that are open."""
    last_error, handles = [0], []

    def open_process(access: int, inherit: bool, process: int) -> int | None:
        assert (access, inherit) == (0x1000, False)  # PROCESS_QUERY_LIMITED_INFORMATION
        last_error[0] = {FOREIGN: 5, NOBODY: 87}.get(process, 0)
        if last_error[0]:
            return None
        handles.append(process + 2**40)  # a handle is as long as a pointer
        return handles[-1]

    def exit_code(handle: ctypes.c_void_p, code: Any) -> int:  # noqa: ANN401
        code._obj.value = {RUNNING: 259, ENDED: 0}[(handle.value or 0) - 2**40]
        return 1

    def memory_status(status: Any) -> int:  # noqa: ANN401
        assert status._obj.length == ctypes.sizeof(status._obj) == 64  # or Windows refuses it
        status._obj.total = MEMORY
        return 1

    kernel32 = SimpleNamespace(
        OpenProcess=open_process,
        GetExitCodeProcess=exit_code,
        CloseHandle=lambda handle: handles.remove(handle.value),
        GlobalMemoryStatusEx=memory_status,
    )
    monkeypatch.setattr(machine, "sys", SimpleNamespace(platform="win32"))
    libraries = {("kernel32", True): kernel32}
    monkeypatch.setattr(
        ctypes,
        "WinDLL",
        lambda name, use_last_error: libraries[name, use_last_error],
        raising=False,
    )
    monkeypatch.setattr(ctypes, "get_last_error", lambda: last_error[0], raising=False)
    monkeypatch.setattr(ctypes, "FormatError", {112: "not enough space"}.get, raising=False)
    for name in ("sysconf", "kill"):  # Windows has no sysconf, and its kill ends the process
        monkeypatch.delattr(os, name)
    return handles


def test_the_memory_of_windows(windows: list[int]) -> None:
    assert machine.memory_of_this_machine() == MEMORY
    assert not windows


@pytest.mark.parametrize(
    ("process", "alive"), [(RUNNING, True), (ENDED, False), (FOREIGN, True), (NOBODY, False)]
)
def test_processes_of_windows(windows: list[int], process: int, alive: bool) -> None:
    assert machine.is_alive(process) is alive
    assert not windows  # every handle was closed


@pytest.mark.usefixtures("windows")
def test_errors_of_windows_are_in_its_own_words() -> None:
    full = pl.exceptions.ComputeError("failed (os error 112)")
    with (
        pytest.raises(FileError, match=r"out\.csv: cannot be written: not enough space"),
        disk_errors(Path("out.csv")),
    ):
        raise full


@pytest.mark.usefixtures("windows")
def test_a_release_removes_what_killed_runs_left_on_windows(run: Run) -> None:
    pl.DataFrame({"x": range(20)}).write_csv("in.csv")
    host = re.sub(r"\W", "_", socket.gethostname())
    for process in (RUNNING, ENDED, FOREIGN):
        Path(f".microveil-{host}-{process}-00-out.csv").touch()
    code, _, err = run("protect in.csv -o out.csv --epsilon 1")
    assert (code, err) == (0, "")
    left = [path.name.split("-")[-3] for path in sorted(Path().glob(".microveil-*"))]
    assert left == [str(RUNNING), str(FOREIGN)]
