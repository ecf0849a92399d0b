"""The frontier: error against k, a curve for each ε. Importing this imports Altair."""

from collections.abc import Sequence
from itertools import cycle, islice

from microveil.show.charts.canvas import alt, chart_of, layers, nothing, tooltip
from microveil.show.charts.palette import CURVES
from microveil.show.charts.series import Curve, names_beside, places, ticks

_SHAPES = ("circle", "triangle-up", "square", "diamond", "triangle-down", "cross")
_WIDE, _HIGH, _BESIDE = 400, 300, 105
_APART = 1.08  # of the ends of a logarithmic axis from its outermost places


def draw_frontier(
    curves: Sequence[Curve],
    *,
    across: str,
    up: str,
    description: str,
    here: tuple[float, float] | None = None,
) -> "alt.LayerChart":
    """Draw curves on logarithmic axes.

    Parameters
    ----------
    curves
        What stands beside them is left out. Without any error, the chart says so.
    across, up
        Titles of the axes.
    description
        The text alternative.
    here
        A place and its error to mark, such as those of the plan that is being edited.

    Examples
    --------
    >>> curves = [Curve("ε = 1", {3: 0.2, 10: 0.1}), Curve("ε = 10", {3: 0.1, 10: 0.05})]
    >>> draw_frontier(curves, across="k", up="mean SSE", description="Error by k").width
    'container'
    """
    marked = [] if here is None else [here]
    errors = [error for curve in curves for error in curve.points.values()]
    if not errors:
        return nothing(description)
    y = _up(ticks(errors + [error for _, error in marked]), up)
    drawn = _lines(curves, [place for place, _ in marked], across, y)
    if here is not None:
        diamond = chart_of([{"place": here[0], "error": here[1]}]).mark_point(
            shape="diamond", size=220, filled=True, color="black", stroke="white", opacity=1
        )
        drawn.append(diamond.encode(x=alt.X("place", type="quantitative"), y=y))
    return layers(drawn, height=_HIGH, description=description)


def frontier_and_beside(
    curves: Sequence[Curve], *, across: str, up: str, description: str
) -> "alt.HConcatChart":
    """Draw curves on logarithmic axes, and what stands beside them in a panel of its own.

    Parameters
    ----------
    curves, across, up, description
        As for `draw_frontier`.
    """
    errors = [error for curve in curves for error in curve.errors]
    if not errors:
        both: alt.HConcatChart = alt.hconcat(nothing(description).properties(width=_WIDE))
        return both.properties(description=description)
    marks = ticks(errors)
    plot: alt.LayerChart = alt.LayerChart(layer=_lines(curves, [], across, _up(marks, up)))
    sides = [_side(curves, marks)] if names_beside(curves) else []
    sized = plot.properties(width=_WIDE, height=_HIGH)
    both = alt.hconcat(sized, *sides, spacing=12).resolve_scale(color="shared", shape="shared")
    return both.properties(description=description)


def _lines(
    curves: Sequence[Curve], also: Sequence[float], across: str, y: "alt.Y"
) -> "list[alt.Chart]":
    known = places(curves)
    all_places = [*known, *also] or [1.0]
    ends = [min(all_places) / _APART, max(all_places) * _APART]
    x = alt.X(
        "place",
        type="quantitative",
        title=across,
        scale=alt.Scale(type="log", domain=ends, nice=False),
        axis=alt.Axis(values=known, format="~g", grid=False),
    )
    rows = [
        {"curve": curve.label, "place": place, "error": error}
        for curve in curves
        for place, error in sorted(curve.points.items())
    ]
    base = chart_of(rows).encode(x=x, y=y, color=_colour(curves))
    points = base.mark_point(filled=True, size=70, opacity=1)
    seen = tooltip(curve="", place="~g", error=".3~g")
    return [base.mark_line(strokeWidth=2), points.encode(shape=_shape(curves), tooltip=seen)]


def _up(marks: list[float], title: str | None) -> "alt.Y":
    """Return the axis of errors; without a title also without labels, beside one that has them."""
    labelled = title is not None
    axis = alt.Axis(values=marks, format="~g", labels=labelled, ticks=labelled, domain=labelled)
    scale = alt.Scale(type="log", domain=[marks[0], marks[-1]])
    return alt.Y("error", type="quantitative", title=title, scale=scale, axis=axis)


def _side(curves: Sequence[Curve], marks: list[float]) -> "alt.Chart":
    beside = names_beside(curves)
    rows = [
        {"curve": curve.label, "name": name, "error": error}
        for curve in curves
        for name, error in curve.beside.items()
    ]
    x = alt.X(
        "name",
        type="nominal",
        sort=beside,
        title=None,
        axis=alt.Axis(labelAngle=0, labelExpr="split(datum.label, ', ')", labelOverlap=False),
    )
    aside = alt.XOffset("curve", type="nominal", sort=[curve.label for curve in curves])
    points = chart_of(rows).mark_point(filled=True, size=70, opacity=1)
    side: alt.Chart = points.encode(
        x=x,
        xOffset=aside,
        y=_up(marks, None),
        color=_colour(curves),
        shape=_shape(curves),
        tooltip=tooltip(curve="", name="", error=".3~g"),
    ).properties(width=_BESIDE * len(beside), height=_HIGH)
    return side


def _colour(curves: Sequence[Curve]) -> "alt.Color":
    labels = [curve.label for curve in curves]
    scale = alt.Scale(domain=labels, range=list(islice(cycle(CURVES), len(labels))))
    return alt.Color("curve", type="nominal", title=None, scale=scale, legend=_legend())


def _shape(curves: Sequence[Curve]) -> "alt.Shape":
    labels = [curve.label for curve in curves]
    scale = alt.Scale(domain=labels, range=list(islice(cycle(_SHAPES), len(labels))))
    return alt.Shape("curve", type="nominal", title=None, scale=scale, legend=_legend())


def _legend() -> "alt.Legend":
    return alt.Legend(orient="top", columns=6)
