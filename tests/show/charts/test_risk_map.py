"""The risk–utility map as a chart and in a terminal: the same releases, the same limit."""

import json
from io import StringIO
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from microveil.show.charts import text_charts as terminal
from microveil.show.charts.render import to_svg
from microveil.show.charts.risk_map import draw_risk_map
from microveil.show.charts.series import PlacedRelease
from tests.show.charts.marks import SVG, marks_in

ALONE = PlacedRelease("noise-optimal, ε = 1", "not pooled", 0.002, 1.0, "ε = 1")
POOLED = [
    PlacedRelease(f"exchange {k}, ε = 1", "exchange", error, linkage, "ε = 1", joined=True)
    for k, error, linkage in ((5, 0.04, 0.15), (10, 0.06, 0.07), (25, 0.09, 0.02))
]
OTHER = PlacedRelease("exchange 5, ε = 0.1", "exchange", 0.05, 0.08, "ε = 0.1", joined=True)
PLACES = [ALONE, *POOLED, OTHER]


def svg_of(places: list[PlacedRelease], **settings: Any) -> ElementTree.Element:  # noqa: ANN401
    chart = draw_risk_map(places, limit=0.1, description="A map", **settings)
    return ElementTree.fromstring(to_svg(chart.properties(width=500)))  # noqa: S314 - our own


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def printed(
    places: list[PlacedRelease], *, limit: float = 0.1, chosen: PlacedRelease | None = None
) -> list[str]:
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(terminal.risk_map_text(places, limit=limit, chosen=chosen))
    return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]


def test_every_release_is_a_point_and_the_limit_a_line_that_says_what_it_is() -> None:
    root = svg_of(PLACES)
    assert marks_in(root).count("mark-symbol") == len(PLACES)
    assert marks_in(root).count("mark-rule") == 1
    assert "limit 10%" in texts(root)
    assert {"ε = 1", "ε = 0.1", "not pooled", "exchange"} <= set(texts(root))  # the legends


def test_without_series_a_family_has_one_entry_in_the_legend() -> None:
    places = [PlacedRelease("a", "exchange", 0.1, 0.1), PlacedRelease("b", "average", 0.2, 0.1)]
    assert texts(svg_of(places)).count("exchange") == 1
    assert printed(places)[1] == "● exchange  ▲ average  "


def test_a_line_joins_the_releases_of_one_family_and_series() -> None:
    assert marks_in(svg_of(PLACES)).count("mark-line") == 2
    assert marks_in(svg_of([ALONE])).count("mark-line") == 0


def test_all_names_are_written_or_only_that_of_the_one_chosen() -> None:
    names = {place.name for place in PLACES}
    assert names <= set(texts(svg_of(PLACES)))
    assert names <= set(texts(svg_of(PLACES, chosen=POOLED[1])))
    alone = svg_of(PLACES, chosen=POOLED[1], named=False)
    assert names & set(texts(alone)) == {POOLED[1].name}
    assert marks_in(alone).count("mark-symbol") == len(PLACES) + 1  # a ring


@pytest.mark.parametrize("linkage", [0.0, 1.0])
def test_one_release_at_the_ends_of_the_axis(linkage: float) -> None:
    only = PlacedRelease("only", "exchange", 0.1, linkage)
    assert marks_in(svg_of([only, only], chosen=only)).count("mark-symbol") == 3
    marked = [line for line in printed([only, only], chosen=only) if "[●]" in line]
    assert marked == [f"{linkage:6.0%} ┤ [●]●"]  # and the other one is beside it


def test_nothing_to_draw() -> None:
    assert "No plan has any error." in texts(svg_of([]))
    assert printed([]) == ["No map: no plan has any error."]


def test_the_terminal_marks_every_release_the_chosen_one_and_the_limit() -> None:
    lines = printed(PLACES, chosen=POOLED[1])
    marks = "".join(lines[3:])
    assert (marks.count("●"), marks.count("▲")) == (1, 4)
    assert marks.count("[▲]") == 1
    assert lines[1] == "● not pooled  ▲ exchange  by colour: ε = 1  ε = 0.1  "
    assert lines[2] == "╌ limit 10%  [ ] recommended  "
    (limit,) = (line for line in lines[3:] if "╌" in line)
    assert limit.startswith("   10% ┤╌")
    assert max(map(len, lines)) <= 80


def test_the_line_of_a_limit_is_between_the_shares_around_it() -> None:
    lines = printed(PLACES, limit=0.03)
    rows = [line[:6].strip() for line in lines]
    (limit,) = (i for i, line in enumerate(lines) if i > 2 and "╌" in line)
    assert rows.index("5%") < limit < rows.index("2%")


def test_releases_that_share_a_place_are_all_seen() -> None:
    same = [PlacedRelease(f"{i}", "exchange", 0.5, 0.05) for i in range(8)]
    other = PlacedRelease("far", "exchange", 0.01, 0.05)
    lines = printed([other, *same], chosen=same[3])
    assert "".join(lines[3:]).count("●") == 9
    assert "".join(lines).count("[●]●●●●●●●") == 1


def test_labels_of_the_axis_do_not_run_into_each_other() -> None:
    lines = printed([PlacedRelease("a", "x", 0.0051, 0.5), PlacedRelease("b", "x", 0.0149, 0.5)])
    labels = lines[-1].split()
    assert labels[0] == "0.005"
    assert all(label in {"0.005", "0.006", "0.007", "0.008", "0.009", "0.01", "0.02"}
               for label in labels)  # fmt: skip


def test_hostile_names() -> None:
    name = '</text><script>alert("&")</script>[bold]{datum.error}'
    hostile = PlacedRelease(name, name, 0.1, 0.1, f"{name}!")
    root = svg_of([hostile, ALONE], chosen=hostile)
    assert not list(root.iter(f"{SVG}script"))
    assert "[bold]" in "".join(printed([hostile], chosen=hostile))
    spec = draw_risk_map([hostile], limit=0.1, description="A map").to_dict()
    fields = json.dumps([layer["encoding"] for layer in spec["layer"]])
    assert "script" not in fields.replace(json.dumps(name), "").replace(json.dumps(f"{name}!"), "")
