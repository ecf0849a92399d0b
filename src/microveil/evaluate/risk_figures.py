"""Figures of risk, with readings. Missing values are treated as in the figures of utility."""

from collections.abc import Sequence

from microveil.evaluate import risk
from microveil.evaluate.pairing import Pair, deviation, present
from microveil.evaluate.result import Figure, Items, NotComputed, percent


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
            f"{percent(by_value.share)} of values lie within {deviations:g} standard deviations of "
            f"their masked value; by chance {percent(by_value.chance)}; higher is riskier",
        )


def linkage_figures(pair: Pair, *, sample: int | None, seed: int) -> Items:
    """Link records one by one."""
    original, released = pair.complete_records()
    if not len(original):
        yield NotComputed("record linkage", "no record is complete in both tables")
        return
    linkage = risk.record_linkage(original, released, sample=sample, seed=seed)
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
    """Measure how wide clusters are: what noise does not hide."""
    if pair.clusters is None:
        yield NotComputed("cluster widths", "clusters are described in the private detail only")
        return
    deviations = {
        name: deviation(present(column))
        for name, column in zip(pair.attributes, pair.original.T, strict=True)
    }
    widths = risk.cluster_widths(pair.clusters, deviations)
    for name in pair.attributes:
        if name not in widths:
            yield NotComputed(f"cluster widths of {name!r}", "it was masked without clusters")
            continue
        width = widths[name]
        yield Figure(
            "cluster width, median",
            name,
            width.median,
            f"half of the records are in clusters at most {width.median:.3g} standard deviations "
            "wide: so closely does someone who knows all other records learn their values",
        )
        yield Figure(
            "cluster width, 90%",
            name,
            width.ninth_decile,
            f"nine in ten records are in clusters at most {width.ninth_decile:.3g} standard "
            "deviations wide",
        )
        yield Figure(
            "cluster width, largest",
            name,
            width.largest,
            f"no cluster is wider than {width.largest:.3g} standard deviations",
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
