"""Post-processing of masked centroids: it sees nothing but what was published, so it is free."""

import numpy as np

from microveil.grid import Integers, Reals


def isotonic(masked: Reals, scales: Integers) -> Reals:
    """Put masked centroids back in rising order, as the true ones are.

    Weighted least squares with weights 1/b_j²; centroids without noise keep their values. One
    pass over the clusters.

    Guarantee
    ---------
    A function of masked values and noise scales. Level 1 and level 2 hold the scales as part of
    the mechanism, so nothing is spent at either.

    Examples
    --------
    >>> isotonic(np.array([1.0, 5.0, 3.0, 9.0]), np.array([1, 1, 1, 1]))
    array([1., 4., 4., 9.])
    """
    from microveil import kernels

    squares = scales.astype(np.float64) ** 2
    weights = np.divide(1.0, squares, out=np.full(len(scales), np.inf), where=scales > 0)
    return kernels.pool_adjacent_violators(masked, weights)
