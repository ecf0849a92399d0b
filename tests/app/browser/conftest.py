"""A real browser on the real page: `microveil app` on a free port, Chromium without a window."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

Element = Any
"""Selenium's own, which is imported only where there is a browser."""

HOST = "127.0.0.1"
SECONDS = 180.0
T = TypeVar("T")
COUNT_TURNS = """
window.turns = 0;
new MutationObserver(() => window.turns++).observe(
  document.querySelector('[data-testid=stApp]'),
  {attributes: true, attributeFilter: ['data-test-script-state']})
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_for(what: str, ask: Callable[[], T]) -> T:
    """Ask until the answer is true."""
    end = time.monotonic() + SECONDS
    while not (answer := ask()):
        assert time.monotonic() < end, f"waited {SECONDS:.0f} s for {what}"
        time.sleep(0.1)
    return answer


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/_stcore/health", timeout=5) as reply:  # noqa: S310
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the running page."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("microveil")), "app", "--no-browser"]
    process = subprocess.Popen(  # noqa: S603
        [*command, "--port", str(port)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        printed = process.stdout.readline().decode().split()[-1]
        wait_for("the page to start", lambda: _answers(f"http://{HOST}:{port}"))
        yield printed
    finally:
        process.terminate()
        process.communicate(timeout=30)


class Page:
    """The page as a person sees it."""

    def __init__(self, driver: Element, address: str, folder: Path) -> None:
        self.driver, self.folder, self.clicks = driver, folder, 0
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
        )
        self.resize(1280, 1000)
        driver.get(address)
        self.find("h1")
        self.script(COUNT_TURNS)
        self.resolve()

    def all(self, selector: str) -> list[Element]:
        """Find elements that are shown."""
        return [e for e in self.driver.find_elements("css selector", selector) if e.is_displayed()]

    def find(self, selector: str, text: str = "") -> Element:
        """Wait for an element that contains a text."""

        def found() -> Element:
            return next((e for e in self.all(selector) if text in e.text), None)

        return wait_for(f"{selector} with {text!r}", found)

    def resolve(self) -> None:
        """Wait until the page has followed what was done to it, and stays as it is."""
        idle = "[data-testid=stApp][data-test-script-state=notRunning]"

        def rests() -> bool:
            for _ in range(3):
                time.sleep(0.12)
                if not self.all(idle):
                    return False
            return True

        wait_for("the page to come to rest", rests)

    def upload(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.write_bytes(content)
        fields = wait_for(
            "where to upload",
            lambda: self.driver.find_elements("css selector", "input[type=file]"),
        )
        fields[0].send_keys(str(path))
        self.clicks += 1
        wait_for("the file to be read", lambda: self.errors() or self.labels("Next"))
        self.resolve()

    def labels(self, begin: str = "") -> list[str]:
        """Return the labels of buttons that can be pressed."""
        script = "return [...document.querySelectorAll('button:enabled')].map(b => b.innerText)"
        return [label for label in self.script(script) if label.startswith(begin)]

    def button(self, label: str) -> Element:
        """Wait for a button of this label."""
        path = f"//button[normalize-space(.)='{label}']"
        found = wait_for(f"button {label!r}", lambda: self.driver.find_elements("xpath", path))
        return found[0]

    def press(self, label: str) -> None:
        """Press a button once, and wait until the page has begun to follow and come to rest."""
        before = self.script("return window.turns")
        wait_for(f"a button {label!r} that stays", lambda: self._clicked(label))
        self.clicks += 1
        wait_for("the page to follow", lambda: self.script("return window.turns") != before)
        self.resolve()

    def _clicked(self, label: str) -> bool:
        """Click a button, unless it is being replaced."""
        from selenium.common.exceptions import (
            ElementClickInterceptedException,
            StaleElementReferenceException,
        )

        try:
            button = self.button(label)
            self.script("arguments[0].scrollIntoView({block: 'center'})", button)
            button.click()
        except (ElementClickInterceptedException, StaleElementReferenceException):
            return False
        return True

    def errors(self) -> list[str]:
        return [e.text for e in self.all(".microveil-error")]

    def keys(self, *keys: str) -> None:
        """Type, wherever the focus is."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).pause(0.05).perform()
        self.resolve()

    def tab(self) -> None:
        """Move the focus on."""
        from selenium.webdriver import ActionChains, Keys

        ActionChains(self.driver, duration=20).send_keys(Keys.TAB).perform()

    def downloaded(self, label: str, pattern: str) -> Path:
        """Press a button and wait for its file."""
        self.button(label).click()
        self.clicks += 1
        (path,) = wait_for(pattern, lambda: list(self.folder.glob(pattern)))
        return path

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def script(self, code: str, *given: Element) -> Any:  # noqa: ANN401 - whatever it returns
        return self.driver.execute_script(code, *given)

    def picture(self, name: str) -> None:
        """Save a picture of the whole page."""
        width = self.script("return window.innerWidth")
        main = "document.querySelector('[data-testid=stMain]')"
        self.resize(width, self.script(f"return {main}.scrollHeight") + 60)
        self.resolve()
        self.driver.save_screenshot(str(self.folder / name))
        self.resize(width, 1000)


@pytest.fixture
def page(driver: Element, address: str, tmp_path: Path) -> Page:
    """A fresh page."""
    return Page(driver, address, tmp_path)
