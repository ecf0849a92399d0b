"""Options that commands share, and what may stand in them."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from microveil.errors import PlanError


class MethodChoice(StrEnum):
    """The paper's methods."""

    DP = "DP"
    DP_UM = "DP-UM"
    IDP_LS = "iDP-LS"
    IDP_CBLS = "iDP-CBLS"


class PartitionChoice(StrEnum):
    """Where one cluster ends and the next begins."""

    FIXED = "fixed"
    NOISE_OPTIMAL = "noise-optimal"
    LEAST_SQUARES = "least-squares"


class PostChoice(StrEnum):
    """What becomes of masked values."""

    AUTO = "auto"
    NONE = "none"
    ISOTONIC = "isotonic"
    PENALISED_ISOTONIC = "penalised-isotonic"


class GuaranteeChoice(StrEnum):
    """Whether epsilon covers that clusters are formed again."""

    FIXED_CLUSTERS = "fixed-clusters"
    RE_CLUSTERED = "re-clustered"


class MissingChoice(StrEnum):
    """What to do with missing values."""

    ERROR = "error"
    KEEP = "keep"
    DROP = "drop"


class EngineChoice(StrEnum):
    """Where the work is done."""

    MEMORY = "memory"
    SPARK = "spark"


DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="A CSV or Parquet file.")]
DataPlace = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A CSV or Parquet file; for Spark, Parquet anywhere."),
]
OutputPlace = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="PATH", help="The protected file to write; for Spark a directory."
    ),
]
Engine = Annotated[EngineChoice, typer.Option(help="Where the work is done.")]
Master = Annotated[
    str | None, typer.Option(help="For Spark: its master, e.g. local[2]; by default as configured.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and warnings.")]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="Repeatable noise for experiments: not for publication."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


def parse_k(text: str | None) -> int | str | None:
    """Read a number of records, or "auto"."""
    if text is None or text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        message = f'expected a number or "auto", got {text!r}'
        raise typer.BadParameter(message, param_hint="--k") from None


def parse_domains(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Read domains written as NAME=LOWER:UPPER."""
    domains = [_parse_domain(text) for text in texts]
    twice = {name for name, _ in domains if [n for n, _ in domains].count(name) > 1}
    if twice:
        raise PlanError(f"domain {min(twice)!r}: declared twice; give one domain")
    return dict(domains)


def _parse_domain(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, ends = text.rpartition("=")
    lower, colon, upper = ends.partition(":")
    try:
        if equals and colon:
            return name, (float(lower), float(upper))
    except ValueError:
        pass
    raise typer.BadParameter(f"expected NAME=LOWER:UPPER, got {text!r}", param_hint="--domain")
