"""What surrounds the code says the same everywhere: versions, systems, paths, links."""

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

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


def wanted_by(extra: str) -> list[Requirement]:
    """Return what an extra asks for, the extras it names among it."""
    optional = PROJECT["optional-dependencies"]
    found = []
    for requirement in map(Requirement, optional[extra]):
        own = requirement.name == "microveil"
        found += [each for name in requirement.extras for each in wanted_by(name)] if own else []
        found += [] if own else [requirement]
    return found


def test_the_lock_holds_what_is_declared_with_hashes_and_no_address() -> None:
    lock = (ROOT / "dev.lock").read_text(encoding="utf-8")
    versions = defaultdict[str, list[str]](list)
    for entry in re.split(r"\n(?=\S)", lock.strip()):
        pin, *hashes = entry.split(" \\\n")
        name, version = pin.partition(";")[0].strip().split("==")
        versions[name].append(version)
        assert hashes
        assert all(re.fullmatch(r" {4}--hash=sha256:[0-9a-f]{64}", each) for each in hashes)
    for wanted in [*map(Requirement, PROJECT["dependencies"]), *wanted_by("dev")]:
        assert any(version in wanted.specifier for version in versions[wanted.name]), wanted


def test_only_the_job_that_uploads_may_sign() -> None:
    publish = read_yaml(".github/workflows/publish.yml")
    jobs = publish["jobs"]
    assert publish["permissions"] == {}
    assert jobs["build"]["permissions"] == {"contents": "read"}
    assert jobs["upload"]["permissions"] == {"id-token": "write"}
    assert jobs["upload"]["steps"][-1]["with"] == {"attestations": True}  # and no password


def test_every_step_of_others_is_one_commit() -> None:
    for workflow in (ROOT / ".github" / "workflows").iterdir():
        used = re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8"))
        assert used
        assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step) for step in used)


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
