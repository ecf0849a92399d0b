"""The risk–utility map: what releases lose, and how many rows can be linked.

Importing this imports Altair.
"""

from collections.abc import Sequence
from itertools import cycle, islice
from math import log
from typing import Any

from microveil.show.charts.canvas import alt, chart_of, layers, nothing, tooltip
from microveil.show.charts.palette import BLACK, CURVES, GREY
from microveil.show.charts.series import LINKAGES, PlacedRelease, ticks

_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_HIGH = 340


def draw_risk_map(
    places: Sequence[PlacedRelease],
    *,
    limit: float,
    description: str,
    chosen: PlacedRelease | None = None,
    named: bool = True,
) -> "alt.LayerChart":
    """Draw releases by error and by linkage; good ones are at the bottom left.

    Parameters
    ----------
    places
        The releases. Without any, the chart says so.
    limit
        The largest linkage that is thought good, which is drawn as a line.
    description
        The text alternative.
    chosen
        A release to mark.
    named
        Whether names stand beside all releases, or only beside the one chosen.

    Examples
    --------
    >>> first = PlacedRelease("ε = 1", "masked", 0.01, 0.97)
    >>> second = PlacedRelease("ε = 1", "pooled", 0.03, 0.07)
    >>> draw_risk_map([first, second], limit=0.1, description="Two releases").height
    340
    """
    if not places:
        return nothing(description)
    marks = ticks([place.error for place in places])
    x = alt.X(
        "error",
        type="quantitative",
        title="mean SSE (lower is more useful)",
        scale=alt.Scale(type="log", domain=[marks[0], marks[-1]]),
        axis=alt.Axis(values=marks, format="~g"),
    )
    y = alt.Y(
        "linkage",
        type="quantitative",
        title="rows linked by the most successful attack",
        scale=alt.Scale(type="symlog", constant=0.02, domain=[0, 1]),
        axis=alt.Axis(values=list(LINKAGES), format="~%"),
    )
    drawn = [*_limit(limit, y), *_lines(places, x, y), _points(places, x, y)]
    if named:
        drawn.append(_names([place for place in places if place != chosen], x, y, dx=8))
    if chosen is not None:
        ring = chart_of([_row(chosen)]).mark_point(size=320, color=BLACK, strokeWidth=2)
        far = log(chosen.error / marks[0]) > 0.75 * log(marks[-1] / marks[0])
        aside: dict[str, Any] = {"align": "right" if far else "left", "dx": -8 if far else 8}
        drawn += [ring.encode(x=x, y=y), _names([chosen], x, y, dy=-13, **aside)]
    return layers(drawn, height=_HIGH, description=description)


def _row(place: PlacedRelease) -> dict[str, Any]:
    shown = ("name", "family", "error", "linkage", "colour")
    return {field: getattr(place, field) for field in shown}


def _limit(limit: float, y: "alt.Y") -> "list[alt.Chart]":
    """Draw the limit, and say at its left end, where few releases are, what it is."""
    base = chart_of([{"linkage": limit, "said": f"limit {100 * limit:.3g}%"}]).encode(y=y)
    said = base.mark_text(align="left", dx=4, dy=-6, color="#555555", fontSize=10)
    left = said.encode(x=alt.value(0), text=alt.Text("said", type="nominal"))
    return [base.mark_rule(strokeDash=[4, 4], color=GREY), left]


def _points(places: Sequence[PlacedRelease], x: "alt.X", y: "alt.Y") -> "alt.Chart":
    points: alt.Chart = chart_of([_row(place) for place in places]).mark_point(
        filled=True, size=90, opacity=1
    )
    families = [place.family for place in places]
    return points.encode(
        x=x,
        y=y,
        color=_colour(places),
        shape=_by(alt.Shape, "family", families, _SHAPES),
        tooltip=tooltip(family="", name="", error=".3~g", linkage=".1%"),
    )


def _lines(places: Sequence[PlacedRelease], x: "alt.X", y: "alt.Y") -> "list[alt.Chart]":
    rows = [{**_row(place), "number": i} for i, place in enumerate(places) if place.joined]
    if not rows:
        return []
    lines = chart_of(rows).mark_line(strokeWidth=1)
    return [
        lines.encode(
            x=x,
            y=y,
            color=_colour(places),
            detail=alt.Detail("family", type="nominal"),
            order=alt.Order("number", type="quantitative"),
        )
    ]


def _names(places: list[PlacedRelease], x: "alt.X", y: "alt.Y", **aside: Any) -> "alt.Chart":  # noqa: ANN401
    """Write names beside places."""
    texts = chart_of([_row(place) for place in places])
    texts = texts.mark_text(**{"align": "left", "fontSize": 10, **aside})
    written: alt.Chart = texts.encode(x=x, y=y, text=alt.Text("name", type="nominal"))
    return written


def _colour(places: Sequence[PlacedRelease]) -> Any:  # noqa: ANN401 - a channel of Altair
    field = "colour" if any(place.series for place in places) else "family"
    return _by(alt.Color, field, [getattr(place, field) for place in places], CURVES)


def _by(channel: type, field: str, values: Sequence[str], styles: Sequence[str]) -> Any:  # noqa: ANN401
    domain = list(dict.fromkeys(values))
    scale = alt.Scale(domain=domain, range=list(islice(cycle(styles), len(domain))))
    legend = alt.Legend(orient="top", columns=4)
    return channel(field, type="nominal", title=None, scale=scale, legend=legend)
