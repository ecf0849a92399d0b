"""The certificate of a synthetic release: facts of the plan, and what the budget was spent on."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from microveil.core.budget import PrivacyBudget
from microveil.core.synthesis.cells import NumberCells
from microveil.core.synthesis.mechanism import PaidFor
from microveil.engines.counted import CountedAttribute
from microveil.plan.plan import Plan
from microveil.release.certificate import (
    BudgetPart,
    Certificate,
    DerivedAttribute,
    SyntheticAttribute,
    SyntheticRelease,
    plain_end,
    software,
)
from microveil.release.guarantees import Condition, Level
from microveil.release.notes import Note


def certify_synthetic(
    plan: Plan,
    attributes: Sequence[CountedAttribute],
    budget: PrivacyBudget,
    records: int,
    notes: tuple[Note, ...],
    *,
    seeded: bool,
) -> Certificate:
    """Write the certificate of synthetic rows that are not yet in a file."""
    return Certificate(
        software=software(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        randomness="seeded" if seeded else "operating system",
        records=records,
        epsilon=plan.epsilon,
        guarantee=plan.guarantee,
        records_per_person=plan.records_per_person,
        unit=plan.unit,
        missing=plan.missing,
        attributes=(),
        groups=(),
        derived=tuple(
            DerivedAttribute(name=name, expression=d.expression) for name, d in plan.derived.items()
        ),
        kept=(),
        dropped=plan.names("identifier"),
        rules=plan.rules,
        synthetic=SyntheticRelease(
            delta=plan.delta,
            rho=None if budget.pure else float(budget.total),
            spent=_spent(budget),
            attributes=tuple(map(_entry, attributes)),
            predicts=plan.predicts,
        ),
        levels=_levels(plan),
        not_protected=(),
        notes=notes,
        row_order="random",
    )


def _spent(budget: PrivacyBudget) -> tuple[BudgetPart, ...]:
    """Add up the budget by what it was spent on."""
    return tuple(
        BudgetPart(purpose=purpose, share=round(float(amount / budget.total), 6))
        for purpose in get_args(PaidFor)
        if (amount := sum(one.amount for one in budget.spent if one.purpose == purpose))
    )


def _levels(plan: Plan) -> tuple[Level, Level, Level]:
    """Return the same bound for all three, since there are no clusters."""
    bound: dict[str, Any] = {
        "enforced": True,
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "conditions": (Condition(kind="synthetic-rows"),),
    }
    return (
        Level(level=1, name="fixed clusters", **bound),
        Level(level=2, name="re-clustered", **bound),
        Level(level=3, name="as released", **bound),
    )


def _entry(attribute: CountedAttribute) -> SyntheticAttribute:
    settings, cells = attribute.settings, attribute.cells
    return SyntheticAttribute(
        name=attribute.name,
        kind=settings.kind or ("integer" if attribute.whole else "real"),
        lower=plain_end(settings.lower),
        upper=plain_end(settings.upper),
        step=cells.step if isinstance(cells, NumberCells) else None,
        categories=len(attribute.categories) or None,
        log_scale=settings.log_scale,
        atoms=settings.atoms,
    )
