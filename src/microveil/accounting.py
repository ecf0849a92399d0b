"""Budget: shares of ε, noise scales, and what is lost when clusters are formed again."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from microveil.errors import PlanError
from microveil.grid import Integers
from microveil.methods import Method


def budget_shares(epsilon: float, weights: Sequence[float]) -> list[float]:
    """Split ε in proportion to weights into floats whose sum is ε exactly, in any order.

    Every share is a whole number of units in the last place of ε, so no addition rounds. The
    few units that remain go to the first attributes, one each.

    Examples
    --------
    >>> shares = budget_shares(0.1, [1, 1, 1])
    >>> sum(shares) == 0.1
    True
    >>> budget_shares(1, [3, 1])
    [0.75, 0.25]
    """
    unit = Fraction(math.ulp(epsilon))
    units = Fraction(epsilon) / unit
    exact = [Fraction(weight) for weight in weights]
    shares = [math.floor(units * weight / sum(exact)) for weight in exact]
    for first in range(int(units) - sum(shares)):
        shares[first] += 1
    if 0 in shares:
        raise PlanError("plan: epsilon is too small, or the weights too unequal, to be shared")
    return [float(share * unit) for share in shares]


def noise_scales(reach: Integers, size: Integers, epsilon: float) -> Integers:
    """Scales t_j = ⌈(Δ_j + g)/(ε g)⌉ in grid units, with Δ_j = reach_j/n_j; 0 where nothing moves.

    Guarantee
    ---------
    A rounded centroid moves by at most d = ⌈reach/n⌉ ≤ (reach + n − 1)/n grid units, so
    d/t ≤ ε. The quotient is computed in floating point with a relative error below 2^−51; up to a
    reach of 2^51 the numerator's spare unit outweighs it, beyond it is padded.
    """
    quotient = (reach + size) / (size * epsilon)
    padded = np.where(reach < 2**51, quotient, quotient * (1 + 2.0**-50))
    scales = np.minimum(np.ceil(padded), 2.0**62 + 2.0**61)  # more than the sampler takes
    return np.where(reach > 0, scales, 0).astype(np.int64)


def reclustered_bound(
    method: Method, epsilon: float, *, clusters: int, records: int, domain_units: int
) -> float:
    """Bound the loss of one attribute when one record changes and clustering runs again.

    With scales held, and for any table of the method's domain: p·ε for iDP-CBLS, where every one
    of p clusters may lose ε; for DP-UM and iDP-LS the shifts n_j·|Δc_j| add up to at most hi − lo,
    while n_j·b_j is at least (hi − lo)/ε and half of that, which gives ε and 2ε. Rounding each
    centroid to the grid adds at most n/R, with R the domain's width in grid units (2^40 or more).
    """
    if not method.clustered:
        return epsilon
    if not method.needs_domain:
        return clusters * epsilon
    published = epsilon if method.promise == "DP" else 2 * epsilon
    return published * (1 + records / domain_units)
