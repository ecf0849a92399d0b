"""A setting is declared once: flag, page, TOML, JSON schema and documentation follow from it."""

import inspect
import runpy
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
import typer
from typer.testing import CliRunner

from microveil import Confidential, Group, Plan, Scenario, Use
from microveil.cli.commands import app
from microveil.cli.options import plan_flags
from microveil.plan.parts import PlanPart
from microveil.plan.settings import Declared, PlanSettings, Setting, declared_in, only_settings

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parent.parent.parent
HELP = "How loud the noise is said to be"
AGE = {"age": "confidential"}


@only_settings
class LoudSettings(PlanSettings):
    loudness: Annotated[Literal["quiet", "loud"], Setting(
        help=HELP, more="Only this test knows.", flag=True, label="Loudness",
        choices={"quiet": "quiet: as libraries are", "loud": "loud: as stations are"},
    )] = "quiet"  # fmt: skip


class LoudPlan(Plan, LoudSettings):
    """A plan with one more setting, which is declared above and nowhere else."""


LOUDNESS = next(each for each in declared_in(LoudPlan) if each.name == "loudness")


def test_it_is_a_flag_with_its_help() -> None:
    given: list[dict[str, Any]] = []
    command = typer.Typer(rich_markup_mode=None)

    @command.command()
    @plan_flags(LoudSettings)
    def run(*, settings: dict[str, Any]) -> None:
        given.append(settings)

    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert f"{HELP} (default: quiet)." in text
    assert "--loudness <quiet|loud>" in text
    assert not CliRunner().invoke(command, ["--loudness", "loud", "--anonymity", "0"]).exit_code
    assert not CliRunner().invoke(command, ["--k", "auto", "--within", "region"]).exit_code
    assert not CliRunner().invoke(command, ["--k", "7", "--domain-from-data"]).exit_code
    assert given == [
        {"loudness": "loud", "anonymity": 0},
        {"k": "auto", "within": ["region"]},
        {"k": 7, "domain_from_data": True},
    ]
    assert 'expected a number or "auto"' in CliRunner().invoke(command, ["--k", "many"]).output
    assert CliRunner().invoke(command, ["--loudness", "shrill"]).exit_code == 2


def page() -> None:
    from types import SimpleNamespace
    from typing import Any

    import polars as pl
    import streamlit as st

    from microveil.app.drawer import controls
    from microveil.app.session_state import Draft
    from tests.plan.test_one_setting import AGE, LoudPlan

    chosen: Any = SimpleNamespace(data=pl.DataFrame({"age": [31]}))
    draft = Draft(chosen, LoudPlan(epsilon=1.0, attributes=AGE))
    draft.version = 1  # as if it had been kept
    controls(draft)
    st.session_state["given"] = draft.given


def test_it_is_a_control_of_the_page() -> None:
    shown = AppTest.from_function(page).run()
    assert not shown.exception
    box = next(box for box in shown.selectbox if box.label == "Loudness")
    assert list(box.options) == ["quiet: as libraries are", "loud: as stations are"]
    assert shown.session_state["given"]["loudness"] == "quiet"
    box.set_value("loud").run()
    assert shown.session_state["given"]["loudness"] == "loud"


def test_it_is_in_plans_and_their_comments() -> None:
    plan = LoudPlan(epsilon=1.0, attributes=AGE, loudness="loud")
    assert 'loudness = "loud"' in plan.to_toml()
    assert LoudPlan.from_toml(plan.to_toml()).loudness == "loud"
    assert LOUDNESS.comment == f"{HELP} (quiet, loud)"
    assert "epsilon = 1.0  # Privacy budget" not in plan.to_toml()


def test_it_is_in_the_schema_and_in_the_documentation() -> None:
    described = LoudPlan.model_json_schema()["properties"]["loudness"]
    assert described["description"] == f"{HELP}. Only this test knows."
    assert described["default"] == "quiet"
    assert f"loudness\n    {HELP}. Only this test knows." in (LoudPlan.__doc__ or "")
    assert "loudness" in inspect.signature(LoudPlan).parameters
    reference = runpy.run_path(str(ROOT / "script" / "reference.py"))
    row = '| `loudness` | `"quiet"`, `"loud"` | `"quiet"` |'
    assert f"{row} {HELP}. Only this test knows. |" in list(reference["section"](LoudPlan))


@pytest.mark.parametrize("part", [Plan, Confidential, Group, Scenario, Use])
def test_every_setting_is_declared(part: type[PlanPart]) -> None:
    declared = {each.name: each.setting for each in declared_in(part)}
    assert set(declared) == set(part.model_fields) - {"role"}
    for name, setting in declared.items():
        assert not setting.help.endswith("."), name
        assert not setting.more or setting.more.endswith("."), name
        assert setting.help in " ".join((part.__doc__ or "").split())


@pytest.mark.parametrize("declared", declared_in(Plan), ids=lambda declared: declared.name)
def test_labels_are_those_of_all_choices(declared: Declared) -> None:
    if declared.setting.label and get_origin(declared.type) is Literal:
        assert set(declared.setting.choices) == set(get_args(declared.type))


def test_protect_has_every_flag() -> None:
    text = CliRunner().invoke(app, ["protect", "--help"]).output
    flags = [each.name.replace("_", "-") for each in declared_in(Plan) if each.setting.flag]
    assert len(flags) == 19
    assert all(f"--{flag} " in text for flag in flags)
