"""Draw the first picture: a person's row, the crowd it disappears into, what stays, the verdict.

`python -m bench.first_picture` writes `docs/figures/first-light.svg` and `first-dark.svg`: a real
release of the bundled sample by the plan of `microveil demo`. It is seeded, so that the picture
can be drawn again; the release that `microveil demo` writes is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import polars as pl

from microveil import protect, verdict
from microveil.plan.sample import people, recommended_people_plan
from microveil.release.release import Release
from microveil.show.charts.dials import Dial, Inks, dials, inner

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
LIGHT = Inks()
DARK = Inks(
    ink="#e8e8e8", soft="#a9b1b8", line="#3d444b", wash="#1c2127",
    good="#56b4e9", fair="#e69f00", poor="#ff8a4c",
)  # fmt: skip
PAPER = {"light": "#ffffff", "dark": "#0d1117"}
_FONT = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'
_WIDTH, _HEIGHT = 860, 620
_PERSON = 0
_COLUMNS = ("age", "region", "occupation", "wages")
_AGES = np.arange(20, 91, 10)
_WEIGHTS = np.arange(30, 121, 10)


@dataclass(frozen=True)
class Story:
    """What the picture shows."""

    before: pl.DataFrame
    after: pl.DataFrame
    row: dict[str, object]
    crowd: list[dict[str, object]]
    dials: tuple[Dial, Dial]
    passed: bool
    anonymity: int


def main() -> None:
    """Protect, judge and draw."""
    story = told()
    for name, inks in (("light", LIGHT), ("dark", DARK)):
        text = picture(story, inks, PAPER[name])
        (FIGURES / f"first-{name}.svg").write_text(text, encoding="utf-8")


def told() -> Story:
    """Protect the sample, and choose what to show of it."""
    before = people()
    release = protect(before, recommended_people_plan(), seed=1, keep_order=True)
    found = verdict(before, release, seed=1)
    least = min(group.anonymity for group in release.certificate.groups)
    return Story(
        before, release.data, before.row(_PERSON, named=True), _crowd(release),
        dials(found.figures), found.passed, least,
    )  # fmt: skip


def _crowd(release: Release) -> list[dict[str, object]]:
    """Return the released rows of the person's joint cluster, in random order."""
    (clusters,) = release.detail.joint.values()
    own = np.flatnonzero(clusters == clusters[_PERSON])
    shuffled = np.random.default_rng(1).permutation(own)
    return list(release.data[shuffled].iter_rows(named=True))


def picture(story: Story, inks: Inks, paper: str) -> str:
    """Draw the whole picture."""
    parts = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="12" fill="{paper}"/>',
        *_person(story, inks), *_people(story, inks), *_stays(story, inks), *_judged(story, inks),
    ]  # fmt: skip
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(_said(story))}" {_FONT}>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _said(story: Story) -> str:
    risk, useful = story.dials
    return (
        f"One person's row as collected becomes one of {len(story.crowd)} rows of a release, of "
        "which nobody can tell whose they are. The distribution of weight and mean wages by age "
        f"stay. Verdict: risk {risk.answer}, usefulness {useful.answer}."
    )


def _person(story: Story, inks: Inks) -> Iterator[str]:
    """Draw the row of one person."""
    yield _text(20, 38, "One person's row", inks.ink, size=20, weight=700)
    yield _text(20, 60, "as collected", inks.soft)
    yield _box(20, 78, 182, 290, inks.wash, inks.poor)
    shown = {"": story.row["person"]} | {name: story.row[name] for name in _SHOWN}
    for number, (name, value) in enumerate(shown.items()):
        y = 110 + 30 * number
        if name:
            yield _text(34, y, name, inks.soft)
            yield _text(188, y, _value(value), inks.ink, end=True, weight=600)
        else:
            yield _text(34, y, str(value), inks.poor, size=19, weight=700)


_SHOWN = ("age", "region", "education", "occupation", "since", "children", "hours", "wages")


def _people(story: Story, inks: Inks) -> Iterator[str]:
    """Draw the rows among which that of the person is."""
    yield _arrow(212, 218, inks)
    shown, others = story.crowd[:_SHOWN_OF_CROWD], len(story.crowd) - _SHOWN_OF_CROWD
    yield _text(254, 38, f"The crowd: {len(story.crowd)} rows", inks.ink, size=20, weight=700)
    yield _text(254, 60, "with noise, values exchanged", inks.soft)
    yield _box(254, 78, 292, 290, inks.wash, inks.good)
    ends = (288, 302, 368, 534)
    for name, x, end in zip(_COLUMNS, ends, _RIGHT, strict=True):
        yield _text(x, 102, name, inks.soft, end=end)
    for number, row in enumerate(shown):
        y = 128 + 25 * number
        for name, x, end in zip(_COLUMNS, ends, _RIGHT, strict=True):
            yield _text(x, y, _value(row[name]), inks.ink, end=end)
    yield _text(302, 353, f"… and {others} others", inks.soft)


_SHOWN_OF_CROWD = 9
_RIGHT = (True, False, False, True)


def _stays(story: Story, inks: Inks) -> Iterator[str]:
    """Draw a distribution and a relation of all people, before and after."""
    yield _text(584, 38, "What stays", inks.ink, size=20, weight=700)
    yield f'<rect x="584" y="49" width="14" height="12" fill="{inks.good}" fill-opacity="0.35"/>'
    yield _text(603, 60, "before", inks.soft)
    yield f'<path d="M664 55h22" stroke="{inks.poor}" stroke-width="3"/>'
    yield _text(692, 60, "after", inks.soft)
    yield from _distribution(story, inks)
    yield from _relation(story, inks)


def _distribution(story: Story, inks: Inks) -> Iterator[str]:
    before, after = (
        np.histogram(frame["weight"].drop_nulls(), _WEIGHTS)[0]
        for frame in (story.before, story.after)
    )
    left, right, bottom, high = 590.0, 838.0, 196.0, 106.0
    width = (right - left) / len(before)
    top = max(*before, *after)
    for number, share in enumerate(before):
        yield _bar(left + width * number, bottom, width - 1, high * share / top, inks)
    heights = [bottom - high * share / top for share in after]
    steps = "".join(f"V{y:.1f}H{left + width * (n + 1):.1f}" for n, y in enumerate(heights))
    yield (
        f'<path d="M{left:g} {bottom:g}{steps}V{bottom:g}" fill="none" stroke="{inks.poor}" '
        'stroke-width="2.5" stroke-linejoin="round"/>'
    )
    yield _line(left, bottom, right, inks)
    yield _text(left, bottom + 20, "weight, 30 to 120 kg", inks.soft)


def _relation(story: Story, inks: Inks) -> Iterator[str]:
    left, right, bottom, high = 590.0, 838.0, 346.0, 98.0
    lines = [_wages_by_age(frame) for frame in (story.before, story.after)]
    top = max(max(line) for line in lines)
    width = (right - left) / len(lines[0])
    before, after = (
        [(left + width * (n + 0.5), bottom - high * value / top) for n, value in enumerate(line)]
        for line in lines
    )
    for x, y in before:
        yield _bar(x - width * 0.42, bottom, width * 0.84, bottom - y, inks)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in after)
    yield f'<polyline points="{points}" fill="none" stroke="{inks.poor}" stroke-width="2.5"/>'
    for x, y in after:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{inks.poor}"/>'
    yield _line(left, bottom, right, inks)
    yield _text(left, bottom + 20, "mean wages by age, 20 to 90", inks.soft)


def _wages_by_age(frame: pl.DataFrame) -> list[float]:
    age, wages = (frame[name].to_numpy().astype(float) for name in ("age", "wages"))
    return [float(wages[(age >= low) & (age < low + 10)].mean()) for low in _AGES[:-1]]


def _judged(story: Story, inks: Inks) -> Iterator[str]:
    """Draw the verdict: two dials and what they rest on."""
    yield _line(20, 394, 840, inks)
    for dial, x in zip(story.dials, (20, 262), strict=True):
        yield f'<g transform="translate({x} 408) scale(1.06)">{inner(dial, inks)}</g>'
    passes = "passes" if story.passed else "does not pass"
    yield _text(508, 440, f"Verdict: {passes}", inks.ink, size=22, weight=700)
    for number, line in enumerate(_lines(story)):
        yield _text(508, 470 + 24 * number, line, inks.ink, size=16)
    yield _text(
        20, 606, "Made-up people of microveil demo; a real release, seeded so that this picture "
        "can be drawn again.", inks.soft, size=14,
    )  # fmt: skip


def _lines(story: Story) -> Sequence[str]:
    return (
        "An attacker who knows all these columns",
        "of everybody picks a person's row with a",
        f"chance of at most 1 in {story.anonymity}. The dials show",
        "what attacks on the release itself find.",
    )


def _value(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _text(
    x: float, y: float, text: str, colour: str,
    *, size: int = 15, weight: int = 400, end: bool = False,
) -> str:  # fmt: skip
    anchor = ' text-anchor="end"' if end else ""
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{x:g}" y="{y:.4g}" font-size="{size}" fill="{colour}"{anchor}{bold}>'
        f"{escape(text)}</text>"
    )


def _box(x: float, y: float, width: float, height: float, fill: str, edge: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="{fill}" '
        f'stroke="{edge}" stroke-width="2"/>'
    )


def _bar(x: float, bottom: float, width: float, tall: float, inks: Inks) -> str:
    return (
        f'<rect x="{x:.1f}" y="{bottom - tall:.1f}" width="{width:.1f}" height="{tall:.1f}" '
        f'fill="{inks.good}" fill-opacity="0.35"/>'
    )


def _arrow(x: float, y: float, inks: Inks) -> str:
    return (
        f'<path d="M{x:g} {y:g}h24m-9 -9l9 9l-9 9" fill="none" stroke="{inks.soft}" '
        'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>'
    )


def _line(x: float, y: float, to: float, inks: Inks) -> str:
    return f'<path d="M{x:g} {y:g}H{to:g}" stroke="{inks.line}" stroke-width="1.5"/>'


if __name__ == "__main__":
    main()
