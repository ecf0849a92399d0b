"""Units and strata of a plan against those of the table."""

from microveil.core.attribute import AttributeSettings
from microveil.core.unit_clusters import FEWEST_UNITS
from microveil.engines.base import OpenTable
from microveil.errors import DataError, Problems
from microveil.plan.plan import Plan
from microveil.types import Integers


def check_table_units(plan: Plan, table: OpenTable) -> None:
    """Refuse units that are not as the plan says."""
    by_unit = plan.per_unit or plan.pooled_groups or any(map(plan.is_by_unit, plan.confidential))
    same = (*plan.per_unit, *(plan.within if by_unit else ()))
    facts = table.unit_facts([name for name in same if name in table.columns])
    problems = Problems()
    if facts.missing:
        raise DataError(
            f"the unit is missing in {facts.missing:,} of {table.records:,} records; fill it in, "
            "or remove these records",
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
    divided = any(not (a.per_unit or plan.is_by_unit(n)) for n, a in plan.confidential.items())
    if divided and most > plan.records_per_person:
        raise DataError(
            f"epsilon protects a whole unit, and units have up to {most:,} records, got "
            f"records_per_person = {plan.records_per_person:,}; set it to {most:,} or more, the "
            "most that a unit can have as far as is known without the data",
            setting="records_per_person",
        )


def _check_same(plan: Plan, name: str, units: int) -> None:
    if not units:
        return
    if name in plan.within:
        raise DataError(
            f"{units:,} units have records in several strata, but attributes that are masked or "
            "pooled by unit need every unit in one stratum; remove it from within, "
            "or correct the data",
            attribute=name,
            setting="within",
        )
    raise DataError(
        f"per_unit = true, but {units:,} units have records with different values or missing "
        "codes, or with a value in some records only; correct the data, or remove per_unit",
        attribute=name,
        setting="per_unit",
    )


def check_clusters(plan: Plan, settings: AttributeSettings, table: OpenTable) -> None:
    """Refuse a table, or strata, in which an attribute has some values, but too few for a cluster.

    A table without units or strata was looked at when its missing values were.
    """
    if not (plan.within or settings.by_unit) or not settings.method.clustered:
        return
    sizes = table.stratum_sizes(settings.name, units=settings.by_unit)
    least = max(settings.k, FEWEST_UNITS) if settings.by_unit else settings.k
    counted = _counted(per_unit=settings.per_unit or settings.by_unit)
    few = _too_few(sizes[sizes > 0], least)
    if few and plan.within:
        raise DataError(
            f"{few} with fewer than k = {least:,} {counted} with a value; every stratum needs "
            f"{least:,} or more: merge strata, or choose a smaller k",
            attribute=settings.name,
            setting="within",
        )
    if few:
        raise DataError(
            f"k must be at most the number of {counted} with a value, found {sizes.sum():,} "
            f"{counted} for k = {least:,}; choose a smaller k",
            attribute=settings.name,
            setting="k",
        )


def check_anonymity(plan: Plan, table: OpenTable) -> None:
    """Refuse an anonymity that the table, or a stratum, has too few records or units for."""
    most = max((group.anonymity or 0 for group in plan.pooled_groups), default=0)
    sizes, counted = table.stratum_sizes(), _counted(per_unit=plan.unit is not None)
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
            "or more: merge strata, or choose a smaller anonymity",
            setting="anonymity",
        )


def _too_few(sizes: Integers, least: int) -> str:
    """Say how many strata are too small, and not which; empty if none is."""
    few = int((sizes < least).sum())
    return f"found {few:,} of {len(sizes):,} strata" if few else ""


def _counted(*, per_unit: bool) -> str:
    return "units" if per_unit else "records"
