"""Expected squared error without drawing noise: squares within clusters plus those of the noise."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.core.clusters import ClusterSummary, singletons, summarise
from microveil.core.isotonic import expected_squares_of_noise
from microveil.core.mask import calibrate
from microveil.core.partition import cut
from microveil.types import Integers, Reals


def expected_squares(
    ranked: Integers, settings: NumericSettings, *, clamped: bool
) -> tuple[float, float]:
    """Return the squares within clusters and the expected squares of noise, in grid steps.

    Clamped, noise is cut off at half the domain's width.
    """
    half_width = (settings.upper - settings.lower) / 2 / settings.grid.step
    clustered = settings.method.clustered
    if clustered:
        summary = summarise(ranked, cut(ranked, settings), settings.trim)
    else:
        summary = singletons(ranked)
    scales = calibrate(summary, settings).astype(np.float64)
    squares = expected_squares_of_noise(scales, half_width if clamped else np.inf)
    noise = float(np.sum(summary.size * squares))
    return float(np.sum(_within(ranked, summary, settings))), noise


def expected_errors(ranked: Integers, settings: NumericSettings, ks: Sequence[int]) -> Reals:
    """Return the expected squared error with clusters of each k, of a range of ranks or of all.

    Of fewer values than k one cluster is made.
    """
    return np.array(
        [
            sum(expected_squares(ranked, replace(settings, k=min(k, len(ranked))), clamped=True))
            for k in ks
        ]
    )


def _within(ranked: Integers, summary: ClusterSummary, settings: NumericSettings) -> Reals:
    """Squares of records about the centroid of their cluster."""
    away = ranked - np.repeat(settings.method.centroid(summary, 0), summary.size)
    squares: Reals = away.astype(np.float64) ** 2
    return squares
