"""What an attacker may know of the people in a table, and what it is for, where nobody said."""

import polars as pl

from microveil.plan.fields import PlanFields
from microveil.plan.propose.headers import says_known
from microveil.plan.roles import Confidential
from microveil.plan.uses import Use

_MOST_AMOUNTS, _MOST_SHARES, _MOST_GROUPS = 2, 2, 12
_BAND = 10.0
"""Width of bands by which a known number, such as age, is grouped."""


def proposed_known(plan: PlanFields) -> tuple[str, ...]:
    """Return what an attacker may know by the plan, or else what names say that others may know.

    Examples
    --------
    >>> from microveil import Plan
    >>> attributes = dict.fromkeys(["birth_date", "sex", "dose"], "confidential")
    >>> proposed_known(Plan(epsilon=1.0, attributes=attributes))
    ('birth_date', 'sex')
    """
    named = [scenario.known for scenario in plan.scenarios if scenario.known]
    if named:
        return named[0]
    return tuple(name for name in _released(plan) if says_known(name))


def proposed_uses(plan: PlanFields, table: pl.DataFrame) -> tuple[Use, ...]:
    """Return what the plan says a release is for, or else a handful of estimates and counts.

    Means by a group, of what is not known of people; shares of categories; and a table of counts.

    Examples
    --------
    >>> from microveil import Plan
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
    known = [n for n in plan.confidential if says_known(n) and n in (*numbers, *_dates(table))]
    amounts = [n for n in numbers if n not in known][:_MOST_AMOUNTS]
    by = sorted(groups, key=lambda n: not says_known(n))
    uses = [Use.mean(n, by=by[:1]) for n in amounts]
    uses += [Use.mean(n, by=known[:1], bands={known[0]: _BAND}) for n in amounts[:1] if known]
    uses += [Use.share(n) for n in by[::-1][:_MOST_SHARES]]
    uses += [Use.table(*by[:2])] if len(by) > 1 else []
    return tuple(uses)


def _released(plan: PlanFields) -> list[str]:
    released = (*plan.names("confidential"), *plan.names("kept"))
    return [name for name in plan.attributes if name in released]


def _is_group(plan: PlanFields, table: pl.DataFrame, name: str) -> bool:
    attribute = plan.attributes[name]
    if isinstance(attribute, Confidential):
        return attribute.is_category and table[name].n_unique() <= _MOST_GROUPS
    return table[name].dtype == pl.String and table[name].n_unique() <= _MOST_GROUPS


def _dates(table: pl.DataFrame) -> list[str]:
    """Return the columns of dates, whose bands are of years."""
    return [c.name for c in table if c.dtype == pl.Date or c.dtype == pl.Datetime]


def _is_number(plan: PlanFields, table: pl.DataFrame, name: str) -> bool:
    return table[name].dtype.is_numeric() and not plan.confidential[name].is_category
