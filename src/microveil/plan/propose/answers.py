"""What people are asked before their table is protected: what is proposed, and what follows."""

from collections.abc import Sequence

import polars as pl

from microveil.plan.plan import Plan
from microveil.plan.propose.headers import says_known
from microveil.plan.roles import Confidential, Identifier
from microveil.plan.scenarios import Scenario
from microveil.plan.uses import Use

_HIDDEN = ("identifier", "pseudonym")
_MOST_AMOUNTS, _MOST_SHARES, _MOST_GROUPS = 2, 2, 12
_BAND = 10.0
"""Width of bands by which a known number, such as age, is grouped."""


def proposed_known(plan: Plan) -> tuple[str, ...]:
    """Return what an attacker may know by the plan, or else what names say that others may know.

    Examples
    --------
    >>> attributes = dict.fromkeys(["birth_date", "sex", "dose"], "confidential")
    >>> proposed_known(Plan(epsilon=1.0, attributes=attributes))
    ('birth_date', 'sex')
    """
    named = [scenario.known for scenario in plan.scenarios if scenario.known]
    if named:
        return named[0]
    return tuple(name for name in _released(plan) if says_known(name))


def with_known(plan: Plan, names: Sequence[str], people: float = 1.0) -> Plan:
    """Test releases against an attacker who knows these attributes of so many of the people."""
    scenarios = (Scenario(known=tuple(names), people=people),) if names else ()
    return plan.replace(scenarios=scenarios)


def proposed_uses(plan: Plan, table: pl.DataFrame) -> tuple[Use, ...]:
    """Return what the plan says a release is for, or else a handful of estimates and counts.

    Means by a group, of what is not known of people; shares of categories; and a table of counts.

    Examples
    --------
    >>> table = pl.DataFrame({"sex": ["f", "m"], "age": [31, 40], "pay": [9, 7], "job": ["a", "b"]})
    >>> numbers, codes = {"role": "confidential"}, {"role": "confidential", "kind": "nominal"}
    >>> attributes = {"sex": codes, "age": numbers, "pay": numbers, "job": codes}
    >>> plan = Plan(epsilon=1.0, attributes=attributes)
    >>> [str(use) for use in proposed_uses(plan, table)]
    ['mean pay by sex', 'mean pay by age(10)', 'share job', 'share sex', 'table sex, job']
    """
    if plan.uses:
        return plan.uses
    groups = [n for n in _released(plan) if _is_group(plan, table, n)]
    numbers = [n for n in plan.confidential if _is_number(plan, table, n)]
    known = [n for n in numbers if says_known(n)]
    amounts = [n for n in numbers if n not in known][:_MOST_AMOUNTS]
    by = sorted(groups, key=lambda n: not says_known(n))
    uses = [Use.mean(n, by=by[:1]) for n in amounts]
    uses += [Use.mean(n, by=known[:1], bands={known[0]: _BAND}) for n in amounts[:1] if known]
    uses += [Use.share(n) for n in by[::-1][:_MOST_SHARES]]
    uses += [Use.table(*by[:2])] if len(by) > 1 else []
    return tuple(uses)


def _released(plan: Plan) -> list[str]:
    released = (*plan.names("confidential"), *plan.names("kept"))
    return [name for name in plan.attributes if name in released]


def _is_group(plan: Plan, table: pl.DataFrame, name: str) -> bool:
    attribute = plan.attributes[name]
    if isinstance(attribute, Confidential):
        return attribute.is_category and table[name].n_unique() <= _MOST_GROUPS
    return table[name].dtype == pl.String and table[name].n_unique() <= _MOST_GROUPS


def _is_number(plan: Plan, table: pl.DataFrame, name: str) -> bool:
    return table[name].dtype.is_numeric() and not plan.confidential[name].is_category


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
