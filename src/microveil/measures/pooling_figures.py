"""What joint clusters leave to be told of their records: how alike these are."""

import numpy as np
from numpy.typing import NDArray

from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair
from microveil.engines.classes import Count
from microveil.measures import disclosure_risk as risk
from microveil.plan.groups import Group
from microveil.types import Integers, Reals

_ALIKE = (
    "risk.joint_distinct_least", "risk.joint_distinct_median",
    "risk.joint_distance_largest", "risk.joint_distance_median",
)  # fmt: skip


_UNKNOWN = "joint clusters are not known without the detail"
_DRAWN = "records that were drawn from a large table are no whole joint clusters"


def pooling_figures(pair: Pair, count: Count) -> Items:
    """Count the records of joint clusters, and say what these have in common."""
    for group in pair.plan.pooled_groups if pair.plan else ():
        yield from _class_figures(pair, group, count)
        for name in group.attributes:
            if name not in pair.attributes:
                continue
            labels = _labels(pair, group, name)
            if labels is None or pair.positions is None:
                yield NotComputed(_ALIKE, _UNKNOWN if pair.detail is None else _DRAWN, name)
            else:
                yield from _alike_figures(pair, name, labels)


def _labels(pair: Pair, group: Group, name: str) -> Integers | None:
    """Return the joint clusters in which an attribute of a group was pooled, if they are known."""
    per_unit = pair.plan.per_unit if pair.plan else ()
    level = [other for other in group.attributes if (other in per_unit) == (name in per_unit)]
    return None if pair.detail is None else pair.detail.joint.get(", ".join(level))


def _class_figures(pair: Pair, group: Group, count: Count) -> Items:
    """Count the rows that share their averages in the release."""
    names = ", ".join(group.attributes)
    if group.pooling != "average":
        return
    if not set(group.attributes) <= set(pair.table.columns):
        yield NotComputed(("risk.smallest_joint_class",), "not all of it is in the release", names)
        return
    classes = count(group.attributes)
    yield Figure(
        "risk.smallest_joint_class",
        names,
        float(classes.smallest),
        f"every combination of averaged {names} is shared by {classes.smallest:,} or more of "
        f"{classes.records:,} released records, whatever ε is; the plan asks for {group.anonymity}",
    )


def _alike_figures(pair: Pair, name: str, labels: Integers) -> Items:
    codes, ordered = _original_codes(pair, name)
    present = codes != MISSING
    if not present.any():
        yield NotComputed(_ALIKE, "every value is missing", name)
        return
    _, label = np.unique(labels[present], return_inverse=True)
    distinct = risk.distinct_values(codes[present], label)
    distance = risk.distances_to_all(codes[present], label, ordered=ordered)
    least, middle = int(distinct.min()), float(np.median(distinct))
    alone = float(np.mean(distinct == 1))
    yield Figure(
        "risk.joint_distinct_least", name, float(least),
        f"the records of every joint cluster have {least:,} or more different original values; in "
        f"{alone:.1%} of joint clusters all agree, which tells each one's value; lower is riskier",
    )  # fmt: skip
    yield Figure(
        "risk.joint_distinct_median", name, middle,
        f"in half of the joint clusters there are {middle:g} or more different original values; "
        "lower is riskier",
    )  # fmt: skip
    far, half = float(distance.max()), float(np.median(distance))
    yield Figure(
        "risk.joint_distance_largest", name, far,
        f"the distribution in the most special joint cluster is {far:.2g} away from that of the "
        "table (0: the same, 1: as far as can be; t-closeness); higher is riskier",
    )  # fmt: skip
    yield Figure(
        "risk.joint_distance_median", name, half,
        f"the distributions in half of the joint clusters are {half:.2g} or more away from that of "
        "the table; higher is riskier",
    )  # fmt: skip


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
