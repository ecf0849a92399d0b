"""Options that commands share, and what may stand in them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer

from microveil.core.choices import DateOrder
from microveil.errors import PlanError
from microveil.plan.settings import Declared, PlanSettings, declared_in

if TYPE_CHECKING:
    from microveil.plan.roles import Bound


EngineName = Literal["memory", "spark"]

OutputPlace = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="PATH", help="Protected file to write; a directory for Spark."
    ),
]
EngineOption = Annotated[EngineName, typer.Option(help="Where the work is done.")]
Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master, such as local[2], or Spark Connect server, such as sc://host:15002; "
        "by default as configured."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Seed for repeatable noise in experiments; not for publication."),
]
Report = Annotated[
    Path | None,
    typer.Option(help="Also write a private report for the data holder, an HTML page with charts."),
]
KnownColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="Column the attacker knows; tested in addition to an attacker who knows every column."
    ),
]
People = Annotated[
    float, typer.Option(help="Share of the people whose values this attacker knows.")
]
UseOption = Annotated[
    list[str] | None,
    typer.Option(
        "--use",
        metavar="USE",
        help='What the release will be used for, e.g. "mean income by region", "table sex, '
        'age(10)", "wage ~ age" or "predict died"; can be repeated.',
    ),
]
LedgerOf = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Ledger of these people, into which the release is entered, by default the plan's: "
        "see microveil ledger. Seeded releases spend nothing.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="Key file of the pseudonyms, made once with microveil key."),
]
JointFile = Annotated[
    Path | None,
    typer.Option(
        help="File of joint clusters of these people, begun once with microveil joint: persons "
        "keep pseudonyms from release to release where that does not give them away."
    ),
]
QUASI_IDENTIFIER = typer.Option("--quasi-identifier", help="Column that an attacker may know.")
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
TargetColumn = Annotated[str | None, typer.Option(help="Column of classes to learn.")]
EpsilonsTried = Annotated[
    list[float] | None,
    typer.Option(help="Privacy budget to try, by default 0.01, 0.1 and 1."),
]


_DATA = "A CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS file, or postgresql://user@host/database."
_READING = {
    "delimiter": "Column separator in CSV, by default detected.",
    "encoding": "Encoding of CSV, SPSS, Stata or SAS files, by default detected.",
    "decimal": "Decimal mark in CSV, by default detected.",
    "sheet": "Sheet of an Excel workbook, by default the first.",
    "query": "SQL query to read from a database.",
    "na": "Value that stands for a missing one, in every column; can be repeated.",
    "dates": "Order of CSV dates such as 03/02/2011, if the file does not show it.",
    "skip_rows": "Rows above the column names of an Excel sheet, by default detected.",
}
_TYPES: dict[str, Any] = {
    "na": list[str] | None,
    "dates": DateOrder | None,
    "skip_rows": int | None,
}


def reads(name: str, text: str = _DATA) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an argument that names a table, and the options that say how to read it.

    The command itself takes one parameter of this name, a `Source`.
    """
    argument = Annotated[str, typer.Argument(metavar=name.upper(), help=text)]
    options = [
        _option(option, Annotated[_TYPES.get(option, str | None), typer.Option(help=help_)])
        for option, help_ in _READING.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:  # noqa: ANN401 - whatever the command takes
            from microveil.formats import Source

            reading = {option: given.pop(option) for option in _READING}
            reading["na"] = reading["na"] or ()
            for_spark = given.get("engine") == "spark"
            source = Source(given[name], for_spark=for_spark, **reading)
            command(**{**given, name: source})

        own = signature(command).parameters.values()
        named = [p.replace(annotation=argument) if p.name == name else p for p in own]
        return _with_parameters(run, command, [*named, *options])

    return decorate


def plan_flags(
    settings: type = PlanSettings,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each setting of a plan that has one.

    The command itself takes one parameter, `settings`: those that were given, by name.
    """
    declared = {each.name: each for each in declared_in(settings) if each.setting.flag}
    flags = [_flag(each, getattr(settings, each.name, None)) for each in declared.values()]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**given: Any) -> None:  # noqa: ANN401 - whatever the command takes
            values = {name: given.pop(name) for name in declared}
            chosen = {n: value for n, value in values.items() if value is not None and value != []}
            command(**given, settings=_parsed(chosen, declared))

        own = signature(command).parameters.values()
        parts = [flags if p.name == "settings" else [p] for p in own]
        return _with_parameters(run, command, [p for part in parts for p in part])

    return decorate


def _with_parameters(
    run: Callable[..., None], command: Callable[..., None], parameters: list[Parameter]
) -> Callable[..., None]:
    """Let a function stand for a command, with other parameters for typer to read."""
    changed = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in parameters]
    run = wraps(command)(run)
    run.__annotations__ = {p.name: p.annotation for p in changed}
    vars(run)["__signature__"] = signature(command).replace(parameters=changed)
    return run


def _option(name: str, annotation: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _flag(declared: Declared, default: object) -> Parameter:
    has_default = not isinstance(default, bool) and default not in (None, ())
    shown = f" (default: {default})" if has_default else ""
    name = f"--{declared.name.replace('_', '-')}"
    option = typer.Option(name, help=f"{declared.setting.help}{shown}.")
    type_ = list[str] if get_origin(declared.type) is tuple else declared.type
    return _option(declared.name, Annotated[(str if _words(type_) else type_) | None, option])


def _words(type_: object) -> list[str]:
    """Return the words that may stand in the place of a number."""
    return [word for part in get_args(type_) for word in get_args(part)]


def _parsed(given: dict[str, Any], declared: Mapping[str, Declared]) -> dict[str, Any]:
    """Read numbers that may also be words."""
    mixed = {name: words for name in given if (words := _words(declared[name].type))}
    return given | {name: _number_or_word(name, given[name], mixed[name]) for name in mixed}


def _number_or_word(name: str, text: str, words: list[str]) -> int | str:
    if text in words:
        return text
    try:
        return int(text)
    except ValueError:
        expected = " or ".join(["a number", *(f'"{word}"' for word in words)])
        message = f"expected {expected}, got {text!r}"
        raise typer.BadParameter(message, param_hint=f"--{name}") from None


def parse_domains(texts: list[str]) -> "dict[str, tuple[Bound, Bound]]":
    """Read domains written as NAME=LOWER:UPPER, of numbers or dates."""
    domains = [_parse_domain(text) for text in texts]
    twice = {name for name, _ in domains if [n for n, _ in domains].count(name) > 1}
    if twice:
        raise PlanError(f"domain {min(twice)!r}: declared twice; give one domain")
    return dict(domains)


def _parse_domain(text: str) -> "tuple[str, tuple[Bound, Bound]]":
    name, equals, ends = text.rpartition("=")
    lower, colon, upper = ends.partition(":")
    readings: tuple[Callable[[str], Bound], ...] = (float, date.fromisoformat)
    for read in readings if equals and colon else ():
        with suppress(ValueError):
            return name, (read(lower), read(upper))
    raise typer.BadParameter(f"expected NAME=LOWER:UPPER, got {text!r}", param_hint="--domain")
