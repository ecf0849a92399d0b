"""Clusters: how wide they are, and how many publish their values without noise."""

import numpy as np
import polars as pl

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair, deviation, present
from microveil.core.attribute import CROWD
from microveil.measures import disclosure_risk

_WIDTHS = ("risk.width_median", "risk.width_90", "risk.width_largest", "risk.narrow_clusters")
_WITHOUT_NOISE = "risk.clusters_without_noise"


def cluster_figures(seen: Examined, asked: Asked) -> Items:
    """Measure what noise does not hide."""
    clusters = seen.pair.clusters
    if clusters is not None:
        yield from _width_figures(seen.pair, clusters)
        yield from without_noise_figures(seen, asked)


def crowd_figures(seen: Examined, _: Asked) -> Items:
    """Count what few persons have, and noise does not hide."""
    plan, pair = seen.planned, seen.pair
    enough = {
        name: (plan.exact_from_of(name) or CROWD) * plan.persons_of(name)
        for name in pair.attributes
    }
    found = disclosure_risk.too_few_share(pair.clusters, enough)  # type: ignore[arg-type]
    for name, (exact, unmoved) in found.items():
        facts = {"enough": enough[name]}
        yield Figure("risk.exact_values", name, exact, facts)
        yield Figure("risk.values_unmoved", name, unmoved, facts)
    for attribute in pair.categorical:
        codes = attribute.original[attribute.original != MISSING]
        having = np.bincount(codes)[codes] * seen.records / seen.drawn
        rare = float(np.mean(having < enough[attribute.name])) if len(codes) else 0.0
        facts = {"enough": enough[attribute.name]}
        yield Figure("risk.rare_categories", attribute.name, rare, facts)


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
