"""Figures of all attributes at once: amounts, spans and matrices."""

from collections.abc import Sequence

from microveil.show.charts.canvas import alt, chart_of, label_axis, layers, tooltip
from microveil.show.charts.palette import AFTER, BEFORE, BLUE


def amounts(
    names: Sequence[str], values: Sequence[float], *, title: str, description: str
) -> "alt.LayerChart":
    """Draw one bar for every name."""
    rows = [{"label": n, "amount": v} for n, v in zip(names, values, strict=True)]
    drawn = (
        chart_of(rows)
        .mark_bar(color=BLUE, height={"band": 0.7})
        .encode(
            y=label_axis("label"),
            x=alt.X(
                "amount", type="quantitative", title=title, axis=alt.Axis(tickCount=5), stack=None
            ),
            tooltip=tooltip(label="", amount=".3~g"),
        )
    )
    return layers([drawn], height=24 * len(names), description=description)


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
    base = chart_of(rows).encode(
        y=label_axis("label"), tooltip=tooltip(label="", low=".3~g", middle=".3~g", high=".3~g")
    )
    axis = alt.Axis(tickCount=5)
    span = base.mark_bar(color=BEFORE, height={"band": 0.5}).encode(
        x=alt.X("low", type="quantitative", title=title, axis=axis), x2="high"
    )
    mark = base.mark_tick(color=AFTER, thickness=3, bandSize=18).encode(
        x=alt.X("middle", type="quantitative")
    )
    return layers([span, mark], height=26 * len(names), description=description)


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
    cells = chart_of(rows).mark_rect().encode(
        x=x, y=y, color=colour, tooltip=tooltip(row="", column="", value=".2f")
    )  # fmt: skip
    drawn = [cells]
    if len(names) <= 8:
        dark = alt.condition(
            f"abs(datum.value) > {0.7 * limit}", alt.value("white"), alt.value("black")
        )
        text = alt.Text("value", type="quantitative", format=".2f")
        written = chart_of(rows).mark_text(fontSize=9).encode(x=x, y=y, text=text, color=dark)
        drawn.append(written)
    side = max(160, min(26 * len(names), 420))
    return layers(drawn, height=side, description=description)
