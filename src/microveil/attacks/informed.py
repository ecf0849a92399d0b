"""The informed attacker, in closed form: everything is known but the random draws.

He knows everybody's original values, the plan, the joint clusters and the kept columns. The class
of a unit is all units that lie in the same joint clusters of all groups and have the same kept
values and missing codes, record by record; of units with several records also as many of them, in
the same positions. Within a class every assignment of rows is as likely, so that his chance of
picking a unit's row, or rows, is at most one in the size of its class. The mean over all units is
the number of classes over the number of units. No attack is run: it is counted.

Shifted dates stay on their record, so nothing is claimed of releases that have them.
"""

import numpy as np
import polars as pl

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure
from microveil.engines.layout import numbered
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.types import Integers


def informed_figure(seen: Examined, _: Scenario, __: Asked) -> Figure | None:
    """Return the mean chance of the informed attacker; None where pooling does not cover all."""
    plan = seen.planned
    labels, pooled = seen.joint, {name for g in plan.pooled_groups for name in g.attributes}
    if not labels or plan.shifted or pooled < set(plan.confidential):
        return None
    names = [name for name in plan.kept if name in seen.given.table.columns]
    kept = seen.released_in_order(names)
    if kept is None:
        return None
    codes = seen.missing_codes_in_order(names)
    record = numbered([*map(pl.Series, labels.values()), *kept, *codes])
    unit = _unit(seen, plan)
    classes = record if unit is None else classes_of_units(record, unit)
    sizes = np.bincount(classes)
    facts: dict[str, Fact] = {
        "smallest": int(sizes.min()),
        "chance": 1 / len(classes),
        "units": len(classes),
        "of": "people" if plan.unit is None else "units",
    }
    return Figure("linkage.informed", None, len(sizes) / len(classes), facts)


def classes_of_units(record: Integers, unit: Integers) -> Integers:
    """Give units whose records are of the same classes the same number.

    Examples
    --------
    >>> one, other, third = classes_of_units(np.array([0, 1, 1, 0, 0]), np.array([0, 0, 1, 1, 2]))
    >>> bool(one == other), bool(one == third)
    (True, False)
    """
    order = np.lexsort((record, unit))
    sizes = np.bincount(unit)
    rank = np.arange(len(unit)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    label = np.zeros(len(sizes), dtype=np.int64)
    for place in range(int(sizes.max())):
        here = order[rank == place]
        own = np.full(len(sizes), -1)
        own[unit[here]] = record[here]
        label = numbered([pl.Series(label), pl.Series(own)])
    return label


def _unit(seen: Examined, plan: Plan) -> Integers | None:
    """Return which records are one unit's, where rows of a unit can be told together."""
    names = plan.names("pseudonym")
    name = plan.unit or (names[0] if names else None)
    if name is None or name not in seen.given.source.columns:
        return None
    column = seen.original_in_order([name])
    return None if column is None else numbered(column)
