"""What is assumed of a table that is protected without a plan: facts, for people to agree to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from microveil.plan.plan import Plan

AssumptionKind = Literal[
    "privacy", "one-record-each", "unit", "dropped", "kept", "weights", "derived", "rules",
    "ranges", "read-from-data",
]  # fmt: skip


@dataclass(frozen=True)
class Assumption:
    """Something that was taken for granted.

    Attributes
    ----------
    kind
        What it is about.
    names
        The attributes it is about, or the rules.
    epsilon, people
        Of privacy: the budget, and of how many people a row may be. Of a unit: its most records.
    """

    kind: AssumptionKind
    names: tuple[str, ...] = ()
    epsilon: float | None = None
    people: int | None = None


def assumptions_of(plan: Plan) -> tuple[Assumption, ...]:
    """List what a proposed plan takes for granted."""
    return (*_of_people(plan), *_of_columns(plan), *_of_values(plan))


def _of_people(plan: Plan) -> Iterator[Assumption]:
    yield Assumption("privacy", epsilon=plan.epsilon, people=plan.anonymity)
    if plan.unit is None:
        yield Assumption("one-record-each")
    else:
        yield Assumption("unit", (plan.unit,), people=plan.records_per_person)


def _of_columns(plan: Plan) -> Iterator[Assumption]:
    dropped = tuple(name for name in plan.names("identifier") if name != plan.unit)
    found: dict[AssumptionKind, tuple[str, ...]] = {
        "dropped": dropped,
        "kept": plan.names("kept"),
        "weights": plan.names("sampling_weight"),
        "derived": plan.names("derived"),
        "rules": plan.rules,
    }
    yield from (Assumption(kind, names) for kind, names in found.items() if names)


def _of_values(plan: Plan) -> Iterator[Assumption]:
    open_ended = [n for n, a in plan.confidential.items() if a.lower is None or a.upper is None]
    numbers = tuple(name for name in open_ended if not plan.confidential[name].is_category)
    if numbers:
        yield Assumption("ranges", numbers)
    if plan.from_data:
        yield Assumption("read-from-data", tuple(plan.from_data))
