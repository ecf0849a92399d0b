"""From upload to downloaded release in a real browser, for a good file and for bad ones."""

from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import polars as pl
import pytest

from microveil import Certificate, Plan
from microveil.formats import sha256_of
from microveil.plan.sample import people

pytestmark = pytest.mark.xdist_group("browser")  # also what needs the page alone

Page = Any
Run = Callable[[str], tuple[int, str, str]]

RIGHT, ENTER = "\ue014", "\ue007"


def csv(table: pl.DataFrame) -> bytes:
    return table.write_csv().encode()


def test_from_upload_to_a_verified_release(page: Page, run: Run) -> None:
    original = people()
    page.upload("people.csv", csv(original))
    page.find("h2", "2. Choose how to treat")
    page.press("Protect")
    page.find("h2", "6. Download the files")
    assert page.errors() == []
    page.picture("release-1280.png")
    protected = page.downloaded("Protected file", ".csv")
    certificate = page.downloaded("Certificate", ".certificate.json")
    page.press("Plan")

    read = Certificate.read(certificate)
    assert read.file is not None
    assert read.file.sha256 == sha256_of(protected)
    code, out, _ = run(f"certificate {certificate}")
    assert (code, "matches the certificate" in out) == (0, True)
    released = pl.read_csv(protected)
    assert released.height == 1000
    assert "person" not in released.columns
    assert set(Counter(released["wages"]).values()).isdisjoint(range(3))
    assert sorted(released["wages"]) != sorted(original["wages"])
    assert Plan.read(protected.parent / "plan.toml").names("identifier") == ("person",)


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
    assert [h.text for h in page.all("h2")] == ["1. Choose a table"]


def test_a_domain_that_is_too_narrow_is_said_at_the_attributes(page: Page) -> None:
    table = pl.DataFrame({"age": [*range(20, 60), 999]})
    page.upload("ages.csv", csv(table))
    type_into_the_first_row(page, column=5, text="120")
    (error,) = page.all(".microveil-error")
    assert "attribute 'age': 1 of 41 values lie outside the declared domain" in error.text
    assert "999" not in error.text
    third = page.find("h2", "3. Choose how much")
    assert error.location["y"] < third.location["y"]
    assert not page.button("Protect").is_enabled()
    page.picture("error-1280.png")
    type_into_the_first_row(page, column=5, text="1000")
    assert page.errors() == []
    assert page.button("Protect").is_enabled()


def test_missing_values_without_a_policy_are_said_at_the_settings(page: Page) -> None:
    table = pl.DataFrame(
        {"age": [*range(20, 60, 2), *range(20, 60, 2), None], "wages": [5, 7, 9, 5, 7] * 8 + [5]}
    )
    page.upload("ages.csv", csv(table))
    assert page.errors() == []
    choice = page.find("[data-testid=stSelectbox]", "Missing values")
    choice.find_element("css selector", "input").click()
    page.keys(*"error", ENTER)
    (error,) = page.all(".microveil-error")
    assert "1 of 41 values are missing" in error.text
    third = page.find("h2", "3. Choose how much")
    assert error.location["y"] > third.location["y"]
    assert not page.button("Protect").is_enabled()


def test_more_records_in_a_joint_cluster_than_there_are(page: Page) -> None:
    page.upload("few.csv", csv(pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})))
    assert page.errors() == []
    page.script(
        "[...document.querySelectorAll('[data-testid=stSlider]')]"
        ".find(s => s.innerText.startsWith('Anonymity')).querySelector('input').focus()"
    )
    page.keys(RIGHT)
    (error,) = page.errors()
    assert "found 6 records for anonymity = 10; choose a smaller one" in error


def test_with_the_keyboard_alone(page: Page) -> None:
    tab_to(page, lambda: page.script("return document.activeElement.type") == "radio")
    page.keys(RIGHT)
    page.find("h2", "4. Protect")
    tab_to(page, lambda: page.script("return document.activeElement.innerText") == "Protect")
    page.keys(ENTER)
    page.find("h2", "6. Download the files")
    tab_to(page, lambda: page.script("return document.activeElement.innerText") == "Certificate")
    page.keys(ENTER)
    page.downloaded("Certificate", ".certificate.json")


def test_on_a_narrow_screen_nothing_scrolls_sideways(page: Page) -> None:
    page.resize(390, 844)
    page.find("label", "A sample of fictitious people").click()
    page.resolve()
    page.press("Protect")
    page.find("h2", "6. Download the files")
    page.picture("release-390.png")
    widest = "return document.querySelector('[data-testid=stMain]').scrollWidth"
    assert page.script(widest) <= 390
    assert page.script("return document.documentElement.scrollWidth") <= 390


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
    page.press("Protect")
    page.find("h2", "6. Download the files")
    for tab in ("More on risk", "Certificate", "More on utility", "Before and after"):
        page.find("[role=tab]", tab).click()
        page.resolve()
        assert page.all("main a, [data-testid=stMain] a") == []
        assert page.all("[data-testid=stMain] img") == []
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

    grid = page.all("[data-testid=stDataFrame]")[1]
    box = grid.rect
    ActionChains(page.driver).move_to_element_with_offset(
        grid, 40 - int(box["width"] / 2), 52 - int(box["height"] / 2)
    ).click().perform()
    page.keys(*[RIGHT] * column, *text, ENTER)
