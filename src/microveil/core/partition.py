"""Where one cluster ends and the next begins: fixed sizes, or boundaries that follow the data."""

import numpy as np

from microveil.core.attribute import AttributeSettings, NumericSettings
from microveil.core.clusters import cluster_sizes
from microveil.core.unit_clusters import FEWEST_UNITS
from microveil.types import Integers

INNER_NOISE = 0.3
"""How much of the noise of inner clusters counts where isotonic regression follows.

It leaves about as much at ε = 1, less at smaller ε. Nothing holds the first cluster from below or
the last from above, so theirs counts in full.
"""


def cut(ranked: Integers, settings: AttributeSettings, unit: Integers | None = None) -> Integers:
    """Cut ascending values into consecutive clusters; return their sizes.

    Clusters of an attribute that is masked by unit, where `unit` has that of each value, have k
    different units, however many records: k, `cap` and the share that is trimmed then count units.

    ``"fixed"``: clusters of k, the remainder in the last. ``"noise-optimal"``: of all partitions
    into clusters of k to `cap` records, one of least expected squared error: squares about the
    centroids used plus the noise at this ε, by dynamic programming in O(n·cap) time at worst and
    O(n) memory. Where masked values are put back in order, `INNER_NOISE` says how much of the noise
    counts. ``"least-squares"``: the same for plain means without noise and sizes from k to
    2k − 1, which is optimal microaggregation (Hansen and Mukherjee 2003).

    Guarantee
    ---------
    Level 1 holds clusters as they are, however they were chosen, so it costs nothing there. Run on
    a neighbour, the choice may fall out differently, and level 2 has no bound.
    """
    if unit is not None:
        return _cut_units(ranked, settings, unit)
    if settings.partition == "fixed" or not isinstance(settings, NumericSettings):
        return cluster_sizes(len(ranked), settings.k)
    from microveil.core.kernels.cuts import cheapest_cuts

    method, domain = settings.method, settings.domain_steps
    with_noise = settings.partition == "noise-optimal"
    half_width = (settings.upper - settings.lower) / 2 / settings.grid.step
    return cheapest_cuts(
        ranked,
        settings.k,
        settings.cap if with_noise else 2 * settings.k - 1,
        with_noise and method.pulls_in,
        settings.trim if with_noise else 0.0,
        np.array(domain, dtype=np.float64),
        _floors(ranked, settings, np.zeros(0, np.int64)),
        settings.epsilon_per_record if with_noise else np.inf,
        half_width,
        1.0 if settings.post == "none" else INNER_NOISE,
    )


def _cut_units(ranked: Integers, settings: AttributeSettings, unit: Integers) -> Integers:
    from microveil.core.kernels.unit_passes import cheapest_unit_cuts, cut_by_units

    least = max(settings.k, FEWEST_UNITS)
    if settings.partition == "fixed" or not isinstance(settings, NumericSettings):
        return cut_by_units(unit, least)
    with_noise = settings.partition == "noise-optimal"
    return cheapest_unit_cuts(
        ranked,
        unit,
        least,
        settings.cap if with_noise else 2 * least - 1,
        settings.trim,
        _floors(ranked, settings, unit),
        settings.epsilon if with_noise else np.inf,
        (settings.upper - settings.lower) / 2 / settings.grid.step,
        1.0 if settings.post == "none" else INNER_NOISE,
    )


def _floors(ranked: Integers, settings: NumericSettings, unit: Integers) -> Integers:
    """Return how far noise must reach about values that few have; empty if it need not."""
    from microveil.core.kernels.floors import noise_floors

    if settings.partition != "noise-optimal" or settings.enough < 2:
        return np.zeros(0, np.int64)
    return noise_floors(ranked, unit, settings.enough, min(settings.rounding_steps, 2**62))
