"""A release at a glance: what was assumed, the verdict on dials, attributes before and after."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape
from weakref import WeakKeyDictionary

from microveil.errors import MicroveilError
from microveil.judge.verdict import Verdict, verdict
from microveil.release.notes import NOT_WARNED, message_of
from microveil.release.release import Release
from microveil.show.certificates import summary_screen
from microveil.show.charts.histograms import Shares
from microveil.show.charts.palette import AFTER, BEFORE
from microveil.show.screens import SIDE_BY_SIDE, ResultScreen, html_table
from microveil.show.shapes import Shape, shapes_of_masked
from microveil.show.verdicts import dials_of, uses_side_by_side, verdict_lines
from microveil.show.words.assumption_words import assumption_statement
from microveil.types import UserTable

_WIDTH, _HEIGHT = 150, 34
_MOST_SHAPES = 24
_JUDGED: "WeakKeyDictionary[Release, Verdict | str]" = WeakKeyDictionary()


def release_screen(release: Release) -> ResultScreen:
    """Summarise what was released, and what was assumed where no plan was given."""
    library = type(release.data).__module__.partition(".")[0]
    title = f"Release: a {library} table of {len(release.data.columns):,} columns"
    screen = summary_screen(release.certificate, title)
    assumed = [assumption_statement(one) for one in release.assumed]
    notes = [message_of(n) for n in release.certificate.notes if n.kind not in NOT_WARNED]
    folded = {
        "Assumed": assumed,
        "To know before it is published": list(dict.fromkeys([*release.warned, *notes])),
    }
    sections = {**({"Assumed": assumed} if assumed else {}), **screen.sections}
    return replace(
        screen,
        lines=[*assumed, *screen.lines] if assumed else screen.lines,
        folded={heading: items for heading, items in folded.items() if items},
        unfolded="Assumed",
        sections=sections,
        panels=lambda: list(_panels(release)),
    )


def _panels(release: Release) -> Iterator[str]:
    """Judge a release that knows its original, and draw it before and after."""
    if release.original is None:
        return
    if release not in _JUDGED:
        _JUDGED[release] = _judged(release.original, release)
    judged = _JUDGED[release]
    if isinstance(judged, str):
        yield f"<div>No verdict: {escape(judged)}</div>"
    else:
        risk = next(line for about, line in verdict_lines(judged) if about == "Risk")
        yield "".join(dials_of(judged)) + f"<div>{escape(risk)}</div>" + uses_side_by_side(judged)
    yield drawn_shapes(shapes_of_masked(release.original, release)[:_MOST_SHAPES])


def _judged(original: UserTable, release: Release) -> Verdict | str:
    """Judge a release, or say why that cannot be done."""
    try:
        return verdict(original, release, seed=release.seed)
    except MicroveilError as error:
        return f"{error}."


def drawn_shapes(shapes: list[Shape]) -> str:
    """Draw attributes before and after, a row each."""
    head = ("attribute", "before and after", "mean", "after", "st. dev.", "after")
    rows = [(escape(shape.shares.name), _bars(shape.shares), *_figures(shape)) for shape in shapes]
    legend = (
        f'<span style="color:{BEFORE}">■</span> before <span style="color:{AFTER}">■</span> after'
    )
    return f'<div style="{SIDE_BY_SIDE}"><div>{legend}{html_table(head, rows)}</div></div>'


def _figures(shape: Shape) -> tuple[str, ...]:
    found = {what: (escape(before), escape(after)) for what, before, after in shape.rows}
    means, spread = (found.get(what, ("", "")) for what in ("mean", "standard deviation"))
    return (*means, *spread)


def _bars(shares: Shares) -> str:
    """Draw bars of shares, those after in front of those before."""
    most = max((*shares.before, *shares.after), default=0.0) or 1.0
    width = _WIDTH / max(len(shares.before), 1)
    bars = []
    for colour, heights, inset in ((BEFORE, shares.before, 0.0), (AFTER, shares.after, 0.27)):
        for place, height in enumerate(heights):
            tall = height / most * _HEIGHT
            bars.append(
                f'<rect x="{(place + inset) * width:.1f}" y="{_HEIGHT - tall:.1f}" '
                f'width="{width * (0.92 - 2 * inset):.1f}" height="{tall:.1f}" fill="{colour}"/>'
            )
    told = escape(f"{shares.name} before and after")
    return (
        f'<svg role="img" aria-label="{told}" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}">{"".join(bars)}</svg>'
    )
