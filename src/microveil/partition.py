"""Where one cluster ends and the next begins: fixed sizes, or boundaries that follow the data."""

from functools import partial

import numpy as np

from microveil.clusters import cluster_sizes
from microveil.engines.base import Cut
from microveil.grid import Integers
from microveil.masking import Masking, NumericMasking


def cutter(masking: Masking) -> Cut | None:
    """Return what cuts an attribute into clusters; None where the method forms none."""
    return partial(cut, masking=masking) if masking.method.clustered else None


def cut(ranked: Integers, masking: Masking) -> Integers:
    """Cut ascending values into consecutive clusters; return their sizes.

    ``"fixed"``: clusters of k, the remainder in the last. ``"noise-optimal"``: of all partitions
    into clusters of k to `cap` records, one of least expected squared error: squares about the
    centroids used plus the noise at this ε, by dynamic programming in O(n·cap) time and O(n)
    memory. ``"least-squares"``: the same for plain means without noise and sizes from k to 2k − 1,
    which is optimal microaggregation (Hansen and Mukherjee 2003).

    Guarantee
    ---------
    Level 1 holds clusters as they are, however they were chosen, so it costs nothing there. Run on
    a neighbour, the choice may fall out differently, and level 2 has no bound.
    """
    if masking.partition == "fixed" or not isinstance(masking, NumericMasking):
        return cluster_sizes(len(ranked), masking.k)
    from microveil import kernels

    method, domain = masking.method, masking.domain_units
    with_noise = masking.partition == "noise-optimal"
    half_width = (masking.upper - masking.lower) / 2 / masking.grid.step
    return kernels.cheapest_cuts(
        ranked,
        masking.k,
        masking.cap if with_noise else 2 * masking.k - 1,
        with_noise and method.pulls_in,
        np.array(domain, dtype=np.float64),
        masking.epsilon_per_record if with_noise else np.inf,
        half_width,
    )
