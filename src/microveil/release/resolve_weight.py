"""Sampling weights against the table: numbers above 0, one for every record."""

import math

from microveil.engines.base import Facts, OpenTable
from microveil.errors import DataError
from microveil.plan.plan import Plan

_SMALLEST = math.ulp(0.0)


def check_sampling_weight(plan: Plan, table: OpenTable) -> None:
    """Refuse weights by which nothing can be weighed; masked ones are checked as attributes are."""
    for name in plan.sampling_weights:
        column = table.columns.get(name)
        if column is None:
            continue
        if column.kind is None or column.clock is not None:
            raise DataError(
                f"sampling weights are numbers, found {column.type_name}; convert the column, or "
                "give it another role",
                attribute=name,
                setting="role",
            )
        _check_values(name, table.facts({name: (_SMALLEST, math.inf)})[name])


def _check_values(name: str, facts: Facts) -> None:
    found = {
        "missing": facts.nulls,
        "infinite or NaN": facts.not_finite,
        "0 or negative": facts.outside,
    }
    wrong = [f"{count:,} that are {what}" for what, count in found.items() if count]
    if wrong:
        raise DataError(
            "every record needs a sampling weight, a finite number above 0, found "
            f"{' and '.join(wrong)}; correct them, leave these records out, or give the column "
            "another role",
            attribute=name,
            setting="role",
        )
