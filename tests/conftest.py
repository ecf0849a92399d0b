import os
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from microveil.cli.commands import main
from microveil.formats import sandbox

Run = Callable[[str], tuple[int, str, str]]

settings.register_profile("microveil", deadline=None)  # machines are noisy: no timed tests
settings.load_profile("microveil")


@pytest.fixture(autouse=True)
def _read_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process for every file that is read, which takes a while; the sandbox's tests do."""
    if "test_sandbox" not in request.module.__name__:
        monkeypatch.setattr(sandbox, "_ask", sandbox.write_answer)


@pytest.fixture(scope="session")
def paper_data() -> Path:
    """The directory with the paper's data sets."""
    directory = os.environ.get("MICROVEIL_DATA")
    if not directory:
        pytest.skip("MICROVEIL_DATA does not name a directory with census.csv")
    return Path(directory)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(names)} is installed")
    return found


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in an empty directory; return its exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run_command(line: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["microveil", *shlex.split(line)])
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return int(stop.value.code or 0), printed.out, printed.err

    return run_command
