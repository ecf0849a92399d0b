"""The first screen: whether a release is useful, how risky it is and what ε covers, in words."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from typing import Literal

from microveil.core.methods import METHODS
from microveil.evaluation.result import MEASURES, Evaluation, Figure, percent
from microveil.evaluation.risk import NARROW
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.guarantees import exactly, rounded_up

Grade = Literal["good", "fair", "poor", "unknown"]

LINKAGE = ("linkage.nearest", "linkage.one_to_one", "linkage.structure")
LIMITS = {
    "utility.il1s": (0.1 / math.sqrt(2), 0.5 / math.sqrt(2)),
    "utility.quantiles": (0.25, 1.0),
    "utility.pearson": (0.1, 0.3),
    "utility.total_variation": (0.05, 0.2),
    **dict.fromkeys(LINKAGE, (0.05, 0.2)),
    "risk.unique_records": (0.0, 0.05),
}
"""Rules of thumb by measure: up to the first a figure is good, up to the second it is fair."""

RULES = (
    "Usefulness is called good while numbers move by 0.1 standard deviations or less on average, "
    "no correlation changes by more than 0.1 and no more than 5% of records would have to change "
    "category; fair up to 0.5, 0.3 and 20%. If the order of rows is not known, quantiles take the "
    "place of values: 0.25 and 1 standard deviation. Risk is called low while the most "
    "successful of three attacks links 5% of records or fewer and none is unique in the "
    "quasi-identifiers, and medium up to 20% and 5%. "
    "These are rules of thumb: what is good enough depends on the use."
)

_ANSWERS: dict[str, dict[Grade, str]] = {
    "useful": {"good": "Good: little is lost", "fair": "Fair: some is lost",
               "poor": "Poor: much is lost", "unknown": "Not measured"},
    "risky": {"good": "Low", "fair": "Medium", "poor": "High", "unknown": "Not measured"},
}  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A question, a short answer and the sentences it rests on."""

    question: str
    grade: Grade
    answer: str
    sentences: tuple[str, ...]


def cards(evaluation: Evaluation, certificate: Certificate | None) -> list[Card]:
    """Answer the three questions a data holder has."""
    return [_useful(evaluation), _risky(evaluation), _covered(certificate)]


def worst(evaluation: Evaluation, measure: str) -> Figure | None:
    """Return the figure of a measure that a steward should see first."""
    found = [figure for figure in evaluation.figures if figure.measure == measure]
    return max(found, key=lambda f: MEASURES[measure].badness(f.value), default=None)


def _useful(evaluation: Evaluation) -> Card:
    measures: dict[str, Callable[[Figure], str]] = {
        "utility.il1s": lambda f: (
            f"A number moves by {math.sqrt(2) * f.value:.2g} standard deviations on average."
        ),
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
    }
    if worst(evaluation, "utility.il1s"):
        del measures["utility.quantiles"]
    return _graded("How useful is it?", _ANSWERS["useful"], evaluation, measures)


def _risky(evaluation: Evaluation) -> Card:
    measures: dict[str, Callable[[Figure], str]] = {
        **{id_: lambda f: f"{_plainly(f.reading)}." for id_ in LINKAGE},
        "risk.unique_combinations": lambda f: f"{_plainly(f.reading)}.",
        "risk.unique_records": lambda f: f"{_plainly(f.reading)}.",
        "risk.narrow_clusters": lambda f: (
            f"{percent(f.value)} of records share their masked {f.attribute} with a cluster so "
            f"narrow ({NARROW} standard deviations) that it tells the value closely."
        ),
        "risk.clusters_without_noise": lambda f: (
            f"The masked {f.attribute} of {percent(f.value)} of records is that of their cluster, "
            "without noise."
        ),
    }
    card = _graded("How risky is it?", _ANSWERS["risky"], evaluation, measures)
    if worst(evaluation, LINKAGE[0]):
        return card
    reason = "Which record is whose is not known here, so no attempt was made to link records."
    sentences = (reason, *card.sentences)
    return Card(card.question, "unknown", _ANSWERS["risky"]["unknown"], sentences)


def _graded(
    question: str,
    answers: dict[Grade, str],
    evaluation: Evaluation,
    measures: dict[str, Callable[[Figure], str]],
) -> Card:
    figures = [figure for m in measures if (figure := worst(evaluation, m)) and _tells(figure)]
    grade = _worst_grade(_grade(f) for f in figures if f.measure in LIMITS)
    sentences = tuple(measures[f.measure](f) for f in figures)
    return Card(question, grade, answers[grade], sentences)


def _grade(figure: Figure) -> Grade:
    good, fair = LIMITS[figure.measure]
    value = abs(figure.value)
    return "good" if value <= good else "fair" if value <= fair else "poor"


def _worst_grade(grades: Iterable[Grade]) -> Grade:
    order: list[Grade] = ["unknown", "good", "fair", "poor"]
    return max(grades, key=order.index, default="unknown")


def _covered(certificate: Certificate | None) -> Card:
    question = "What does ε cover?"
    if certificate is None:
        return Card(
            question,
            "unknown",
            "Not known",
            ("There is no certificate beside the protected file that would say.",),
        )
    fixed, reclustered, released = certificate.levels
    covers = [level for level in certificate.levels if level.enforced]
    answer = f"ε = {exactly(certificate.epsilon)}, " + (
        {1: "with fixed clusters", 2: "re-clustered", 3: "the table as released"}[covers[-1].level]
        if covers
        else "but with no bound"
    )
    likely = (
        "changing one person's values makes any set of masked values at most {} times more or less "
        "likely"
    )
    sentences = []
    if released.epsilon is not None:
        sentences.append(f"{likely.format(_factor(released.epsilon)).capitalize()}.")
        sentences.append("No clusters are formed that would show through. Exact statements: below.")
        return Card(question, "good", answer, tuple(sentences))
    from_data = any(METHODS[a.method].promise.caveat for a in certificate.attributes)
    scales = (" and noise scales", ", with noise scales fixed") if from_data else ("", "")
    if fixed.epsilon is not None:
        sentences.append(
            f"With fixed clusters{scales[0]}, {likely.format(_factor(fixed.epsilon))}."
        )
    sentences.append(
        f"Re-clustered{scales[1]}: {_bound(reclustered.epsilon)}. The table as released: no bound; "
        "rows can be linked by who shares values with whom. Exact statements: below."
    )
    return Card(question, "fair" if covers else "poor", answer, tuple(sentences))


def _bound(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else f"ε of at most {rounded_up(epsilon)}"


def _factor(epsilon: float) -> str:
    """Write exp(ε) with three digits, never below what it is."""
    if epsilon > 13:
        return f"exp({rounded_up(epsilon)}), that is over 400,000,"
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(math.exp(epsilon))
    return f"{digits:,f}"


def _plainly(reading: str) -> str:
    return reading.removesuffix("; higher is riskier")


def done(certificate: Certificate) -> list[str]:
    """Say what was done to the table."""
    sentences = []
    for categories in (False, True):
        masked = [
            a for a in certificate.attributes if (a.kind in ("nominal", "ordinal")) == categories
        ]
        for name, trim in dict.fromkeys((a.method, a.trim) for a in masked):
            method = METHODS[name]
            what = method.on_categories if categories else method.on_numbers
            names = ", ".join(a.name for a in masked if (a.method, a.trim) == (name, trim))
            sentences.append(f"{names} ({name}): {what}{_trimmed(trim)}.")
    for group in certificate.groups:
        done = "replaced by their average" if group.pooling == "average" else "exchanged at random"
        sentences.append(
            f"Masked values of {', '.join(group.attributes)} were {done} within joint clusters of "
            f"{group.anonymity:,} records or more: nobody picks a person's row by them with a "
            f"better chance than 1 in {group.anonymity:,}."
        )
    if certificate.dropped:
        sentences.append(f"Left out: {', '.join(certificate.dropped)}.")
    if certificate.kept:
        sentences.append(f"Published as they are: {', '.join(certificate.kept)}.")
    return sentences


def _trimmed(trim: float | None) -> str:
    if not trim:
        return ""
    return f"; means leave out {trim:.3g} of a cluster's records, rounded down, at each end"


def repeated(certificate: Certificate | None, plan: Plan | None, seed: int | None) -> list[str]:
    """Say how to make the release again, and what then differs."""
    if certificate is None and plan is None:
        return ["That takes the plan, which the private detail holds; it was not given."]
    made = [f"Made with {certificate.software} at {certificate.created}."] if certificate else []
    if plan is None:
        made.append("The plan is in the private detail, which was not given.")
    elif seed is not None:
        made.append("The random numbers were seeded: this command makes the same release again.")
    elif certificate and certificate.randomness == "seeded":
        made.append(
            "The random numbers were seeded: with the same --seed this command makes the same "
            "release again."
        )
    else:
        made.append(
            "The noise came from the operating system and cannot be drawn again: this command "
            "makes another release by the same plan. Do not publish both; each spends the budget."
        )
    return made


def _tells(figure: Figure) -> bool:
    """Whether a figure is worth a sentence: that no record is in a bad place is not."""
    of_utility = MEASURES[figure.measure].part == "utility"
    return bool(figure.value) or of_utility or figure.measure in LINKAGE
