"""An attribute before and after: bars of categories, a histogram of numbers, dates and times."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from microveil.show.charts.canvas import alt, chart_of, label_axis, layers, series_colour, tooltip
from microveil.show.charts.histograms import Clock, Shares

_TIMES = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M", "time": "%H:%M"}


def distribution(shares: Shares, *, description: str) -> "alt.LayerChart":
    """Draw an attribute before and after.

    Examples
    --------
    >>> shares = Shares("kind", (0.5, 0.5), (0.4, 0.6), labels=("a", "b"))
    >>> distribution(shares, description="Kinds before and after").height
    56
    """
    if shares.labels:
        return bars(
            shares.labels,
            shares.before,
            shares.after,
            title="share of records",
            description=description,
        )
    return histogram(
        shares.edges, shares.before, shares.after,
        title="", description=description, clock=shares.clock,
    )  # fmt: skip


def histogram(
    edges: Sequence[float],
    before: Sequence[float],
    after: Sequence[float],
    *,
    title: str,
    description: str,
    clock: Clock | None = None,
) -> "alt.LayerChart":
    """Draw shares of records between edges, before as bars and after as an outline.

    Parameters
    ----------
    edges
        Of the bins, one more than there are bins; of dates and times in milliseconds since 1970.
    before, after
        Shares of all records, 0 to 1.
    title
        Of the horizontal axis.
    description
        The text alternative.
    clock
        What kind of dates or times the edges are; None for numbers.

    Examples
    --------
    >>> histogram([0, 1, 2], [0.5, 0.5], [0.4, 0.6], title="age", description="Ages").width
    'container'
    """
    kind: Any = "quantitative" if clock is None else "temporal"
    scale = alt.Scale(zero=False, nice=False) if clock is None else alt.Scale(type="utc")
    axis = alt.Axis(labelOverlap=True, tickCount=6, labelFlush=True)
    if clock == "time":
        axis = alt.Axis(labelOverlap=True, tickCount=6, format="%H:%M")
    x = alt.X("start", type=kind, title=title, scale=scale, axis=axis)
    y = alt.Y(
        "share", type="quantitative", title="share of records",
        axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(domainMin=0),
    )  # fmt: skip
    colour = series_colour("before", "after")
    number: Any = {"format": ".4~s" if clock is None else _TIMES[clock]}
    seen = [
        alt.Tooltip("start", type=kind, title="from", **number),
        alt.Tooltip("end", type=kind, title="to", **number),
        alt.Tooltip("share", type="quantitative", title="before", format=".2%"),
    ]
    filled = chart_of(_bins(edges, before)).mark_rect(opacity=0.75)
    line = chart_of(_outline(edges, after)).mark_line(interpolate="step-after", strokeWidth=2)
    drawn = [
        filled.encode(x=x, x2="end", y=y, y2="none", color=colour, tooltip=seen),
        line.encode(x=x, y=y, color=colour),
    ]
    return layers(drawn, height=180, description=description)


def _bins(edges: Sequence[float], shares: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {"start": start, "end": end, "share": share, "none": 0.0, "series": "before"}
        for (start, end), share in zip(pairwise(edges), shares, strict=True)
    ]


def _outline(edges: Sequence[float], shares: Sequence[float]) -> list[dict[str, Any]]:
    """Rise from 0 at the first edge and fall to it at the last."""
    corners = [(edges[0], 0.0), *zip(edges, [*shares, shares[-1]], strict=True), (edges[-1], 0.0)]
    return [{"start": edge, "share": share, "series": "after"} for edge, share in corners]


def bars(
    labels: Sequence[str],
    before: Sequence[float],
    after: Sequence[float],
    *,
    title: str,
    description: str,
    series: tuple[str, str] = ("before", "after"),
    format: str = "%",  # noqa: A002 - Vega's word for it
) -> "alt.LayerChart":
    """Draw two bars for every label, in the order given.

    Examples
    --------
    >>> bars(["a", "b"], [0.5, 0.5], [0.4, 0.6], title="share", description="Kinds").height
    56
    """
    rows = [
        {"label": label, "series": name, "amount": amount}
        for label, *amounts in zip(labels, before, after, strict=True)
        for name, amount in zip(series, amounts, strict=True)
    ]
    drawn = (
        chart_of(rows)
        .mark_bar()
        .encode(
            y=label_axis("label"),
            yOffset=alt.YOffset("series", type="nominal", sort=None),
            x=alt.X("amount", type="quantitative", title=title,
                    axis=alt.Axis(format=format, tickCount=5), stack=None),
            color=series_colour(*series),
            tooltip=tooltip(label="", series="", amount=".3~%" if format == "%" else ".3~g"),
        )
    )  # fmt: skip
    return layers([drawn], height=28 * len(labels), description=description)
