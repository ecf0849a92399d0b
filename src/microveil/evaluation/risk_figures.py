"""Figures of risk, with readings. Missing values are treated as in the figures of utility."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from microveil.evaluation import risk
from microveil.evaluation.encoding import placed, ranked
from microveil.evaluation.pairing import Pair, deviation, present
from microveil.evaluation.result import Figure, Items, NotComputed, percent


def disclosure_figures(pair: Pair, *, rank_percent: float, deviations: float) -> Items:
    """Compare values one by one: how closely masked values give them away."""
    for name, values, masked in pair.columns():
        if not deviation(values):
            yield NotComputed(
                f"interval disclosure of {name!r}", "it does not vary where both tables have it"
            )
            continue
        by_rank = risk.rank_disclosure(values, masked, percent=rank_percent)
        yield Figure(
            "rank interval disclosure",
            name,
            by_rank.share,
            f"{percent(by_rank.share)} of values lie within {rank_percent:g}% of the rank of their "
            f"masked value; by chance {percent(by_rank.chance)}; higher is riskier",
        )
        by_value = risk.value_disclosure(values, masked, deviations=deviations)
        yield Figure(
            "value interval disclosure",
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
        yield NotComputed("record linkage", "no record is complete in both tables")
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
    yield Figure("record linkage", None, linkage.share, reading)


def cluster_figures(pair: Pair) -> Items:
    """Measure how wide clusters are, or how many tell their category: what noise does not hide."""
    if pair.clusters is None:
        yield NotComputed("cluster widths", "clusters are described in the private detail only")
        return
    yield from _width_figures(pair, pair.clusters)
    shares = risk.without_noise(pair.clusters, [c.name for c in pair.categorical])
    for attribute in pair.categorical:
        if attribute.name not in shares:
            yield NotComputed(
                f"records in clusters without noise of {attribute.name!r}",
                "it was masked without clusters",
            )
            continue
        share = shares[attribute.name]
        yield Figure(
            "records in clusters without noise",
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
            yield NotComputed(f"cluster widths of {name!r}", "it was masked without clusters")
            continue
        width = widths[name]
        yield Figure(
            "cluster width, median",
            name,
            width.median,
            f"half of the records are in clusters at most {pair.deviations(name, width.median)} "
            "wide: so closely does someone who knows all other records learn their values",
        )
        yield Figure(
            "cluster width, 90%",
            name,
            width.ninth_decile,
            "nine in ten records are in clusters at most "
            f"{pair.deviations(name, width.ninth_decile)} wide",
        )
        yield Figure(
            "cluster width, largest",
            name,
            width.largest,
            f"no cluster is wider than {pair.deviations(name, width.largest)}",
        )
        yield Figure(
            "records in narrow clusters",
            name,
            width.narrow,
            f"{percent(width.narrow)} of records are in clusters narrower than {risk.NARROW} "
            "standard deviations; higher is riskier",
        )


def class_figures(pair: Pair, quasi_identifiers: Sequence[str]) -> Items:
    """Count records that share their quasi-identifiers in the release."""
    if not quasi_identifiers:
        yield NotComputed("unique records and smallest class", "no quasi-identifiers were named")
        return
    classes = risk.quasi_identifier_classes(pair.table.to_native(), quasi_identifiers)
    names = ", ".join(quasi_identifiers)
    yield Figure(
        "unique records",
        names,
        classes.unique,
        f"{percent(classes.unique)} of released records share {names} with no other record; "
        "higher is riskier",
    )
    yield Figure(
        "smallest class",
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
            yield NotComputed(f"smallest joint class of {names}", "not all of it is in the release")
            continue
        classes = risk.quasi_identifier_classes(pair.table.to_native(), group.attributes)
        yield Figure(
            "smallest joint class",
            names,
            float(classes.smallest),
            f"every combination of masked {names} is shared by {classes.smallest:,} or more of "
            f"{classes.records:,} released records, whatever ε is; the plan asks for {k}",
        )
