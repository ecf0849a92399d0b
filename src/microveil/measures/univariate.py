"""How estimates of single numbers move: means, totals, variances, quantiles.

Missing values: a measure of one attribute uses the records in which it is present.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

from microveil.compare.asked import Asked
from microveil.compare.estimates import Weights
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure, Items, NotComputed
from microveil.compare.pairing import Pair, present
from microveil.measures import distances
from microveil.types import Reals


def estimate_figures(seen: Examined, _: Asked) -> Items:
    """Compare what is estimated of each number."""
    pair = seen.pair
    for name, values, masked in zip(pair.numeric, pair.original.T, pair.released.T, strict=True):
        weights = pair.weighing(~np.isnan(values), ~np.isnan(masked))
        yield from _of_one(pair, name, present(values), present(masked), weights)


def _of_one(pair: Pair, name: str, values: Reals, masked: Reals, weights: Weights | None) -> Items:
    figure = partial(Figure, attribute=name, weighted=weights is not None)
    original, released = values[:, np.newaxis], masked[:, np.newaxis]
    (mean,) = distances.mean_differences(original, released, weights)
    yield figure("utility.means", value=float(mean), facts=_span(pair, name, mean, weights))
    if name not in pair.lengths:
        total = distances.total_difference(values, masked, weights)
        yield (
            figure("utility.totals", value=total)
            if np.isfinite(total)
            else NotComputed(("utility.totals",), "total_is_zero", name)
        )
    if len(released) == 1:
        both = ("utility.variances", "utility.interval_overlap")
        yield NotComputed(both, "one_value", name)
    else:
        (change,) = distances.variance_differences(original, released, weights)
        yield figure("utility.variances", value=float(change))
        common = distances.interval_overlap(values, masked, weights)
        yield figure("utility.interval_overlap", value=common)
    quantiles = distances.quantile_differences(original, released, weights).ravel()
    worst = int(np.argmax(np.abs(quantiles)))
    facts = {
        "quantile": distances.QUANTILES[worst],
        **_span(pair, name, quantiles[worst], weights),
    }
    yield figure("utility.quantiles", value=float(quantiles[worst]), facts=facts)


def _span(pair: Pair, name: str, moved: float, weights: Weights | None) -> Mapping[str, Fact]:
    """Return how long a move is, of times."""
    return {"microseconds": pair.span(name, abs(float(moved)), weights)}
