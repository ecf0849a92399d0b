"""Whose values a guarantee is about, in words: those of a record, of a person or of a unit."""

from microveil.core.pooling import Pool
from microveil.plan.plan import Plan


def whose_values(plan: Plan) -> str:
    """Say whose values differ in two neighbouring tables."""
    most = plan.records_per_person
    if plan.unit is not None:
        records = "" if len(plan.per_unit) == len(plan.confidential) else f", {most} at most"
        return f"the confidential values of one unit ({plan.unit}) in all its records{records},"
    if most == 1:
        return "the confidential values of one record"
    return f"the confidential values of one person's records ({most} at most)"


def provided(plan: Plan) -> str:
    """Say what neighbouring tables have in common besides."""
    conditions = []
    if plan.missing != "error":
        conditions.append("the same values are missing")
    if plan.within:
        conditions.append(f"every record stays in its stratum ({', '.join(plan.within)})")
    return f", provided {' and '.join(conditions)}" if conditions else ""


def pooled_by(pool: Pool, plan: Plan) -> tuple[str, str, str]:
    """Say of what joint clusters are, what shares their averages, and what nobody picks."""
    if pool.per_unit:
        return "units or more", "units", "telling which of the released units a unit is"
    if plan.unit is not None:
        return (
            "records or more, each of another unit",
            "rows",
            "picking a row of a person or a unit",
        )
    return "records or more", "rows", "picking a person's row"


def linked_records(plan: Plan) -> str:
    """Say by what records of a person or a unit can be told together."""
    names = ", ".join(plan.names("pseudonym"))
    if names:
        return _by_pseudonyms(names) + _by_size(plan)
    if not plan.per_unit:
        return ""
    return (
        " It is about one record on its own: rows that agree in "
        f"{', '.join(plan.per_unit)} are often of one unit, and someone who knows several of a "
        "unit's records can narrow them down together." + _by_size(plan)
    )


def _by_pseudonyms(names: str) -> str:
    return (
        f" It is about one record on its own: by the pseudonyms in {names} anyone can tell which "
        "records are of one person, here and in other tables made with the same key, and someone "
        "who knows several of a person's records can narrow them down together."
    )


def _by_size(plan: Plan) -> str:
    if plan.unit is None:
        return ""
    return (
        " How many records a unit has is not hidden, and a unit of a size that few have can be "
        "found by it."
    )
