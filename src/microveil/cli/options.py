"""Options that commands share, and what may stand in them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from microveil.core.choices import DateOrder
from microveil.errors import PlanError

if TYPE_CHECKING:
    from microveil.plan.roles import Bound


EngineName = Literal["memory", "spark"]

OutputPlace = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="PATH", help="The protected file to write; for Spark a directory."
    ),
]
Engine = Annotated[EngineName, typer.Option(help="Where the work is done.")]
Master = Annotated[
    str | None,
    typer.Option(
        help="For Spark: its master, e.g. local[2], or a Spark Connect server, e.g. "
        "sc://host:15002; by default as configured."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Repeatable noise for experiments: not for publication."),
]
Report = Annotated[
    Path | None,
    typer.Option(
        help="Also write a private report, an HTML page with charts, for the data holder."
    ),
]
Known = Annotated[
    list[str] | None,
    typer.Option(help="A column that an intruder knows, who is tried besides one who knows all."),
]
People = Annotated[
    float, typer.Option(help="The share of the people whose values such an intruder knows.")
]
LedgerOf = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="The ledger of these people, into which the release is entered, by default the "
        "plan's: see microveil ledger. Seeded releases spend nothing.",
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(help="Key file of the pseudonyms, made once with microveil key."),
]
QUASI_IDENTIFIER = typer.Option(
    "--quasi-identifier", "-q", help="Column that an attacker may know."
)
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Target = Annotated[str | None, typer.Option(help="A column of classes to learn.")]
Tried = Annotated[
    list[float] | None,
    typer.Option(help="A privacy budget to try, by default 0.01, 0.1 and 1."),
]


_DATA = "A CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS file, or postgresql://user@host/database."
_READING = {
    "delimiter": "What separates columns in CSV, by default detected.",
    "encoding": "The encoding of CSV, SPSS, Stata or SAS files, by default detected.",
    "decimal": "The decimal mark in CSV, by default detected.",
    "sheet": "The sheet of an Excel workbook, by default the first.",
    "query": "The SQL query to read from a database.",
    "na": "A value that stands for a missing one, in every column; may be given several times.",
    "dates": "How CSV dates such as 03/02/2011 are read, where they do not tell it themselves.",
    "skip_rows": "The rows above the column names of an Excel sheet, by default detected.",
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
        Parameter(
            option,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[_TYPES.get(option, str | None), typer.Option(help=help_)],
        )
        for option, help_ in _READING.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:  # noqa: ANN401 - whatever the command takes
            from microveil.formats import Source

            reading = {option: given.pop(option) for option in _READING}
            reading["na"] = reading["na"] or ()
            for_spark = given.get("engine") == "spark"
            source = Source(given[name], for_spark=for_spark, **reading)
            command(**{**given, name: source})

        own = signature(command).parameters
        changed = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own.values()]
        changed = [p.replace(annotation=argument) if p.name == name else p for p in changed]
        seen = signature(command).replace(parameters=[*changed, *options])
        run.__annotations__ = {p.name: p.annotation for p in seen.parameters.values()}
        vars(run)["__signature__"] = seen  # which typer looks at
        return run

    return decorate


def parse_k(text: str | None) -> int | str | None:
    """Read a number of records, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        message = f'expected a number or "auto", got {text!r}'
        raise typer.BadParameter(message, param_hint="--k") from None


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
