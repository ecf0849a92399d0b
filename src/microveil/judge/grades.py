"""Grades: how useful and how risky a release is, by one rule for verdict, report, page and explore.

A figure is graded by the limits of its row in the registries; a release by the worst of its
figures. `microveil.show.words` says the rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from microveil.attacks.attack_rows import ATTACKS, GAINS, GRADED, Question
from microveil.compare.figures import Figure
from microveil.judge.registry import MEASURES
from microveil.measures.use_figures import USES

Grade = Literal["good", "fair", "poor", "unknown"]

GRADES: tuple[Grade, ...] = ("good", "fair", "poor")
_ORDER: list[Grade] = ["unknown", *GRADES]
_OF_USE = (
    "utility.il1s", "utility.quantiles", "utility.pearson", "utility.total_variation",
    "utility.cramers_v",
)  # fmt: skip
_OF_RISK = (
    *GRADED, *GAINS, "risk.unique_combinations", "risk.unique_records", "risk.unique_kept",
    "risk.narrow_clusters", "risk.clusters_without_noise", "risk.exact_values",
)  # fmt: skip


@dataclass(frozen=True)
class Graded:
    """A grade, and the figures it rests on, first the one that decided it."""

    grade: Grade
    figures: tuple[Figure, ...]


def worst(figures: Iterable[Figure], measure: str) -> Figure | None:
    """Return the figure of a measure that a steward should see first."""
    found = [figure for figure in figures if figure.measure == measure]
    return max(found, key=_place, default=None)


def _place(figure: Figure) -> tuple[float, float]:
    badness = MEASURES[figure.measure].badness
    counted = figure.counted if figure.measure in ATTACKS else figure.at_most
    return badness(counted), badness(figure.value)


def worst_linkage(figures: Iterable[Figure]) -> Figure | None:
    """Return the most successful of the attacks that are graded, in all scenarios."""
    found = [figure for figure in figures if figure.measure in GRADED]
    return max(found, key=_place, default=None)


def worst_answer(figures: Iterable[Figure], question: Question) -> Figure | None:
    """Return what the most successful attacker of a question gained, and of which attribute."""
    found = [f for f in figures if f.measure in GAINS and ATTACKS[f.measure].question == question]
    return max(found, key=_place, default=None)


def worst_loss(figures: Sequence[Figure]) -> Figure | None:
    """Return the figure that decides on usefulness."""
    return next(iter(how_useful(figures).figures), None)


def kept_point_to_people(figures: Sequence[Figure]) -> Figure | None:
    """Return how many combinations of kept columns point to one person, if any do."""
    unique = worst(figures, "risk.unique_kept")
    return unique if unique is not None and unique.value else None


def passes(figures: Sequence[Figure]) -> bool:
    """Whether a release passes: its risk is low, but that gains over a control may be fair."""
    found = how_risky(figures)
    return found.grade != "unknown" and all(map(_may_pass, found.figures))


def _may_pass(figure: Figure) -> bool:
    grade = grade_of(figure)
    return grade in ("good", "unknown") or (grade == "fair" and figure.measure in GAINS)


def how_useful(figures: Sequence[Figure]) -> Graded:
    """Grade what is left of the data, by what it is used for where that is known.

    Without uses, if values were exchanged, rows belong to nobody; if it is not known which record
    is whose, rows cannot be compared. Quantiles then take the place of values.
    """
    used = _graded(figures, USES)
    if used.figures:
        return used
    moved = worst(figures, "utility.il1s")
    by_rows = moved is not None and "exchanged" not in moved.facts
    left_out = "utility.quantiles" if by_rows else "utility.il1s"
    return _graded(figures, [measure for measure in _OF_USE if measure != left_out])


def how_risky(figures: Sequence[Figure]) -> Graded:
    """Grade who can be found; without attacks it is not known."""
    linked = worst_linkage(figures)
    answers = [worst_answer(figures, question) for question in get_args(Question)]
    told = [f for f in figures if f.measure not in (*GRADED, *GAINS) or f is linked]
    told += [answer for answer in answers if answer is not None and grade_of(answer) != "good"]
    if linked is not None and grade_of(linked) == "good":
        told = [figure for figure in told if figure.measure != "risk.unique_combinations"]
    found = _graded(told, _OF_RISK)
    return found if linked is not None else Graded("unknown", found.figures)


def grade_of(figure: Figure) -> Grade:
    """Grade one figure; unknown if its measure has no limits."""
    limits = MEASURES[figure.measure].limits
    if limits is None:
        return "unknown"
    good, fair = limits
    value = figure.counted
    return "good" if value <= good else "fair" if value <= fair else "poor"


def place_of(found: Graded) -> float | None:
    """Place a grade between 0, the best, and 1 by the figure that decided on it."""
    if found.grade == "unknown":
        return None
    figure = found.figures[0]
    limits = MEASURES[figure.measure].limits
    if limits is None:
        return None
    good, fair = limits
    if found.grade == "good":
        within = figure.counted / good if good else 0.0
    elif found.grade == "fair":
        within = (figure.counted - good) / (fair - good)
    else:
        within = 1 - fair / figure.counted
    return (GRADES.index(found.grade) + min(max(within, 0.0), 1.0)) / 3


def _graded(figures: Sequence[Figure], measures: Sequence[str]) -> Graded:
    told = [figure for m in measures if (figure := worst(figures, m)) and _tells(figure)]
    told.sort(key=_badness, reverse=True)
    return Graded(grade_of(told[0]) if told else "unknown", tuple(told))


def _badness(figure: Figure) -> tuple[int, float]:
    """Tell which figures come first: those of the worst grade, and the furthest beyond it."""
    _, fair = MEASURES[figure.measure].limits or (1.0, 1.0)
    return _ORDER.index(grade_of(figure)), figure.counted / fair


def _tells(figure: Figure) -> bool:
    """Whether a figure is worth a sentence: that no record is in a bad place is not."""
    of_use = MEASURES[figure.measure].topic in ("uses", "utility")
    return bool(figure.value) or of_use or figure.measure in ATTACKS
