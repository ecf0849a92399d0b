"""What an evaluation says, in the order in which people want to read it."""

from collections.abc import Iterator
from typing import Literal

from microveil.evaluation import MEASURES, Evaluation, Figure
from microveil.evaluation.result import figures_to_show

Part = Literal["utility", "risk"]

_FIRST = (
    "utility.il1s", "utility.pearson", "utility.unchanged", "linkage.nearest",
    "linkage.one_to_one", "linkage.structure",
    "risk.rank_disclosure", "risk.unique_records",
)  # fmt: skip


def readings_of(evaluation: Evaluation, part: Part) -> Iterator[tuple[str, str, str]]:
    """Give the worst figure of each measure: the figure, what it is about, and its reading."""
    for figure, about in _to_show(evaluation, part):
        yield f"{figure.label}: {figure.value:.3g}", about, figure.reading


def headline(evaluation: Evaluation, part: Part) -> list[str]:
    """Give the few readings that tell most."""
    return [
        f"{figure.reading[:1].upper()}{figure.reading[1:]} {about}".rstrip()
        for figure, about in _to_show(evaluation, part)
        if figure.measure in _FIRST
    ]


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
