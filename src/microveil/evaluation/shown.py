"""What people see of an evaluation at a glance: two grades, the worst figures, a chart."""

from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING

from microveil.charts.summary import MOST_BARS, Summary
from microveil.evaluation.grades import how_risky, how_useful
from microveil.evaluation.result import MEASURES, Evaluation, figures_to_show

if TYPE_CHECKING:
    import altair as alt

_DRAWN = {
    "utility.sse_sst": "error (SSE/SST)",
    "utility.total_variation": "records that would have to change category",
}


def summary(evaluation: Evaluation) -> Summary:
    """Say how risky and how useful a release is, with the worst figures of each measure."""
    title = (
        f"Evaluation of {evaluation.released:,} released of {evaluation.records:,} records, "
        f"{len(evaluation.attributes):,} attributes; private: it depends on the data"
    )
    cards = {
        "Risk": how_risky(evaluation.figures, evaluation.unscored),
        "Usefulness": how_useful(evaluation.figures),
    }
    lines = [
        f"{name}: {' '.join([card.answer + '.', *card.sentences[:1]])}"
        for name, card in cards.items()
    ]
    rows = []
    for part, figures in groupby(evaluation.figures, lambda f: MEASURES[f.measure].part):
        for figure, chosen in figures_to_show(part, figures):
            about = f"{figure.attribute or ''}{f' ({chosen})' if chosen else ''}"
            rows.append((figure.label, f"{figure.value:.3g}", about))
    return Summary(title, lines, ("measure", "value", "about"), rows, _chart(evaluation))


def _chart(evaluation: Evaluation) -> "Callable[[], alt.LayerChart] | None":
    """Draw what was lost of each attribute, those that lost most first."""
    measure = next((m for m in _DRAWN if any(f.measure == m for f in evaluation.figures)), None)
    if measure is None:
        return None
    found = [f for f in evaluation.figures if f.measure == measure]
    shown = sorted(found, key=lambda f: -f.value)[:MOST_BARS]

    def draw() -> "alt.LayerChart":
        from microveil.charts.overviews import amounts

        names, values = [f.attribute or "" for f in shown], [f.value for f in shown]
        title = _DRAWN[measure]
        return amounts(names, values, title=title, description=f"{title} by attribute")

    return draw
