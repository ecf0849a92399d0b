"""Write the pages of docs/reference/ that the code knows by itself: commands, settings, measures.

``script/docs`` calls it; a test compares. A generator is a function in `PAGES` that returns a page.
"""

import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.main import get_command
from typer.testing import CliRunner

from microveil import (
    Confidential,
    Derived,
    Group,
    Identifier,
    Kept,
    Plan,
    Pseudonym,
    SamplingWeight,
    Scenario,
    Shifted,
    Use,
)
from microveil.attacks.attack_rows import ATTACKS
from microveil.cli.commands import app
from microveil.compare.figures import Measure
from microveil.judge.registry import ABOUT, MEASURES

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
WIDTH = 80
ROLES = (Confidential, Identifier, Kept, Derived, SamplingWeight, Pseudonym, Shifted)

COMMANDS_HEAD = """# Commands

After this page you can call every command: this is what `microveil COMMAND --help` prints. Exit
codes: 0 done, 1 your mistake (one line says which), 2 usage, 3 a defect of microveil. Warnings go
to the error stream, a line each.
"""
SETTINGS_HEAD = """# Settings

After this page you can write a plan by hand. A plan is a TOML file, or `Plan(…)` in Python, with
the same names. In TOML, `[attributes]` gives every column a role, by its name alone
(`region = "kept"`) or with settings (`age = { role = "confidential", lower = 0, upper = 120 }`).
`script/docs` writes this page from the code.
"""
MEASURES_HEAD = """# Measures

After this page you can name any figure of an evaluation and know what it needs. `Evaluation.value`,
`to_dict`, `to_frame` and `microveil evaluate --json` use these ids, which stay as they are; labels
are only shown to people. Every figure is a function of the data that ε does not cover: keep it
private. `script/docs` writes this page from the code.

A measure may need to know which record is whose (paired), the plan or the private detail of the
release, a target or quasi-identifiers that you name, or people outside the release (control), which
only `microveil benchmark` has. Up to the first limit a figure is graded good or low, up to the
second fair or medium.
"""
TOPICS = {"uses": "Uses of the plan", "utility": "Use", "risk": "Risk", "learning": "Learning"}
TYPES = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    date: "date",
    datetime: "date and time",
    time: "time",
}


def commands() -> str:
    """Return what every command says of itself with --help."""
    names: list[tuple[str, ...]] = [(), *((name,) for name in get_command(app).commands)]  # type: ignore[attr-defined]
    parts = (
        f"## {' '.join(('microveil', *name))}\n\n```text\n{help_of(*name)}\n```\n" for name in names
    )
    return "\n".join((COMMANDS_HEAD, *parts))


def help_of(*command: str) -> str:
    """Return the help of a command, at one width and without colours wherever it is run."""
    result = CliRunner().invoke(
        app, [*command, "--help"], prog_name="microveil", terminal_width=WIDTH, color=False
    )
    if result.exit_code:
        raise SystemExit(result.output)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def settings() -> str:
    """Return the settings of a plan, of every role, of groups, scenarios and uses."""
    titled: dict[str, type[BaseModel]] = {
        "The plan": Plan,
        **{f"Role {role.model_fields['role'].default}": role for role in ROLES},
        "Groups": Group,
        "Scenarios": Scenario,
        "Uses": Use,
    }
    parts = (line for title, part in titled.items() for line in (f"## {title}\n", *section(part)))
    return "\n".join((SETTINGS_HEAD, *parts))


def section(part: type[BaseModel]) -> Iterator[str]:
    """Return what a part of a plan is, and its settings as a table, with an empty line after it."""
    text = inspect.getdoc(part) or ""
    yield as_markdown(text.split("\nParameters\n")[0].strip())
    meanings = dict(parameters(text))
    fields = {name: field for name, field in part.model_fields.items() if has_choice(field)}
    if fields:
        yield ""
        yield "| setting | values | default | meaning |"
        yield "|---|---|---|---|"
    for name, field in fields.items():
        values = values_of(field.annotation)
        yield f"| `{name}` | {values} | {default_of(field)} | {meanings[name]} |"
    yield ""


def has_choice(field: FieldInfo) -> bool:
    """Return whether a setting can have more than one value; a role cannot."""
    return get_origin(field.annotation) is not Literal or len(get_args(field.annotation)) > 1


def parameters(text: str) -> Iterator[tuple[str, str]]:
    """Return names and meanings of the parameters of a docstring in numpy's style."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", text, re.DOTALL | re.MULTILINE)
    for names, meaning in re.findall(
        r"^(\w.*)\n((?: +.*\n?)+)", found[1] if found else "", re.MULTILINE
    ):
        for name in names.split(", "):
            yield name, as_markdown(" ".join(meaning.split())).replace("|", "\\|")


def as_markdown(text: str) -> str:
    """Turn the double backticks of docstrings into single ones."""
    return text.replace("``", "`")


def values_of(annotation: object) -> str:
    """Say in words which values a setting takes."""
    arguments = [part for part in get_args(annotation) if part is not types.NoneType]
    match get_origin(annotation):
        case None if annotation in TYPES:
            return TYPES[annotation]
        case None if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return f"[{annotation.__name__}](#{annotation.__name__.lower()}s)"
        case origin if origin is Literal:
            return ", ".join(f'`"{choice}"`' for choice in arguments)
        case origin if origin in (Union, types.UnionType):
            return ", ".join(dict.fromkeys(values_of(part) for part in arguments))
        case origin if origin is Annotated:
            return values_of(arguments[0])
        case origin if origin is tuple:
            return f"list of {values_of(arguments[0])}"
    return "table"


def default_of(field: FieldInfo) -> str:
    """Return a default as TOML has it."""
    if field.is_required():
        return "required"
    default: Any = field.default
    return "–" if default in (None, (), "") else f"`{json.dumps(default)}`"


def measures() -> str:
    """Return every attack and measure of the registries."""
    others = [row for row in MEASURES.values() if row.id not in ATTACKS]
    parts = [MEASURES_HEAD, *measure_table("Attacks", list(ATTACKS.values()))]
    parts += [*(f"- {row.label}: {row.paper}." for row in ATTACKS.values() if row.paper), ""]
    for topic, title in TOPICS.items():
        parts += measure_table(title, [row for row in others if row.topic == topic])
    return "\n".join(parts).rstrip() + "\n"


def measure_table(title: str, rows: list[Measure]) -> Iterator[str]:
    """Return rows of a registry as a table, with an empty line after it."""
    yield f"## {title}\n"
    yield "| id | shown as | what it computes | a figure is about | needs | limits |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        about, needs = ABOUT[row.about].replace('"', "`"), ", ".join(row.needs) or "–"
        limits = " and ".join(f"{limit:.2g}" for limit in row.limits or ()) or "–"
        yield f"| `{row.id}` | {row.label} | {row.computes} | {about} | {needs} | {limits} |"
    yield ""


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": commands,
    "settings.md": settings,
    "measures.md": measures,
}


def main(directory: Path) -> None:
    """Write every page into a directory."""
    for name, page in PAGES.items():
        (directory / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REFERENCE)
