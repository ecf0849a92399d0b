"""What an evaluation says, in the order in which people want to read it."""

from collections.abc import Iterator

from microveil.compare.figures import MEASURES, Part
from microveil.judge.evaluation import Evaluation
from microveil.show.evaluations import figures_to_show


def readings_of(evaluation: Evaluation, part: Part) -> Iterator[tuple[str, str, str]]:
    """Give the worst figure of each measure: the figure, what it is about, and its reading."""
    figures = [f for f in evaluation.figures if MEASURES[f.measure].part == part]
    for figure, chosen in figures_to_show(part, figures):
        about = ", ".join(filter(None, (figure.attribute, chosen)))
        yield f"{figure.label}: {figure.value:.3g}", about and f"({about})", figure.reading


def remarks(evaluation: Evaluation) -> list[str]:
    """Give what to know when reading the figures, and what there are no figures of."""
    absent = [f"{x.label}: not computed, {x.reason}." for x in evaluation.not_computed]
    return [*evaluation.notes, *absent]
