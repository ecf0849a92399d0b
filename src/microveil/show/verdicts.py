"""The verdict in words."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from microveil.compare.reasons import why_not
from microveil.errors import FileError
from microveil.judge.grades import kept_point_to_people, worst
from microveil.judge.verdict import ReleaseBound, Verdict
from microveil.measures.use_figures import USES
from microveil.show.charts.dials import Inks, dials, drawn
from microveil.show.screens import SIDE_BY_SIDE, ResultScreen
from microveil.show.words.grading import (
    PASS_RULE,
    answers_to_questions,
    change_in_words,
    decided_by,
    risk_answer,
    usefulness_card,
    what_counts,
)
from microveil.show.words.numbers import percent
from microveil.show.words.readings import how_far, read_aloud
from microveil.show.words.synthetic_words import guessed_at_most
from microveil.show.words.use_words import by_use

_TITLE = "Verdict (private: computed from the original data)"
_LINKED = (
    "these show which records belong to one person, here and wherever the same key file was used. "
    "The attacks look at one record at a time; an attacker who knows several records of a person "
    "finds more."
)
_MOVED = (
    "no attack used these. Intervals between a person's dates are unchanged, so an attacker who "
    "knows one of them knows the others."
)


def verdict_screen(verdict: Verdict) -> ResultScreen:
    """Say everything in a few lines."""
    lines = list(verdict_lines(verdict))
    said = [f"{about}: {line}" for about, line in lines if about != "Rule"]
    first = ("Risk", "To change")
    told = {about: [f"{about}: {line}"] for about, line in lines if about in first}
    rest = [f"{about}: {line}" for about, line in lines if about not in first]
    return ResultScreen(
        _TITLE,
        said,
        laid_out=lambda: _laid_out(verdict),
        sections=told,
        folded={"More": rest},
        panels=lambda: [*dials_of(verdict), uses_side_by_side(verdict)],
    )


def dials_of(verdict: Verdict) -> list[str]:
    """Draw the dials, whose risk is that of attacks."""
    return [] if verdict.bound is not None else [dials_side_by_side(verdict)]


def dials_side_by_side(verdict: Verdict) -> str:
    """Draw risk and usefulness for a notebook, on white, whatever its theme."""
    drawn_ones = [drawn(dial, Inks()) for dial in dials(verdict.figures)]
    sized = [svg.replace("<svg ", '<svg width="220" height="168" ', 1) for svg in drawn_ones]
    return f'<div style="{SIDE_BY_SIDE};background:#fff;width:fit-content">{"".join(sized)}</div>'


def uses_side_by_side(verdict: Verdict) -> str:
    """Draw what the table is for, from the original and from the release, if it can be drawn."""
    try:
        from microveil.show.charts.render import to_svg
        from microveil.show.charts.use_chart import use_chart
    except FileError:  # what draws is not installed
        return ""
    charts = [use_chart(use, rows) for use, rows in by_use(verdict.figures)]
    drawings = [to_svg(chart.properties(width=300)) for chart in charts]
    pieces = [f'<div style="padding:0 16px">{_uncut(svg)}</div>' for svg in drawings]
    return f'<div style="{SIDE_BY_SIDE};background:#fff">{"".join(pieces)}</div>' if pieces else ""


def _uncut(svg: str) -> str:
    """Let labels reach over the edge where a browser's letters are wider than those measured."""
    return svg.replace("<svg ", '<svg style="overflow:visible" ', 1)


def _bounded(verdict: Verdict, bound: ReleaseBound) -> str:
    """Say what the bound on the whole release allows."""
    passes = "passes" if verdict.passed else "does not pass, since 96% may be exceeded"
    return (
        f"{risk_answer(verdict.risk)}: {passes}. No row is that of a record. "
        f"{guessed_at_most(bound)}"
    )


def _what_is_left(verdict: Verdict) -> Iterator[tuple[str, str]]:
    lost = usefulness_card(verdict.figures)
    yield "Usefulness", " ".join(dict.fromkeys([f"{lost.answer}.", *lost.sentences]))
    for item in verdict.not_computed:
        yield "Not computed", why_not(item)


def _laid_out(verdict: Verdict) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    styles = {"Risk": "green" if verdict.passed else "red", "Rule": "dim"}
    for about, line in verdict_lines(verdict):
        grid.add_row(Text(about, style="bold"), Text(line, style=styles.get(about, "")))
    return Group(Text(_TITLE, style="bold"), grid)


def verdict_lines(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Say everything in a few lines, each with what it is about."""
    if verdict.bound is not None:
        yield "Risk", _bounded(verdict, verdict.bound)
        yield from _what_is_left(verdict)
        return
    passes = "passes" if verdict.passed else "does not pass"
    answer = f"{risk_answer(verdict.risk)}{decided_by(verdict.risk)}"
    found = read_aloud(verdict.risk.figures[0])
    yield "Risk", f"{answer}: {passes}. {found} {what_counts(verdict.risk)}"
    yield from answers_to_questions(verdict.figures, verdict.not_computed)
    alone = kept_point_to_people(verdict.figures)
    if alone is not None:
        yield "Kept", read_aloud(alone)
    if verdict.linked_by:
        yield "Pseudonyms", f"{', '.join(verdict.linked_by)}: {_LINKED}"
    if verdict.shifted:
        yield "Moved dates", f"{', '.join(verdict.shifted)}: {_MOVED}"
    left = [f"{rule.rule} by {rule.released:,}" for rule in verdict.rules if rule.released]
    if left:
        yield "Rules", f"still broken, since no masked values would keep them: {'; '.join(left)}"
    yield from _without_noise(verdict)
    units = worst(verdict.figures, "utility.unit_consistency")
    if units is not None:
        yield "Units", read_aloud(units)
    lost = usefulness_card(verdict.figures)
    moved = [how_far(figure) for figure in verdict.figures if figure.measure == "utility.il1s"]
    rest = lost.sentences[:1] if moved else lost.sentences
    yield "Usefulness", " ".join(dict.fromkeys([f"{lost.answer}.", *moved, *rest]))
    for item in verdict.not_computed:
        if not {*item.measures}.isdisjoint(USES):
            yield "Uses", f"{item.attribute}: not computed: {why_not(item)}."
    if verdict.change is not None:
        yield "To change", f"{change_in_words(verdict.change)}."
    yield "Rule", PASS_RULE


def _without_noise(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Say how many masked values carry no noise, and whether few people have them."""
    for measure in ("risk.exact_values", "risk.values_unmoved", "risk.rare_categories"):
        found = worst(verdict.figures, measure)
        if found is not None and found.value:
            yield "Few people", f"{found.attribute}: {read_aloud(found)}."
    shares = [f for f in verdict.figures if f.measure == "risk.clusters_without_noise"]
    if any(figure.value for figure in shares):
        most = max(shares, key=lambda figure: figure.value)
        mean = sum(figure.value for figure in shares) / len(shares)
        yield (
            "Noise",
            f"{percent(mean)} of masked values carry no noise at any ε; most in {most.attribute}, "
            f"{percent(most.value)}.",
        )
