"""Dials: the needle stands in the third of its grade, and what is drawn is also said."""

import math
from xml.etree import ElementTree as ET

import pytest

from microveil.compare.figures import Figure
from microveil.judge.grades import Graded, grade_of, place_of
from microveil.show.charts.dials import Inks, dials, drawn


@pytest.mark.parametrize(
    ("share", "place"),
    [(0.0, 0.0), (0.025, 0.5 / 3), (0.05, 1 / 3), (0.075, 1.5 / 3), (0.1, 2 / 3), (0.2, 2.5 / 3)],
)
def test_limits_are_thirds_of_the_way(share: float, place: float) -> None:
    """Linkage is low up to 0.05 and medium up to 0.1; beyond, half the rest lies at twice that."""
    figure = Figure("linkage.nearest", None, share)
    found = place_of(Graded(grade_of(figure), (figure,)))
    assert found is not None
    assert math.isclose(found, place, abs_tol=1e-12)


def test_a_limit_of_zero_has_a_place() -> None:
    figure = Figure("risk.exact_values", "age", 3.0, {"enough": 10.0})
    found = place_of(Graded(grade_of(figure), (figure,)))
    assert found is not None
    assert 2 / 3 < found <= 1


def test_without_attacks_no_needle_is_drawn() -> None:
    useful = Figure("utility.pearson", "a × b", 0.02)
    risk, usefulness = dials([useful])
    assert (risk.answer, risk.place) == ("Not measured", None)
    assert "polygon" not in drawn(risk, Inks())
    assert usefulness.grade == "good"
    assert usefulness.place is not None
    assert usefulness.place > 2 / 3


def test_colours_are_those_asked_for_and_words_say_the_same() -> None:
    risk, _ = dials([Figure("linkage.nearest", None, 0.075)])
    page, own = ET.fromstring(risk.svg), ET.fromstring(drawn(risk, Inks(good="#123456")))  # noqa: S314
    assert page.attrib["aria-label"] == "Risk: Medium, on a scale from low to high"
    assert any(part.get("stroke") == "var(--fair)" for part in page.iter())
    assert any(part.get("stroke") == "#123456" for part in own.iter())
