import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from microveil.cli.commands import main
from microveil.formats import sandbox

Run = Callable[[str], tuple[int, str, str]]
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1280,1000",
)  # fmt: skip

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
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window, driven by Selenium, with a profile of its own: started once."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        pytest.skip("no Chromium; on Debian: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    chrome = webdriver.Chrome(options=options, service=Service(chromedriver))
    try:
        yield chrome
    finally:
        chrome.quit()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests that need the browser on one worker, so that it starts once."""
    for item in items:
        if "driver" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))


def without_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a library be missing, and what draws be imported anew."""
    monkeypatch.setitem(sys.modules, name, None)
    for module in [*sys.modules]:
        if module.startswith(("microveil.show.charts", "microveil.show.report")):
            monkeypatch.delitem(sys.modules, module)


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
