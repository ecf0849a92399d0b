"""Budget: shares of ε, noise scales, and what is lost when clusters are formed again."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from microveil.core.choices import GuaranteeName
from microveil.core.clusters import ClusterSummary
from microveil.core.methods import Method, Reach
from microveil.core.sensitivity import DomainSteps, Reaches
from microveil.errors import PlanError
from microveil.types import Integers, Reals

LEAST_WIDTH = 2**40
"""A domain is so many grid steps wide or more: see `grid.grid_of_domain`."""


def budget_shares(epsilon: float, proportions: Sequence[float]) -> list[float]:
    """Split ε in these proportions into floats whose sum is ε exactly, in any order.

    Every share is a whole multiple of the last place of ε, so no addition rounds. What remains goes
    to the first attributes, one last place each.

    Examples
    --------
    >>> shares = budget_shares(0.1, [1, 1, 1])
    >>> sum(shares) == 0.1
    True
    >>> budget_shares(1, [3, 1])
    [0.75, 0.25]
    """
    last_place = Fraction(math.ulp(epsilon))
    whole = Fraction(epsilon) / last_place
    exact = [Fraction(proportion) for proportion in proportions]
    for_one = whole / sum(exact)
    shares = [math.floor(for_one * proportion) for proportion in exact]
    for first in range(int(whole) - sum(shares)):
        shares[first] += 1
    if 0 in shares:
        raise PlanError(
            "plan: epsilon is too small, or the budget shares are too unequal, to be divided",
            setting="epsilon",
        )
    return [float(share * last_place) for share in shares]


@dataclass(frozen=True)
class Totals:
    """What the noise of one cluster depends on in all others, when clusters are formed again.

    `up` and `down` are Σ_j d_j/s_j over the moves d_j in one direction, with s_j the cluster's
    scale before all scales are multiplied by one factor. Totals of parts add up.
    """

    records: int = 0
    up: float = 0.0
    down: float = 0.0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(self.records + other.records, self.up + other.up, self.down + other.down)


def totals_of(method: Method, summary: ClusterSummary, domain: DomainSteps) -> Totals:
    """Compute what scales depend on in all clusters of an attribute, or in a part of them."""
    up, down, unscaled = _unscaled(method.reclustered(summary, domain), summary)
    return Totals(int(summary.size.sum()), _total_loss(up, unscaled), _total_loss(down, unscaled))


def noise_scales(
    method: Method,
    summary: ClusterSummary,
    domain: DomainSteps,
    epsilon: float,
    guarantee: GuaranteeName = "fixed-clusters",
    totals: Totals | None = None,
) -> Integers:
    """Scales in grid steps that keep the guarantee; 0 where no record moves the cluster.

    Of a part of the clusters, `totals` are those of all of them.
    """
    if guarantee == "fixed-clusters" or not method.clustered:
        return fixed_scales(method.calibration(summary, domain).largest, summary.averaged, epsilon)
    totals = totals or totals_of(method, summary, domain)
    if method.noise_covers_reclustering:
        reach = method.calibration(summary, domain).largest
        return fixed_scales(reach, summary.averaged, epsilon / _rounding(totals.records, domain))
    return reclustered_scales(method.reclustered(summary, domain), summary, epsilon, totals)


def fixed_scales(reach: Integers, averaged: Integers, epsilon: float) -> Integers:
    """Scales t_j = ⌈(Δ_j + g)/(ε g)⌉ in grid steps, with Δ_j = reach_j/n_j; 0 where nothing moves.

    n_j is the number of values the centroid is the mean of.

    Guarantee
    ---------
    A rounded centroid moves by at most d = ⌈reach/n⌉ ≤ (reach + n − 1)/n grid steps, so
    d/t ≤ ε. The quotient is computed in floating point with a relative error below 2^−51; up to a
    reach of 2^51 the numerator's spare step outweighs it, beyond it is padded.
    """
    quotient = np.maximum((reach + averaged) / averaged / epsilon, 1.0)
    padded = np.where(reach < 2**51, quotient, quotient * (1 + 2.0**-50))
    return _whole(np.where(reach > 0, padded, 0))


def reclustered_scales(
    reaches: Reaches, summary: ClusterSummary, epsilon: float, totals: Totals | None = None
) -> Integers:
    """Scales of least total squared noise for which re-clustering loses at most ε.

    With w_j the larger shift of centroid j, b_j = (w_j/n_j)^(1/3) Σ_i w_i^(2/3) n_i^(1/3) / ε
    minimises Σ n_j b_j² subject to Σ w_j/b_j ≤ ε. No neighbour moves every centroid by the larger
    of its two shifts, so all scales shrink until the worst neighbour loses ε: what remains is
    b_j = s_j max(Σ up_i/s_i, Σ down_i/s_i)/ε with s_j = (w_j/n_j)^(1/3).

    Guarantee
    ---------
    Σ_j d_j/t_j ≤ ε for the rounded centroids' moves d_j in either direction: rounding adds at most
    one grid step to each that moves, which is part of w_j.
    """
    up, down, unscaled = _unscaled(reaches, summary)
    if totals is None:
        totals = Totals(0, _total_loss(up, unscaled), _total_loss(down, unscaled))
    return _whole(unscaled * (max(totals.up, totals.down) / epsilon) * (1 + 2.0**-40))


def _unscaled(reaches: Reaches, summary: ClusterSummary) -> tuple[Reals, Reals, Reals]:
    up, down = (shift / summary.averaged + (shift > 0) for shift in reaches)
    return up, down, np.cbrt(np.maximum(up, down) / summary.size)


def fixed_loss(
    method: Method, summary: ClusterSummary, domain: DomainSteps, scales: Integers
) -> float:
    """Exact loss of one attribute when one record changes and keeps its cluster."""
    return float(np.max(fixed_losses(method, summary, domain, scales)))


def fixed_losses(
    method: Method, summary: ClusterSummary, domain: DomainSteps, scales: Integers
) -> Reals:
    """Exact loss of each cluster when one of its records changes and keeps its cluster."""
    up, down = _moves(method, method.fixed, summary, domain)
    return np.maximum(_ratios(up, scales), _ratios(down, scales))


def reclustered_loss(
    method: Method, summary: ClusterSummary, domain: DomainSteps, scales: Integers
) -> float:
    """Exact loss of one attribute when one record changes and clusters are formed again.

    With noise scales fixed, the worst neighbour takes a record from one end beyond the other, and
    every centroid moves the same way: max(Σ up_j/b_j, Σ down_j/b_j).
    """
    if not method.clustered:
        return fixed_loss(method, summary, domain, scales)
    return max(
        float(np.sum(losses)) for losses in reclustered_losses(method, summary, domain, scales)
    )


def reclustered_losses(
    method: Method, summary: ClusterSummary, domain: DomainSteps, scales: Integers
) -> tuple[Reals, Reals]:
    """Exact loss of each cluster when a record passes all of them, upwards and downwards."""
    up, down = _moves(method, method.reclustered, summary, domain)
    return _ratios(up, scales), _ratios(down, scales)


def reclustered_bound(
    method: Method, epsilon: float, *, clusters: int, records: int, width: int = LEAST_WIDTH
) -> float:
    """Bound the re-clustered loss of published noise without looking at the data.

    With noise scales fixed, and for any table of the method's domain: p·ε for iDP-CBLS, where every
    one of p clusters may lose ε; for DP-UM and iDP-LS the shifts n_j·|Δc_j| add up to at most
    hi − lo, while n_j·b_j is at least (hi − lo)/ε and half of that, which gives ε and 2ε. Rounding
    each centroid to the grid adds at most n/R for a domain that is `width` R grid steps wide or
    more. The least width of all is a plan fact; the true one may tell a domain read from the data.
    """
    if not method.clustered:
        return epsilon
    if method.reclustered_factor is None:
        return clusters * epsilon
    return method.reclustered_factor * epsilon * (1 + records / width)


def _rounding(records: int, domain: DomainSteps) -> float:
    return 1 + records / (domain.upper - domain.lower)


def _moves(
    method: Method, reach: Reach, summary: ClusterSummary, domain: DomainSteps
) -> tuple[Integers, Integers]:
    """How far the rounded centroids move when their sums move by these reaches."""
    reaches, here = reach(summary, domain), method.centroid(summary, 0)
    up = method.centroid(summary, reaches.up) - here
    return up, here - method.centroid(summary, -reaches.down)


def _ratios(moves: Integers | Reals, scales: Integers | Reals) -> Reals:
    """Loss of each cluster: 0/0 = 0, and a cluster that moves without noise loses everything."""
    unmasked = np.where(moves > 0, np.inf, 0.0)
    return np.divide(moves, scales, out=unmasked, where=np.asarray(scales) > 0)


def _total_loss(moves: Integers | Reals, scales: Integers | Reals) -> float:
    return float(np.sum(_ratios(moves, scales)))


def _whole(scales: Reals) -> Integers:
    """Round scales up; what is more than the sampler takes stays more, but fits 64 bits."""
    return np.minimum(np.ceil(scales), 2.0**62 + 2.0**61).astype(np.int64)
