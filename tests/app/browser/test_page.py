"""From upload to downloaded release in a real browser, for a good file and for bad ones."""

from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import polars as pl
import pytest

from microveil import Certificate, Plan
from microveil.formats import sha256_of
from tests.app.browser.conftest import wait_for
from tests.app.hospital import figures, visits

pytestmark = pytest.mark.xdist_group("browser")  # also what needs the page alone

Page = Any
Run = Callable[[str], tuple[int, str, str]]

RIGHT, ENTER = "\ue014", "\ue007"


def csv(table: pl.DataFrame) -> bytes:
    return table.write_csv().encode()


def test_a_hospital_s_file_to_a_passing_release_in_eight_clicks(page: Page, run: Run) -> None:
    original = visits(1_000)
    page.upload("visits.csv", csv(original))
    page.picture("table-1280.png")
    page.press("Next: three questions")
    page.press("Agree")
    page.picture("questions-1280.png")
    page.press("Agree")
    page.press("Agree")
    page.picture("protect-1280.png")
    page.press("Protect")
    assert "passes" in page.find(".microveil-verdict").text
    page.script("document.querySelector('[data-testid=stMain]').scrollTo(0, 600)")
    top = "return document.querySelector('.microveil-plan').getBoundingClientRect().top"
    wait_for("the plan in view", lambda: 0 <= page.script(top) < 20)
    page.picture("verdict-1280.png")
    page.press("Next: download")
    both = page.downloaded("Protected file and certificate", "release.zip")
    assert (page.clicks, page.errors()) == (8, [])
    page.picture("download-1280.png")

    with ZipFile(both) as archive:
        archive.extractall(page.folder)
    protected = page.folder / "visits-protected.csv"
    read = Certificate.read(page.folder / "visits-protected.certificate.json")
    assert read.file is not None
    assert read.file.sha256 == sha256_of(protected)
    code, out, _ = run(f"certificate {page.folder / 'visits-protected.certificate.json'}")
    assert (code, "matches the certificate" in out) == (0, True)
    released = pl.read_csv(protected, try_parse_dates=True)
    assert "patient_id" not in released.columns
    for before, after in zip(figures(original), figures(released), strict=True):
        assert after == pytest.approx(before, rel=0.05)
    assert Plan.read(page.downloaded("Plan", "plan.toml")).unit == "patient_id"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("photo.csv", b"\x89PNG\r\n\0\0\0", "photo.csv: expected text, found binary data"),
        ("twice.csv", b"age,age\n1,2\n3,4\n", "found the same name twice"),
        ("notes.docx", b"anything", "expected a file ending in .csv"),
        ("broken.sav", b"$FL2 and no more", "broken.sav: not an SPSS file that can be read"),
    ],
)
def test_a_file_that_is_no_table(page: Page, name: str, content: bytes, said: str) -> None:
    page.upload(name, content)
    (error,) = page.errors()
    assert said in error
    assert "/" not in error
    assert page.labels("Next") == []


def test_errors_stand_beside_what_they_are_about(page: Page) -> None:
    ages = [*range(20, 60, 2), *range(20, 59, 2), 999, None]
    table = pl.DataFrame({"age": ages, "wages": [5, 7, 9, 5, 7] * 8 + [5, 6]})
    page.upload("ages.csv", csv(table))
    page.press("3 Protect")
    page.find("summary", "Expert settings").click()
    page.find("[data-testid=stDataFrame]")
    page.resolve()
    type_into_the_first_row(page, column=2, text="120")
    error = page.find(".microveil-error[data-about=age]")
    assert "1 of 41 values lie outside the declared domain" in error.text
    assert "999" not in error.text
    grid = page.all("[data-testid=stDataFrame]")[0]
    assert 0 < error.location["y"] - grid.location["y"] - grid.size["height"] < 60
    assert not page.button("Protect").is_enabled()
    page.picture("error-1280.png")
    type_into_the_first_row(page, column=2, text="1000")
    assert page.errors() == []
    choice = page.find("[data-testid=stSelectbox]", "Missing values")
    page.script("arguments[0].scrollIntoView({block: 'center'})", choice)
    choice.find_element("css selector", "input").click()
    page.keys(*"error", ENTER)
    error = page.find(".microveil-error[data-about=missing]")
    assert "1 of 42 values are missing" in error.text
    choice = page.find("[data-testid=stSelectbox]", "Missing values")
    assert 0 < error.location["y"] - choice.location["y"] < 120


def test_with_the_keyboard_alone_on_a_narrow_screen(page: Page) -> None:
    page.resize(390, 844)
    tab_to(page, lambda: page.script("return document.activeElement.type") == "radio")
    page.keys(RIGHT)
    page.button("Next: three questions")
    for label in ("3 Protect", "Protect", "5 Download", "Certificate alone"):
        tab_to(page, lambda: page.script("return document.activeElement.innerText") == label)  # noqa: B023
        page.picture(f"{label[-8:].strip()}-390.png")
        assert page.script("return document.documentElement.scrollWidth") <= 390
        widest = "return document.querySelector('[data-testid=stMain]').scrollWidth"
        assert page.script(widest) <= 390
        page.keys(ENTER)
    wait_for("the certificate", lambda: list(page.folder.glob("*.certificate.json")))


def test_names_that_look_like_markup_stay_text(page: Page) -> None:
    hostile = "<img src=x onerror=window.hacked=1>"
    table = pl.DataFrame(
        {
            hostile: [float(x) for x in range(40)],
            "**b** [a](javascript:window.hacked=1)": [hostile, "<script>hacked=1</script>"] * 20,
            "http://example.invalid :red[x] $y$": range(7, 47),
        }
    )
    page.upload("hostile.csv", csv(table))
    for label in ("2 Questions", "Agree", "Agree", "Agree", "Protect"):
        page.press(label)
        assert page.all("main a, [data-testid=stMain] a") == []
    for tab in ("Certificate", "Attacks", "All figures", "Before and after", "Uses"):
        page.find("[role=tab]", tab).click()
        page.resolve()
        assert page.all("main a, [data-testid=stMain] a") == []
        assert all(
            "data:" in img.get_attribute("src") or "/media/" in img.get_attribute("src")
            for img in page.all("[data-testid=stMain] img")
        )
    assert page.script("return window.hacked") is None


@pytest.mark.parametrize(("host", "status"), [("localhost", 403), ("evil.example", 400)])
def test_a_page_under_another_name_is_not_served(address: str, host: str, status: int) -> None:
    """A website whose name was made to point at this machine must not reach the data.

    Under the page's own names it takes a browser that opened the printed address.
    """
    place = urlsplit(address)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=30)
    headers = {
        "Host": f"{host}:{place.port}",
        "Origin": f"http://{host}:{place.port}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    connection.request("GET", "/_stcore/stream", headers=headers)
    assert connection.sock is not None
    first = connection.sock.recv(32).split()
    connection.close()
    assert int(first[1]) == status


def tab_to(page: Page, arrived: Callable[[], bool]) -> None:
    for _ in range(80):
        if arrived():
            return
        page.tab()
    raise AssertionError("not reached with the tab key")


def type_into_the_first_row(page: Page, *, column: int, text: str) -> None:
    """Go to a cell of the table of attributes with the arrow keys and type into it."""
    from selenium.webdriver import ActionChains

    grid = page.all("[data-testid=stDataFrame]")[0]
    box = grid.rect
    ActionChains(page.driver).move_to_element_with_offset(
        grid, 40 - int(box["width"] / 2), 52 - int(box["height"] / 2)
    ).click().perform()
    page.keys(*[RIGHT] * column, *text, ENTER)
