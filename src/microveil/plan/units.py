"""Units and strata of a plan: which records belong together, and what may be asked of them."""

from microveil.core.methods import METHODS, methods_that
from microveil.errors import PlanError, Problems
from microveil.plan.fields import PlanFields
from microveil.plan.parts import did_you_mean

_HIDDEN = ("identifier", "pseudonym")
_STRATA = ("kept", "identifier")


def check_units_and_strata(plan: PlanFields) -> None:
    """Refuse units and strata that could not be kept, with everything that is wrong."""
    problems = Problems()
    for check in (_check_unit, _check_within, _check_together):
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
            f"unit {plan.unit!r} must be of role identifier, which is dropped, or pseudonym, got "
            f"{role}; published as it is it would point to people",
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
                    f"within {name!r} must be of role kept, or identifier, which is dropped, got "
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


def _check_together(plan: PlanFields) -> None:
    """Refuse to exchange values of units together with values of records."""
    for names in plan.together:
        levels = {plan.confidential[name].per_unit for name in names if name in plan.confidential}
        if len(levels) > 1:
            raise PlanError(
                f"{', '.join(names)}: values of units change places with those of other units, and "
                "values of records with those of other records; make two lists of them",
                setting="together",
            )


def _check_attribute(plan: PlanFields, name: str) -> None:
    method, per_unit = METHODS[plan.method_of(name)], plan.confidential[name].per_unit
    if per_unit and plan.unit is None:
        raise PlanError(
            "per_unit = true needs to know which records are of one unit; set unit to the column "
            "that says it",
            attribute=name,
            setting="per_unit",
        )
    if plan.unit is None or plan.persons_of(name) == 1 or plan.confidential[name].is_category:
        return
    if not method.covers_shared_clusters:
        others = methods_that(lambda other: other.covers_shared_clusters)
        raise PlanError(
            f"epsilon is that of a unit, of which {method.name} covers one record in a cluster, "
            f"got records_per_person = {plan.records_per_person}; use {others} for it, or set "
            "per_unit = true if it is the same in all records of a unit",
            attribute=name,
            setting="method",
        )
