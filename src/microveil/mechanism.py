"""The mechanism on one attribute: from cluster summaries to published values."""

import numpy as np

from microveil.accounting import Totals, noise_scales
from microveil.clusters import ClusterSummary
from microveil.errors import DataError
from microveil.grid import Integers, Reals
from microveil.masking import NumericMasking
from microveil.noise import LARGEST_SCALE, WordSource, add_discrete_laplace
from microveil.post import isotonic, penalised_isotonic


def calibrate(
    summary: ClusterSummary, masking: NumericMasking, totals: Totals | None = None
) -> Integers:
    """Settle the noise scale of every cluster, in grid units.

    Of a part of the clusters, `totals` are those of all of them.
    """
    if not summary.fits():
        raise DataError(
            f"attribute {masking.name!r}: values too large for its noise grid when {masking.k} of "
            "them are added; declare lower and upper, a larger resolution, or a smaller k"
        )
    scales = noise_scales(
        masking.method,
        summary,
        masking.domain_units,
        masking.epsilon_per_record,
        masking.guarantee,
        totals,
    )
    if scales.max() > LARGEST_SCALE:
        raise DataError(
            f"attribute {masking.name!r}: epsilon is too small for its noise grid; "
            "raise epsilon, or declare a narrower domain or a larger resolution"
        )
    return scales


def mask(
    summary: ClusterSummary, scales: Integers, masking: NumericMasking, source: WordSource
) -> Reals:
    """Mask the centroids of one attribute and return what is published of each cluster.

    Guarantee
    ---------
    Centroids move by whole grid units, and discrete Laplace noise of scale t turns a move by d
    into a loss of d/t. `accounting.noise_scales` keeps the loss of the one cluster that moves
    (clusters held), or the sum over all that do (clusters formed again), within ε. What follows
    (leaving the grid, isotonic regression, clamping, rounding) is post-processing.
    """
    centroids = masking.method.centroid(summary, 0)
    values = masking.grid.to_values(add_discrete_laplace(centroids, scales, source))
    if masking.post != "none":
        regression = isotonic if masking.post == "isotonic" else penalised_isotonic
        bounds = masking.published_lower, masking.published_upper
        values = regression(values, masking.grid.to_widths(scales), *bounds)
    return publish(values, masking)


def publish(values: Reals, masking: NumericMasking) -> Reals:
    """Round values as the attribute asks and keep them within its domain and type."""
    if masking.kind == "integer":
        values = np.rint(values / masking.quantum) * masking.quantum
    elif masking.decimals is not None:
        exact = np.abs(values) < 2.0**53 / 10.0**masking.decimals  # beyond, doubles have no more
        values = np.where(exact, np.round(np.where(exact, values, 0), masking.decimals), values)
    return np.clip(values, masking.published_lower, masking.published_upper)


def no_finite_result(name: str, undefined: int, records: int) -> DataError:
    """Say that a derived attribute cannot be computed everywhere."""
    return DataError(
        f"attribute {name!r}: its expression has no finite result in {undefined:,} of "
        f"{records:,} records (a division by zero?); change the expression"
    )
