"""Charts in a terminal: the frontier, the risk–utility map, and how values are distributed."""

from collections.abc import Sequence
from itertools import cycle, pairwise
from math import ceil, log

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from microveil.show.charts.palette import CURVES
from microveil.show.charts.series import LINKAGES, Curve, PlacedRelease, names_beside, places, ticks

_MARKS = "●▲■◆▼★✚"
_BARS, _MOST_BARS = " ▁▂▃▄▅▆▇█", 12
_ROWS = 15
_OF_PLACE, _OF_BESIDE = 5, 10
_MAP = 62
_LINEAR = 0.02  # below this share of rows linked, the map's axis is linear

Cells = dict[tuple[int, int], tuple[str, str]]
"""By row and column a character and its colour."""


def frontier_text(curves: Sequence[Curve], *, across: str, up: str) -> RenderableType:
    """Draw curves, one place after the other at equal distances, and what stands beside them."""
    errors = [error for curve in curves for error in curve.errors]
    if not errors:
        return Text("No chart: no plan has any error.")
    marks, beside = ticks(errors), names_beside(curves)
    columns = {place: 2 + i * _OF_PLACE for i, place in enumerate(places(curves))}
    left = max(2 + len(columns) * _OF_PLACE, 2 + len(across) + 1)
    columns_of = {name: left + 3 + i * _OF_BESIDE for i, name in enumerate(beside)}
    width = left + 3 + len(beside) * _OF_BESIDE

    def row(error: float) -> int:
        return round(log(marks[-1] / error) / log(marks[-1] / marks[0]) * (_ROWS - 1))

    cells: Cells = {(r, left): ("│", "dim") for r in range(_ROWS)} if beside else {}
    shapes, colours = _styles([curve.label for curve in curves])
    for curve in curves:
        spots = [(columns[p], row(e)) for p, e in sorted(curve.points.items())]
        _line(cells, spots, colours[curve.label])
    placed: set[tuple[int, int]] = set()
    for curve in curves:
        spots = [(row(e), columns[place]) for place, e in curve.points.items()]
        spots += [(row(e), columns_of[name]) for name, e in curve.beside.items()]
        _mark(cells, placed, spots, (shapes[curve.label], colours[curve.label]))
    lines = _body(cells, {row(mark): f"{mark:g}" for mark in marks}, width)
    lines += _axis(columns, across, columns_of, width)
    return Group(_legend(up, shapes, colours), _joined(lines))


def risk_map_text(
    drawn: Sequence[PlacedRelease], *, limit: float, chosen: PlacedRelease | None
) -> RenderableType:
    """Draw releases by error across and linkage up; the one chosen has its mark in brackets."""
    if not drawn:
        return Text("No map: no plan has any error.")
    marks = ticks([place.error for place in drawn])
    shapes, _ = _styles([place.family for place in drawn])
    _, colours = _styles([place.colour for place in drawn])

    def column(error: float) -> int:
        return 2 + round(log(error / marks[0]) / log(marks[-1] / marks[0]) * (_MAP - 5))

    def row(share: float) -> int:
        return round((1 - log(1 + share / _LINEAR) / log(1 + 1 / _LINEAR)) * (_ROWS - 1))

    cells: Cells = {(row(limit), c): ("╌", "dim") for c in range(_MAP)}
    placed: set[tuple[int, int]] = set()
    if chosen is not None:
        for side, bracket in ((-1, "["), (1, "]")):
            spot = row(chosen.linkage), column(chosen.error) + side
            _mark(cells, placed, [spot], (bracket, "bold"))
    for place in sorted(drawn, key=lambda place: place != chosen):  # the chosen one stays in place
        spot = row(place.linkage), column(place.error)
        _mark(cells, placed, [spot], (shapes[place.family], colours[place.colour]))
    title = _legend("Rows linked by the most successful attack, by mean SSE", shapes, colours)
    title.append_text(_entry("\n╌ ", "dim", f"limit {100 * limit:.3g}%"))
    if chosen is not None:
        title.append_text(_entry("[ ] ", "not bold", "recommended"))
    labels = {row(share): f"{share:.0%}" for share in LINKAGES}
    lines = _body(cells, labels, _MAP + _OF_BESIDE)
    lines += _axis({mark: column(mark) for mark in marks}, "mean SSE", {}, _MAP)[:2]
    return Group(title, _joined(lines))


def sparkline(shares: Sequence[float]) -> str:
    """Draw shares as bars, a character for one or a few of them.

    Examples
    --------
    >>> sparkline([0.1, 0.4, 0.8, 0.0])
    '▁▄█ '
    """
    together = max(1, -(-len(shares) // _MOST_BARS))
    heights = [sum(shares[i : i + together]) for i in range(0, len(shares), together)]
    highest = max(heights, default=0.0) or 1.0
    return "".join(_BARS[ceil(height / highest * (len(_BARS) - 1))] for height in heights)


def _legend(title: str, shapes: dict[str, str], colours: dict[str, str]) -> Text:
    """Say what is drawn, and what shapes and colours mean."""
    said = Text(f"{title}\n", style="bold")
    for family, mark in shapes.items():
        said.append_text(_entry(f"{mark} ", colours.get(family, "not bold"), family))
    series = {name: colour for name, colour in colours.items() if name not in shapes}
    for i, (name, colour) in enumerate(series.items() if len(series) > 1 else ()):
        said.append_text(_entry("" if i else "by colour: ", "not bold", name, f"not bold {colour}"))
    return said


def _entry(mark: str, style: str, label: str, of_label: str = "not bold") -> Text:
    """Write an entry of a legend."""
    return Text.assemble((mark, style), (label, of_label), "  ")


def _styles(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Give every name a mark and a colour, which begin anew where there are not enough."""
    marks, colours = (
        dict(zip(dict.fromkeys(names), cycle(style), strict=False)) for style in (_MARKS, CURVES)
    )
    return marks, colours


def _joined(lines: Sequence[Text]) -> Text:
    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _line(cells: Cells, spots: list[tuple[int, int]], colour: str) -> None:
    """Join the points of a curve with dots."""
    for (start, first), (end, last) in pairwise(spots):
        for column in range(start + 1, end):
            row = round(float(np.interp(column, [start, end], [first, last])))
            cells.setdefault((row, column), ("·", colour))


def _mark(
    cells: Cells,
    placed: set[tuple[int, int]],
    spots: list[tuple[int, int]],
    style: tuple[str, str],
) -> None:
    """Mark points; one that is taken by another curve goes beside it."""
    for row, column in spots:
        while (row, column) in placed:
            column += 1
        placed.add((row, column))
        cells[row, column] = style


def _body(cells: Cells, labels: dict[int, str], width: int) -> list[Text]:
    lines = []
    for row in range(_ROWS):
        line = Text(f"{labels.get(row, ''):>6} {'┤' if row in labels else '│'}", no_wrap=True)
        for column in range(width):
            line.append(*cells.get((row, column), (" ", "")))
        line.rstrip()
        lines.append(line)
    return lines


def _axis(columns: dict[float, int], across: str, beside: dict[str, int], width: int) -> list[Text]:
    """Write places and names under the axis, a name in as many lines as it has parts."""
    words = [(2, 2, across)]
    end = 0
    for place, column in columns.items():
        if column >= end:  # or its label would run into the one before
            words.append((0, column, f"{place:g}"))
            end = column + len(f"{place:g}") + 1
    for name, column in beside.items():
        parts = name.replace("-", "-, ").split(", ")
        words += [(line, column, part) for line, part in zip((0, 1, 2), parts, strict=False)]
    rows = [[" "] * (width + _OF_BESIDE) for _ in range(3)]
    for line, column, word in words:
        rows[line][column : column + len(word)] = word
    return [
        Text(" " * 7 + "└" + "─" * width),
        *(Text(" " * 8 + "".join(row).rstrip()) for row in rows),
    ]
