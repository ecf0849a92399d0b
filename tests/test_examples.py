"""Every example in the README, the first page and the tutorials, run as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from microveil import Plan
from microveil.plan.sample import people
from microveil.plan.survey import survey_plan
from microveil.release.ledger import Ledger
from microveil.release.persistent import LastingClusters

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "tutorial" / "first-release.md").read_text(encoding="utf-8")
SURVEY = (ROOT / "docs" / "tutorial" / "survey.md").read_text(encoding="utf-8")
EVERY_YEAR = (ROOT / "docs" / "tutorial" / "every-year.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def run_examples(page: str, directory: Path) -> None:
    """Run a page's blocks of bash and python in order.

    A block with a title is a file to save. One of text shows lines of what the block before it
    printed, in their order.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONUTF8": "1"}
    commands = {"bash": ["bash", "-ec"], "python": [sys.executable, "-c"]}
    printed = ""
    for language, title, block in BLOCK.findall(page):
        if title:
            (directory / title).write_text(block, encoding="utf-8")
        elif language == "text":
            lines = iter([line.rstrip() for line in printed.splitlines()])
            assert all(line in lines for line in block.splitlines()), f"{block}\nnot in\n{printed}"
        elif "script/" not in block:
            done = subprocess.run(  # noqa: S603
                [*commands[language], block], cwd=directory, env=environment,
                capture_output=True, encoding="utf-8", check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stderr}"
            printed = done.stdout


def test_the_readme_runs_as_printed(tmp_path: Path) -> None:
    run_examples("```bash\nmicroveil demo\n```\n" + README, tmp_path)
    written = {file.name for file in tmp_path.iterdir()}
    assert {"protected.parquet", "protected.certificate.json", "people.parquet"} <= written


def test_the_readme_takes_a_minute() -> None:
    assert len(README.splitlines()) <= 130
    for target in re.findall(r"\]\(([^)#]+)", README):
        assert (ROOT / target).exists(), target
    assert "docs/how-to/from-other-tools.md" in README


def test_the_tutorial_runs_as_printed(tmp_path: Path) -> None:
    run_examples(TUTORIAL, tmp_path)
    written = {file.name for file in tmp_path.iterdir()}
    assert {"protected.parquet", "recommended.toml", "frontier.svg", "safe.parquet"} <= written
    assert {"flags.csv", "people.parquet"} <= written


def test_the_first_page_runs_as_printed(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    run_examples(FIRST_PAGE, tmp_path)
    assert (tmp_path / "protected.certificate.json").exists()


def test_the_survey_tutorial_runs_as_printed(tmp_path: Path) -> None:
    """It asserts itself that totals are within the error it states, and households consistent."""
    run_examples(SURVEY, tmp_path)
    assert Plan.read(tmp_path / "survey.toml") == survey_plan()
    assert (tmp_path / "survey.html").exists()
    assert "**Weighted totals stay within 6%**" in SURVEY
    assert "country < 0.06 and regions < 0.06" in SURVEY


def test_the_yearly_tutorial_runs_as_printed(tmp_path: Path) -> None:
    """It asserts itself that tables join, and its limit that nobody is picked by all releases."""
    run_examples(EVERY_YEAR, tmp_path)
    known = LastingClusters.read(tmp_path / "safe" / "people.clusters")
    assert known.classes.min() >= 10
    assert [one.kept for one in known.releases][1::2] == [1000, 1000]
    assert 800 < known.releases[2].kept < 900
    assert len(Ledger.read(tmp_path / "safe" / "people.ledger.json").releases) == 5


def test_the_scripts_are_there() -> None:
    assert "script/demo" in README
    for name in ("demo", "test", "bench", "docs"):
        assert os.access(ROOT / "script" / name, os.X_OK)
