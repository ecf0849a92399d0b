"""The informed attacker, in closed form: everything is known but the random draws.

He knows everybody's original values, the plan, the joint clusters and the kept columns. The class
of a unit is all units that lie in the same joint clusters of all groups and have the same kept
values and missing codes, record by record; of units with several records also as many of them, in
the same positions. Within a class every assignment of rows is as likely, so that his chance of
picking a unit's row, or rows, is at most one in the size of its class. The mean over all units is
the number of classes over the number of units. No attack is run: it is counted.

Shifted dates stay on their record, so nothing is claimed of releases that have them.
"""

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario


def informed_figure(seen: Examined, _: Scenario, __: Asked) -> Figure | None:
    """Return the mean chance of the informed attacker; None where pooling does not cover all."""
    plan, joint = seen.planned, seen.detail.joint if seen.detail else {}
    pooled = {name for group in plan.pooled_groups for name in group.attributes}
    if not joint or plan.shifted or pooled < set(plan.confidential):
        return None
    kept = [name for name in plan.kept if name in seen.given.table.columns]
    found = seen.beside.indistinct(joint, kept, _unit(plan))
    if found is None:
        return None
    facts: dict[str, Fact] = {
        "smallest": found.smallest,
        "chance": 1 / found.people,
        "units": found.people,
        "of": "people" if plan.unit is None else "units",
    }
    return Figure("linkage.informed", None, found.classes / found.people, facts)


def _unit(plan: Plan) -> str | None:
    """Name the column that says which records are one unit's, if there is one."""
    return plan.unit or next(iter(plan.names("pseudonym")), None)
