"""What people see of an evaluation at a glance: two grades, the worst figures, a chart."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from microveil.attacks.attack_rows import LINKAGE
from microveil.compare.figures import Figure, Topic
from microveil.compare.reasons import why_not
from microveil.judge.evaluated import Evaluation
from microveil.judge.registry import MEASURES
from microveil.show.screens import MOST_BARS, ResultScreen
from microveil.show.words.grading import notes_on, risk_card, usefulness_card
from microveil.show.words.numbers import percent
from microveil.show.words.readings import label_of, label_of_missing, reading
from microveil.show.words.use_words import UseRow, by_use

if TYPE_CHECKING:
    import altair as alt

_DRAWN = {
    "utility.sse_sst": "error (SSE/SST)",
    "utility.total_variation": "records that would have to change category",
}


def evaluation_screen(evaluation: Evaluation) -> ResultScreen:
    """Say how risky and how useful a release is, with the worst figures of each measure."""
    title = (
        f"Evaluation of {evaluation.released:,} released of {evaluation.records:,} records, "
        f"{len(evaluation.attributes):,} attributes (private: computed from the original data)"
    )
    cards = {
        "Risk": risk_card(evaluation.figures, scored=evaluation.scored),
        "Usefulness": usefulness_card(evaluation.figures),
    }
    lines = [
        f"{name}: {' '.join([card.answer + '.', *card.sentences[:1]])}"
        for name, card in cards.items()
    ]
    rows = []
    for part, figures in groupby(evaluation.figures, lambda f: MEASURES[f.measure].topic):
        for figure, chosen in figures_to_show(part, figures):
            about = f"{figure.attribute or ''}{f' ({chosen})' if chosen else ''}"
            rows.append((label_of(figure), f"{figure.value:.3g}", about))
    return ResultScreen(
        title,
        lines,
        ("measure", "value", "about"),
        rows,
        _chart(evaluation),
        lambda: _laid_out(evaluation),
    )


def _chart(evaluation: Evaluation) -> "Callable[[], alt.LayerChart] | None":
    """Draw the first use, or what was lost of each attribute, those that lost most first."""
    use, rows = next(by_use(evaluation.figures), ("", []))
    if rows:
        return partial(_use, use, rows)
    measure = next((m for m in _DRAWN if any(f.measure == m for f in evaluation.figures)), None)
    if measure is None:
        return None
    found = [f for f in evaluation.figures if f.measure == measure]
    shown = sorted(found, key=lambda f: -f.value)[:MOST_BARS]

    def draw() -> "alt.LayerChart":
        from microveil.show.charts.overviews import amounts

        names, values = [f.attribute or "" for f in shown], [f.value for f in shown]
        title = _DRAWN[measure]
        return amounts(names, values, title=title, description=f"{title} by attribute")

    return draw


def _use(use: str, rows: list[UseRow]) -> "alt.LayerChart":
    from microveil.show.charts.use_chart import use_chart

    return use_chart(use, rows)


def _laid_out(evaluation: Evaluation) -> RenderableType:
    shown: list[RenderableType] = [
        _table(part, list(figures))
        for part, figures in groupby(evaluation.figures, lambda f: MEASURES[f.measure].topic)
    ]
    scenarios = scenario_rows(evaluation.figures)
    if scenarios:
        shown.append(_scenarios(scenarios))
    lines = [f"{label_of_missing(x)}: {why_not(x)}" for x in evaluation.not_computed]
    for title, items in (("Not computed", lines), ("Notes", notes_on(evaluation))):
        if items:
            shown.append(Text(title, style="bold"))
            shown += [Padding(Text(item), (0, 0, 0, 2)) for item in items]
    return Group(*shown)


def _table(part: Topic, figures: list[Figure]) -> Table:
    table = Table(title=part.capitalize(), title_justify="left", header_style="bold", box=SIMPLE)
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("reading")
    for figure, chosen in figures_to_show(part, figures):
        about = f"\n{figure.attribute}" if figure.attribute else ""
        about += f" ({chosen})" if chosen else ""
        name = Text.assemble(label_of(figure), (about, "dim"))
        table.add_row(name, f"{figure.value:.3g}", Text(reading(figure)))
    return table


_NOT_TRIED = "not tried"


def scenario_rows(figures: Iterable[Figure]) -> list[list[str]]:
    """Say what each attack found by scenario, under a row of names; the worst comes first.

    Empty where there is only one scenario.
    """
    found: dict[str | None, dict[str, Figure]] = {}
    for figure in figures:
        if figure.measure in LINKAGE:
            found.setdefault(figure.attribute, {})[figure.measure] = figure
    if len(found) < 2:
        return []
    rows = sorted(found.items(), key=lambda row: -max(f.at_most for f in row[1].values()))
    return [
        ["the attacker ...", *(MEASURES[measure].label for measure in LINKAGE)],
        *(
            [
                label or "knows all masked attributes",
                *(percent(each[m].value) if m in each else _NOT_TRIED for m in LINKAGE),
            ]
            for label, each in rows
        ),
    ]


def _scenarios(rows: list[list[str]]) -> Table:
    table = Table(title="Scenarios", title_justify="left", header_style="bold", box=SIMPLE)
    for number, name in enumerate(rows[0]):
        table.add_column(name, justify="right" if number else "left")
    for cells in rows[1:]:
        table.add_row(*map(escape, cells))
    return table


def figures_to_show(part: Topic, figures: Iterable[Figure]) -> Iterator[tuple[Figure, str]]:
    """Choose the worst figure of each measure, and say of how many; of learning, show all.

    Of uses that of each, whichever group it is.
    """
    for (name, _), group in groupby(figures, lambda f: (f.measure, f.facts.get("use"))):
        measure, of_measure = MEASURES[name], list(group)
        if part == "learning" or len(of_measure) == 1:
            yield from ((figure, "") for figure in of_measure)
            continue
        ordered = sorted(of_measure, key=lambda f: -measure.badness(f.value))
        if measure.two_sided:
            yield ordered[0], f"lowest of {len(ordered)}"
            yield ordered[-1], f"highest of {len(ordered)}"
        else:
            yield ordered[0], f"worst of {len(ordered)}"
