"""The verdict in words."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from microveil.compare.figures import percent
from microveil.judge.grades import PASS_RULE, how_far, kept_point_to_people
from microveil.judge.verdict import Verdict
from microveil.show.screens import ResultScreen

_TITLE = "Verdict (private: computed from the original data)"
_LINKED = (
    "these tell which records are one person's, here and wherever the same key was used. The "
    "attacks look at records one by one; someone who knows several of a person finds more."
)
_MOVED = (
    "nobody was looked for by these. Intervals between dates of a person are as they were, and "
    "someone who knows one of them knows the others."
)


def verdict_screen(verdict: Verdict) -> ResultScreen:
    """Say everything in a few lines."""
    said = [f"{about}: {line}" for about, line in verdict_lines(verdict) if about != "Rule"]
    return ResultScreen(_TITLE, said, laid_out=lambda: _laid_out(verdict))


def _laid_out(verdict: Verdict) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    styles = {"Risk": "green" if verdict.passed else "red", "Rule": "dim"}
    for about, line in verdict_lines(verdict):
        grid.add_row(Text(about, style="bold"), Text(line, style=styles.get(about, "")))
    return Group(Text(_TITLE, style="bold"), grid)


def verdict_lines(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """Say everything in a few lines, each with what it is about."""
    passes = "passes" if verdict.passed else "does not pass"
    found = verdict.linkage
    sentence = f"{found.reading.removesuffix('; higher is riskier')}."
    yield "Risk", f"{verdict.risk.answer}: {passes}. {sentence}"
    alone = kept_point_to_people(verdict.figures)
    if alone is not None:
        yield "Kept", f"{alone.reading.partition(';')[0]}."
    if verdict.linked_by:
        yield "Pseudonyms", f"{', '.join(verdict.linked_by)}: {_LINKED}"
    if verdict.shifted:
        yield "Moved dates", f"{', '.join(verdict.shifted)}: {_MOVED}"
    left = [f"{rule.rule} by {rule.released:,}" for rule in verdict.rules if rule.released]
    if left:
        yield (
            "Rules",
            f"still broken, since no masked values would keep them: {'; '.join(left)}",
        )
    shares = [f for f in verdict.figures if f.measure == "risk.clusters_without_noise"]
    if any(figure.value for figure in shares):
        most = max(shares, key=lambda figure: figure.value)
        mean = sum(figure.value for figure in shares) / len(shares)
        text = f"{percent(mean)} of masked values are without it, whatever ε is"
        yield "Noise", f"{text}; most in {most.attribute}, {percent(most.value)}."
    for figure in verdict.figures:
        if figure.measure == "utility.unit_consistency":
            yield "Units", f"{figure.reading}."
    lost = verdict.usefulness
    said = dict.fromkeys([*how_far(verdict.figures), *lost.sentences[:1]])
    yield "Usefulness", " ".join([f"{lost.answer}.", *said])
    if verdict.change is not None:
        yield "To change", f"{verdict.change}."
    yield "Rule", PASS_RULE
