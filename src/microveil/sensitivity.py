"""How far one record can move a cluster: small pure functions over summaries.

Every function returns a *reach*, in grid units: the largest change of a cluster's sum when one
of its records changes its value. The sensitivity of the centroid is Δ_j = reach_j / n_j.
"""

from typing import NamedTuple

import numpy as np

from microveil.clusters import ClusterSummary
from microveil.grid import Integers


class DomainUnits(NamedTuple):
    """A domain in grid units."""

    lower: int
    upper: int


def global_reach(summary: ClusterSummary, domain: DomainUnits) -> Integers:
    """Reach over all tables of the domain: hi − lo."""
    return np.broadcast_to(np.int64(domain.upper - domain.lower), len(summary))


def local_reach(summary: ClusterSummary, domain: DomainUnits) -> Integers:
    """Reach from this table: max(hi − min, max − lo), the paper's first proposition on iDP."""
    return np.maximum(domain.upper - summary.smallest, summary.largest - domain.lower)


def cluster_reach(summary: ClusterSummary) -> Integers:
    """Reach from this table with the paper's pre-processing: its second proposition.

    Clusters need three records or more.
    """
    return np.maximum(up_reach(summary), down_reach(summary))


def up_reach(summary: ClusterSummary) -> Integers:
    """Change of the pre-processed sum when the smallest value passes the largest.

    (max − min′) + (min″ − min′) + (max − max′)
    """
    reach: Integers = (
        (summary.largest - summary.second_smallest)
        + (summary.third_smallest - summary.second_smallest)
        + (summary.largest - summary.second_largest)
    )
    return reach


def down_reach(summary: ClusterSummary) -> Integers:
    """Change of the pre-processed sum when the largest value passes below the smallest.

    (max′ − min) + (max′ − max″) + (min′ − min)
    """
    reach: Integers = (
        (summary.second_largest - summary.smallest)
        + (summary.second_largest - summary.third_largest)
        + (summary.second_smallest - summary.smallest)
    )
    return reach
