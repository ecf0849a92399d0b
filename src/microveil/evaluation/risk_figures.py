"""Figures of risk, with readings. Missing values are treated as in the figures of utility."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from microveil.evaluation import risk
from microveil.evaluation.encoding import placed, ranked
from microveil.evaluation.pairing import Pair, deviation, present
from microveil.evaluation.result import Figure, Items, NotComputed, percent

_WIDTHS = ("risk.width_median", "risk.width_90", "risk.width_largest", "risk.narrow_clusters")


def disclosure_figures(pair: Pair, *, rank_percent: float, deviations: float) -> Items:
    """Compare values one by one: how closely masked values give them away."""
    for name, values, masked in pair.columns():
        if not deviation(values):
            yield NotComputed(
                ("risk.rank_disclosure", "risk.value_disclosure"),
                "it does not vary where both tables have it",
                name,
            )
            continue
        by_rank = risk.rank_disclosure(values, masked, percent=rank_percent)
        yield Figure(
            "risk.rank_disclosure",
            name,
            by_rank.share,
            f"{percent(by_rank.share)} of values lie within {rank_percent:g}% of the rank of their "
            f"masked value; by chance {percent(by_rank.chance)}; higher is riskier",
        )
        by_value = risk.value_disclosure(values, masked, deviations=deviations)
        yield Figure(
            "risk.value_disclosure",
            name,
            by_value.share,
            f"{percent(by_value.share)} of values lie within {pair.deviations(name, deviations)} "
            f"of their masked value; by chance {percent(by_value.chance)}; higher is riskier",
        )


def linkage_of(pair: Pair, *, sample: int | None, seed: int) -> risk.Linkage | None:
    """Link records that are complete in both tables by all their attributes, if there are any."""
    rows = slice(None) if pair.positions is None else pair.positions
    numbers, masked = ranked(pair)
    places, masked_places = placed(pair)
    known = ~np.isnan(np.hstack([numbers[rows], masked, places[rows], masked_places])).any(axis=1)
    if not known.any():
        return None
    return risk.record_linkage(
        numbers[rows][known],
        masked[known],
        places=(places[rows][known], masked_places[known]),
        sample=sample,
        seed=seed,
    )


def linkage_figures(pair: Pair, *, sample: int | None, seed: int) -> Items:
    """Link records one by one."""
    linkage = linkage_of(pair, sample=sample, seed=seed)
    if linkage is None:
        yield NotComputed(("linkage.nearest",), "no record is complete in both tables")
        return
    reading = (
        f"{percent(linkage.share)} of records could be linked by someone who knows their original "
        f"values; by chance {percent(linkage.chance)}"
    )
    if linkage.queried < linkage.records:
        reading += (
            f" (from a sample of {linkage.queried:,} of {linkage.records:,} records; with 95% "
            f"confidence {percent(linkage.low)} to {percent(linkage.high)})"
        )
    yield Figure("linkage.nearest", None, linkage.share, reading)


def cluster_figures(pair: Pair) -> Items:
    """Measure how wide clusters are, or how many tell their category: what noise does not hide."""
    if pair.clusters is None:
        yield NotComputed(
            (*_WIDTHS, "risk.clusters_without_noise"),
            "clusters are described in the private detail only",
        )
        return
    yield from _width_figures(pair, pair.clusters)
    shares = risk.without_noise(pair.clusters, [c.name for c in pair.categorical])
    for attribute in pair.categorical:
        if attribute.name not in shares:
            yield NotComputed(
                ("risk.clusters_without_noise",),
                "it was masked without clusters",
                attribute.name,
            )
            continue
        share = shares[attribute.name]
        yield Figure(
            "risk.clusters_without_noise",
            attribute.name,
            share,
            f"{percent(share)} of records are in clusters that agree so clearly that their most "
            "typical category is released as it is; higher is riskier",
        )


def _width_figures(pair: Pair, clusters: pl.DataFrame) -> Items:
    deviations = {
        name: deviation(present(column))
        for name, column in zip(pair.numeric, pair.original.T, strict=True)
    }
    widths = risk.cluster_widths(clusters, deviations)
    for name in pair.numeric:
        if name not in widths:
            yield NotComputed(_WIDTHS, "it was masked without clusters", name)
            continue
        width = widths[name]
        yield Figure(
            "risk.width_median",
            name,
            width.median,
            f"half of the records are in clusters at most {pair.deviations(name, width.median)} "
            "wide: so closely does someone who knows all other records learn their values",
        )
        yield Figure(
            "risk.width_90",
            name,
            width.ninth_decile,
            "nine in ten records are in clusters at most "
            f"{pair.deviations(name, width.ninth_decile)} wide",
        )
        yield Figure(
            "risk.width_largest",
            name,
            width.largest,
            f"no cluster is wider than {pair.deviations(name, width.largest)}",
        )
        yield Figure(
            "risk.narrow_clusters",
            name,
            width.narrow,
            f"{percent(width.narrow)} of records are in clusters narrower than {risk.NARROW} "
            "standard deviations; higher is riskier",
        )


def class_figures(pair: Pair, quasi_identifiers: Sequence[str]) -> Items:
    """Count records that share their quasi-identifiers in the release."""
    if not quasi_identifiers:
        yield NotComputed(
            ("risk.unique_records", "risk.smallest_class"), "no quasi-identifiers were named"
        )
        return
    classes = risk.quasi_identifier_classes(pair.table.to_native(), quasi_identifiers)
    names = ", ".join(quasi_identifiers)
    yield Figure(
        "risk.unique_records",
        names,
        classes.unique,
        f"{percent(classes.unique)} of released records share {names} with no other record; "
        "higher is riskier",
    )
    yield Figure(
        "risk.smallest_class",
        names,
        float(classes.smallest),
        f"the smallest group that shares {names} has {classes.smallest:,} of {classes.records:,} "
        "released records; lower is riskier",
    )


def group_figures(pair: Pair) -> Items:
    """Count the records that share their masked values in each group that was clustered jointly."""
    for group in pair.plan.joint_groups if pair.plan else ():
        names, k = ", ".join(group.attributes), pair.plan and pair.plan.k_of(group.attributes[0])
        if not set(group.attributes) <= set(pair.table.columns):
            yield NotComputed(
                ("risk.smallest_joint_class",), "not all of it is in the release", names
            )
            continue
        classes = risk.quasi_identifier_classes(pair.table.to_native(), group.attributes)
        yield Figure(
            "risk.smallest_joint_class",
            names,
            float(classes.smallest),
            f"every combination of masked {names} is shared by {classes.smallest:,} or more of "
            f"{classes.records:,} released records, whatever ε is; the plan asks for {k}",
        )
