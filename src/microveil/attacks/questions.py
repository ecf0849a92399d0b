"""The plan on a random half of the people, with the other half as control, and the other way round.

What is guessed of people outside a release, the release did not give away. Three questions are
asked so: singling out, linkability and inference, after the Article 29 Working Party (2014),
"Opinion 05/2014 on anonymisation techniques" (WP216).
"""

from dataclasses import replace

import numpy as np

from microveil.attacks.attack_rows import GAINS, QUESTIONS, Attack
from microveil.attacks.kept import kept_columns
from microveil.attacks.known import KnownAs
from microveil.attacks.searching import coded, kind_known
from microveil.attacks.subject import Controlled, OverAttributes, ReleasedRows, Subject
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure, Items, NotComputed, Sample
from microveil.compare.paired_columns import kind_of
from microveil.engines.dtypes import column_of, polars_of
from microveil.engines.layout import numbered
from microveil.errors import DataError, MicroveilError
from microveil.plan.plan import Plan
from microveil.types import Integers

MOST_RECORDS = 3_000
"""Records that are drawn; half of their people are released at a time."""

FEWEST_PEOPLE = 40
"""Of fewer people than this, halves say nothing."""

KNOWN_ANYWAY = 0.9
"""Above this control nothing is left to gain that could be told from luck."""


def question_items(seen: Examined, seed: int, plan: Plan | None = None) -> Items:
    """Ask the three questions of a release, or of another plan on the same people."""
    random, plan = np.random.default_rng(seed), plan or seen.planned
    few = seen.drawn_again(plan, MOST_RECORDS, random)
    names = _names(seen)
    subject = _subject(seen, plan, names, few, seed)
    if isinstance(subject, str):
        yield NotComputed(GAINS, subject)
        return
    sample = Sample(len(few), seen.records)
    answers = {row.id: _answers(row, subject, seed) for row in QUESTIONS}
    for row in QUESTIONS:
        at_once = sum(len(answers[other.id]) for other in QUESTIONS
                      if other.question == row.question)  # fmt: skip
        for place, found in answers[row.id].items():
            name = None if place is None else names[place]
            yield _figure(row.id, name, found, at_once, sample)


def _answers(row: Attack, subject: Subject, seed: int) -> dict[int | None, Controlled]:
    """Return what an attack gains, by attribute where it asks for each."""
    if isinstance(row.with_control, OverAttributes):
        return dict(row.with_control.each(subject, seed).items())
    found = row.with_control(subject, seed) if row.with_control else None
    return {} if found is None else {None: found}


def _figure(
    id_: str, name: str | None, found: Controlled, at_once: int, sample: Sample
) -> Figure | NotComputed:
    """Say what was gained, with an interval that holds for so many figures at once."""
    if found.control > KNOWN_ANYWAY:
        return NotComputed((id_,), "known_anyway", name)
    facts: dict[str, Fact] = {
        "rate": found.rate, "control": found.control, "tried": found.tried,
    }  # fmt: skip
    low, high = found.interval(at_once)
    return Figure(id_, name, found.risk, facts, replace(sample, low=low, high=high))


def _names(seen: Examined) -> tuple[str, ...]:
    """Name what the attacker knows: masked attributes, then those published as they are."""
    kept = (name for name in kept_columns(seen) if name not in seen.pair.attributes)
    return (*seen.pair.attributes, *kept)


def _kinds(seen: Examined, names: tuple[str, ...]) -> dict[str, KnownAs]:
    kinds = {name: kind_known(seen.planned, name) for name in names}
    for name in names[len(seen.pair.attributes) :]:
        numeric = kind_of(column_of(seen.people, name)) == "numbers"
        kinds[name] = "number" if numeric else "nominal"
    return kinds


def _subject(
    seen: Examined, plan: Plan, names: tuple[str, ...], few: Integers, seed: int
) -> Subject | str:
    """Let the plan protect these people by halves; where that cannot be done, say why."""
    kinds = _kinds(seen, names)

    def release(chosen: Integers, own: int) -> ReleasedRows:
        half = seen.protected_anew(plan, few[chosen], np.random.default_rng([seed, own]))
        if half is None or len(half.rows) != len(chosen):
            raise DataError("the plan does not fit half of the people; take more of them")
        return ReleasedRows(coded(half.rows, kinds, plan), _joint(half, names))

    subject = Subject(
        coded(seen.people[few, :], kinds, plan),
        tuple(place for place, name in enumerate(names) if kinds[name] == "nominal"),
        release,
        tuple(range(len(seen.pair.attributes), len(names))),
        _owners(seen, few),
    )
    if len(np.unique(subject.owner)) < FEWEST_PEOPLE:
        return "too_few_people"
    try:
        subject.halves(seed)
    except MicroveilError:
        return "half_cannot_be_protected"
    return subject


def _owners(seen: Examined, few: Integers) -> Integers | None:
    plan = seen.planned
    names = plan.names("pseudonym")
    name = plan.unit or (names[0] if names else None)
    if name is None or name not in seen.people.columns:
        return None
    return numbered([polars_of(column_of(seen.people, name)).gather(few)])


def _joint(half: Examined, names: tuple[str, ...]) -> Integers:
    """Return the joint cluster of every value; those that were not pooled are by themselves."""
    alone = np.arange(len(half.rows))
    labels = {name: label for group, label in half.joint.items() for name in group.split(", ")}
    return np.column_stack([labels.get(name, alone) for name in names])
