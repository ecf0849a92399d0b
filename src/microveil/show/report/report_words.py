"""The first screen: whether a release is useful, how risky it is and what ε covers, in words."""

import math
from decimal import ROUND_CEILING, Context

from microveil.core.methods import METHODS
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import passes
from microveil.judge.next_step import next_step_after
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.guarantees import exactly, rounded_up
from microveil.show.words.attribute_marks import named
from microveil.show.words.certificate_words import how_hidden
from microveil.show.words.grading import (
    PUBLISH,
    Card,
    change_in_words,
    passes_or_not,
    risk_card,
    usefulness_card,
)
from microveil.show.words.method_words import DONE_TO_CATEGORIES, DONE_TO_NUMBERS


def cards(evaluation: Evaluation, certificate: Certificate | None) -> list[Card]:
    """Answer the three questions a data holder has."""
    figures = evaluation.figures
    return [
        usefulness_card(figures),
        risk_card(figures, scored=evaluation.scored),
        _covered(certificate),
    ]


def verdict_on(evaluation: Evaluation, certificate: Certificate | None) -> list[str]:
    """Say whether a release passes, what to change, and only if it passes that it may go out."""
    passed, sentences = passes(evaluation.figures), [passes_or_not(evaluation.figures)]
    change = next_step_after(evaluation)
    if change is not None:
        sentences.append(f"To change: {change_in_words(change)}.")
    seeded = certificate is None or certificate.randomness == "seeded"
    if passed and not seeded:
        sentences.append(PUBLISH.replace("these two", "the protected file and its certificate"))
    return sentences


def _covered(certificate: Certificate | None) -> Card:
    question = "What does ε cover?"
    if certificate is None:
        return Card(
            question,
            "unknown",
            "Unknown",
            ("There is no certificate next to the protected file.",),
        )
    fixed, reclustered, released = certificate.levels
    covers = [level for level in certificate.levels if level.enforced]
    answer = f"ε = {exactly(certificate.epsilon)}, " + (
        {1: "with fixed clusters", 2: "re-clustered", 3: "the table as released"}[covers[-1].level]
        if covers
        else "but with no bound"
    )
    whose = "person's" if certificate.unit is None else "unit's"
    likely = (
        f"changing one {whose} values makes any set of masked values at most {{}} times more or "
        "less likely"
    )
    sentences = []
    if certificate.synthetic is not None and released.epsilon is not None:
        chance = f", but for a probability of {released.delta:g}" if released.delta else ""
        sentences = [
            f"Adding or removing all records of one {'unit' if certificate.unit else 'person'} "
            f"makes any result at most {_factor(released.epsilon)} times more or less "
            f"likely{chance}. Rows are synthetic and belong to nobody.",
        ]
        return Card(question, "good", answer, tuple(sentences))
    if released.epsilon is not None:
        sentences.append(f"{likely.format(_factor(released.epsilon)).capitalize()}.")
        sentences.append("No clusters are formed. Exact statements: see below.")
        return Card(question, "good", answer, tuple(sentences))
    from_data = any(METHODS[a.method].promise.fixes_scales for a in certificate.attributes)
    scales = (" and noise scales", ", with noise scales fixed") if from_data else ("", "")
    if fixed.epsilon is not None:
        sentences.append(
            f"With fixed clusters{scales[0]}, {likely.format(_factor(fixed.epsilon))}."
        )
    hidden = how_hidden(certificate) or "; rows can be linked by matching on shared values"
    sentences.append(
        f"Re-clustered{scales[1]}: {_bound(reclustered.epsilon)}. The table as released: no "
        f"bound{hidden}. Exact statements: see below."
    )
    return Card(question, "fair" if covers else "poor", answer, tuple(sentences))


def _bound(epsilon: float | None) -> str:
    return "no bound" if epsilon is None else f"ε of at most {rounded_up(epsilon)}"


def _factor(epsilon: float) -> str:
    """Write exp(ε) with three digits, never below what it is."""
    if epsilon > 13:
        return f"exp({rounded_up(epsilon)}), which is over 400,000,"
    digits = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(math.exp(epsilon))
    return f"{digits:,f}"


def done(certificate: Certificate) -> list[str]:
    """Say what was done to the table."""
    sentences = []
    if certificate.synthetic is not None:
        names = ", ".join(one.name for one in certificate.synthetic.attributes)
        sentences.append(f"{names}: drawn from a model that was learned from noisy counts.")
    for categories in (False, True):
        masked = [
            a for a in certificate.attributes if (a.kind in ("nominal", "ordinal")) == categories
        ]
        for name, trim in dict.fromkeys((a.method, a.trim) for a in masked):
            what = (DONE_TO_CATEGORIES if categories else DONE_TO_NUMBERS)[name]
            names = ", ".join(a.name for a in masked if (a.method, a.trim) == (name, trim))
            sentences.append(f"{names} ({name}): {what}{_trimmed(trim)}.")
    for group in certificate.groups:
        done = "replaced by their average" if group.pooling == "average" else "exchanged"
        of = "units" if group.of_units else "records"
        picked = "a unit of a size that as many have" if group.of_units else "a person's row"
        names = named(group.attributes, "", certificate)
        sentences.append(
            f"Masked values of {names} were {done} within joint clusters of "
            f"{group.anonymity:,} or more {of}: an attacker who knows them picks {picked} with "
            f"probability at most 1/{group.anonymity:,}."
        )
    if certificate.dropped:
        sentences.append(f"Dropped: {', '.join(certificate.dropped)}.")
    if certificate.kept:
        sentences.append(f"Published unchanged: {', '.join(certificate.kept)}.")
    return sentences


def _trimmed(trim: float | None) -> str:
    if not trim:
        return ""
    return f"; cluster means leave out {trim:.3g} of the records at each end, rounded down"


def repeated(certificate: Certificate | None, plan: Plan | None, seed: int | None) -> list[str]:
    """Say how to make the release again, and what then differs."""
    if certificate is None and plan is None:
        return ["This needs the plan, which is in the private detail; no detail was given."]
    made = [f"Made with {certificate.software} at {certificate.created}."] if certificate else []
    if plan is None:
        made.append("The plan is in the private detail; no detail was given.")
    elif seed is not None:
        made.append("The random numbers were seeded: this command reproduces the release.")
    elif certificate and certificate.randomness == "seeded":
        made.append(
            "The random numbers were seeded: with the same --seed this command reproduces the "
            "release."
        )
    else:
        made.append(
            "The random numbers came from the operating system and cannot be repeated: this "
            "command makes another release with the same plan. Do not publish both: each spends "
            "budget."
        )
    return made
