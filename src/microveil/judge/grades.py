"""Grades: how useful and how risky a release is, by one rule for verdict, report, page and explore.

A figure is graded by the limits of its row in the registries; a release by the worst of its
figures. `microveil.show.words` says the rule.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from microveil.attacks.attack_rows import ATTACKS, GRADED
from microveil.compare.figures import Figure
from microveil.judge.registry import MEASURES

Grade = Literal["good", "fair", "poor", "unknown"]

_ROUNDING = 1 + 1e-9
_ORDER: list[Grade] = ["unknown", "good", "fair", "poor"]
_OF_USE = (
    "utility.il1s", "utility.quantiles", "utility.pearson", "utility.total_variation",
    "utility.cramers_v",
)  # fmt: skip
_OF_RISK = (
    *GRADED, "risk.unique_combinations", "risk.unique_records", "risk.unique_kept",
    "risk.narrow_clusters", "risk.clusters_without_noise",
)  # fmt: skip


@dataclass(frozen=True)
class Graded:
    """A grade, and the figures it rests on, first the one that decided it."""

    grade: Grade
    figures: tuple[Figure, ...]


def worst(figures: Iterable[Figure], measure: str) -> Figure | None:
    """Return the figure of a measure that a steward should see first."""
    found = [figure for figure in figures if figure.measure == measure]
    return max(found, key=lambda f: MEASURES[measure].badness(f.at_most), default=None)


def worst_linkage(figures: Iterable[Figure]) -> Figure | None:
    """Return the most successful of the attacks that are graded, in all scenarios."""
    found = [figure for figure in figures if figure.measure in GRADED]
    return max(found, key=lambda f: f.at_most, default=None)


def worst_loss(figures: Sequence[Figure]) -> Figure | None:
    """Return the figure that decides on usefulness."""
    return next(iter(how_useful(figures).figures), None)


def kept_point_to_people(figures: Sequence[Figure]) -> Figure | None:
    """Return how many combinations of kept columns point to one person, if any do."""
    unique = worst(figures, "risk.unique_kept")
    return unique if unique is not None and unique.value else None


def passes(figures: Sequence[Figure]) -> bool:
    """Whether a release passes: its risk is low."""
    return how_risky(figures).grade == "good"


def how_useful(figures: Sequence[Figure]) -> Graded:
    """Grade what is left of the data.

    If it is not known which record is whose, quantiles take the place of values.
    """
    instead = "utility.quantiles" if worst(figures, "utility.il1s") else ""
    return _graded(figures, [measure for measure in _OF_USE if measure != instead])


def how_risky(figures: Sequence[Figure]) -> Graded:
    """Grade who can be found; without attacks it is not known."""
    linked = worst_linkage(figures)
    told = [f for f in figures if f.measure not in GRADED or f is linked]
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
    value = graded_value(figure)
    return "good" if value <= good else "fair" if value <= fair else "poor"


def graded_value(figure: Figure) -> float:
    """Return what is compared with the limits of a figure's measure."""
    return as_compared(abs(figure.at_most), figure.measure)


def as_compared(value: float, measure: str) -> float:
    """Take what is hardly above a limit, because floating-point numbers round, for the limit."""
    limits = MEASURES[measure].limits or ()
    return next((limit for limit in limits if limit < value <= limit * _ROUNDING), value)


def _graded(figures: Sequence[Figure], measures: Sequence[str]) -> Graded:
    told = [figure for m in measures if (figure := worst(figures, m)) and _tells(figure)]
    told.sort(key=_badness, reverse=True)
    return Graded(grade_of(told[0]) if told else "unknown", tuple(told))


def _badness(figure: Figure) -> tuple[int, float]:
    """Tell which figures come first: those of the worst grade, and the furthest beyond it."""
    _, fair = MEASURES[figure.measure].limits or (1.0, 1.0)
    return _ORDER.index(grade_of(figure)), graded_value(figure) / fair


def _tells(figure: Figure) -> bool:
    """Whether a figure is worth a sentence: that no record is in a bad place is not."""
    of_use = MEASURES[figure.measure].topic == "utility"
    return bool(figure.value) or of_use or figure.measure in ATTACKS
