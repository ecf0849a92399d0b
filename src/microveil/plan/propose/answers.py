"""What people are asked before their table is protected: what is proposed, and what follows."""

from collections.abc import Sequence

import polars as pl

from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential, Identifier
from microveil.plan.scenarios import Scenario

_HIDDEN = ("identifier", "pseudonym")


def with_known(plan: Plan, names: Sequence[str], people: float = 1.0) -> Plan:
    """Test releases against an attacker who knows these attributes of so many of the people."""
    scenarios = (Scenario(known=tuple(names), people=people),) if names else ()
    return plan.replace(scenarios=scenarios)


def with_unit(plan: Plan, table: pl.DataFrame, name: str | None) -> Plan:
    """Say which column tells whose records they are; None if no person has several.

    How many records a unit has, and which attributes are equal in all of them, is read from the
    table, and marked so.

    Examples
    --------
    >>> visits = pl.DataFrame({"patient": [1, 1, 2], "born": [1950, 1950, 1961], "days": [3, 4, 4]})
    >>> attributes = {"patient": "identifier", "born": "confidential", "days": "confidential"}
    >>> plan = with_unit(Plan(epsilon=1.0, attributes=attributes), visits, "patient")
    >>> plan.unit, plan.records_per_person, plan.per_unit, plan.from_data
    ('patient', 2, ('born',), ('records_per_person', 'born: per_unit'))
    """
    same = () if name is None else _equal_in_units(plan, table, name)
    attributes = {
        n: a.model_copy(update={"per_unit": n in same}) if isinstance(a, Confidential) else a
        for n, a in plan.attributes.items()
    }
    if name is not None and attributes[name].role not in _HIDDEN:
        attributes[name] = Identifier()
    marks = [mark for mark in plan.from_data if not _about_units(mark)]
    if name is not None:
        marks += ["records_per_person", *(f"{n}: per_unit" for n in same)]
    return plan.replace(
        unit=name,
        records_per_person=1 if name is None else largest_unit(table, name),
        attributes=attributes,
        from_data=tuple(marks),
    )


def largest_unit(table: pl.DataFrame, name: str) -> int:
    """Count the records of the value that has most."""
    return int(table[name].alias("unit").value_counts()["count"].max())  # type: ignore[arg-type]


def _equal_in_units(plan: Plan, table: pl.DataFrame, name: str) -> tuple[str, ...]:
    """Return the confidential attributes that have one value in all records of a unit."""
    unit = table[name].alias("unit")
    names = [n for n in plan.confidential if n != name]
    units = unit.n_unique()
    return tuple(
        n for n in names if pl.DataFrame([unit, table[n].alias("value")]).n_unique() == units
    )


def _about_units(mark: str) -> bool:
    return mark in ("unit", "records_per_person") or mark.endswith(": per_unit")
