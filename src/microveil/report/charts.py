"""Charts of an original and its release: plain aggregated data in, an Altair chart out.

Names and categories go into charts as data under fixed field names, never as field names or inside
expressions, so that nothing a column is called can be run. Every chart has a description, which
Vega makes its text alternative.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from microveil.formats.table import require

if TYPE_CHECKING:
    import altair as alt
else:
    alt = require("altair", "report")

Clock = Literal["date", "datetime", "time"]

BEFORE, AFTER = "#56B4E9", "#D55E00"
"""Of the palette of Okabe and Ito, which colour-blind people can tell apart."""

SINGLE = "#0072B2"
_LABEL = 130  # pixels a name may take before it is cut short with an ellipsis
_TIMES = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M", "time": "%H:%M"}


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
    number: Any = {"format": ".4~s"} if clock is None else {"format": _TIMES[clock]}
    x = alt.X("start", type=kind, title=title, scale=scale, axis=axis)
    share = alt.Y(
        "share", type="quantitative", title="share of records",
        axis=alt.Axis(format="%", tickCount=4), scale=alt.Scale(domainMin=0),
    )  # fmt: skip
    bins = [
        {"start": start, "end": end, "share": share, "none": 0.0, "series": "before"}
        for (start, end), share in zip(pairwise(edges), before, strict=True)
    ]
    outline = [{"start": edges[0], "share": 0.0, "series": "after"}]
    outline += [
        {"start": edge, "share": share, "series": "after"}
        for edge, share in zip(edges, [*after, after[-1]], strict=True)
    ]
    outline.append({"start": edges[-1], "share": 0.0, "series": "after"})
    tips = [
        alt.Tooltip("start", type=kind, title="from", **number),
        alt.Tooltip("end", type=kind, title="to", **number),
        alt.Tooltip("share", type="quantitative", title="before", format=".2%"),
    ]
    bars = _chart(bins).mark_rect(opacity=0.75).encode(
        x=x, x2="end", y=share, y2="none", color=_series("before", "after"), tooltip=tips
    )  # fmt: skip
    line = _chart(outline).mark_line(interpolate="step-after", strokeWidth=2).encode(
        x=x, y=share, color=_series("before", "after")
    )  # fmt: skip
    return _layers([bars, line], height=180, description=description)


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
        _chart(rows)
        .mark_bar()
        .encode(
            y=_names("label"),
            yOffset=alt.YOffset("series", type="nominal", sort=None),
            x=alt.X("amount", type="quantitative", title=title,
                    axis=alt.Axis(format=format, tickCount=5)),
            color=_series(*series),
            tooltip=_tips(label="", series="", amount=".3~%" if format == "%" else ".3~g"),
        )
    )  # fmt: skip
    return _layers([drawn], height=28 * len(labels), description=description)


def amounts(
    names: Sequence[str], values: Sequence[float], *, title: str, description: str
) -> "alt.LayerChart":
    """Draw one bar for every name."""
    rows = [{"label": n, "amount": v} for n, v in zip(names, values, strict=True)]
    drawn = (
        _chart(rows)
        .mark_bar(color=SINGLE, height={"band": 0.7})
        .encode(
            y=_names("label"),
            x=alt.X("amount", type="quantitative", title=title, axis=alt.Axis(tickCount=5)),
            tooltip=_tips(label="", amount=".3~g"),
        )
    )
    return _layers([drawn], height=24 * len(names), description=description)


def spans(
    names: Sequence[str],
    low: Sequence[float],
    middle: Sequence[float],
    high: Sequence[float],
    *,
    title: str,
    description: str,
) -> "alt.LayerChart":
    """Draw for every name a bar from low to high with a mark in the middle."""
    rows = [
        {"label": name, "low": a, "middle": b, "high": c}
        for name, a, b, c in zip(names, low, middle, high, strict=True)
    ]
    base = _chart(rows).encode(
        y=_names("label"), tooltip=_tips(label="", low=".3~g", middle=".3~g", high=".3~g")
    )
    axis = alt.Axis(tickCount=5)
    span = base.mark_bar(color=BEFORE, height={"band": 0.5}).encode(
        x=alt.X("low", type="quantitative", title=title, axis=axis), x2="high"
    )
    mark = base.mark_tick(color=AFTER, thickness=3, bandSize=18).encode(
        x=alt.X("middle", type="quantitative")
    )
    return _layers([span, mark], height=26 * len(names), description=description)


def heat_map(
    names: Sequence[str], values: Sequence[Sequence[float]], *, limit: float, description: str
) -> "alt.LayerChart":
    """Draw a matrix of numbers from −limit, orange, to limit, blue; few names show their numbers.

    Examples
    --------
    >>> heat_map(["a", "b"], [[1, 0.5], [0.5, 1]], limit=1, description="Correlations").width
    'container'
    """
    rows = [
        {"row": row, "column": column, "value": float(value)}
        for row, line in zip(names, values, strict=True)
        for column, value in zip(names, line, strict=True)
    ]
    x = alt.X("column", type="nominal", sort=None, title=None,
              axis=alt.Axis(labelAngle=-45, labelLimit=80, labelOverlap=False))  # fmt: skip
    y = alt.Y("row", type="nominal", sort=None, title=None,
              axis=alt.Axis(labelLimit=80, labelOverlap=False))  # fmt: skip
    colour = alt.Color(
        "value", type="quantitative", title=None,
        scale=alt.Scale(scheme="blueorange", reverse=True, domain=[-limit, limit]),
        legend=alt.Legend(orient="bottom", gradientLength=180, tickCount=4),
    )  # fmt: skip
    cells = _chart(rows).mark_rect().encode(
        x=x, y=y, color=colour, tooltip=_tips(row="", column="", value=".2f")
    )  # fmt: skip
    drawn = [cells]
    if len(names) <= 8:
        dark = alt.condition(
            f"abs(datum.value) > {0.7 * limit}", alt.value("white"), alt.value("black")
        )
        text = alt.Text("value", type="quantitative", format=".2f")
        written = _chart(rows).mark_text(fontSize=9).encode(x=x, y=y, text=text, color=dark)
        drawn.append(written)
    side = max(160, min(26 * len(names), 420))
    return _layers(drawn, height=side, description=description)


def _layers(drawn: "list[alt.Chart]", *, height: int, description: str) -> "alt.LayerChart":
    chart: alt.LayerChart = alt.LayerChart(layer=drawn)
    return chart.properties(width="container", height=height, description=description)


def _chart(rows: list[dict[str, Any]]) -> "alt.Chart":
    return alt.Chart(alt.InlineData(values=rows))


def _names(field: str) -> "alt.Y":
    axis = alt.Axis(labelLimit=_LABEL, labelOverlap=False)
    return alt.Y(field, type="nominal", sort=None, title=None, axis=axis)


def _series(first: str, second: str) -> "alt.Color":
    return alt.Color(
        "series",
        type="nominal",
        title=None,
        scale=alt.Scale(domain=[first, second], range=[BEFORE, AFTER]),
        legend=alt.Legend(orient="top", symbolType="square"),
    )


def _tips(**formats: str) -> "list[alt.Tooltip]":
    return [
        alt.Tooltip(field, type="quantitative", format=form)
        if form
        else alt.Tooltip(field, type="nominal")
        for field, form in formats.items()
    ]
