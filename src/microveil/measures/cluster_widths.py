"""Clusters: how wide they are, and how many publish their values without noise."""

import polars as pl

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.pairing import Pair, deviation, present
from microveil.measures import disclosure_risk

_WIDTHS = ("risk.width_median", "risk.width_90", "risk.width_largest", "risk.narrow_clusters")
_WITHOUT_NOISE = "risk.clusters_without_noise"


def cluster_figures(seen: Examined, asked: Asked) -> Items:
    """Measure what noise does not hide."""
    clusters = seen.pair.clusters
    if clusters is not None:
        yield from _width_figures(seen.pair, clusters)
        yield from without_noise_figures(seen, asked)


def without_noise_figures(seen: Examined, _: Asked) -> Items:
    """Count the records in clusters whose values are published without noise."""
    pair = seen.pair
    shares = disclosure_risk.without_noise(pair.clusters, pair.attributes)  # type: ignore[arg-type]
    categories = {attribute.name for attribute in pair.categorical}
    for name in pair.attributes:
        if name in shares:
            facts = {"of": "category" if name in categories else "number"}
            yield Figure(_WITHOUT_NOISE, name, shares[name], facts)
        else:
            yield NotComputed((_WITHOUT_NOISE,), "no_clusters", name)


def _width_figures(pair: Pair, clusters: pl.DataFrame) -> Items:
    deviations = {
        name: deviation(present(column))
        for name, column in zip(pair.numeric, pair.original.T, strict=True)
    }
    widths = disclosure_risk.cluster_widths(clusters, deviations)
    for name in pair.numeric:
        if name not in widths:
            yield NotComputed(_WIDTHS, "no_clusters", name)
            continue
        width = widths[name]
        for measure, value in zip(
            _WIDTHS[:3], (width.median, width.ninth_decile, width.largest), strict=True
        ):
            facts = {"microseconds": pair.span(name, value)}
            yield Figure(measure, name, value, facts)
        yield Figure("risk.narrow_clusters", name, width.narrow)
