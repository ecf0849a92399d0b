"""Panels of lines with a legend of their own, for print. Importing this imports Altair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from microveil.show.charts.canvas import alt, chart_of

_HIGH = 150
_PIECE, _COLUMN = 28, 170  # pixels of a line in the legend, and of a column there


@dataclass(frozen=True)
class StyledLine:
    """A line: where it goes, and how it looks.

    Attributes
    ----------
    label
        What the legend says of lines that look like this.
    points
        Places on the horizontal axis, which is logarithmic, and values.
    colour, width
        Of the line.
    dash
        Lengths of dashes and gaps; empty for a solid line.
    shape
        Of the marks at its points, by Vega's name; None for a line without.
    hollow
        Whether marks are white inside.
    """

    label: str
    points: tuple[tuple[float, float], ...] = ()
    colour: str = "#444444"
    width: float = 1.3
    dash: tuple[float, ...] = ()
    shape: str | None = None
    hollow: bool = False


class Panel(NamedTuple):
    """A title and the lines under it; those that come first lie behind the others."""

    title: str
    lines: Sequence[StyledLine]


def panels(
    rows: Sequence[Sequence[Panel]],
    *,
    title: str,
    note: str,
    across: str,
    up: str,
    ticks: Sequence[float],
    legend: Sequence[Sequence[StyledLine]],
    width: int,
) -> "alt.VConcatChart":
    """Draw rows of panels; those below each other have the same scales.

    Parameters
    ----------
    rows
        As many panels in each.
    title, note
        Above all panels; both together are the text alternative.
    across, up
        Titles of the axes.
    ticks
        On the horizontal axis.
    legend
        Columns of lines, for their labels and looks.
    width
        Of a panel, in pixels.
    """
    scales = [_scales(column) for column in zip(*rows, strict=True)]
    drawn = [
        alt.hconcat(
            *(
                _panel(
                    panel,
                    _x(places, ticks, across if row is rows[-1] else None),
                    _y(values, None if column else up),
                    width,
                )
                for column, (panel, (places, values)) in enumerate(zip(row, scales, strict=True))
            ),
            spacing=24,
        )
        for row in rows
    ]
    together: alt.VConcatChart = alt.vconcat(*drawn, _legend(legend), spacing=12)
    words = alt.TitleParams(title, subtitle=note)
    return together.properties(title=words, description=f"{title}, {note}")


def _scales(panels: Sequence[Panel]) -> tuple[list[float], list[float]]:
    """Return the ends of both axes, with a margin, that hold every line of the panels."""
    points = [point for panel in panels for line in panel.lines for point in line.points]
    places, values = zip(*points, strict=True)
    margin = 0.04 * (max(values) - min(values)) or 0.5
    return [min(places) / 1.08, max(places) * 1.08], [min(values) - margin, max(values) + margin]


def _x(ends: list[float], ticks: Sequence[float], title: str | None) -> "alt.X":
    return alt.X(
        "place",
        type="quantitative",
        title=title,
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(values=[tick for tick in ticks if ends[0] <= tick <= ends[1]], format="~g"),
    )


def _y(ends: list[float], title: str | None) -> "alt.Y":
    return alt.Y(
        "value",
        type="quantitative",
        title=title,
        scale=alt.Scale(domain=ends, nice=False),
        axis=alt.Axis(tickCount=5),
    )


def _panel(panel: Panel, x: "alt.X", y: "alt.Y", width: int) -> "alt.LayerChart":
    rows = [
        {**_look(line), "line": number, "place": place, "value": value}
        for number, line in enumerate(panel.lines)
        for place, value in line.points
    ]
    chart: alt.LayerChart = alt.LayerChart(layer=[_lines(rows, x, y), _marks(rows, x, y)])
    title = alt.TitleParams(panel.title, fontSize=12, offset=6, frame="group")
    return chart.properties(width=width, height=_HIGH, title=title)


def _lines(rows: list[dict[str, Any]], x: "alt.X", y: "alt.Y") -> "alt.Chart":
    """Draw lines as their rows say, with no scale between a look and what is drawn."""
    lines = chart_of(rows).mark_line()
    drawn: alt.Chart = lines.encode(
        x=x,
        y=y,
        detail=alt.Detail("line", type="nominal"),
        color=alt.Color("colour", type="nominal", scale=None),
        strokeWidth=alt.StrokeWidth("width", type="quantitative", scale=None),
        strokeDash=alt.StrokeDash("dash", type="nominal", scale=None),
    )
    return drawn


def _marks(rows: list[dict[str, Any]], x: "alt.X", y: "alt.Y") -> "alt.Chart":
    with_shape = [row for row in rows if row["shape"]]
    points = chart_of(with_shape).mark_point(size=22, strokeWidth=1.3, opacity=1)
    drawn: alt.Chart = points.encode(
        x=x,
        y=y,
        shape=alt.Shape("shape", type="nominal", scale=None),
        stroke=alt.Stroke("colour", type="nominal", scale=None),
        fill=alt.Fill("fill", type="nominal", scale=None),
    )
    return drawn


def _legend(columns: Sequence[Sequence[StyledLine]]) -> "alt.HConcatChart":
    """Draw a piece of every line beside its label."""
    return alt.hconcat(*map(_legend_column, columns), spacing=0)


def _legend_column(lines: Sequence[StyledLine]) -> "alt.LayerChart":
    places = (0.0, _PIECE / 2, _PIECE, _PIECE + 8.0)
    start, middle, end, words = (
        [
            {**_look(line), "line": number, "place": place, "value": number, "label": line.label}
            for number, line in enumerate(lines)
        ]
        for place in places
    )
    x = alt.X("place", type="quantitative", axis=None, scale=alt.Scale(domain=[0, _COLUMN]))
    ends = [len(lines) - 0.5, -0.5]
    y = alt.Y("value", type="quantitative", axis=None, scale=alt.Scale(domain=ends, nice=False))
    text = chart_of(words).mark_text(align="left", baseline="middle", fontSize=11)
    labels = text.encode(x=x, y=y, text=alt.Text("label", type="nominal"))
    drawn = [_lines(start + end, x, y), _marks(middle, x, y), labels]
    chart: alt.LayerChart = alt.LayerChart(layer=drawn)
    return chart.properties(width=_COLUMN, height=18 * len(lines))


def _look(line: StyledLine) -> dict[str, Any]:
    return {
        "colour": line.colour,
        "width": line.width,
        "dash": list(line.dash),
        "shape": line.shape,
        "fill": "white" if line.hollow else line.colour,
    }
