"""Grades: whether a release is useful and how risky it is, by one rule that is printed with them.

The verdict of `protect`, the report, the page and `explore` all take theirs from here.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from microveil.compare.figures import LINKAGE, MEASURES, Figure, percent
from microveil.measures.disclosure_risk import NARROW

Grade = Literal["good", "fair", "poor", "unknown"]

LOW_LINKAGE, MEDIUM_LINKAGE = 0.1, 0.2
"""Risk is low, and a release passes, up to the first share of people linked; then medium."""

ATTACKS = (*LINKAGE, "risk.linkage_with_kept", "risk.linkage_of_units")
"""Measures of how many people are linked; the last two with kept columns, and by whole units."""

LIMITS = {
    "utility.il1s": (0.1 / math.sqrt(2), 0.5 / math.sqrt(2)),
    "utility.quantiles": (0.25, 1.0),
    "utility.pearson": (0.1, 0.3),
    "utility.total_variation": (0.05, 0.2),
    "utility.cramers_v": (0.1, 0.3),
    **dict.fromkeys(ATTACKS, (LOW_LINKAGE, MEDIUM_LINKAGE)),
    "risk.unique_records": (0.0, 0.05),
}
"""By measure: up to the first a figure is good, up to the second it is fair."""

PASS_RULE = (
    f"It passes while no attack links more than {percent(LOW_LINKAGE)} of the people an intruder "
    "knows; of a figure from a sample the upper end of the 95% interval counts."
)
RISK_RULE = (
    f"Risk is low, and a release passes, while no attack links more than {percent(LOW_LINKAGE)} of "
    "the people an intruder knows, in any scenario and with kept columns known, and nobody is "
    "unique in quasi-identifiers that were named; it is medium up to "
    f"{percent(MEDIUM_LINKAGE)} and 5%. Of a figure from a sample the upper end of the 95% "
    "interval counts."
)
USEFULNESS_RULE = (
    "Usefulness is good while numbers move by 0.1 standard deviations or less on average, no "
    "correlation (of categories: Cramér's V) changes by more than 0.1 and no more than 5% of "
    "records would have to change category; fair up to 0.5, 0.3 and 20%. If it is not known which "
    "record is whose, quantiles take the place of values: 0.25 and 1 standard deviation."
)
RULES = (
    f"{RISK_RULE} {USEFULNESS_RULE} These are rules of thumb: what is good enough depends on the "
    "use."
)

PUBLISH = "Publish these two together: the certificate holds the file's SHA-256."
"""Said of a protected file and its certificate under a passing verdict only."""

_ROUNDING = 1 + 1e-9
_ORDER: list[Grade] = ["unknown", "good", "fair", "poor"]
_USEFULNESS: dict[Grade, str] = {
    "good": "Good: little is lost", "fair": "Fair: some is lost", "poor": "Poor: much is lost",
    "unknown": "Not measured",
}  # fmt: skip
_RISK: dict[Grade, str] = {
    "good": "Low", "fair": "Medium", "poor": "High", "unknown": "Not measured",
}  # fmt: skip

Say = Callable[[Figure], str]


@dataclass(frozen=True)
class Card:
    """A question, a short answer and the sentences it rests on, first the one that decided it."""

    question: str
    grade: Grade
    answer: str
    sentences: tuple[str, ...]


def worst(figures: Iterable[Figure], measure: str) -> Figure | None:
    """Return the figure of a measure that a steward should see first."""
    found = [figure for figure in figures if figure.measure == measure]
    return max(found, key=lambda f: MEASURES[measure].badness(f.at_most), default=None)


def worst_linkage(figures: Iterable[Figure]) -> Figure | None:
    """Return the most successful attack of all scenarios."""
    found = [figure for figure in figures if figure.measure in ATTACKS]
    return max(found, key=lambda f: f.at_most, default=None)


def worst_loss(figures: Sequence[Figure]) -> Figure | None:
    """Return the figure that decides on usefulness."""
    of_use = [measure for measure in LIMITS if MEASURES[measure].part == "utility"]
    if worst(figures, "utility.il1s"):
        of_use.remove("utility.quantiles")
    found = [figure for measure in of_use if (figure := worst(figures, measure)) is not None]
    return max(found, key=_badness, default=None)


def kept_point_to_people(figures: Sequence[Figure]) -> Figure | None:
    """Return how many combinations of kept columns point to one person, if any do."""
    unique = worst(figures, "risk.unique_kept")
    return unique if unique is not None and unique.value else None


def passes(figures: Sequence[Figure]) -> bool:
    """Whether a release passes: its risk is low."""
    return how_risky(figures).grade == "good"


def said_of(figures: Sequence[Figure]) -> str:
    """Say in one sentence whether a release passes."""
    grade = how_risky(figures).grade
    if grade == "unknown":
        return "There is no verdict: attacks could not be scored."
    return "The release passes." if grade == "good" else "The release does not pass."


def how_far(figures: Sequence[Figure]) -> list[str]:
    """Say in one plain figure what was lost, if any attribute holds numbers."""
    return [_how_far(figure) for figure in figures if figure.measure == "utility.il1s"]


def how_useful(figures: Sequence[Figure]) -> Card:
    """Grade what is left of the data."""
    measures: dict[str, Say] = {
        "utility.il1s": _how_far,
        "utility.quantiles": lambda f: (
            f"The quantile that moves most, one of {f.attribute}, moves by "
            f"{abs(f.value):.2g} standard deviations."
        ),
        "utility.pearson": lambda f: (
            f"The correlation that changes most, {f.attribute}, changes by {abs(f.value):.2g}."
        ),
        "utility.total_variation": lambda f: (
            f"Of categories, {f.attribute} changes most: {percent(f.value)} of records would have "
            "to change theirs to restore the original shares."
        ),
        "utility.cramers_v": lambda f: (
            f"The association of categories that changes most, {f.attribute}, changes by "
            f"{abs(f.value):.2g}."
        ),
    }
    if worst(figures, "utility.il1s"):
        del measures["utility.quantiles"]
    return _graded("How useful is it?", _USEFULNESS, figures, measures)


def how_risky(figures: Sequence[Figure], unscored: str | None = None) -> Card:
    """Grade who can be found; without attacks it is not known, for the reason given."""
    measures: dict[str, Say] = {
        **dict.fromkeys(ATTACKS, _reading),
        "risk.unique_combinations": _reading,
        "risk.unique_records": _reading,
        "risk.unique_kept": _reading,
        "risk.narrow_clusters": lambda f: (
            f"{percent(f.value)} of records share their masked {f.attribute} with a cluster so "
            f"narrow ({NARROW} standard deviations) that it tells the value closely."
        ),
        "risk.clusters_without_noise": lambda f: (
            f"The masked {f.attribute} of {percent(f.value)} of records is that of their cluster, "
            "without noise."
        ),
    }
    linked = worst_linkage(figures)
    told = [f for f in figures if f.measure not in ATTACKS or f is linked]
    if linked is not None and grade_of(linked) == "good":
        told = [figure for figure in told if figure.measure != "risk.unique_combinations"]
    card = _graded("How risky is it?", _RISK, told, measures)
    if linked is not None:
        return card
    why = unscored or "attacks were not scored"
    sentences = (f"{why[:1].upper()}{why[1:]}.", *card.sentences)
    return Card(card.question, "unknown", _RISK["unknown"], sentences)


def grade_of(figure: Figure) -> Grade:
    """Grade one figure; unknown if its measure has no limits."""
    if figure.measure not in LIMITS:
        return "unknown"
    good, fair = (limit * _ROUNDING for limit in LIMITS[figure.measure])
    value = abs(figure.at_most)
    return "good" if value <= good else "fair" if value <= fair else "poor"


def _graded(
    question: str,
    answers: dict[Grade, str],
    figures: Sequence[Figure],
    measures: dict[str, Say],
) -> Card:
    told = [figure for m in measures if (figure := worst(figures, m)) and _tells(figure)]
    told.sort(key=_badness, reverse=True)
    grade = grade_of(told[0]) if told else "unknown"
    sentences = tuple(measures[figure.measure](figure) for figure in told)
    return Card(question, grade, answers[grade], sentences)


def _badness(figure: Figure) -> tuple[int, float]:
    """Tell which figures come first: those of the worst grade, and the furthest beyond it."""
    _, fair = LIMITS.get(figure.measure, (1.0, 1.0))
    return _ORDER.index(grade_of(figure)), abs(figure.at_most) / fair


def _tells(figure: Figure) -> bool:
    """Whether a figure is worth a sentence: that no record is in a bad place is not."""
    of_utility = MEASURES[figure.measure].part == "utility"
    return bool(figure.value) or of_utility or figure.measure in ATTACKS


def _how_far(figure: Figure) -> str:
    return f"A number moves by {math.sqrt(2) * figure.value:.2g} standard deviations on average."


def _reading(figure: Figure) -> str:
    """Make a reading a sentence."""
    reading = figure.reading.removesuffix("; higher is riskier")
    return f"{reading[:1].upper()}{reading[1:]}."
