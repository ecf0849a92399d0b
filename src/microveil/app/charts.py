"""Charts. Fields have fixed names, so that no column name is ever read as an expression."""

from typing import Any

import altair as alt
import polars as pl

from microveil.app.compare import AFTER, BEFORE, Comparison
from microveil.exploration.curves import COLOURS

Chart = Any
"""Altair's own, of which it does not tell type checkers enough."""

_TABLES = alt.Color(
    "table:N",
    title=None,
    scale=alt.Scale(domain=[BEFORE, AFTER], range=list(COLOURS[:2])),
    legend=alt.Legend(orient="top", offset=4),
)
_SHARE = alt.Axis(format=".0%", title="share of records")


def before_and_after(comparison: Comparison) -> Chart:
    """Draw one attribute before and after."""
    description = f"Shares of records by {comparison.attribute}, in the original and the release"
    if comparison.scale == "categories":
        height = 110 + 30 * comparison.shares["category"].n_unique()
        return _bars(comparison).properties(height=height, description=description)
    return _steps(comparison).properties(height=250, description=description)


def _bars(comparison: Comparison) -> Chart:
    return (
        alt.Chart(comparison.shares)
        .mark_bar()
        .encode(
            x=alt.X("share:Q", axis=_SHARE),
            y=alt.Y("category:N", title=None, axis=alt.Axis(labelLimit=120, labelOverlap=False)),
            yOffset=alt.YOffset("table:N", sort=[BEFORE, AFTER]),
            color=_TABLES,
            tooltip=["table:N", "category:N", alt.Tooltip("share:Q", format=".1%")],
        )
    )


def _steps(comparison: Comparison) -> Chart:
    kind = "T" if comparison.scale == "dates" else "Q"
    last = comparison.shares.filter(pl.col("end") == pl.col("end").max())
    closed = pl.concat([comparison.shares, last.with_columns(start="end")])
    return (
        alt.Chart(closed)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X(f"start:{kind}", title=None, axis=alt.Axis(labelOverlap=True)),
            y=alt.Y("share:Q", axis=_SHARE),
            color=_TABLES,
            strokeDash=alt.StrokeDash(
                "table:N", scale=alt.Scale(domain=[BEFORE, AFTER], range=[[1, 0], [6, 3]])
            ),
            tooltip=["table:N", f"start:{kind}", alt.Tooltip("share:Q", format=".1%")],
        )
    )


def frontier_chart(points: pl.DataFrame, epsilon: float, k: int | None, error: float) -> Chart:
    """Draw expected error against k, a curve for each ε, and the plan's own point.

    Without clusters it is drawn against ε.
    """
    named = points.filter(pl.col("error") > 0).with_columns(
        budget=pl.format("ε = {}", pl.col("epsilon"))
    )
    by_k = named["k"].null_count() == 0
    across = alt.X(
        "k:Q" if by_k else "epsilon:Q",
        title="k, records in a cluster" if by_k else "ε, the privacy budget",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=sorted(named["k"].unique()) if by_k else named["epsilon"].to_list()),
    )
    up = alt.Y(
        "error:Q",
        title="expected error, in standard deviations",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(format="~g", tickCount=5, grid=False),
    )
    colour = alt.Color(
        "budget:N",
        title=None,
        sort=named["budget"].unique(maintain_order=True).to_list(),
        scale=alt.Scale(range=list(COLOURS)),
        legend=alt.Legend(orient="top", columns=3),
    )
    lines = alt.Chart(named).mark_line(point=True).encode(x=across, y=up)
    lines = lines.encode(color=colour) if by_k else lines
    here = pl.DataFrame({"k": [k], "epsilon": [epsilon], "error": [error]})
    mark = (
        alt.Chart(here.filter((pl.col("error") > 0) & (not by_k or k is not None)))
        .mark_point(shape="diamond", size=220, filled=True, color="black", stroke="white")
        .encode(x=across, y=up)
    )
    description = "Expected error for clusters of several sizes and budgets"
    return (lines + mark).properties(height=320, description=description)
