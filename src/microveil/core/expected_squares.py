"""Expected squared error without drawing noise: squares within clusters plus those of the noise."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.core.clusters import ClusterSummary, singletons
from microveil.core.isotonic import expected_squares_of_noise
from microveil.core.mask import calibrate, summarise_numbers
from microveil.core.partition import cut
from microveil.types import Integers, Reals


def expected_squares(
    ranked: Integers, settings: NumericSettings, unit: Integers | None = None, *, clamped: bool
) -> tuple[float, float]:
    """Return the squares within clusters and the expected squares of noise, in grid steps.

    Clamped, noise is cut off at half the domain's width.
    """
    half_width = (settings.upper - settings.lower) / 2 / settings.grid.step
    clustered = settings.method.clustered
    if clustered:
        sizes = cut(ranked, settings, unit)
        summary = summarise_numbers(ranked, sizes, settings, unit)
    else:
        summary = singletons(ranked)
    scales = calibrate(summary, settings).astype(np.float64)
    squares = expected_squares_of_noise(scales, half_width if clamped else np.inf)
    noise = float(np.sum(summary.size * squares))
    return float(np.sum(_within(ranked, summary, settings))), noise


def expected_errors(
    ranked: Integers, settings: NumericSettings, ks: Sequence[int], unit: Integers | None = None
) -> Reals:
    """Return the expected squared error with clusters of each k, of a range of ranks or of all.

    Of fewer values than k one cluster is made.
    """
    tried = [replace(settings, k=min(k, len(ranked))) for k in ks]
    return np.array([sum(expected_squares(ranked, one, unit, clamped=True)) for one in tried])


def _within(ranked: Integers, summary: ClusterSummary, settings: NumericSettings) -> Reals:
    """Squares of records about the centroid of their cluster."""
    away = ranked - np.repeat(settings.method.centroid(summary, 0), summary.size)
    squares: Reals = away.astype(np.float64) ** 2
    return squares
