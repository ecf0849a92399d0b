"""What an evaluation says, in the order in which people want to read it."""

from collections.abc import Iterator

from microveil.compare.figures import Topic
from microveil.compare.reasons import why_not
from microveil.judge.evaluated import Evaluation
from microveil.judge.registry import MEASURES
from microveil.show.evaluations import figures_to_show
from microveil.show.words.grading import notes_on
from microveil.show.words.readings import label_of, label_of_missing, reading


def readings_of(evaluation: Evaluation, part: Topic) -> Iterator[tuple[str, str, str]]:
    """Give the worst figure of each measure: the figure, what it is about, and its reading."""
    figures = [f for f in evaluation.figures if MEASURES[f.measure].topic == part]
    for figure, chosen in figures_to_show(part, figures):
        about = ", ".join(filter(None, (figure.attribute, chosen)))
        yield f"{label_of(figure)}: {figure.value:.3g}", about and f"({about})", reading(figure)


def remarks(evaluation: Evaluation) -> list[str]:
    """Give what to know when reading the figures, and what there are no figures of."""
    absent = [
        f"{label_of_missing(x)}: not computed, {why_not(x)}." for x in evaluation.not_computed
    ]
    return [*notes_on(evaluation), *absent]
