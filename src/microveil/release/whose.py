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
    """Say of what joint clusters are, what nobody picks, and on what condition."""
    if plan.unit is None:
        return "records or more", "picking a person's row by them", ""
    mixed = any(not attribute.per_unit for attribute in pool.attributes)
    ranked = ", those of records among records of the same rank in their units" if mixed else ""
    return (
        f"units or more{ranked}",
        "telling by them which of the released units a unit is, or which row one of its records "
        "is,",
        ", even for someone who can tell which rows are of one unit, provided that "
        f"{pool.anonymity} units or more{' of its stratum' if plan.within else ''} have as many "
        "records as it has",
    )


def linked_records(plan: Plan) -> str:
    """Say by what records of a person can be told together."""
    names = [name for name in plan.names("pseudonym") if name != plan.unit]
    if names:
        return (
            f" It is about one record on its own: by the pseudonyms in {', '.join(names)} anyone "
            "can tell which records are of one person, here and in other tables made with the same "
            "key, and someone who knows several of a person's records can narrow them down "
            "together."
        )
    if plan.unit not in plan.names("pseudonym"):
        return ""
    return (
        f" It is about this table on its own: by the pseudonyms in {plan.unit} anyone can tell "
        "which units are the same in other tables made with the same key, and someone who knows "
        "both can narrow them down together."
    )
