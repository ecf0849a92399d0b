"""Units and strata of a plan against those of the table."""

from microveil.core.attribute import AttributeSettings
from microveil.engines.base import Table
from microveil.errors import DataError, Problems
from microveil.plan.plan import Plan
from microveil.types import Integers


def check_units(plan: Plan, engine: Table) -> None:
    """Tell the engine of units and strata, and refuse units that are not as the plan says."""
    if not set(plan.within).union([plan.unit] if plan.unit else []) <= set(engine.columns):
        return  # which is said already
    facts, problems = engine.arrange(plan), Problems()
    if facts.missing:
        raise DataError(
            f"{facts.missing:,} of {engine.records:,} records are of no unit, since it is missing; "
            "fill it in, or leave these records out",
            attribute=plan.unit,
        )
    with problems:
        _check_largest(plan, facts.largest)
    for name, units in facts.differing.items():
        with problems:
            _check_same(plan, name, units)
    problems.raise_found()


def _check_largest(plan: Plan, most: int) -> None:
    """Refuse units of more records than the budget is divided by."""
    if len(plan.per_unit) < len(plan.confidential) and most > plan.records_per_person:
        raise DataError(
            f"epsilon is that of a unit, which has up to {most:,} records, got records_per_person "
            f"= {plan.records_per_person:,}; set it to {most:,} or more, as many as a unit can "
            "have by what is known without the data",
            setting="records_per_person",
        )


def _check_same(plan: Plan, name: str, units: int) -> None:
    if not units:
        return
    if name in plan.within:
        raise DataError(
            f"{units:,} units have records in several strata, and what is masked once per unit, or "
            "pooled by unit, needs units of one; take it out of within, or correct the data",
            attribute=name,
            setting="within",
        )
    raise DataError(
        f"per_unit = true, but {units:,} units have records with different values, or have it in "
        "some records only; correct the data, or remove per_unit",
        attribute=name,
        setting="per_unit",
    )


def check_strata(plan: Plan, settings: AttributeSettings, engine: Table) -> None:
    """Refuse strata in which an attribute has some values, but too few for a cluster."""
    if not plan.within or not settings.method.clustered:
        return
    sizes = engine.stratum_sizes(settings.name)
    few = _too_few(sizes[sizes > 0], settings.k)
    if few:
        raise DataError(
            f"{few} with fewer than k = {settings.k:,} {_counted(per_unit=settings.per_unit)} with "
            f"a value; every stratum needs {settings.k:,} or more: put strata together, or choose "
            "a smaller k",
            attribute=settings.name,
            setting="within",
        )


def check_anonymity(plan: Plan, engine: Table) -> None:
    """Refuse an anonymity that the table, or a stratum, has too few records or units for."""
    most = max((group.anonymity or 0 for group in plan.pooled_groups), default=0)
    sizes, counted = engine.pooled_sizes, _counted(per_unit=plan.unit is not None)
    if most > sizes.sum():
        raise DataError(
            f"anonymity must be at most the number of {counted}, found {sizes.sum():,} {counted} "
            f"for anonymity = {most:,}; choose a smaller one",
            setting="anonymity",
        )
    few = _too_few(sizes, most)
    if few:
        raise DataError(
            f"{few} with fewer than anonymity = {most:,} {counted}; every stratum needs {most:,} "
            "or more: put strata together, or choose a smaller anonymity",
            setting="anonymity",
        )


def _too_few(sizes: Integers, least: int) -> str:
    """Say how many strata are too small, and not which; empty if none is."""
    few = int((sizes < least).sum())
    return f"found {few:,} of {len(sizes):,} strata" if few else ""


def _counted(*, per_unit: bool) -> str:
    return "units" if per_unit else "records"
