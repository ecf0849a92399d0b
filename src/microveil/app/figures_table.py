"""What an evaluation says, in the order in which people want to read it."""

from collections.abc import Iterator
from typing import Literal

from microveil.judge.evaluation import MEASURES, Evaluation, Figure
from microveil.show.evaluations import figures_to_show

Part = Literal["utility", "risk"]


def readings_of(evaluation: Evaluation, part: Part) -> Iterator[tuple[str, str, str]]:
    """Give the worst figure of each measure: the figure, what it is about, and its reading."""
    for figure, about in _to_show(evaluation, part):
        yield f"{figure.label}: {figure.value:.3g}", about, figure.reading


def _to_show(evaluation: Evaluation, part: Part) -> Iterator[tuple[Figure, str]]:
    """Choose the worst figure of each measure; say in brackets what it is about."""
    figures = [f for f in evaluation.figures if MEASURES[f.measure].part == part]
    for figure, chosen in figures_to_show(part, figures):
        about = ", ".join(filter(None, (figure.attribute, chosen)))
        yield figure, about and f"({about})"


def remarks(evaluation: Evaluation) -> list[str]:
    """Give what to know when reading the figures, and what there are no figures of."""
    absent = [f"{x.label}: not computed, {x.reason}." for x in evaluation.not_computed]
    return [*evaluation.notes, *absent]
