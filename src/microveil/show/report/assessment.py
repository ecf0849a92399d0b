"""The report for a data protection officer: what is known under each heading, and what is not.

Headings follow the steps of ISO/IEC 27559:2022 and what a HIPAA expert determination states. What
only a person can know is a gap, in words that say what to write.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from microveil.attacks.attack_rows import ATTACKS, Question
from microveil.compare.figures import Figure
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import passes, worst_answer
from microveil.release.certificate import Certificate
from microveil.release.guarantees import exactly
from microveil.show.words.grading import PASS_RULE, passes_or_not
from microveil.show.words.numbers import percent
from microveil.show.words.readings import label_of
from microveil.show.words.scales import ends_of

_UNKNOWN = "There is no certificate next to the protected file, so the report cannot say."


@dataclass(frozen=True)
class Heading:
    """A heading with what the software knows, and what a person must write."""

    title: str
    known: tuple[str, ...]
    gaps: tuple[str, ...]


@dataclass(frozen=True)
class Answered:
    """One of the three questions of WP216, answered by an attack and its control."""

    question: str
    attack: str
    does: str
    about: str
    released: str
    control: str
    gain: str
    scale: str


def answered(figures: Sequence[Figure]) -> Iterator[Answered]:
    """Answer singling out, linkability and inference by the attack that gains most."""
    for question in get_args(Question):
        found = worst_answer(figures, question)
        if found is not None:
            yield _answer(question, found)


def _answer(question: str, figure: Figure) -> Answered:
    sample = figure.sample
    known = sample is not None and sample.low is not None and sample.high is not None
    interval = f" ({percent(sample.low)} to {percent(sample.high)})" if known else ""  # type: ignore[union-attr, arg-type]
    rate, control = (figure.facts.get(fact) for fact in ("rate", "control"))
    return Answered(
        question,
        label_of(figure),
        ATTACKS[figure.measure].computes,
        figure.attribute or "all attributes",
        percent(rate) if isinstance(rate, float) else "not known",
        percent(control) if isinstance(control, float) else "not known",
        f"{percent(figure.value)}{interval}",
        ends_of(figure.measure),
    )


def assessed(evaluation: Evaluation, certificate: Certificate | None) -> list[Heading]:
    """Fill the steps of ISO/IEC 27559 with what is known."""
    return [
        Heading(
            "Context",
            _context(evaluation),
            (
                "Who receives the data, for what purpose, and under which contract or licence?",
                "Is the release public, shared under conditions, or used in a secure place? What "
                "do recipients have besides: other tables, registers, knowledge of persons?",
                "Which attacks are plausible there, by whom, and with what harm to persons?",
            ),
        ),
        Heading(
            "Data",
            _data(evaluation, certificate),
            (
                "Who are the persons, how were the records collected, and what were they told?",
                "Which attributes are sensitive, and which can others know of a person?",
                "Do persons appear in other tables that were or will be released?",
            ),
        ),
        Heading(
            "Identifiability",
            _identifiability(evaluation),
            (
                "Which threshold of risk applies in this context, and why?",
                "Do groups of people face harm from what the release says of all of them?",
            ),
        ),
        Heading(
            "Governance",
            _governance(certificate),
            (
                "Who decided on the release, when, and who answers for it?",
                "When is the decision reviewed, and what would reverse it?",
                "Whom does a recipient or a person in the data tell of an incident?",
            ),
        ),
    ]


def determination(evaluation: Evaluation, certificate: Certificate | None) -> Heading:
    """Fill what an expert determination under HIPAA states, as far as it is known."""
    made = [f"Method: {_method(certificate)}"]
    made.append(f"Result: {passes_or_not(evaluation.figures)}")
    made.append(f"Rule: {PASS_RULE}")
    return Heading(
        "Expert determination (HIPAA, 45 CFR 164.514(b)(1))",
        tuple(made),
        (
            "Name, training and experience of the expert in statistical de-identification.",
            "The anticipated recipients, and the information reasonably available to them.",
            "The expert's conclusion that the risk is very small, with reasons, date, signature "
            "and how long it holds. This page is evidence for it; it is not a determination.",
        ),
    )


def _context(evaluation: Evaluation) -> tuple[str, ...]:
    scenarios = dict.fromkeys(
        str(figure.attribute)
        for figure in evaluation.figures
        if ATTACKS.get(figure.measure) is not None
        and ATTACKS[figure.measure].in_scenarios
        and figure.attribute
    )
    more = [f"Scenarios of the plan that were attacked: {'; '.join(scenarios)}."]
    return (
        "The attacks assume an attacker who knows the original values of every attribute of "
        "everyone, the plan and this software: more than recipients know in most contexts.",
        *(more if scenarios else []),
    )


def _data(evaluation: Evaluation, certificate: Certificate | None) -> tuple[str, ...]:
    size = (
        f"{evaluation.released:,} records were released; {len(evaluation.attributes):,} attributes "
        "were compared with the original."
    )
    if certificate is None:
        return (size, _UNKNOWN)
    whose = (
        f"Records belong together by {certificate.unit}, {certificate.records_per_person:,} at "
        "most."
        if certificate.unit
        else f"A person has {certificate.records_per_person:,} record(s) at most."
    )
    roles = {
        "Masked": [a.name for a in certificate.attributes],
        "Derived from masked values": [d.name for d in certificate.derived],
        "Published unchanged": certificate.kept,
        "Dropped": certificate.dropped,
        "Replaced by pseudonyms": certificate.pseudonyms,
    }
    return (
        size,
        whose,
        *(f"{what}: {', '.join(names)}." for what, names in roles.items() if names),
    )


def _identifiability(evaluation: Evaluation) -> tuple[str, ...]:
    return (
        passes_or_not(evaluation.figures),
        "Singling out, linkability and inference are in the section above; all attacks, with what "
        "chance or a control achieves, are under Utility and risk.",
        "Mitigation: what was done, and what ε covers, are in the sections of these names."
        if passes(evaluation.figures)
        else "The release does not pass: the first panel says which change would help most.",
    )


def _governance(certificate: Certificate | None) -> tuple[str, ...]:
    if certificate is None:
        return (_UNKNOWN,)
    spent = certificate.ledger
    ledger = (
        "No ledger adds up the ε of releases of these people."
        if spent is None
        else f"The ledger of these people has ε = {exactly(spent.epsilon_after)} of "
        f"{exactly(spent.budget)} spent with this release."
    )
    file = certificate.file
    written = f"The file {file.name} has the SHA-256 {file.sha256}." if file else ""
    return tuple(
        said
        for said in (
            f"Made with {certificate.software} at {certificate.created}; random numbers: "
            f"{certificate.randomness}; row order: {certificate.row_order}.",
            written,
            ledger,
            "The public certificate goes with the file; this report and the private detail stay "
            "with the data holder.",
        )
        if said
    )


def _method(certificate: Certificate | None) -> str:
    if certificate is None:
        return _UNKNOWN
    methods = ", ".join(dict.fromkeys(a.method for a in certificate.attributes))
    crowds = [group.anonymity for group in certificate.groups]
    pooled = f", masked values pooled among {min(crowds):,} or more" if crowds else ""
    return f"{methods} at ε = {exactly(certificate.epsilon)}{pooled}; see What was done."
