"""The charts of the page, from the package that draws all of them."""

from typing import TYPE_CHECKING

import polars as pl

from microveil.judge.explore import Exploration
from microveil.show.charts.distributions import distribution
from microveil.show.charts.exploration_chart import exploration_map
from microveil.show.charts.frontier_chart import draw_frontier
from microveil.show.charts.histograms import Shares
from microveil.show.charts.series import Curve

if TYPE_CHECKING:
    import altair as alt


_AROUND = 110  # pixels of axes and legend, which Streamlit counts as part of a chart's height


def before_and_after(shares: Shares) -> "alt.LayerChart":
    """Draw one attribute before and after."""
    said = f"Shares of records by {shares.name}, before and after"
    return _fitted(distribution(shares, description=said))


def outlook_chart(
    points: pl.DataFrame, epsilon: float, k: int | None, error: float
) -> "alt.LayerChart":
    """Draw expected error against k, a curve for each ε, and the plan's own point.

    Without clusters it is drawn against ε.
    """
    drawn = points.filter(pl.col("error") > 0)
    by_k = drawn["k"].null_count() == 0
    if by_k:
        curves = [
            Curve(f"ε = {budget:g}", dict(of_budget.select("k", "error").iter_rows()))
            for (budget,), of_budget in drawn.group_by("epsilon", maintain_order=True)
        ]
    else:
        curves = [Curve("without clusters", dict(drawn.select("epsilon", "error").iter_rows()))]
    place = k if by_k else epsilon
    chart = draw_frontier(
        curves,
        across="k, records in a cluster" if by_k else "ε, the privacy budget",
        up="expected error, in standard deviations",
        description="Expected error for clusters of several sizes and budgets",
        here=(place, error) if place is not None and error > 0 else None,
    )
    return _fitted(chart)


def map_chart(exploration: Exploration) -> "alt.LayerChart":
    """Draw error and linkage of the plans that were compared, and mark the recommended one."""
    return _fitted(exploration_map(exploration))


def _fitted(chart: "alt.LayerChart") -> "alt.LayerChart":
    return chart.properties(height=chart.height + _AROUND)
