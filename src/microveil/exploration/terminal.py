"""What people see of an exploration in a terminal: the best points, a chart, the recommendation."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from microveil.core.choices import DEFAULT_METHOD
from microveil.evaluation.result import percent
from microveil.exploration.curves import (
    COLOURS,
    EXPECTED,
    Curve,
    columns_beside,
    curves,
    signed,
    sizes,
    ticks,
)
from microveil.exploration.result import Exploration, Measured, Point

_MARKS = "●▲■◆▼★✚"
_ROWS = 15
_OF_K, _OF_BESIDE = 5, 10

Cells = dict[tuple[int, int], tuple[str, str]]
"""By row and column a character and its colour."""


def show(exploration: Exploration) -> RenderableType:
    """Lay out the table, the chart and the recommendation."""
    return Group(
        Padding(_table(exploration), (0, 0, 1, 0)),
        _chart(curves(exploration.points)),
        Text("\nRecommended", style="bold"),
        Padding(Text(exploration.recommendation), (0, 0, 0, 2)),
    )


def _table(exploration: Exploration) -> Table:
    title = f"Mean SSE at the best k. {EXPECTED}.\n"
    also = _also_measured(exploration)
    apart = 1 if len(also) < 2 else 0  # so that all columns fit 80 characters
    table = Table(
        title=title, title_justify="left", header_style="bold", box=SIMPLE, show_edge=False,
        padding=(0, apart, 0, 0),
    )  # fmt: skip
    for name in ("ε", "method", "partition"):
        table.add_column(name)
    for name in ("k", "expected", "measured", "linkable", *also):
        table.add_column(name, justify="right")
    best: dict[tuple[float, str, str], Point] = {}
    for point in exploration.points:
        best.setdefault(point.family, point)
        best[point.family] = min(best[point.family], point, key=lambda p: p.expected)
    last = None
    for point in best.values():
        if last not in (None, point.epsilon):
            table.add_section()
        style = "bold" if point is exploration.recommended else ""
        table.add_row(*_cells(point, also), style=style)
        last = point.epsilon
    return table


def _also_measured(exploration: Exploration) -> dict[str, Callable[[Measured], str]]:
    """Return by name what was measured besides error and linkage, and how it is written."""
    found = [point.found for point in exploration.points if point.found]
    also: dict[str, Callable[[Measured], str]] = {}
    if any(measured.unchanged is not None for measured in found):
        also["unchanged"] = lambda measured: _briefly(measured.unchanged or 0.0)
    if any(measured.f_measure is not None for measured in found):
        also["F-measure"] = lambda measured: f"{measured.f_measure:.3f}"
    return also


def _cells(point: Point, also: dict[str, Callable[[Measured], str]]) -> list[str]:
    cells = [
        f"{point.epsilon:g}",
        point.method,
        point.partition or "–",
        "–" if point.k is None else f"{point.k}" if point.partition == "fixed" else f"{point.k}+",
        f"{point.expected:.3g}",
    ]
    found = point.found
    if found is None:
        return cells + [""] * (2 + len(also))
    written = (write(found) for write in also.values())
    return [*cells, f"{found.mean_sse:.3g}", _briefly(found.linkage), *written]


def _briefly(share: float) -> str:
    return percent(share).replace("more than ", ">")


def _chart(found: list[Curve]) -> RenderableType:
    if not any(curve.values for curve in found):
        return Text("No chart: nothing has any error.")
    ks, beside, marks = sizes(found), columns_beside(found), ticks(found)
    left = max(2 + len(ks) * _OF_K, 16)
    columns = {k: 2 + i * _OF_K for i, k in enumerate(ks)}
    columns_of = {name: left + 3 + i * _OF_BESIDE for i, name in enumerate(beside)}

    def row(value: float) -> int:
        return round((marks[-1] - value) / (marks[-1] - marks[0]) * (_ROWS - 1))

    cells: Cells = {(r, left): ("│", "dim") for r in range(_ROWS)}
    for curve, (_, colour) in zip(found, _styles(found), strict=True):
        _line(cells, [(columns[k], row(v)) for k, v in curve.by_k.items()], colour)
    placed: set[tuple[int, int]] = set()
    for curve, (mark, colour) in zip(found, _styles(found), strict=True):
        spots = [(row(v), columns[k]) for k, v in curve.by_k.items()]
        spots += [(row(v), columns_of[name]) for name, v in curve.beside.items()]
        for r, column in spots:
            while (r, column) in placed:
                column += 1
            placed.add((r, column))
            cells[r, column] = mark, colour
    width = left + 3 + len(beside) * _OF_BESIDE
    lines = _body(cells, {row(m): signed(m) for m in marks}, width)
    lines += _axis(columns, columns_of, width)
    return Group(_legend(found), Text("\n", no_wrap=True, overflow="crop").join(lines))


def _styles(found: list[Curve]) -> list[tuple[str, str]]:
    return [(_MARKS[i % len(_MARKS)], COLOURS[i % len(COLOURS)]) for i in range(len(found))]


def _line(cells: Cells, spots: list[tuple[int, int]], colour: str) -> None:
    """Join the points of a curve with dots."""
    for (start, first), (end, last) in pairwise(spots):
        for column in range(start + 1, end):
            row = round(float(np.interp(column, [start, end], [first, last])))
            cells.setdefault((row, column), ("·", colour))


def _legend(found: list[Curve]) -> Text:
    line = Text(
        f"log10 of mean SSE of {DEFAULT_METHOD} by k, the records in a cluster\n", style="bold"
    )
    for curve, (mark, colour) in zip(found, _styles(found), strict=True):
        line.append(f"{mark}\N{NO-BREAK SPACE}", style=colour)
        line.append(f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{curve.epsilon:g}  ", style="not bold")
    return line


def _body(cells: Cells, labels: dict[int, str], width: int) -> list[Text]:
    lines = []
    for row in range(_ROWS):
        line = Text(f"{labels.get(row, ''):>6} {'┤' if row in labels else '│'}", no_wrap=True)
        for column in range(width):
            line.append(*cells.get((row, column), (" ", "")))
        line.rstrip()
        lines.append(line)
    return lines


def _axis(columns: dict[int, int], beside: dict[tuple[str, str], int], width: int) -> list[Text]:
    words = [(0, column, str(k)) for k, column in columns.items()]
    words.append((2, 2, "k (expected)"))
    for (name, kind), column in beside.items():
        first, hyphen, second = name.partition("-")
        lines = (first + hyphen, second, kind)
        words += [(line, column, word) for line, word in enumerate(lines)]
    rows = [[" "] * (width + _OF_BESIDE) for _ in range(3)]
    for line, column, word in words:
        rows[line][column : column + len(word)] = word
    return [
        Text(" " * 7 + "└" + "─" * width),
        *(Text(" " * 8 + "".join(row).rstrip()) for row in rows),
    ]
