"""A benchmark in the terminal: a table of the points of each map."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from microveil.errors import visible
from microveil.show.screens import ResultScreen

if TYPE_CHECKING:
    from microveil.lab.benchmark import Benchmark

CAPTION = (
    "A risk is what an attack gains over its control; shown is the upper end of the 95% interval "
    "of the worst one. «Informed» is who knows every record but one, and which row is whose. AUC "
    "is of a random forest and of gradient boosting."
)


def benchmark_screen(benchmark: "Benchmark") -> ResultScreen:
    """Say what was measured, with a row for each point."""
    title = f"Benchmark of {', '.join(benchmark.names)}; private, unless these are public"
    return ResultScreen(title, laid_out=lambda: Group(*_tables(benchmark)))


def _tables(benchmark: "Benchmark") -> Iterator[Table]:
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
