"""The map of a benchmark as a chart. Importing this imports Altair."""

from typing import Any

import polars as pl

from microveil.lab.benchmark.benchmark_words import map_legend
from microveil.lab.benchmark.peers import YOURS
from microveil.show.charts.attack_map import Spot, attack_map
from microveil.show.charts.canvas import alt

KNOWING, INFORMED = (
    "risk from the worst attacker who knows people's values (upper 95% limit)",
    "risk from an attacker who knows every record but one (upper 95% limit)",
)


def draw_map(name: str, points: pl.DataFrame) -> "alt.VConcatChart":
    """Draw the points of one table: two panels, and a legend with every method's promise."""
    return _draw(name, points, map_legend(points), columns=2)


def draw_narrow_map(name: str, points: pl.DataFrame) -> "alt.VConcatChart":
    """Draw the panels one below the other, without the legend."""
    return _draw(name, points, [], columns=1)


def _draw(
    name: str, points: pl.DataFrame, legend: list[tuple[str, str]], *, columns: int
) -> "alt.VConcatChart":
    rows = points.filter(pl.col("error") > 0).to_dicts()
    said = f"{name}: risk of releases against their error"
    chart = attack_map(
        {
            KNOWING: [_spot(row, "risk", "high", rows) for row in rows],
            INFORMED: [
                _spot(row, "informed", "informed_high", rows)
                for row in rows
                if row["informed"] is not None
            ],
        },
        legend,
        description=said,
        columns=columns,
    )
    titled: alt.VConcatChart = chart.properties(title=said)
    return titled


def _spot(row: dict[str, Any], risk: str, high: str, rows: list[dict[str, Any]]) -> Spot:
    """Place a release; only the largest ε of a method is labelled with its number."""
    budgets = [other["epsilon"] or 0 for other in rows if other["method"] == row["method"]]
    last = (row["epsilon"] or 0) == max(budgets)
    return Spot(
        label=str(row["number"]) if last else "",
        method=row["method"],
        family=row["family"],
        series="no ε" if row["epsilon"] is None else f"ε = {row['epsilon']:g}",
        error=row["error"],
        risk=row[risk],
        high=row[high],
        own=row["family"] == YOURS,
    )
