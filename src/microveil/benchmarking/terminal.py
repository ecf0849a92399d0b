"""A benchmark in the terminal: a table of the points of each map."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.table import Table

from microveil.errors import visible

if TYPE_CHECKING:
    from microveil.benchmarking import Benchmark

CAPTION = (
    "A risk is what an attack gains over its control; shown is the upper end of the 95% interval "
    "of the worst one. «Informed» is who knows every record but one, and which row is whose."
)


def tables(benchmark: "Benchmark") -> Iterator[Table]:
    """Make a table of points for each of the benchmark's tables."""
    for name in benchmark.names:
        points = benchmark.points(name)
        learned = bool(points["auc_forest"].count())
        columns = ["method", "ε", "mean SSE", "worst risk", "by", "informed"]
        columns += ["AUC forest", "AUC boosting"] if learned else []
        records = benchmark.results.filter(data=name)["records"][0]
        shown = Table(title=visible(f"{name}, {records:,} records"), caption=CAPTION)
        for column in columns:
            shown.add_column(column, justify="left" if column in ("method", "by") else "right")
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
    for name in ("auc_forest", "auc_boosting") if learned else ():
        yield "–" if row[name] is None else f"{row[name]:.3f}"
