"""Grades, the rules they rest on, and the next step, in words."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microveil.attacks.attack_rows import LOW_LINKAGE, MEDIUM_LINKAGE
from microveil.compare.figures import Figure, NotComputed
from microveil.compare.pairing import NOT_PAIRED
from microveil.compare.reasons import why_not
from microveil.judge.change import Change
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import Grade, Graded, graded_value, how_risky, how_useful
from microveil.judge.registry import MEASURES
from microveil.show.words.numbers import deviations, percent, sentence
from microveil.show.words.readings import how_far, read_aloud

PASS_RULE = (
    f"A release passes if no attack finds more than {percent(LOW_LINKAGE)} of the people it looks "
    "for; for sampled figures we use the upper 95% limit, and no more than pooling proves."
)
_RISK_RULE = (
    f"Risk is low, and a release passes, if no attack finds more than {percent(LOW_LINKAGE)} of "
    "the people it looks for, in any scenario and with kept columns known, and nobody is unique in "
    "the quasi-identifiers you named; it is medium up to "
    f"{percent(MEDIUM_LINKAGE)} and 5%. For sampled figures we use the upper 95% limit, and no "
    "more than pooling proves."
)
_USEFULNESS_RULE = (
    "Usefulness is good if numbers move by at most 0.1 standard deviations on average, no "
    "correlation (for categories: Cramér's V) changes by more than 0.1, and at most 5% of records "
    "would have to change category; it is fair up to 0.5, 0.3 and 20%. If it is not known which "
    "record is whose, quantiles take the place of values: 0.25 and 1 standard deviation."
)
RULES = (
    f"{_RISK_RULE} {_USEFULNESS_RULE} These are rules of thumb: what is good enough depends on the "
    "use."
)
PUBLISH = "Publish these two together: the certificate holds the file's SHA-256."
"""Said of a protected file and its certificate under a passing verdict only."""

RISKY_RELEASE = (
    "the release was written, but no verdict says that it passes: do not publish it. Change the "
    "plan as the verdict says, or give --accept-risk"
)
ACCEPTED = "no verdict says that the release passes; --accept-risk accepted it all the same"

_USEFULNESS: dict[Grade, str] = {
    "good": "Good: little is lost", "fair": "Fair: some is lost", "poor": "Poor: much is lost",
    "unknown": "Not measured",
}  # fmt: skip
_RISK: dict[Grade, str] = {
    "good": "Low", "fair": "Medium", "poor": "High", "unknown": "Not measured",
}  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A question, a short answer and the sentences it rests on, first the one that decided it."""

    question: str
    grade: Grade
    answer: str
    sentences: tuple[str, ...]


def usefulness_card(figures: Sequence[Figure]) -> Card:
    """Answer how useful a release is."""
    found = how_useful(figures)
    told = tuple(map(_of_use, found.figures))
    return Card("How useful is it?", found.grade, _USEFULNESS[found.grade], told)


def risk_card(figures: Sequence[Figure], *, scored: bool = True) -> Card:
    """Answer how risky a release is; if attacks could not be made, say why."""
    found = how_risky(figures)
    told = tuple(map(_of_risk, found.figures))
    if found.grade == "unknown":
        missing = NotComputed((), NOT_PAIRED)
        why = "attacks were not made" if scored else f"attacks were not made: {why_not(missing)}"
        told = (sentence(why), *told)
    return Card("How risky is it?", found.grade, _RISK[found.grade], told)


def risk_answer(found: Graded) -> str:
    """Return the grade of a risk in a word."""
    return _RISK[found.grade]


def passes_or_not(figures: Sequence[Figure]) -> str:
    """Say in one sentence whether a release passes."""
    found = how_risky(figures)
    if found.grade == "unknown":
        return "There is no verdict: attacks could not be made."
    passes = "passes" if found.grade == "good" else "does not pass"
    return f"The release {passes}. {what_counts(found)}"


def what_counts(found: Graded) -> str:
    """Say which number a grade of a risk rests on, and the limit it was compared with."""
    figure = found.figures[0]
    limits = MEASURES[figure.measure].limits or (0.0, 0.0)
    counts = percent(graded_value(figure), limits)
    return f"What counts is {counts}; the limit is {percent(limits[0])}."


def notes_on(evaluation: Evaluation) -> list[str]:
    """Say what to know when reading the figures of an evaluation."""
    notes = []
    left_out = evaluation.records - evaluation.released
    if left_out:
        notes.append(
            f"{left_out:,} of {evaluation.records:,} original records are not in the release."
        )
    if evaluation.drawn is not None:
        notes.append(
            f"The tables are too large to be compared as a whole: {evaluation.drawn:,} of "
            f"{evaluation.released:,} records were drawn at random. Their people were looked for "
            "among all released rows, so that linkage is unbiased; one-to-one linkage assigns only "
            "those drawn, and may find a little more or less than assigning everyone. Rows that "
            "share values are counted in the whole release."
        )
    for where, incomplete in zip(("original", "release"), evaluation.incomplete, strict=True):
        if incomplete:
            notes.append(
                f"{incomplete:,} records of the {where} have missing values; measures of several "
                "attributes leave them out."
            )
    return notes


def change_in_words(change: Change) -> str:
    """Say what to change, and what that would do."""
    return f"{_what(change)}: {_effect(change)}"


def _what(change: Change) -> str:
    if change.kind == "pool":
        return _pooling(change)
    if change.kind == "drop":
        return f"drop {change.names[0]}, make it coarser or mask it"
    if change.kind == "mask kept":
        return f"mask the kept columns ({', '.join(change.names)}), so that they are pooled too"
    if change.kind == "explore":
        return "compare other plans with microveil explore"
    after = change.plan
    settings = [f"{name} = {json.dumps(getattr(after, name))}" for name in change.names]
    return f"set {', '.join(settings)}"


def _pooling(change: Change) -> str:
    before = change.earlier
    if before is None:
        return f"add anonymity = {change.most} to the plan"
    if before.groups:
        return f"remove groups and set anonymity = {change.most}"
    if before.anonymity:
        return f"raise anonymity from {before.anonymity} to {change.most}"
    return f"add anonymity = {change.most}"


def _effect(change: Change) -> str:
    if change.kind == "explore" or change.before is None:
        return "no single change that was tried loses less"
    what = _EFFECTS.get(change.measure or "", "linkage")
    if change.after is None:
        return (
            f"{what} {percent(change.before)} → at most 1 in {change.most} by the pooled attributes"
        )
    write = _WRITTEN.get(change.measure or "", percent)
    effect = f"{what} {write(change.before)} → about {write(change.after)}"
    if change.moved is None:
        return effect
    before, then = change.moved
    return (
        f"{effect}; a number then moves by about {deviations(float(f'{then:.2g}'))} on average "
        f"instead of {before:.2g}"
    )


_EFFECTS = {
    "linkage.own_values": "own values reunited beyond chance",
    "risk.linkage_of_units": "linkage of whole units",
    "risk.linkage_with_kept": "linkage with kept columns known",
    "risk.unique_kept": "rows with a unique combination of kept columns",
    "utility.il1s": "the average move of a number, in standard deviations,",
    "utility.quantiles": "the largest move of a quantile, in standard deviations,",
    "utility.pearson": "the largest change of a correlation",
    "utility.cramers_v": "the largest change of an association of categories",
    "utility.total_variation": "the largest share of records with another category",
}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "utility.il1s": lambda value: f"{2**0.5 * value:.2g}",
    **dict.fromkeys(
        ("utility.quantiles", "utility.pearson", "utility.cramers_v"),
        lambda value: f"{value:.2g}",
    ),
}


def _of_use(figure: Figure) -> str:
    if figure.measure == "utility.il1s":
        return how_far(figure)
    return _LOSSES[figure.measure](figure)


_LOSSES: dict[str, Callable[[Figure], str]] = {
    "utility.quantiles": lambda f: (
        f"The quantile that moves most, one of {f.attribute}, moves by "
        f"{deviations(float(f'{abs(f.value):.2g}'))}."
    ),
    "utility.pearson": lambda f: (
        f"The correlation that changes most, {f.attribute}, changes by {abs(f.value):.2g}."
    ),
    "utility.total_variation": lambda f: (
        f"Of the categories, {f.attribute} changes most: {percent(f.value)} of records would have "
        "to change theirs to restore the original shares."
    ),
    "utility.cramers_v": lambda f: (
        f"The association of categories that changes most, {f.attribute}, changes by "
        f"{abs(f.value):.2g}."
    ),
}


def _of_risk(figure: Figure) -> str:
    if figure.measure in ("risk.narrow_clusters", "risk.clusters_without_noise"):
        return f"{figure.attribute}: {read_aloud(figure)}"
    return read_aloud(figure)
