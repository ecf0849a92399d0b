"""A benchmark in the terminal: a table of the points of each map, and the legend of a map."""

from collections.abc import Iterator
from typing import Any

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from microveil.errors import visible
from microveil.lab.benchmark.benchmark_result import Benchmark
from microveil.lab.benchmark.peers import PromiseKind
from microveil.show.screens import ResultScreen

CAPTION = (
    "Risk is the gain of an attack over its control: the upper 95% limit for the worst attack. "
    '"Informed" is an attacker who knows every record but one, and whose row is whose. AUC is '
    "for a random forest and for gradient boosting."
)

_NOT_STRUCTURE = "; no promise about which rows share values"
_IDP = "individual differential privacy with ε, for fixed clusters and noise scales"
PROMISES = {
    PromiseKind.DP: "differential privacy with ε, for the table as released",
    PromiseKind.DP_OF_VALUES: "differential privacy with ε, for masked values with fixed clusters"
    + _NOT_STRUCTURE,
    PromiseKind.IDP: _IDP + _NOT_STRUCTURE,
    PromiseKind.IDP_RECLUSTERED: "individual differential privacy with ε, re-clustered, for fixed "
    "noise scales" + _NOT_STRUCTURE,
    PromiseKind.IDP_POOLED: _IDP
    + "; these attributes identify nobody's row with probability above "
    "1/{anonymity}",
    PromiseKind.K_ANONYMITY: "{anonymity}-anonymity by these attributes; no limit on what values "
    "reveal",
    PromiseKind.CERTIFIED: "see its certificate",
    PromiseKind.NOTHING: "no promise",
}


def benchmark_screen(benchmark: Benchmark) -> ResultScreen:
    """Show what was measured, with a row for each point."""
    title = f"Benchmark of {', '.join(benchmark.names)} (private unless the data are public)"
    return ResultScreen(title, laid_out=lambda: Group(*_tables(benchmark)))


def map_legend(points: pl.DataFrame) -> list[tuple[str, str]]:
    """Return the numbers of a map, each with its method and what the method promises."""
    rows = points.filter(pl.col("error") > 0).unique("number", keep="first", maintain_order=True)
    return [(str(row["number"]), f"{row['method']}: {_promise(row)}") for row in rows.to_dicts()]


def _promise(row: dict[str, Any]) -> str:
    promise = PROMISES[PromiseKind(row["promise"])].format(anonymity=row["anonymity"])
    return f"{promise} (as far as the certificate says)" if row["conditional"] else promise


def _tables(benchmark: Benchmark) -> Iterator[Table]:
    """Make a table of points for each of the benchmark's tables."""
    for name in benchmark.names:
        points = benchmark.points(name)
        learned = bool(points["auc_forest"].count())
        records = benchmark.results.filter(data=name)["records"][0]
        title = visible(f"{name}, {records:,} records")
        shown = Table(title=title, caption=CAPTION, box=SIMPLE_HEAD, collapse_padding=True)
        shown.add_column("method", min_width=16)
        for column in ("ε", "SSE", "risk"):
            shown.add_column(column, justify="right")
        shown.add_column("by", min_width=11)
        shown.add_column("informed", justify="right", no_wrap=True)
        if learned:
            shown.add_column("AUC", justify="right", no_wrap=True)
        for row in points.iter_rows(named=True):
            shown.add_row(*_cells(row, learned=learned))
        yield shown


def _cells(row: dict[str, Any], *, learned: bool) -> Iterator[str]:
    yield row["method"]
    yield "–" if row["epsilon"] is None else f"{row['epsilon']:g}"
    yield "–" if row["error"] is None else f"{row['error']:.3g}"
    yield f"{row['high']:.1%}"
    yield row["attack"]
    yield "–" if row["informed_high"] is None else f"{row['informed_high']:.0%}"
    if learned:
        areas = (row[name] for name in ("auc_forest", "auc_boosting"))
        yield " ".join("–" if area is None else f"{area:.3f}" for area in areas)
