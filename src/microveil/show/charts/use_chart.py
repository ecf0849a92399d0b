"""What a release is used for, before and after: a dot and an interval for every group."""

from collections.abc import Sequence

from microveil.show.charts.canvas import alt, chart_of, label_axis, layers, series_colour, tooltip
from microveil.show.words.use_words import UseRow, number

MOST_DOTS = 30
"""Groups that a chart of one use has room for; the others are in the table."""

SERIES = ("original", "release")

_GUESSED = {"AUC": 0.5, "R²": 0.0}
"""Scores of models, and what guessing has."""


def use_chart(use: str, rows: Sequence[UseRow]) -> "alt.LayerChart":
    """Draw one use: the original above the release, for every group.

    Examples
    --------
    >>> row = UseRow("mean age", "", 40.0, 39.0, 41.0, 40.5, 39.4, 41.6, 0.0125)
    >>> use_chart("mean age", [row]).height
    57
    """
    data = [point for row in rows[:MOST_DOTS] for point in _points(row)]
    base = chart_of(data).encode(
        y=label_axis("label"),
        yOffset=alt.YOffset("series", type="nominal", scale=alt.Scale(domain=SERIES)),
        color=series_colour(*SERIES),
        tooltip=tooltip(label="", series="", value=".4~g", low=".4~g", high=".4~g"),
    )
    scores = {row.group for row in rows} <= _GUESSED.keys()
    ends = alt.Scale(domain=_ends(rows)) if scores else alt.Scale(zero=False)
    axis = alt.X("value", type="quantitative", title=use, scale=ends, axis=alt.Axis(tickCount=5))
    reach = base.mark_rule(strokeWidth=2, opacity=0.7).encode(
        x=alt.X("low", type="quantitative", title=use), x2="high"
    )
    dots = base.mark_point(filled=True, size=50, opacity=1).encode(x=axis)
    labels = len(dict.fromkeys(point["label"] for point in data))
    return layers([reach, dots], height=28 * labels + 29, description=described(use, rows))


def _points(row: UseRow) -> list[dict[str, object]]:
    label = row.group or "all records"
    before = _point(label, SERIES[0], row.original, row.low, row.high)
    if row.released is None:
        return [before]
    after = _point(label, SERIES[1], row.released, row.released_low, row.released_high)
    return [before, after]


def _point(
    label: str, series: str, value: float, low: float | None, high: float | None
) -> dict[str, object]:
    ends = (value if low is None else low, value if high is None else high)
    return {"label": label, "series": series, "value": value, "low": ends[0], "high": ends[1]}


def _ends(rows: Sequence[UseRow]) -> list[float]:
    """Draw scores from what guessing has, or the worst has, to 1."""
    known = [score for row in rows for score in (row.original, row.released) if score is not None]
    return [min(_GUESSED[rows[0].group], *known), 1.0]


def described(use: str, rows: Sequence[UseRow]) -> str:
    """Say what is drawn, and what moves most."""
    if rows[0].group in _GUESSED:
        guessed = f"1 is perfect, guessing has {_GUESSED[rows[0].group]:g}"
        return f"{rows[0].group} on records that neither model was trained on; {guessed}."
    left = len(rows) - MOST_DOTS
    more = f" The first {MOST_DOTS} groups are drawn, {left:,} more are not." if left > 0 else ""
    most = max(rows, key=lambda row: row.moved)
    if most.released is None:
        return f"{use}: the release has too few records of {most.group}.{more}"
    group = f", {most.group}" if len(rows) > 1 else ""
    changes = f"{number(most.original)} before, {number(most.released)} after"
    return f"{use}{group}: {changes}{', which moves most' if group else ''}.{more}"
