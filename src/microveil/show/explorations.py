"""What people see of an exploration in a terminal: the best points, a chart, the recommendation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from microveil.core.choices import DEFAULT_METHOD
from microveil.judge.explore.exploration import Exploration, Measured, Point
from microveil.show.charts.points import EXPECTED, curves, map_of
from microveil.show.charts.text_charts import frontier_text, risk_map_text
from microveil.show.screens import ResultScreen
from microveil.show.words.exploration_words import (
    recommendation_heading,
    recommendation_headline,
    recommendation_text,
)
from microveil.show.words.numbers import percent

if TYPE_CHECKING:
    import altair as alt


def _laid_out(exploration: Exploration) -> RenderableType:
    """Lay out the table, the charts and the recommendation."""
    places, recommended = map_of(exploration)
    return Group(
        Padding(_table(exploration), (0, 0, 1, 0)),
        frontier_text(
            curves(exploration.points),
            across="k (expected)",
            up=f"Mean SSE of {DEFAULT_METHOD} by k, the number of records in a cluster",
        ),
        Text(""),
        risk_map_text(places, limit=exploration.limits.max_linkage, chosen=recommended),
        Text(f"\n{recommendation_heading(exploration)}", style="bold"),
        Padding(Text(recommendation_text(exploration)), (0, 0, 0, 2)),
    )


def exploration_screen(exploration: Exploration) -> ResultScreen:
    """Say what is recommended, with the best point of each kind and the map."""
    title = f"Exploration of {len(exploration.points):,} plans (private: computed from the data)"
    also = _also_measured(exploration)
    rows = [
        (f"{point.epsilon:g}", *_cells(point, also))
        for point in sorted(_best(exploration), key=lambda p: (p.found is None, p.epsilon))
    ]
    head = ("ε", "method", "clusters", "pooled", "expected", "measured", "linked", *also)
    said = f"{recommendation_heading(exploration)}: {recommendation_headline(exploration)}."
    return ResultScreen(
        title,
        [said],
        head,
        rows,
        lambda: _map(exploration),
        lambda: _laid_out(exploration),
        lambda: _chart(exploration),
    )


def _map(exploration: Exploration) -> "alt.LayerChart":
    from microveil.show.charts.exploration_chart import exploration_map

    return exploration_map(exploration)


def _chart(exploration: Exploration) -> "alt.TopLevelMixin":
    from microveil.show.charts.exploration_chart import exploration_chart

    return exploration_chart(exploration)


def _best(exploration: Exploration) -> list[Point]:
    """Return the point of least expected error of each kind."""
    best: dict[tuple[float, str, str, str], Point] = {}
    for point in exploration.points:
        best.setdefault(point.family, point)
        best[point.family] = min(best[point.family], point, key=lambda p: p.expected)
    return sorted(best.values(), key=lambda point: point.epsilon)


def _table(exploration: Exploration) -> Table:
    chosen = any(point.partition == "noise-optimal" for point in exploration.points)
    optimal = "; k ≥ 3: noise-optimal clusters" if chosen else ""
    title = f"Mean SSE at the best k{optimal}. {EXPECTED}.\n"
    also = _also_measured(exploration)
    apart = 1 if len(also) < 2 else 0  # so that all columns fit 80 characters
    table = Table(
        title=title, title_justify="left", header_style="bold", box=SIMPLE, show_edge=False,
        padding=(0, apart, 0, 0),
    )  # fmt: skip
    for name in ("method", "clusters", "pooled"):
        table.add_column(name, no_wrap=True)
    for name in ("expected", "measured", "linked", *also):
        table.add_column(name, justify="right", no_wrap=True)
    last = None
    for point in _best(exploration):
        if point.epsilon != last:
            table.add_section()
            table.add_row(f"ε = {point.epsilon:g}")
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
    if any(measured.use_loss is not None for measured in found):
        also["uses"] = lambda measured: _briefly(measured.use_loss or 0.0)
    return also


def _cells(point: Point, also: dict[str, Callable[[Measured], str]]) -> list[str]:
    cells = [
        point.method,
        _clusters(point),
        point.pooled or "–",
        f"{point.expected:.3g}",
    ]
    found = point.found
    if found is None:
        return cells + [""] * (2 + len(also))
    written = (write(found) for write in also.values())
    return [*cells, f"{found.mean_sse:.3g}", _briefly(found.linkage), *written]


def _clusters(point: Point) -> str:
    if point.k is None:
        return "–"
    if point.partition == "fixed":
        return f"k = {point.k}"
    return f"k ≥ {point.k}"


def _briefly(share: float) -> str:
    return percent(share).replace("more than ", ">")
