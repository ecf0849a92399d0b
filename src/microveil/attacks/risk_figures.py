"""Figures of risk, with readings. Missing values are treated as in the figures of utility."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from microveil.attacks import linkage
from microveil.attacks.known import EVERYTHING, proved, what_is_known
from microveil.attacks.linkage import Linked
from microveil.compare.figures import Figure, Items, NotComputed, percent
from microveil.compare.pairing import Pair, deviation, present
from microveil.engines.classes import Count
from microveil.measures import disclosure_risk as risk
from microveil.plan.scenarios import Scenario

_OF_KEPT = ("risk.unique_kept", "risk.linkage_with_kept")
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


def linkages_of(
    pair: Pair,
    *,
    sample: int | None,
    seed: int,
    scenario: Scenario = EVERYTHING,
    by_structure: bool = True,
) -> tuple[Linked, ...]:
    """Link records by what is known of people, as three intruders would.

    The third one, who looks at who shares values with whom, takes by far the most time.
    """
    known = what_is_known(pair, scenario)
    tables = (known.original, known.masked)
    given: dict[str, Any] = {
        "nominal": known.columns("nominal"), "exact": known.columns("exact"),
        "people": scenario.people, "seed": seed,
    }  # fmt: skip
    by_distance = (
        linkage.nearest(*tables, sample=sample, **given),
        linkage.one_to_one(*tables, **given),
    )
    return (*by_distance, linkage.structure(*tables, **given)) if by_structure else by_distance


def linkage_figures(
    pair: Pair, *, sample: int | None, seed: int, scenario: Scenario = EVERYTHING
) -> Items:
    """Link records one by one."""
    for linked in linkages_of(pair, sample=sample, seed=seed, scenario=scenario):
        yield linkage_figure(linked, scenario, proved(pair.plan, scenario))


def linkage_figure(linked: Linked, scenario: Scenario, proved: int | None) -> Figure:
    """Say how many were linked, and by whom; `proved` is 1 in how many pooling allows at most.

    Where more happen to be linked than that, nobody can tell which of the links are right.
    """
    everything = scenario == EVERYTHING
    knows = "people's original values" if everything else scenario.knowledge
    whose = "records" if scenario.people == 1 else "these people's records"
    reading = (
        f"{percent(linked.share)} of {whose} could be linked by someone who knows {knows} and "
        f"{linked.does}; by chance {percent(linked.chance)}"
    )
    sampled = linked.attacked < linked.known
    reading += _sample_of(linked)
    high = linked.high if sampled else None
    if proved is not None:
        reading += f"; pooling leaves nobody a better chance than 1 in {proved:,}"
        high = min(linked.high, 1 / proved)
    label = None if everything else scenario.label
    return Figure(linked.id, label, linked.share, reading, high)


def _sample_of(linked: Linked) -> str:
    """Say what a share was estimated from, if it was, and how sure it is."""
    if linked.attacked == linked.known:
        return ""
    how = "people" if linked.anew is None else _anew(linked.anew)
    return (
        f" (from a sample of {linked.attacked:,} of {linked.known:,} {how}; with 95% "
        f"confidence {percent(linked.low)} to {percent(linked.high)})"
    )


def _times(times: float) -> str:
    return f"{times:,.0f} times" if times >= 10 else f"{times:.3g} times"


def _anew(times: float) -> str:
    return (
        f"records, protected anew by the same plan with {_times(times)} the epsilon, which is "
        "about the noise of the release in wider clusters and tends to find more people than there "
        "are to be found; the worst of up to five"
    )


def cluster_figures(pair: Pair) -> Items:
    """Measure how wide clusters are, or how many tell their category: what noise does not hide."""
    if pair.clusters is None:
        yield NotComputed(
            (*_WIDTHS, "risk.clusters_without_noise"),
            "clusters are described in the private detail only",
        )
        return
    yield from _width_figures(pair, pair.clusters)
    shares = risk.without_noise(pair.clusters, pair.attributes)
    agreeing = {c.name: "clearly that their most typical category" for c in pair.categorical}
    for name in pair.attributes:
        if name not in shares:
            reason = "it was masked without clusters"
            yield NotComputed(("risk.clusters_without_noise",), reason, name)
            continue
        what = agreeing.get(name, "closely that their value")
        yield Figure(
            "risk.clusters_without_noise",
            name,
            shares[name],
            f"{percent(shares[name])} of records are in clusters that agree so {what} is released "
            "without noise, whatever ε is; higher is riskier",
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


def class_figures(count: Count, quasi_identifiers: Sequence[str]) -> Items:
    """Count records that share their quasi-identifiers in the release."""
    if not quasi_identifiers:
        yield NotComputed(
            ("risk.unique_records", "risk.smallest_class"), "no quasi-identifiers were named"
        )
        return
    classes = count(quasi_identifiers)
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


def kept_figures(pair: Pair, count: Count, nearest: Callable[[Scenario], Linked]) -> Items:
    """Count the records that columns published as they are point to."""
    if pair.plan is None:
        yield NotComputed(_OF_KEPT, "the plan, which says what was kept, is not known")
        return
    names = [name for name in pair.plan.kept if name in pair.table.columns]
    if names:
        yield kept_figure(count(names).unique, names)
    if names and pair.positions is not None and pair.attributes:
        linked = nearest(Scenario(known=(*pair.attributes, *names)))
        yield kept_linkage_figure(linked, names)


def nearest_of(pair: Pair, scenario: Scenario, *, sample: int | None, seed: int) -> Linked:
    """Link records of two tables in memory to the nearest."""
    known = what_is_known(pair, scenario)
    return linkage.nearest(
        known.original,
        known.masked,
        nominal=known.columns("nominal"),
        exact=known.columns("exact"),
        sample=sample,
        seed=seed,
    )


def kept_linkage_figure(linked: Linked, names: Sequence[str]) -> Figure:
    """Say how many are linked by someone who also knows the kept columns."""
    return Figure(
        "risk.linkage_with_kept",
        ", ".join(names),
        linked.share,
        f"{percent(linked.share)} of records could be linked by someone who knows the masked "
        f"attributes and the kept columns ({', '.join(names)}) and {linked.does}: kept columns "
        f"tell pooled records apart{_sample_of(linked)}; higher is riskier",
        linked.high if linked.attacked < linked.known else None,
    )


def kept_figure(unique: float, names: Sequence[str]) -> Figure:
    """Say how many records share their kept columns with no other."""
    kept = ", ".join(names)
    return Figure(
        "risk.unique_kept",
        kept,
        unique,
        f"{percent(unique)} of released records have a combination of kept columns "
        f"({kept}) that no other record has: whoever knows it finds the record; higher is riskier",
    )


def combination_figures(pair: Pair, count: Count) -> Items:
    """Count the records whose masked values no other record shares as a whole."""
    masked = [name for name in pair.attributes if name in pair.table.columns]
    if not masked:
        return
    classes = count(masked)
    yield Figure(
        "risk.unique_combinations",
        None,
        classes.unique,
        f"{percent(classes.unique)} of released records have a combination of masked values that "
        "no other record has, although each value by itself may be shared; higher is riskier",
    )
