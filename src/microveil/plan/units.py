"""Checks of a plan's units and strata."""

from microveil.core.methods import METHODS, methods_that
from microveil.errors import PlanError, Problems
from microveil.plan.fields import PlanFields
from microveil.plan.parts import did_you_mean

_HIDDEN = ("identifier", "pseudonym")
_STRATA = ("kept", "sampling_weight", "identifier")


def check_units_and_strata(plan: PlanFields) -> None:
    """Refuse units and strata that cannot be used, with everything that is wrong."""
    problems = Problems()
    for check in (_check_unit, _check_within):
        with problems:
            check(plan)
    for name in plan.confidential:
        with problems:
            _check_attribute(plan, name)
    problems.raise_found()


def _check_unit(plan: PlanFields) -> None:
    if plan.unit is None:
        return
    _check_named(plan, plan.unit, "unit")
    role = plan.attributes[plan.unit].role
    if role not in _HIDDEN:
        raise PlanError(
            f"unit {plan.unit!r} must have role identifier or pseudonym, got {role}, which would "
            "publish it; change its role",
            setting="unit",
        )


def _check_within(plan: PlanFields) -> None:
    problems, seen = Problems(), set[str]()
    for name in plan.within:
        with problems:
            _check_named(plan, name, "within")
            role = plan.attributes[name].role
            if role not in _STRATA:
                raise PlanError(
                    f"within {name!r} must have role kept, sampling_weight or identifier, got "
                    f"{role}: epsilon does not cover who is in which stratum; change its role, or "
                    "remove it from within",
                    setting="within",
                )
            if name == plan.unit or name in seen:
                raise PlanError(
                    f"within {name!r} is named twice, or is the unit; remove it from within",
                    setting="within",
                )
        seen.add(name)
    problems.raise_found()


def _check_named(plan: PlanFields, name: str, setting: str) -> None:
    if name not in plan.attributes:
        close = did_you_mean(name, plan.attributes)
        raise PlanError(f"{setting}: no attribute {name!r}{close}", setting=setting)


def _check_attribute(plan: PlanFields, name: str) -> None:
    method, per_unit = METHODS[plan.method_of(name)], plan.confidential[name].per_unit
    if per_unit and plan.unit is None:
        raise PlanError(
            "per_unit = true needs a unit, got none; set unit to the column that says which "
            "records belong together",
            attribute=name,
            setting="per_unit",
        )
    if plan.is_by_unit(name) and plan.guarantee != "fixed-clusters":
        raise PlanError(
            f'with guarantee = "{plan.guarantee}", {method.name} covers one record of a unit; use '
            f"{methods_that(lambda other: other.promise.covers_persons_reclustered)}, guarantee = "
            '"fixed-clusters", or per_unit = true if all records of a unit have the same value',
            attribute=name,
            setting="guarantee",
        )
