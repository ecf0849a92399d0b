"""The documentation site: it builds without a warning, fetches nothing, and is up to date."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import microveil
from microveil.cli.commands import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(directory)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(  # noqa: S603
        command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return directory


def test_every_page_is_there(site: Path) -> None:
    built = {page.relative_to(site).with_suffix("") for page in site.rglob("*.html")}
    written = {page.relative_to(DOCS).with_suffix("") for page in DOCS.rglob("*.md")}
    assert built - {Path("404")} == written


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_every_page_opens_with_what_it_is_for(page: Path) -> None:
    if page.stem != "claims":  # which microveil reproduce writes
        title, empty, opening = page.read_text(encoding="utf-8").splitlines()[:3]
        assert title.startswith("# ")
        assert not empty
        assert opening.startswith("After this page you ")


def test_the_documentation_stays_short() -> None:
    generated = {
        "cli.md", "settings.md", "measures.md", "attack-figures.md", "claims.md", "findings.md",
    }  # fmt: skip
    pages = [page for page in DOCS.rglob("*.md") if page.name not in generated]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert words + len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 36_000


def test_the_first_page_shows_a_picture_and_three_lines_of_code() -> None:
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    assert len(code.split("\n\n")[1].splitlines()) == 3
    assert "](figures/" in page


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"<(?:script|img|iframe)[^>]* src=[\"']?//|<link[^>]* href=[\"']?//")
    for page in site.rglob("*.html"):
        text = re.sub(r"https?:", "", page.read_text(encoding="utf-8"))
        assert not fetched.search(text), page.name


def test_the_python_reference_has_every_public_name() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: ([\w.]+)$", page, flags=re.MULTILINE))
    public = set(dir(microveil)) - {"__version__"}
    assert {f"microveil.{name}" for name in public} <= listed


def test_the_reference_is_what_the_code_says(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "47", "FORCE_COLOR": "1"}  # which change nothing
    command = [sys.executable, str(ROOT / "script" / "reference.py"), str(tmp_path)]
    subprocess.run(command, env=environment, check=True)  # noqa: S603
    written = {page.name: page.read_text(encoding="utf-8") for page in tmp_path.iterdir()}
    assert {"cli.md", "settings.md", "measures.md"} <= set(written)
    for name, text in written.items():
        page = (DOCS / "reference" / name).read_text(encoding="utf-8")
        assert text == page, f"{name} is out of date; write it again with script/docs"


def test_the_command_reference_has_every_command() -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8").splitlines()
    commands = list(get_command(app).commands)  # type: ignore[attr-defined]
    assert commands
    assert {f"## microveil {name}" for name in commands} <= set(page)
