"""Clusters of units that may have several records in one: who is there, and how far each moves it.

A unit is all records of one household or patient. Records are ranked one by one, as always; a
cluster then has enough different units, and noise covers all records of any of them at once.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microveil.core.clusters import ClusterSummary, rounded_mean, summarise
from microveil.core.sharing import sharing_of
from microveil.types import Integers, Reals

Amount = TypeVar("Amount", np.int64, np.float64)

FEWEST_UNITS = 3
"""Units in a cluster: 2t + 1 for t = 1 unit whose values are clamped at each end."""

_ROUNDS = 40
"""Rounds in which weights of units are adjusted; noise then changes by a few percent at most."""


@dataclass(frozen=True, eq=False)
class Members:
    """The units of each cluster, a row for each: `own` counts a unit's values there."""

    cluster: Integers
    unit: Integers
    own: Integers

    @property
    def sizes(self) -> Integers:
        """How many units each cluster has."""
        return np.bincount(self.cluster)

    def largest(self, values: NDArray[Amount], clusters: int) -> NDArray[Amount]:
        """Return the largest value of any unit of each cluster; none is below 0."""
        found = np.zeros(clusters, dtype=values.dtype)
        np.maximum.at(found, self.cluster, values)
        return found

    def added_up(self, values: Reals | Integers) -> Reals:
        """Add up the values of each unit in all its clusters."""
        return np.bincount(self.unit, values).astype(np.float64)


@dataclass(frozen=True, eq=False)
class UnitSummary(ClusterSummary):
    """Clusters whose values are clamped at the (t + 1)-th unit from each end.

    L is the (t + 1)-th smallest of the units' minima, U the (t + 1)-th largest of their maxima, and
    `clamped_total` the sum of all values clamped to [L, U], modulo 2^64. `persons` counts the units
    that have the clamped mean, which is the value of all where no unit moves it. `left_out` is t:
    how many units at each end do not set the bounds. `up` and `down` say how far each member can
    move that sum, whatever all its values become.

    Guarantee
    ---------
    Of the other units, let a_1 ≤ a_2 ≤ … be the minima and b_1 ≥ b_2 ≥ … the maxima. Whatever a
    unit's values become, L is between a_t and a_{t+1}, and U between b_{t+1} and b_t. The clamped
    sum rises with L, with U and with every value, so it is largest where the unit's values are all
    b_t or more: the others clamped to [a_{t+1}, b_t], and its own equal to b_t. Likewise it is
    least with the others clamped to [a_t, b_{t+1}] and its own equal to a_t. Both are reached, so
    `up` and `down` are exact. With 2t + 1 units or more, every pair of bounds is in order.
    """

    left_out: Integers
    clamped_total: Integers
    members: Members
    up: Integers
    down: Integers

    def pulled_in(self) -> Integers:
        """Return the sums of clamped values."""
        return self.clamped_total

    @property
    def reach(self) -> Integers:
        """How far each member can move its cluster's sum in the worse direction."""
        return np.maximum(self.up, self.down)

    def scales(self, epsilon: float) -> Integers:
        """Scales in grid steps for which no unit loses more than ε over all its records.

        With s_wj = ⌈reach_wj/n_j⌉ the grid steps by which unit w can move the rounded centroid of
        cluster j, they are close to those of least total squared noise, Σ n_j t_j², subject to
        Σ_j s_wj/t_j ≤ ε for every w: t_j³ is then in proportion to Σ_w μ_w s_wj/n_j for some
        weights μ_w of units, which are found by raising those of units that lose more than ε and
        lowering the others. Clusters that no unit moves have none.

        Guarantee
        ---------
        Whatever the weights, let unit w lose l_w·ε with the scales they give. Each is multiplied by
        the largest l_w of its cluster's units, so that w then loses at most l_w·ε/l_w = ε, all of
        its values changing at once.
        """
        size, members = self.size[self.members.cluster], self.members
        shift = -(-self.reach // size)
        moved = shift > 0
        moving = Members(members.cluster[moved], members.unit[moved], members.own[moved])
        shift = shift[moved].astype(np.float64)
        scales, least = np.zeros(len(self)), np.inf
        weight = np.ones(int(members.unit.max()) + 1)
        for _ in range(_ROUNDS):
            pull = np.bincount(moving.cluster, weight[moving.unit] * shift, minlength=len(self))
            first = np.cbrt(pull / self.size)
            lost = moving.added_up(shift / first[moving.cluster]) / epsilon
            tried = first * moving.largest(lost[moving.unit], len(self))
            noise = float(np.sum(self.size * tried**2))
            if noise < least:
                scales, least = tried, noise
            weight[: len(lost)] *= lost**1.5
            weight /= weight.max()
        return np.minimum(np.ceil(scales * (1 + 2.0**-40)), 2.0**62 + 2.0**61).astype(np.int64)

    def losses(self, scales: Integers) -> Reals:
        """Return exactly what each unit can lose over all clusters."""
        here, cluster = self.winsorised_mean(), self.members.cluster
        risen, fallen = self._centroid(self.up), self._centroid(-self.down)
        moved = np.maximum(risen - here[cluster], here[cluster] - fallen)
        without, own = np.where(moved > 0, np.inf, 0.0), scales[cluster]
        return self.members.added_up(np.divide(moved, own, out=without, where=own > 0))

    def _centroid(self, moved: Integers) -> Integers:
        """Return the centroid of each member's cluster after its sum has moved."""
        at = self.members.cluster
        return rounded_mean(self.clamped_total[at] + moved, self.size[at], self.smallest[at])


def summarise_units(
    ranked: Integers, sizes: Integers, unit: Integers, trim: float = 0.0
) -> UnitSummary:
    """Summarise consecutive clusters of the given sizes in ascending values of units.

    Units are numbered from 0 on. The share to trim is that of a cluster's units, one or more, whose
    values are clamped at each end.

    Examples
    --------
    >>> unit = np.array([0, 0, 1, 2])
    >>> summary = summarise_units(np.array([1, 2, 5, 9]), np.array([4]), unit)
    >>> summary.winsorised_mean(), summary.up, summary.down
    (array([5]), array([16, 16,  0]), array([ 0, 14, 14]))
    """
    from microveil.core.kernels.unit_passes import unit_moves

    plain = summarise(ranked, sizes)
    left_out, totals, cluster, owner, own, up, down = unit_moves(ranked, unit, sizes, trim)
    clamped = totals + sizes * plain.smallest
    sharing = sharing_of(rounded_mean(clamped, sizes, plain.smallest), ranked, unit)
    return UnitSummary(
        **{**vars(plain), **sharing._asdict()},
        left_out=left_out,
        clamped_total=clamped,
        members=Members(cluster, owner, own),
        up=up,
        down=down,
    )


def members_of(sizes: Integers, unit: Integers) -> Members:
    """Say whose values consecutive clusters of the given sizes have.

    Examples
    --------
    >>> found = members_of(np.array([3, 1]), np.array([0, 0, 1, 0]))
    >>> found.cluster, found.unit, found.own
    (array([0, 0, 1]), array([0, 1, 0]), array([2, 1, 1]))
    """
    units = int(unit.max()) + 1
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    pairs, own = np.unique(cluster * units + unit, return_counts=True)
    return Members(pairs // units, pairs % units, own)
