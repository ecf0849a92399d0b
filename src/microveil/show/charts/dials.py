"""Two dials: how risky a release is, and how useful, each on the scale of its grades."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import cos, pi, sin
from typing import NamedTuple

from microveil.compare.figures import Figure
from microveil.judge.grades import GRADES, Grade, how_risky, how_useful, place_of
from microveil.show.charts.palette import BLUE, ORANGE, VERMILION
from microveil.show.words.grading import risk_answer, usefulness_answer

WIDTH, HEIGHT = 220, 168
_X, _Y, _RADIUS, _THICK = 110.0, 118.0, 80.0, 18.0
_GAP = 0.012


class Inks(NamedTuple):
    """Colours of a picture: names, numbers or variables of CSS."""

    ink: str = "#1c1c1c"
    soft: str = "#555555"
    line: str = "#d5d5d5"
    wash: str = "#f5f6f7"
    good: str = BLUE
    fair: str = ORANGE
    poor: str = VERMILION

    def of(self, grade: Grade) -> str:
        """Return the colour of a grade."""
        return {"good": self.good, "fair": self.fair, "poor": self.poor}.get(grade, self.soft)


OF_THE_PAGE = Inks(*(f"var(--{name})" for name in Inks._fields))
"""Those that a page names in its style, for light and for dark."""


@dataclass(frozen=True)
class Dial:
    """A question with its answer in words, and where the needle points.

    Attributes
    ----------
    title, answer, grade
        What is asked, and the answer.
    place
        From 0, the left end, to 1; a third of the way for each grade. None if it is not known.
    ends
        What the left and the right end mean.
    best_first
        Whether the left end is the best.
    """

    title: str
    answer: str
    grade: Grade
    place: float | None
    ends: tuple[str, str]
    best_first: bool

    @property
    def svg(self) -> str:
        """The dial, in the colours of the page it is in."""
        return drawn(self, OF_THE_PAGE)


def dials(figures: Sequence[Figure]) -> tuple[Dial, Dial]:
    """Put two questions on dials: how risky a release is, and how useful."""
    risky, useful = how_risky(figures), how_useful(figures)
    kept = place_of(useful)
    return (
        Dial("Risk", risk_answer(risky), risky.grade, place_of(risky), ("low", "high"), True),
        Dial(
            "Usefulness", usefulness_answer(useful), useful.grade,
            None if kept is None else 1 - kept, ("poor", "good"), False,
        ),
    )  # fmt: skip


def drawn(dial: Dial, inks: Inks) -> str:
    """Draw a dial as SVG: what is said of it stands in words as well.

    Examples
    --------
    >>> dial = Dial("Risk", "Low", "good", 0.1, ("low", "high"), True)
    >>> drawn(dial, Inks())[:44]
    '<svg role="img" aria-label="Risk: Low, on a '
    """
    ends = " to ".join(dial.ends)
    told = escape(f"{dial.title}: {dial.answer}, on a scale from {ends}")
    return (
        f'<svg role="img" aria-label="{told}" class="dial" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'xmlns="http://www.w3.org/2000/svg">{inner(dial, inks)}</svg>'
    )


def inner(dial: Dial, inks: Inks) -> str:
    """Draw what is inside a dial, to be placed in a larger picture."""
    grades = GRADES if dial.best_first else GRADES[::-1]
    zones = [
        _zone(number, inks.of(grade), faint=grade != dial.grade)
        for number, grade in enumerate(grades)
    ]
    texts = [
        _text(_X, 16, dial.title, inks.soft, size=15),
        _text(_X - _RADIUS, 138, dial.ends[0], inks.soft, size=13),
        _text(_X + _RADIUS, 138, dial.ends[1], inks.soft, size=13),
        _text(_X, 161, dial.answer, inks.ink, size=21, weight=700),
    ]
    needle = "" if dial.place is None else _needle(dial.place, inks.ink)
    return "".join([*zones, needle, *texts])


def _zone(number: int, colour: str, *, faint: bool) -> str:
    start, end = number / 3 + _GAP * bool(number), (number + 1) / 3 - _GAP * (number < 2)
    (x, y), (to_x, to_y) = _on_arc(start, _RADIUS), _on_arc(end, _RADIUS)
    return (
        f'<path d="M{x:.1f} {y:.1f}A{_RADIUS:g} {_RADIUS:g} 0 0 1 {to_x:.1f} {to_y:.1f}" '
        f'fill="none" stroke="{colour}" stroke-width="{_THICK:g}" '
        f'stroke-opacity="{0.3 if faint else 1}"/>'
    )


def _needle(place: float, colour: str) -> str:
    tip = _on_arc(place, _RADIUS + 2)
    left, right = _on_arc(place - 0.5, 5), _on_arc(place + 0.5, 5)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (left, tip, right))
    return (
        f'<polygon points="{points}" fill="{colour}"/>'
        f'<circle cx="{_X:g}" cy="{_Y:g}" r="7" fill="{colour}"/>'
    )


def _on_arc(place: float, radius: float) -> tuple[float, float]:
    angle = pi * (1 - place)
    return _X + radius * cos(angle), _Y - radius * sin(angle)


def _text(x: float, y: float, text: str, colour: str, *, size: int, weight: int = 400) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-family="system-ui, sans-serif" '
        f'font-size="{size}" font-weight="{weight}" fill="{colour}">{escape(text)}</text>'
    )
