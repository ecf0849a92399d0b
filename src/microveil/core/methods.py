"""The paper's four methods, one row of data each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microveil.core.clusters import ClusterSummary
from microveil.core.grid import Integers
from microveil.core.sensitivity import (
    DomainUnits,
    Reaches,
    cluster_reaches,
    global_reaches,
    local_reaches,
    reclustered_reaches,
)

Guarantee = Literal["fixed-clusters", "re-clustered"]
MethodName = Literal["DP", "DP-UM", "iDP-LS", "iDP-CBLS"]
Reach = Callable[[ClusterSummary, DomainUnits], Reaches]


@dataclass(frozen=True)
class Method:
    """What tells one method from another.

    `promise` names the model its claim is made in. `centroid` gives the centroids of summaries,
    after their sums have moved. `calibration` are the reaches that set the published noise,
    `fixed` those of this table with fixed clusters, `reclustered` those when clusters are formed
    again.
    """

    name: MethodName
    promise: Literal["DP", "iDP"]
    clustered: bool
    least_k: int
    needs_domain: bool
    centroid: Callable[[ClusterSummary, Integers | int], Integers]
    calibration: Reach
    fixed: Reach
    reclustered: Reach

    @property
    def pulls_in(self) -> bool:
        """Whether the paper's pre-processing pulls in a cluster's extremes."""
        return self.centroid is ClusterSummary.winsorised_mean


_mean, _pulled_in = ClusterSummary.mean, ClusterSummary.winsorised_mean
_global, _local, _within, _reclustered = (
    global_reaches,
    local_reaches,
    cluster_reaches,
    reclustered_reaches,
)

METHODS: dict[MethodName, Method] = {
    row.name: row
    for row in (
        Method("DP", "DP", False, 1, True, _mean, _global, _local, _local),
        Method("DP-UM", "DP", True, 1, True, _mean, _global, _local, _reclustered),
        Method("iDP-LS", "iDP", True, 1, True, _mean, _local, _local, _reclustered),
        Method("iDP-CBLS", "iDP", True, 3, False, _pulled_in, _within, _within, _within),
    )
}
