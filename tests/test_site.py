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
    pages = {page.stem for page in site.glob("*.html")} - {"404"}
    assert pages == {page.stem for page in DOCS.glob("*.md")}


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    fetched = re.compile(r"<(?:script|img|iframe)[^>]* src=[\"']?//|<link[^>]* href=[\"']?//")
    for page in site.glob("*.html"):
        text = re.sub(r"https?:", "", page.read_text(encoding="utf-8"))
        assert not fetched.search(text), page.name


def test_the_python_reference_has_every_public_name() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: ([\w.]+)$", page, flags=re.MULTILINE))
    public = [getattr(microveil, name) for name in dir(microveil) if name != "__version__"]
    assert {f"{item.__module__}.{item.__qualname__}" for item in public} <= listed


def test_the_command_reference_is_what_help_prints() -> None:
    environment = {**os.environ, "COLUMNS": "47", "FORCE_COLOR": "1"}  # which change nothing
    printed = subprocess.run(  # noqa: S603
        [sys.executable, ROOT / "script" / "cli_reference.py"],
        env=environment, capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert printed == page, "docs/cli.md is out of date; write it again with script/docs"


def test_the_command_reference_has_every_command() -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8").splitlines()
    commands = list(get_command(app).commands)  # type: ignore[attr-defined]
    assert commands
    assert {f"## microveil {name}" for name in commands} <= set(page)
