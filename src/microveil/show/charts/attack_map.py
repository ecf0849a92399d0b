"""The map of a benchmark: what attacks gain against what is lost, a number for each method.

Importing this imports Altair.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microveil.show.charts.canvas import alt, chart_of, nothing, tooltip
from microveil.show.charts.palette import BLACK, CURVES, GREY
from microveil.show.charts.series import LINKAGES, ticks

_WIDE, _HIGH = 430, 360
_SHAPES = ("circle", "square", "triangle-up", "diamond")
_LINE = 15  # pixels of a line of the list
_ABOVE, _LETTERS = 10, 15  # pixels of a label, up and across
_NEAR_0 = 0.02  # up to here the axis of risks is nearly linear, then logarithmic


@dataclass(frozen=True)
class Spot:
    """A release on the map.

    Attributes
    ----------
    label
        What stands beside it; nothing if it is empty.
    method, family, series
        What a line joins, what has one colour and what has one shape, such as ``"ε = 1"``.
    error
        Above 0.
    risk, high
        What an attack gains, and the upper end of its interval.
    own
        Whether to mark it.
    """

    label: str
    method: str
    family: str
    series: str
    error: float
    risk: float
    high: float
    own: bool = False


def attack_map(
    panels: Mapping[str, Sequence[Spot]],
    listed: Sequence[tuple[str, str]],
    *,
    description: str,
    columns: int = 2,
) -> "alt.VConcatChart":
    """Draw panels side by side, by the title of what goes up, and a list of methods below.

    Parameters
    ----------
    panels
        Spots of each panel; good ones are at the bottom left. Those without any error are left out.
    listed
        Label and what it stands for; may be empty.
    description
        The text alternative.
    columns
        How many panels stand side by side.
    """
    drawn = {title: [spot for spot in spots if spot.error > 0] for title, spots in panels.items()}
    every = [spot for spots in drawn.values() for spot in spots]
    if not every:
        return alt.vconcat(nothing(description).properties(width=_WIDE))
    scales = _Scales(every, in_a_row=7 if columns > 1 else 4)
    panels_drawn = [_panel(title, spots, scales) for title, spots in drawn.items()]
    side_by_side = alt.concat(*panels_drawn, columns=columns, spacing=28)
    lists = [_list(listed)] if listed else []
    whole: alt.VConcatChart = alt.vconcat(side_by_side, *lists, spacing=14)
    return whole.properties(description=description)


class _Scales:
    """What all panels share: the axis of errors, colours and shapes."""

    def __init__(self, spots: Sequence[Spot], in_a_row: int) -> None:
        marks = ticks([spot.error for spot in spots])
        self.ends = marks[0], marks[-1]
        self.x = alt.X(
            "error",
            type="quantitative",
            title="mean SSE (lower is more useful)",
            scale=alt.Scale(type="log", domain=[marks[0], marks[-1]]),
            axis=alt.Axis(values=marks, format="~g"),
        )
        families, series = ([*dict.fromkeys(values)] for values in
                            ((s.family for s in spots), (s.series for s in spots)))  # fmt: skip
        colours = [*CURVES, BLACK, GREY]
        self.colour = _channel(
            alt.Color, "family", families, colours, orient="top", columns=in_a_row, offset=32
        )
        self.shape = _channel(alt.Shape, "series", series, _SHAPES, orient="right")


def _channel(
    channel: type,
    field: str,
    domain: list[str],
    styles: Sequence[str],
    **legend: Any,  # noqa: ANN401 - settings of Altair
) -> Any:  # noqa: ANN401 - a channel of Altair
    styled = [styles[place % len(styles)] for place in range(len(domain))]
    scale = alt.Scale(domain=domain, range=styled)
    return channel(field, type="nominal", title=None, scale=scale, legend=alt.Legend(**legend))


def _panel(title: str, spots: Sequence[Spot], scales: _Scales) -> "alt.LayerChart":
    def up(field: str) -> "alt.Y":
        return alt.Y(
            field,
            type="quantitative",
            title=title,
            scale=alt.Scale(type="symlog", constant=_NEAR_0, domain=[0, 1]),
            axis=alt.Axis(values=list(LINKAGES), format="~%"),
        )

    base = chart_of([_row(spot) for spot in spots]).encode(x=scales.x, color=scales.colour)
    lines = base.mark_line(strokeWidth=1, opacity=0.5).encode(
        y=up("high"),
        detail=alt.Detail("method", type="nominal"),
        order=alt.Order("error", type="quantitative"),
    )
    down = base.mark_rule(opacity=0.35).encode(y=up("risk"), y2=alt.Y2("high"), color=scales.colour)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        y=up("high"),
        shape=scales.shape,
        tooltip=tooltip(method="", series="", error=".3~g", risk=".1%", high=".1%"),
    )
    labels = [
        chart_of([_row(spot) for spot in level])
        .mark_text(align="center", dx=0, dy=-_ABOVE * (number + 1), fontSize=10)
        .encode(x=scales.x, y=up("high"), text=alt.Text("label", type="nominal"))
        for number, level in enumerate(_levels(spots, scales.ends))
    ]
    own = [_row(spot) for spot in spots if spot.own]
    rings = chart_of(own).mark_point(size=320, color=BLACK, strokeWidth=2)
    ring = [rings.encode(x=scales.x, y=up("high"))] if own else []
    chart: alt.LayerChart = alt.LayerChart(layer=[lines, down, points, *labels, *ring])
    return chart.properties(width=_WIDE, height=_HIGH)


def _levels(spots: Sequence[Spot], ends: tuple[float, float]) -> list[list[Spot]]:
    """Stack labels that would cover each other: those of the second level stand higher, and so on.

    Examples
    --------
    >>> spots = [Spot(str(n), "m", "f", "s", error, 0, 1) for n, error in enumerate((1, 1.01, 50))]
    >>> [[spot.label for spot in level] for level in _levels(spots, (1, 100))]
    [['0', '2'], ['1']]
    """
    levels: list[list[Spot]] = []
    taken: list[list[tuple[float, float]]] = []
    for spot in sorted((s for s in spots if s.label), key=lambda s: (s.error, s.high)):
        across = _WIDE * math.log(spot.error / ends[0]) / math.log(ends[1] / ends[0])
        up = _HIGH * math.log1p(spot.high / _NEAR_0) / math.log1p(1 / _NEAR_0)
        for number in range(len(levels) + 1):
            if number == len(levels):
                levels.append([])
                taken.append([])
            at = up + number * _ABOVE
            others = [place for level in taken for place in level]
            if all(abs(across - x) > _LETTERS or abs(at - y) >= _ABOVE for x, y in others):
                levels[number].append(spot)
                taken[number].append((across, at))
                break
    return levels


def _row(spot: Spot) -> dict[str, Any]:
    shown = ("label", "method", "family", "series", "error", "risk", "high")
    return {field: getattr(spot, field) for field in shown}


def _list(listed: Sequence[tuple[str, str]]) -> "alt.Chart":
    """Write what the labels stand for, a line each."""
    rows = [
        {"place": place, "said": f"{label:>2}  {said}"}
        for place, (label, said) in enumerate(listed)
    ]
    y = alt.Y("place", type="ordinal", axis=None)
    texts = chart_of(rows).mark_text(align="left", fontSize=10.5, color="#222222")
    written: alt.Chart = texts.encode(
        x=alt.value(0), y=y, text=alt.Text("said", type="nominal")
    ).properties(width=2 * _WIDE, height=_LINE * len(rows))
    return written
