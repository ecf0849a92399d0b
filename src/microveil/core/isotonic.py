"""Post-processing of masked centroids: it sees nothing but what was masked, so it is free."""

import numpy as np

from microveil.core.grid import power_of_two_below
from microveil.types import Integers, Reals

_LARGEST_SQUARED = 2.0**500


def isotonic(masked: Reals, scales: Reals, lower: float = -np.inf, upper: float = np.inf) -> Reals:
    """Put masked centroids back in rising order, as the true ones are.

    Masked values beyond an end of [lower, upper] are first reflected there; then weighted least
    squares, with weights one over the noise's expected square, which the domain keeps below a
    bound: 1/(2b²) for a scale b that is small against it. Centroids without noise keep their
    values. One pass over the clusters.

    They are not clamped: every value beyond an end would become that end, and a mean of ends, or an
    end moved by a standard deviation, tells noise scales, which are private. What reflection leaves
    follows the noise as finely as the noise was drawn.

    Guarantee
    ---------
    A function of masked values, noise scales and the declared domain. Level 1 and level 2 hold the
    scales as part of the mechanism, so nothing is spent at either. No value of the result that was
    masked by noise is a function of scales and domain alone.

    Examples
    --------
    >>> isotonic(np.array([1.0, 5.0, 3.0, 9.0]), np.array([1.0, 1.0, 1.0, 1.0]))
    array([1., 4., 4., 9.])
    """
    return _pooled(reflected(masked, lower, upper), weights_of(scales, lower, upper))


def reflected(values: Reals, lower: float, upper: float) -> Reals:
    """Reflect values beyond either end of a domain, as often as it takes, until they lie within.

    Examples
    --------
    >>> reflected(np.array([-1.0, 4.0, 11.0, 27.0]), 0.0, 10.0)
    array([1., 4., 9., 7.])
    """
    inside = (values >= lower) & (values <= upper)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(lower) and np.isfinite(upper):
            beyond = np.mod(values - lower, 2 * (upper - lower))
            within = lower + np.minimum(beyond, 2 * (upper - lower) - beyond)
        else:
            within = 2 * np.where(values < lower, lower, upper) - values
    within = np.where(np.isfinite(within), within, np.clip(values, lower, upper))
    return np.where(inside, values, within)


def weights_of(scales: Reals, lower: float = -np.inf, upper: float = np.inf) -> Reals:
    """Return the weights of isotonic regression; infinite where there is no noise.

    Examples
    --------
    >>> weights_of(np.array([0.0, 1.0, 2.0]))
    array([  inf, 0.5  , 0.125])
    """
    size = _size_of(scales)
    squares = expected_squares_of_noise(scales / size, (upper / size - lower / size) / 2)
    weights: Reals = np.divide(1.0, squares, out=np.full(len(scales), np.inf), where=squares > 0)
    return weights


def across_ranges(part: Integers, values: Reals, weights: Reals) -> tuple[Reals, Reals]:
    """Return between which values each range of a regression lies once all are put together.

    Ranges were regressed each by itself: `values` are the levels of their blocks, ascending within
    a range, of summed weights. Where two ranges overlap, the blocks of the lower one that are above
    a common level, and those of the upper one below it, are pooled at that level. So the regression
    over all of them at once is each range's own, clipped to what is returned for it. Blocks that
    lie below every later range and above every earlier one need not be given.

    Examples
    --------
    >>> across_ranges(np.array([0, 0, 1]), np.array([1.0, 5.0, 3.0]), np.ones(3))
    (array([-inf,   4.]), array([ 4., inf]))
    """
    ranges = int(part.max()) + 1
    lowest, highest = np.full(ranges, -np.inf), np.full(ranges, np.inf)
    pooled = _pooled(values, weights)
    np.maximum.at(lowest, part, np.where(pooled > values, pooled, -np.inf))
    np.minimum.at(highest, part, np.where(pooled < values, pooled, np.inf))
    return lowest, highest


def _pooled(values: Reals, weights: Reals) -> Reals:
    from microveil.core.kernels.pool_adjacent import pool_adjacent_violators

    size = _size_of(values)
    return pool_adjacent_violators(values / size, weights) * size


def penalised_isotonic(
    masked: Reals,
    scales: Reals,
    lower: float = -np.inf,
    upper: float = np.inf,
    ends: tuple[bool, bool] = (True, True),
) -> Reals:
    """Isotonic regression whose two ends are drawn in by one standard deviation of their noise.

    Between two neighbours a masked centroid cannot stray far without being pooled with them, but
    nothing holds the first from below and the last from above: isotonic regression spikes at its
    ends, and the outermost clusters have the most noise. Raising the first value and lowering the
    last before the regression is the same as adding to its squares a penalty that grows with the
    last value of the result and falls with the first. What then lies beyond the domain is clamped
    where values are published. `ends` says whether the first and the last are those of the
    attribute, and not of a range of its clusters.

    Guarantee
    ---------
    As for `isotonic`: post-processing of what was masked.

    Examples
    --------
    >>> penalised_isotonic(np.array([1.0, 3.0, 9.0]), np.array([0.0, 0.0, 2.0])).round(2)
    array([1.  , 3.  , 6.17])
    """
    size = _size_of(scales)
    squares = expected_squares_of_noise(scales / size, (upper / size - lower / size) / 2)
    deviations = np.sqrt(squares) * size
    drawn_in = reflected(masked, lower, upper)
    first, last = ends
    drawn_in[:first] += deviations[:first]
    drawn_in[len(drawn_in) - last :] -= deviations[len(drawn_in) - last :]
    return _pooled(drawn_in, weights_of(scales, lower, upper))


def _size_of(numbers: Reals) -> float:
    """Return a power of two to divide them by, so that their squares are finite; mostly 1."""
    largest = float(np.max(np.abs(numbers), initial=0.0))
    return power_of_two_below(largest) if _LARGEST_SQUARED < largest < np.inf else 1.0


def expected_squares_of_noise(scales: Reals, ceiling: float) -> Reals:
    """E[min(N², R²)] = 2b² − exp(−R/b)(2b² + 2bR) for Laplace noise N of scale b.

    Examples
    --------
    >>> expected_squares_of_noise(np.array([0.0, 1.0]), np.inf)
    array([0., 2.])
    """
    with np.errstate(over="ignore"):  # of a domain with one end the other is infinitely far
        ratios = np.divide(ceiling, scales, out=np.full(len(scales), np.inf), where=scales > 0)
    near = np.minimum(ratios, 700.0)  # exp of less is 0 in double precision
    squares: Reals = 2 * scales**2 * (1 - np.exp(-near) * (1 + near))
    return squares
