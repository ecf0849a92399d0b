"""The paper's four methods, one row of data each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microveil.clusters import ClusterSummary
from microveil.grid import Integers
from microveil.sensitivity import DomainUnits, cluster_reach, global_reach, local_reach

MethodName = Literal["DP", "DP-UM", "iDP-LS", "iDP-CBLS"]


@dataclass(frozen=True)
class Method:
    """What tells one method from another.

    `centroid` and `reach` are functions of cluster summaries, in grid units; `reach` is given the
    domain where `needs_domain` says so. `promise` names the model a level-1 claim is made in.
    """

    name: MethodName
    promise: Literal["DP", "iDP"]
    clustered: bool
    least_k: int
    needs_domain: bool
    centroid: Callable[[ClusterSummary], Integers]
    reach: Callable[[ClusterSummary, DomainUnits], Integers]


def _mean(summary: ClusterSummary) -> Integers:
    return summary.mean


def _winsorised_mean(summary: ClusterSummary) -> Integers:
    return summary.winsorised_mean


def _cluster_reach(summary: ClusterSummary, _: DomainUnits) -> Integers:
    return cluster_reach(summary)


METHODS: dict[MethodName, Method] = {
    row.name: row
    for row in (
        Method("DP", "DP", False, 1, True, _mean, global_reach),
        Method("DP-UM", "DP", True, 1, True, _mean, global_reach),
        Method("iDP-LS", "iDP", True, 1, True, _mean, local_reach),
        Method("iDP-CBLS", "iDP", True, 3, False, _winsorised_mean, _cluster_reach),
    )
}
