"""What surrounds the code says the same everywhere: versions, systems, paths, links."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import microveil

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(path: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_citation_and_the_changelog_know_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert read_yaml("CITATION.cff")["version"] == microveil.__version__
    assert f"\n## [{microveil.__version__}] - " in changelog


def test_the_workflow_runs_on_every_python_that_is_declared() -> None:
    linux = read_yaml(".github/workflows/test.yml")["jobs"]["linux"]
    declared = [
        name.rsplit(" ", 1)[1]
        for name in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", name)
    ]
    assert linux["strategy"]["matrix"]["python"] == declared
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_the_workflow_names_files_that_exist() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    named = re.findall(r"\b(?:tests|script)/[\w/.]+", workflow)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", ["bug", "feature", "guarantee"])
def test_every_issue_form_asks_for_no_personal_data(name: str) -> None:
    form = read_yaml(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert {"name", "description", "body"} <= set(form)
    first = form["body"][0]
    assert first["type"] == "markdown"
    assert "**No personal data" in first["attributes"]["value"]
    assert any(part["type"] != "markdown" for part in form["body"])  # or the form is refused


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https:)([^)#]+)", text)
    assert [target for target in targets if not (ROOT / target).exists()] == []
