"""The risk–utility map: what releases lose, and how many rows can be linked.

Importing this imports Altair.
"""

from collections.abc import Sequence
from itertools import cycle, islice

from microveil.charts.base import alt, chart_of, layers, tooltip
from microveil.charts.curves import LINKAGES, Place, ticks
from microveil.charts.palette import BLACK, CURVES, GREY

_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
_HIGH = 340


def risk_map(
    places: Sequence[Place], *, limit: float, description: str, chosen: Place | None = None
) -> "alt.LayerChart":
    """Draw releases by error and by linkage; good ones are at the bottom left.

    Parameters
    ----------
    places
        The releases.
    limit
        The largest linkage that is thought good, which is drawn as a line.
    description
        The text alternative.
    chosen
        A release to mark.

    Examples
    --------
    >>> places = [Place("ε = 1", "masked", 0.01, 0.97), Place("ε = 1", "pooled", 0.03, 0.07)]
    >>> risk_map(places, limit=0.1, description="Two releases").height
    340
    """
    marks = ticks([place.error for place in places])
    x = alt.X(
        "error",
        type="quantitative",
        title="mean SSE: less is more useful",
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
    families = list(dict.fromkeys(place.family for place in places))
    rows = [vars(place) for place in places]
    points = chart_of(rows).encode(x=x, y=y)
    line = chart_of([{"linkage": limit}]).mark_rule(strokeDash=[4, 4], color=GREY)
    seen = tooltip(family="", name="", error=".3~g", linkage=".1%")
    drawn = [
        line.encode(y=y),
        points.mark_point(filled=True, size=90, opacity=1).encode(
            color=_by_family(alt.Color, families, CURVES),
            shape=_by_family(alt.Shape, families, _SHAPES),
            tooltip=seen,
        ),
        points.mark_text(align="left", dx=8, fontSize=10).encode(
            text=alt.Text("name", type="nominal")
        ),
    ]
    if chosen is not None:
        ring = chart_of([vars(chosen)]).mark_point(size=320, color=BLACK, strokeWidth=2)
        drawn.append(ring.encode(x=x, y=y))
    return layers(drawn, height=_HIGH, description=description)


def _by_family(channel: type, families: list[str], styles: Sequence[str]) -> object:
    scale = alt.Scale(domain=families, range=list(islice(cycle(styles), len(families))))
    legend = alt.Legend(orient="top", columns=4)
    return channel("family", type="nominal", title=None, scale=scale, legend=legend)
