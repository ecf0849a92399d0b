"""What charts have in common. Importing this imports Altair.

Names and categories go into charts as data under fixed field names, never as field names or inside
expressions, so that nothing a column is called can be run. Bars are not stacked, since Vega does
that in an object by their names and fails at one called `constructor`. Every chart has a
description, which becomes its text alternative.
"""

from typing import TYPE_CHECKING, Any

from microveil.errors import require
from microveil.show.charts.palette import AFTER, BEFORE

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

__all__ = ["alt", "chart_of", "label_axis", "layers", "nothing", "series_colour", "tooltip"]

_LABEL = 130  # pixels a name may take before it is cut short with an ellipsis


def chart_of(rows: list[dict[str, Any]]) -> "alt.Chart":
    """Open a chart of these rows."""
    return alt.Chart(alt.InlineData(values=rows))


def layers(drawn: "list[alt.Chart]", *, height: int, description: str) -> "alt.LayerChart":
    """Put what was drawn into one chart, as wide as where it stands."""
    chart: alt.LayerChart = alt.LayerChart(layer=drawn)
    return chart.properties(width="container", height=height, description=description)


def nothing(description: str) -> "alt.LayerChart":
    """Say that there is nothing to draw on an axis of errors."""
    said = chart_of([{}]).mark_text(text="No plan has any error.", fontSize=13)
    return layers([said], height=40, description=description)


def label_axis(field: str) -> "alt.Y":
    """Write names down the side."""
    axis = alt.Axis(labelLimit=_LABEL, labelOverlap=False)
    return alt.Y(field, type="nominal", sort=None, title=None, axis=axis)


def series_colour(first: str, second: str) -> "alt.Color":
    """Colour what was before and what came after."""
    return alt.Color(
        "series",
        type="nominal",
        title=None,
        scale=alt.Scale(domain=[first, second], range=[BEFORE, AFTER]),
        legend=alt.Legend(orient="top", symbolType="square"),
    )


def tooltip(**formats: str) -> "list[alt.Tooltip]":
    """Show these fields under the pointer: numbers by their format, text by an empty one."""
    return [
        alt.Tooltip(field, type="quantitative", format=form)
        if form
        else alt.Tooltip(field, type="nominal")
        for field, form in formats.items()
    ]
