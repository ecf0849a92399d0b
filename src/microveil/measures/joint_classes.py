"""What joint clusters leave to be told of their records: how alike these are."""

import numpy as np
from numpy.typing import NDArray

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair
from microveil.measures import disclosure_risk as risk
from microveil.plan.groups import Group
from microveil.types import Integers, Reals

_ALIKE = (
    "risk.joint_distinct_least", "risk.joint_distinct_median",
    "risk.joint_distance_largest", "risk.joint_distance_median",
)  # fmt: skip


def pooling_figures(seen: Examined, _: Asked) -> Items:
    """Count the records of joint clusters, and measure what these have in common."""
    pair = seen.pair
    for group in seen.planned.pooled_groups:
        yield from _class_figures(seen, group)
        for name in group.attributes:
            if name not in pair.attributes:
                continue
            labels = _labels(pair, group, name)
            if labels is None or pair.positions is None:
                reason = "no_detail" if pair.detail is None else "drawn_from_joint_clusters"
                yield NotComputed(_ALIKE, reason, name)
            else:
                yield from _alike_figures(pair, name, labels)


def _labels(pair: Pair, group: Group, name: str) -> Integers | None:
    """Return the joint clusters in which an attribute of a group was pooled, if they are known."""
    per_unit = pair.plan.per_unit if pair.plan else ()
    level = [other for other in group.attributes if (other in per_unit) == (name in per_unit)]
    return None if pair.detail is None else pair.detail.joint.get(", ".join(level))


def _class_figures(seen: Examined, group: Group) -> Items:
    """Count the rows that share their averages in the release."""
    names = ", ".join(group.attributes)
    if group.pooling != "average":
        return
    if not set(group.attributes) <= set(seen.given.table.columns):
        yield NotComputed(("risk.smallest_joint_class",), "not_all_released", names)
        return
    classes = seen.classes(group.attributes)
    facts = {"records": classes.records, "anonymity": group.anonymity or 0}
    yield Figure("risk.smallest_joint_class", names, float(classes.smallest), facts)


def _alike_figures(pair: Pair, name: str, labels: Integers) -> Items:
    codes, ordered = _original_codes(pair, name)
    present = codes != MISSING
    if not present.any():
        yield NotComputed(_ALIKE, "all_missing_in_original", name)
        return
    _, label = np.unique(labels[present], return_inverse=True)
    distinct = risk.distinct_values(codes[present], label)
    distance = risk.distances_to_all(codes[present], label, ordered=ordered)
    alone = float(np.mean(distinct == 1))
    yield Figure("risk.joint_distinct_least", name, float(distinct.min()), {"agreeing": alone})
    yield Figure("risk.joint_distinct_median", name, float(np.median(distinct)))
    yield Figure("risk.joint_distance_largest", name, float(distance.max()))
    yield Figure("risk.joint_distance_median", name, float(np.median(distance)))


def _original_codes(pair: Pair, name: str) -> tuple[Integers, bool]:
    """Return codes of the original values of released records, and whether they have an order."""
    for attribute in pair.categorical:
        if attribute.name == name:
            codes = attribute.original
            return codes if pair.positions is None else codes[pair.positions], (
                attribute.kind == "ordinal"
            )
    values: Reals = pair.matched[:, pair.numeric.index(name)]
    codes = np.full(len(values), MISSING)
    there: NDArray[np.bool_] = ~np.isnan(values)
    codes[there] = np.unique(values[there], return_inverse=True)[1]
    return codes, True
