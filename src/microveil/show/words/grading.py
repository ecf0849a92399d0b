"""Grades, the rules they rest on, and the next step, in words."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from microveil.attacks.attack_rows import (
    ATTACKS,
    GAINS,
    LOW_GAIN,
    LOW_LINKAGE,
    MEDIUM_LINKAGE,
    MOST_GAIN,
    QUESTIONS,
    Question,
)
from microveil.compare.figures import Figure, NotComputed
from microveil.compare.pairing import NOT_PAIRED
from microveil.compare.reasons import why_not
from microveil.judge.change import Change
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import (
    Grade,
    Graded,
    how_risky,
    how_useful,
    passes,
    worst_answer,
)
from microveil.judge.registry import MEASURES
from microveil.show.words.numbers import deviations, percent, sentence
from microveil.show.words.readings import how_far, read_aloud, reading

PASS_RULE = (
    f"A release passes if no attack that looks for people gains more than {percent(LOW_LINKAGE)} "
    "over chance (for sampled figures we use the upper 95% limit, and no more than pooling "
    "proves), singling out, linkability and inference gain no more than "
    f"{percent(MOST_GAIN)} over their control (above {percent(LOW_GAIN)} risk is medium), and no "
    "value without noise belongs to few people (`exact_from`)."
)
_RISK_RULE = (
    f"Risk is low if no attack that looks for people gains more than {percent(LOW_LINKAGE)} over "
    "chance, in any scenario and with kept columns known, no value without noise belongs to fewer "
    "people than `exact_from`, nobody is unique in the quasi-identifiers you named, and singling "
    f"out, linkability and inference gain no more than {percent(LOW_GAIN)} over their control. It "
    f"is medium up to {percent(MEDIUM_LINKAGE)}, 5% and {percent(MOST_GAIN)}. A release passes if "
    "risk is low, or medium by the latter three alone. A gain is the share of what was left to "
    "find: (rate − chance)/(1 − chance). It does not count where luck explains it. For sampled "
    "figures of linkage we use the upper 95% limit, and no more than pooling proves."
)
_USEFULNESS_RULE = (
    "Usefulness is graded by the uses in the plan: it is good if every estimate moves by at most "
    "5% of itself or stays within its 95% interval, and no model loses more than 0.02 of its "
    "score; it is fair up to 20% or four times the interval, and 0.1. Without uses it is good if "
    "numbers move by at most 0.1 standard deviations on average, no correlation (for categories: "
    "Cramér's V) changes by more than 0.1, and at most 5% of records would have to change "
    "category; it is fair up to 0.5, 0.3 and 20%. If values were exchanged, so that rows belong to "
    "nobody, or it is not known which record is whose, quantiles take the place of values: 0.25 "
    "and 1 standard deviation."
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
    answer = f"{_RISK[found.grade]}{decided_by(found)}"
    return Card("How risky is it?", found.grade, answer, told)


def risk_answer(found: Graded) -> str:
    """Return the grade of a risk in a word."""
    return _RISK[found.grade]


def usefulness_answer(found: Graded) -> str:
    """Return the grade of a usefulness in a word or two."""
    return _USEFULNESS[found.grade].partition(":")[0]


def decided_by(found: Graded) -> str:
    """Name the question that decided on a risk, and the attribute, if it was one of the three."""
    first = found.figures[0] if found.figures else None
    if first is None or first.measure not in GAINS or found.grade == "good":
        return ""
    question = str(ATTACKS[first.measure].question).lower()
    return f" ({question}{f' of {first.attribute}' if first.attribute else ''})"


def passes_or_not(figures: Sequence[Figure]) -> str:
    """Say in one sentence whether a release passes."""
    found = how_risky(figures)
    if found.grade == "unknown":
        return "There is no verdict: attacks could not be made."
    answer = "passes" if passes(figures) else "does not pass"
    return f"The release {answer}. {what_counts(found)}"


def what_counts(found: Graded) -> str:
    """Say which number a grade of a risk rests on, and the limit up to which a release passes."""
    figure = found.figures[0]
    limits = MEASURES[figure.measure].limits or (0.0, 0.0)
    limit = limits[1] if figure.measure in GAINS else limits[0]
    counts = percent(figure.counted)
    for over in ("chance", "control"):
        if over in figure.facts:
            counts = f"a gain of {percent(figure.counted)} over {over}"
    return f"What counts is {counts}; the limit is {percent(limit)}."


def answers_to_questions(
    figures: Sequence[Figure], missing: Sequence[NotComputed]
) -> Iterator[tuple[Question, str]]:
    """Say what the release gives away of the people in it alone, under the three names of WP216."""
    for question in get_args(Question):
        found = worst_answer(figures, question)
        if found is not None:
            yield question, _answer(found, figures)
            continue
        ids = {row.id for row in QUESTIONS if row.question == question}
        yield from ((question, f"not computed: {why_not(item)}.") for item in missing
                    if item.attribute is None and ids & set(item.measures))  # fmt: skip


def _answer(found: Figure, figures: Sequence[Figure]) -> str:
    sample, among = found.sample, {f.attribute for f in figures if f.measure == found.measure}
    assert sample is not None and sample.low is not None and sample.high is not None  # noqa: PT018, S101
    of = f" of {found.attribute}, the worst of {len(among)}" if found.attribute else ""
    return (
        f"a gain of {percent(found.value)} ({percent(sample.low)} to {percent(sample.high)}){of}: "
        f"{_TOLD[found.measure]} for {percent(_share(found, 'rate'))} of people in a release, "
        f"{percent(_share(found, 'control'))} outside it."
    )


def _share(figure: Figure, fact: str) -> float:
    value = figure.facts[fact]
    assert isinstance(value, float)  # noqa: S101 - what every attack with a control puts there
    return value


_TOLD = {
    "risk.inference": "guessed from the nearest row",
    "risk.joint_inference": "guessed from the joint cluster",
    "risk.singling_out": "a condition that fits one row fits one person",
    "risk.linkability": "two parts of what is known lead to one row",
}


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
    if change.cost is None:
        return effect
    lost, before, then = change.cost
    return f"{effect}; {_EFFECTS[lost]} {_WRITTEN[lost](before)} → about {_WRITTEN[lost](then)}"


_EFFECTS = {
    "risk.inference": "the largest gain of inference",
    "risk.joint_inference": "the largest gain of inference",
    "risk.linkability": "the gain of linkability",
    "risk.singling_out": "the gain of singling out",
    "linkage.own_values": "own values reunited beyond chance",
    "risk.linkage_of_units": "linkage of whole units",
    "risk.linkage_with_kept": "linkage with kept columns known",
    "risk.unique_kept": "rows with a unique combination of kept columns",
    "use.estimate": "the largest change of an estimate",
    "use.model": "what a model loses of its score",
    "utility.il1s": "the average move of a number, in standard deviations,",
    "utility.quantiles": "the largest move of a quantile, in standard deviations,",
    "utility.pearson": "the largest change of a correlation",
    "utility.cramers_v": "the largest change of an association of categories",
    "utility.total_variation": "the largest share of records with another category",
}
_WRITTEN: dict[str, Callable[[float], str]] = {
    "utility.il1s": lambda value: f"{2**0.5 * value:.2g}",
    **dict.fromkeys(
        ("utility.quantiles", "utility.pearson", "utility.cramers_v", "use.model"),
        lambda value: f"{value:.2g}",
    ),
}


def _of_use(figure: Figure) -> str:
    if figure.measure == "utility.il1s":
        return how_far(figure)
    return _LOSSES[figure.measure](figure)


_LOSSES: dict[str, Callable[[Figure], str]] = {
    "use.estimate": lambda f: f"{f.attribute}: {reading(f)}.",
    "use.model": lambda f: f"{f.attribute}: {reading(f)}.",
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
    alone = ("risk.narrow_clusters", "risk.clusters_without_noise", "risk.exact_values", *GAINS)
    if figure.measure in alone:
        about = "" if figure.attribute is None else f"{figure.attribute}: "
        return f"{about}{read_aloud(figure)}"
    return read_aloud(figure)
