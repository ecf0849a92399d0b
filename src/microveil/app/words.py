"""What an evaluation says, in the order in which people want to read it."""

from collections.abc import Iterator
from typing import Literal

from microveil.evaluation import MEASURES, Evaluation
from microveil.evaluation.result import figures_to_show

Part = Literal["utility", "risk"]

_FIRST = (
    "IL1s per cell", "difference in Pearson correlations", "share unchanged",
    "record linkage", "rank interval disclosure", "unique records",
)  # fmt: skip


def readings_of(evaluation: Evaluation, part: Part) -> Iterator[tuple[str, str, str]]:
    """Give the worst figure of each measure: the figure, what it is about, and its reading."""
    figures = [f for f in evaluation.figures if MEASURES[f.measure].part == part]
    for figure, chosen in figures_to_show(part, figures):
        about = ", ".join(filter(None, (figure.attribute, chosen)))
        yield f"{figure.measure}: {figure.value:.3g}", about and f"({about})", figure.reading


def headline(evaluation: Evaluation, part: Part) -> list[str]:
    """Give the few readings that tell most."""
    return [
        f"{reading[:1].upper()}{reading[1:]} {about}".rstrip()
        for figure, about, reading in readings_of(evaluation, part)
        if figure.rpartition(": ")[0] in _FIRST
    ]


def remarks(evaluation: Evaluation) -> list[str]:
    """Give what to know when reading the figures, and what there are no figures of."""
    absent = [f"{x.measure}: not computed, {x.reason}." for x in evaluation.not_computed]
    return [*evaluation.notes, *absent]
