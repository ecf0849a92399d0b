"""The map of a benchmark as a chart. Importing this imports Altair."""

from typing import Any

import polars as pl

from microveil.benchmarking.candidates import YOURS
from microveil.charts.attack_map import Spot, attack_map
from microveil.charts.base import alt

KNOWING, INFORMED = (
    "gained by the worst attack that knows people's values, at most",
    "gained by who knows every record but one, at most",
)


def draw(name: str, points: pl.DataFrame, *, columns: int = 2) -> "alt.VConcatChart":
    """Draw the points of one table: two panels, and what every method promises."""
    rows = points.filter(pl.col("error") > 0).to_dicts()
    named = {row["number"]: row for row in rows}
    said = f"{name}: what attacks gain over their controls, against the error of releases"
    chart = attack_map(
        {
            KNOWING: [_spot(row, "risk", "high", rows) for row in rows],
            INFORMED: [
                _spot(row, "informed", "informed_high", rows)
                for row in rows
                if row["informed"] is not None
            ],
        },
        [(str(number), f"{row['method']}: {row['promise']}") for number, row in named.items()],
        description=said,
        columns=columns,
    )
    titled: alt.VConcatChart = chart.properties(title=said)
    return titled


def _spot(row: dict[str, Any], risk: str, high: str, rows: list[dict[str, Any]]) -> Spot:
    """Place a release; the number of its method stands beside that of the largest ε alone."""
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
