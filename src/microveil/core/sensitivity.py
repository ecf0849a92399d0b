"""How far one record can move a cluster: small pure functions over summaries.

Every function returns *reaches*, in grid steps: how far one record can move a cluster's sum, up
and down. The centroid then moves by reach_j / n_j, with n_j the number of values it is the mean of.
"""

from typing import NamedTuple

import numpy as np

from microveil.core.clusters import ClusterSummary, TrimmedSummary
from microveil.types import Integers


class DomainSteps(NamedTuple):
    """A domain in grid steps."""

    lower: int
    upper: int


class Reaches(NamedTuple):
    """How far one record can move each cluster's sum in either direction."""

    up: Integers
    down: Integers

    @property
    def largest(self) -> Integers:
        """The larger of the two directions, which is n_j times the sensitivity Δ_j."""
        return np.maximum(self.up, self.down)


def global_reaches(summary: ClusterSummary, domain: DomainSteps) -> Reaches:
    """Over all tables of the domain: hi − lo either way."""
    width = np.broadcast_to(np.int64(domain.upper - domain.lower), len(summary))
    return Reaches(width, width)


def local_reaches(summary: ClusterSummary, domain: DomainSteps) -> Reaches:
    """From this table, the record staying in its cluster: hi − min and max − lo.

    The larger one is n_j times the sensitivity of the paper's first proposition on iDP.
    """
    return Reaches(domain.upper - summary.smallest, summary.largest - domain.lower)


def cluster_reaches(summary: ClusterSummary, _: DomainSteps) -> Reaches:
    """From this table, with the paper's pre-processing or trimmed, whatever value a record takes.

    The smallest value passes the largest: (max − min′) + (min″ − min′) + (max − max′). The largest
    passes below the smallest: (max′ − min) + (max′ − max″) + (min′ − min). The larger one is n_j
    times the sensitivity of the paper's second proposition on iDP. What the cluster gains in
    exchange is pulled in by the pre-processing, so it does not matter whether clusters are fixed or
    formed again. Clusters need three records or more.

    Where t records at each end are left out, the lowest that is kept gives way to the next one
    above the highest, or the other way round: x(n−t+1) − x(t+1) and x(n−t) − x(t).
    """
    up = (
        (summary.largest - summary.second_smallest)
        + (summary.third_smallest - summary.second_smallest)
        + (summary.largest - summary.second_largest)
    )
    down = (
        (summary.second_largest - summary.smallest)
        + (summary.second_largest - summary.third_largest)
        + (summary.second_smallest - summary.smallest)
    )
    if isinstance(summary, TrimmedSummary):
        up = np.where(summary.left_out > 0, summary.above - summary.lowest, up)
        down = np.where(summary.left_out > 0, summary.highest - summary.below, down)
    return Reaches(up, down)


def reclustered_reaches(summary: ClusterSummary, domain: DomainSteps) -> Reaches:
    """From this table, re-clustered: a record passes from one end beyond the other.

    Every cluster hands its smallest value down and gets the next cluster's smallest, the last one
    the upper end of the domain: min_{j+1} − min_j; likewise max_j − max_{j−1} the other way.
    """
    last_largest, next_smallest = summary.neighbours(domain.lower, domain.upper)
    return Reaches(next_smallest - summary.smallest, summary.largest - last_largest)
