"""The map of a benchmark as a chart. Importing this imports Altair."""

from typing import Any

import polars as pl

from microveil.lab.benchmark.peers import YOURS
from microveil.show.charts.attack_map import Spot, attack_map
from microveil.show.charts.canvas import alt

KNOWING, INFORMED = (
    "gained by the worst attack that knows people's values, at most",
    "gained by who knows every record but one, at most",
)


def draw_map(name: str, points: pl.DataFrame) -> "alt.VConcatChart":
    """Draw the points of one table: two panels, and what every method promises."""
    return _draw(name, points, listed(points), columns=2)


def draw_narrow_map(name: str, points: pl.DataFrame) -> "alt.VConcatChart":
    """Draw the panels one below the other; what the numbers stand for is told beside them."""
    return _draw(name, points, [], columns=1)


def listed(points: pl.DataFrame) -> list[tuple[str, str]]:
    """Say what the numbers of the map stand for, and what each method promises."""
    rows = points.filter(pl.col("error") > 0).unique("number", keep="first", maintain_order=True)
    return [
        (str(number), f"{method}: {said}")
        for number, method, said in rows.select("number", "method", "promise").iter_rows()
    ]


def _draw(
    name: str, points: pl.DataFrame, said_of: list[tuple[str, str]], *, columns: int
) -> "alt.VConcatChart":
    rows = points.filter(pl.col("error") > 0).to_dicts()
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
        said_of,
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
