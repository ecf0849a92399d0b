"""The frontier as a chart and in a terminal: the same curves, the same axes."""

from io import StringIO
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from microveil.show.charts import text_charts as terminal
from microveil.show.charts.frontier_chart import draw_frontier, frontier_and_beside
from microveil.show.charts.palette import CURVES
from microveil.show.charts.render import to_svg
from microveil.show.charts.series import Curve, names_beside, places, ticks

ALONE = [
    Curve("ε = 0.1", {3: 0.8, 10: 0.5, 100: 0.4}),
    Curve("ε = 1", {3: 0.08, 10: 0.02, 100: 0.3}),
]
BESIDE = [
    Curve(ALONE[0].label, ALONE[0].points, {"best k, measured": 0.35}),
    Curve(ALONE[1].label, ALONE[1].points, {"noise-optimal, expected": 0.012}),
]
WORDS: dict[str, Any] = {"across": "k", "up": "mean SSE"}


def drawn(curves: list[Curve], **given: Any) -> dict[str, Any]:  # noqa: ANN401
    spec: dict[str, Any] = draw_frontier(curves, **WORDS, description="Errors", **given).to_dict()
    return spec


def printed(curves: list[Curve]) -> str:
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(terminal.frontier_text(curves, **WORDS))
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=5))
def test_ticks_are_few_and_enclose_everything(errors: list[float]) -> None:
    marks = ticks(errors)
    assert 2 <= len(marks) <= 11
    assert marks[0] <= min(errors) <= max(errors) <= marks[-1]
    assert all(x < y for x, y in pairwise(marks))


def test_ticks_worked_out_by_hand() -> None:
    assert ticks([0.5]) == [0.5, 0.6]
    assert ticks([1.0, 10.0]) == [1, 2, 5, 10]
    assert ticks([0.0007, 1.2]) == [0.0001, 0.001, 0.01, 0.1, 1, 10]
    assert ticks([1e-12, 1e12]) == [float(f"1e{e}") for e in range(-12, 13, 3)]


def test_what_is_drawn_where() -> None:
    assert places(BESIDE) == [3, 10, 100]
    assert names_beside(BESIDE) == ["best k, measured", "noise-optimal, expected"]
    assert names_beside(ALONE) == []


def test_the_chart_holds_every_point_on_axes_that_reach_them_all() -> None:
    spec = drawn(ALONE, here=(7, 0.9))
    lines, points, mark = spec["layer"]
    rows = next(rows for rows in spec["datasets"].values() if len(rows) == 6)
    assert {(row["curve"], row["place"], row["error"]) for row in rows} == {
        (curve.label, place, error) for curve in ALONE for place, error in curve.points.items()
    }
    for layer in (lines, points):
        up, across = layer["encoding"]["y"], layer["encoding"]["x"]
        assert (up["scale"]["type"], across["scale"]["type"]) == ("log", "log")
        assert up["scale"]["domain"][0] <= 0.02
        assert up["scale"]["domain"][1] >= 0.9
        assert across["scale"]["domain"][0] < 3
        assert across["scale"]["domain"][1] > 100
    scale = points["encoding"]["color"]["scale"]
    assert scale == {"domain": ["ε = 0.1", "ε = 1"], "range": list(CURVES[:2])}
    assert len(set(points["encoding"]["shape"]["scale"]["range"])) == 2
    assert mark["mark"]["shape"] == "diamond"
    assert spec["description"] == "Errors"


def test_what_has_no_k_stands_beside_on_the_same_scale() -> None:
    both = frontier_and_beside(BESIDE, **WORDS, description="Errors").to_dict()
    plot, side = both["hconcat"]
    assert both["description"] == "Errors"
    assert side["encoding"]["y"]["scale"] == plot["layer"][0]["encoding"]["y"]["scale"]
    assert side["encoding"]["x"]["sort"] == names_beside(BESIDE)


def test_curves_may_have_nothing_but_what_stands_beside() -> None:
    to_svg(frontier_and_beside([Curve("a", {}, {"measured": 1})], **WORDS, description="One"))
    assert "●" in printed([Curve("a", {}, {"measured": 1})])


def test_without_any_error_the_chart_says_so() -> None:
    nothing = [Curve("ε = 1", {})]
    assert "No plan has any error." in str(drawn(nothing))
    assert "No plan has any error." in to_svg(
        frontier_and_beside(nothing, **WORDS, description="Errors")
    )
    assert "no plan has any error" in printed(nothing)


@pytest.mark.parametrize("curves", [ALONE, BESIDE])
def test_the_terminal_marks_every_point(curves: list[Curve]) -> None:
    text = printed(curves)
    assert text.splitlines()[0] == "mean SSE"
    for mark, curve in zip("●▲", curves, strict=True):
        assert text.count(mark) == 1 + len(curve.errors)  # one in the legend
    labels = [float(line.split("┤")[0]) for line in text.splitlines() if "┤" in line]
    assert labels == ticks([error for curve in curves for error in curve.errors])[::-1]


def test_two_points_at_the_same_place_are_both_seen_in_a_terminal() -> None:
    text = printed([Curve("a", {3: 0.1}), Curve("b", {3: 0.1})])
    assert any("●▲" in line for line in text.splitlines())


def test_the_picture_is_well_formed_says_what_it_is_and_is_always_the_same() -> None:
    chart = frontier_and_beside(BESIDE, **WORDS, description='Errors of "<a&b>"')
    svg = to_svg(chart)
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == 'Errors of "<a&b>"'
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for word in ("mean SSE", "ε = 0.1", "ε = 1", "measured", "noise-optimal"):
        assert any(word in (text or "") for text in texts) or word in svg
    assert to_svg(chart) == svg
