"""The chart of an exploration as SVG: a picture that needs nothing but itself."""

import math
import textwrap
from collections.abc import Iterator
from xml.sax.saxutils import escape

from microveil.core.choices import DEFAULT_METHOD
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
from microveil.exploration.result import Exploration

_SHAPES = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0Z",
    "M0,-6L5.5,4.5L-5.5,4.5Z",
    "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
    "M0,6L5.5,-4.5L-5.5,-4.5Z",
    "M-2,-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-5.5,-2.5L0,-6L5.5,-2.5V2.5L0,6L-5.5,2.5Z",
)
_LEFT, _TOP, _WIDE, _HIGH, _BESIDE, _LEGEND = 74, 56, 380, 300, 104, 120
_OF_LETTER = 7.4


def draw(exploration: Exploration) -> str:
    """Draw the chart, with the recommendation beneath."""
    found = curves(exploration.points)
    beside = columns_beside(found)
    right = _LEFT + _WIDE + len(beside) * _BESIDE
    bottom, width = _TOP + _HIGH, right + _LEGEND
    letters = int((width - 1.5 * _LEFT) / _OF_LETTER)
    caption = [
        line
        for sentence in (f"Recommended: {exploration.headline}", f"{EXPECTED}.")
        for line in textwrap.wrap(sentence, letters)
    ]
    height = bottom + 72 + 18 * len(caption)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="13" fill="#222" role="img">',
        f"<title>Error of {DEFAULT_METHOD} by cluster size and ε</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 26, f"Error of {DEFAULT_METHOD} by cluster size and ε", size=16),
    ]
    if any(curve.values for curve in found):
        parts += _plot(found, beside, right)
    else:
        parts.append(_text(_LEFT, _TOP + 20, "Nothing has any error."))
    for i, line in enumerate(caption):
        parts.append(_text(_LEFT, bottom + 72 + 18 * i, line))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _plot(found: list[Curve], beside: list[tuple[str, str]], right: int) -> Iterator[str]:
    marks, ks = ticks(found), sizes(found)
    along = {k: _LEFT + 24 + (_WIDE - 48) * _share(k, ks) for k in ks}
    across = {name: _LEFT + _WIDE + (i + 0.5) * _BESIDE for i, name in enumerate(beside)}

    def down(value: float) -> float:
        return _TOP + _HIGH * (marks[-1] - value) / (marks[-1] - marks[0])

    yield from _axes({m: down(m) for m in marks}, along, across, right)
    apart = min(24.0, _HIGH / len(found))
    for i, curve in enumerate(found):
        colour, shape = COLOURS[i % len(COLOURS)], _SHAPES[i % len(_SHAPES)]
        spots = [(along[k], down(v)) for k, v in curve.by_k.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        aside = (i - (len(found) - 1) / 2) * min(14.0, (_BESIDE - 20) / len(found))
        spots += [(across[name] + aside, down(v)) for name, v in curve.beside.items()]
        spots.append((right + 22, _TOP + 10 + apart * i))
        for x, y in spots:
            yield (
                f'<path d="{shape}" transform="translate({x:.1f},{y:.1f})" fill="{colour}" '
                'stroke="#fff"/>'
            )
        yield _text(right + 34, _TOP + 14 + apart * i, f"ε = {curve.epsilon:g}")


def _share(k: int, ks: list[int]) -> float:
    """Where k stands between the smallest and the largest, by logarithm."""
    if len(ks) == 1:
        return 0.5
    return math.log(k / ks[0]) / math.log(ks[-1] / ks[0])


def _axes(
    down: dict[float, float],
    along: dict[int, float],
    across: dict[tuple[str, str], float],
    right: int,
) -> Iterator[str]:
    bottom = _TOP + _HIGH
    for mark, y in down.items():
        yield f'<path d="M{_LEFT},{y:.1f}H{right}" stroke="#ddd"/>'
        yield _text(_LEFT - 8, y + 4, signed(mark), anchor="end")
    for k, x in along.items():
        yield f'<path d="M{x:.1f},{bottom}v5" stroke="#222"/>'
        yield _text(x, bottom + 20, str(k), anchor="middle")
    for (name, kind), x in across.items():
        yield _text(x, bottom + 20, name, anchor="middle")
        yield _text(x, bottom + 36, kind, anchor="middle")
    yield f'<path d="M{_LEFT},{_TOP}V{bottom}H{right}" fill="none" stroke="#222"/>'
    if across:
        yield f'<path d="M{_LEFT + _WIDE},{_TOP}V{bottom}" stroke="#888" stroke-dasharray="4 3"/>'
    middle = _LEFT + _WIDE / 2
    yield _text(middle, bottom + 42, "records in a cluster, k (expected)", anchor="middle")
    label = _text(0, 0, "log10 of mean SSE", anchor="middle")
    yield f'<g transform="translate(22,{_TOP + _HIGH / 2}) rotate(-90)">{label}</g>'


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 13) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )
