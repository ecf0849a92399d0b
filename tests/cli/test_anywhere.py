"""Service accounts and locked containers: no home, and a package that cannot be written to."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import microveil
from tests.conftest import Run

NOBODY = "65534"
UNPRIVILEGED = [
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs",
    # so that it finds a Python in root's home, which it may read and not write
    *(f"--{caps}=-all,+dac_read_search" for caps in ("inh-caps", "ambient-caps", "bounding-set")),
]  # fmt: skip


def unprivileged() -> list[str]:
    """How to start a process that cannot write what is read-only."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root can write everywhere, and there is no setpriv to become somebody else")
    return UNPRIVILEGED


@pytest.mark.skipif(sys.platform == "win32", reason="modes of Windows are others")
def test_a_service_account_without_a_home(tmp_path: Path) -> None:
    package, place = tmp_path / "package", tmp_path / "place"
    shutil.copytree(
        Path(microveil.__file__).parent, package / "microveil", ignore=lambda *_: ["__pycache__"]
    )
    for directory, _, _ in os.walk(package):
        Path(directory).chmod(0o555)
    place.mkdir()
    pl.DataFrame({"x": range(40)}).write_csv(place / "people.csv")
    place.chmod(0o777)
    line = (
        "protect people.csv -o out.csv --epsilon 1 --method DP --anonymity 0 --domain x=0:99 "
        "--no-verdict"  # few loops: each is compiled anew where there is no cache
    )
    command = [*unprivileged(), "env", "-i", "HOME=/nonexistent", f"PYTHONPATH={package}"]
    command += [sys.executable, "-m", "microveil", *line.split()]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, "defect" in done.stderr) == (0, False)
    assert (place / "out.certificate.json").is_file()


BECOMES_NOBODY = """
import os, sys
import microveil.cli.commands, microveil.cli.screens_of_commands
import microveil.formats, microveil.plan.propose.proposal
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
microveil.cli.commands.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="modes of Windows are others")
@pytest.mark.parametrize("name", ["people.csv", "people.sav"])
def test_a_file_that_may_not_be_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("age\n31\n")
    (tmp_path / name).chmod(0)
    tmp_path.chmod(0o755)
    command = [sys.executable, "-c", BECOMES_NOBODY, "plan", name, "-o", "plan.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (1, f"error: {name}: cannot be read: no permission\n")


def test_loops_are_compiled_where_numba_finds_no_place_for_a_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from numba.core.caching import CacheImpl

    from microveil.core.kernels.compiled import compiled

    monkeypatch.setattr(CacheImpl, "_locator_classes", [])

    @compiled()
    def half(number: float) -> float:
        return number / 2

    assert half(3) == 1.5


INTERRUPTED = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as outside of nohup
import sys, time
import microveil.formats.excel as excel

def slow(*_):
    print("writing", flush=True)
    time.sleep(60)

excel._fill = slow
from microveil.cli.commands import main
sys.argv = "microveil protect in.csv -o out.xlsx --epsilon 1".split()
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("how", ["SIGHUP", "SIGKILL"])
def test_a_killed_run_leaves_nothing_or_the_next_removes_it(how: str, run: Run) -> None:
    pl.DataFrame({"x": range(30)}).write_csv("in.csv")
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        (scratch,) = Path().glob(".*")
        assert scratch.stat().st_mode & 0o777 == 0o700
        process.send_signal(getattr(signal, how))
        process.send_signal(getattr(signal, how))  # as from a shell and its terminal
    if how == "SIGKILL":
        assert scratch.exists()
        assert run("protect in.csv -o other.csv --epsilon 1 --no-verdict")[0] == 0
    else:
        assert process.returncode == 128 + signal.SIGHUP
    assert not [path for path in Path().iterdir() if path.suffix not in (".csv", ".json")]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
def test_a_run_under_nohup_goes_on(run: Run) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run("--version")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
