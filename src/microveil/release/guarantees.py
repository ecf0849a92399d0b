"""What ε covers, at three levels, in words. Every sentence must hold exactly as it is written."""

from collections.abc import Iterable
from decimal import ROUND_CEILING, Context
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from microveil.core.accounting import reclustered_bound
from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.methods import GUARANTEES
from microveil.core.pooling import Pool
from microveil.plan.plan import Plan
from microveil.release.resolve import ResolvedPlan
from microveil.release.whose import linked_records, pooled_by, provided, whose_values


class Level(BaseModel):
    """One of the three things ε may be asked to cover."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Literal[1, 2, 3]
    name: Literal["fixed clusters", "re-clustered", "as released"]
    enforced: Annotated[bool, Field(description="whether epsilon was enforced at this level")]
    epsilon: Annotated[float | None, Field(description="bound on the loss; null: no bound")]
    statement: str


def three_levels(resolved: ResolvedPlan) -> tuple[Level, Level, Level]:
    """Say what the release promises at each level."""
    return _fixed_clusters(resolved), _re_clustered(resolved), _as_released(resolved)


def claim_is_void(settings: AttributeSettings) -> bool:
    """Whether an attribute can claim no differential privacy, since it was read from the data."""
    if settings.method.promise.survives_data:
        return False
    read = settings.domain_source == "data" or settings.k_from_data
    if isinstance(settings, CategorySettings):
        return read
    return read or settings.grid_source == "data" or settings.type_from_data


def level_1_bound(settings: AttributeSettings) -> float | None:
    """Bound an attribute's loss with fixed clusters, without looking at the data."""
    if claim_is_void(settings) or _covers_reclustering_only(settings):
        return None
    return None if _shares_clusters(settings) else settings.epsilon


def level_2_bound(settings: AttributeSettings) -> float | None:
    """Bound an attribute's re-clustered loss, without looking at the data."""
    if claim_is_void(settings) or settings.chosen_from_data:
        return None
    if settings.guarantee == "re-clustered":
        return settings.epsilon
    if isinstance(settings, CategorySettings):
        return settings.epsilon * (settings.most_changing if settings.method.clustered else 1)
    if _shares_clusters(settings):
        return None
    return reclustered_bound(
        settings.method, settings.epsilon, clusters=settings.clusters, records=settings.records
    )


def can_be_without_noise(settings: AttributeSettings) -> bool:
    """Whether a cluster whose records agree so much that none moves it may go without noise."""
    if isinstance(settings, CategorySettings):
        return settings.method.promise.publishes_agreement
    return settings.guarantee in settings.method.without_noise


def rounded_up(bound: float) -> str:
    """Write a bound with six digits, never below what it is.

    Examples
    --------
    >>> rounded_up(1 / 3), rounded_up(108.0), rounded_up(1.000000001)
    ('0.333334', '108', '1.00001')
    """
    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(bound)
    return f"{digits.normalize():f}"


def _fixed_clusters(resolved: ResolvedPlan) -> Level:
    plan, clustered = resolved.plan, any(m.method.clustered for m in resolved.attributes)
    why_not = _unbounded(resolved)
    joint = (
        " (joint ones among them)"
        if not all(p.follows_masked_values for p in resolved.pools)
        else ""
    )
    fixed = f"With fixed clusters{joint}{_fixed_scales(resolved, ' and noise scales')}, c"
    statement = (
        f"{fixed if clustered else 'C'}hanging {whose_values(plan)} makes any set of masked "
        f"values at most exp({exactly(plan.epsilon)}) times more or less likely{provided(plan)}."
    ) + _caveats(resolved)
    return Level(
        level=1,
        name="fixed clusters",
        enforced=not why_not and (GUARANTEES[plan.guarantee].level == 1 or not clustered),
        epsilon=None if why_not else plan.epsilon,
        statement=why_not or statement,
    )


def _unbounded(resolved: ResolvedPlan) -> str:
    """Say which attributes have no bound with fixed clusters, and why; empty if all have one."""
    persons = resolved.plan.records_per_person
    reasons = {
        "the noise follows a record that passes from cluster to cluster (level 2), not one that "
        "keeps its cluster whatever its value": _covers_reclustering_only,
        f"a person may have {persons} records, and in a cluster that two of them share the noise "
        "covers one": _shares_clusters,
        "what was read from the data can tell two tables apart, so no differential privacy is "
        "claimed": claim_is_void,
    }
    found = {why: names_of(filter(holds, resolved.attributes)) for why, holds in reasons.items()}
    return " ".join(f"No bound for {names}: {why}." for why, names in found.items() if names)


def _re_clustered(resolved: ResolvedPlan) -> Level:
    plan, clustered = resolved.plan, any(m.method.clustered for m in resolved.attributes)
    bounds = {m.name: level_2_bound(m) for m in resolved.attributes}
    known = [bound for bound in bounds.values() if bound is not None]
    total = sum(known) if len(known) == len(bounds) else None
    enforced = total is not None and (GUARANTEES[plan.guarantee].level == 2 or not clustered)
    return Level(
        level=2,
        name="re-clustered",
        enforced=enforced,
        epsilon=plan.epsilon if enforced else total,
        statement=_re_clustered_in_words(resolved, bounds, total),
    )


def _re_clustered_in_words(
    resolved: ResolvedPlan, bounds: dict[str, float | None], total: float | None
) -> str:
    plan = resolved.plan
    if not any(m.method.clustered for m in resolved.attributes):
        return (
            "No attribute is clustered, so there is nothing to form again: the statement of "
            "level 1 holds as it is."
        )
    if plan.guarantee == "re-clustered" and total is not None:
        return (
            f"Changing {whose_values(plan)} and forming the clusters again"
            f"{_fixed_scales(resolved, ', with noise scales')}, makes any set of masked cluster "
            f"values{_before_pooling(resolved)} at most exp({exactly(plan.epsilon)}) times more or "
            f"less likely{provided(plan)}." + _caveats(resolved)
        )
    each = "; ".join(
        f"{m.name} ({m.method.name}) {_in_words(bounds[m.name])}" for m in resolved.attributes
    )
    return (
        f"If {whose_values(plan)} change and the clusters are formed again, every cluster between "
        "an old and a new place shifts, and more can be lost than at level 1. Any set of masked "
        f"cluster values{_before_pooling(resolved)} then becomes"
        f"{_fixed_scales(resolved, ', with noise scales')}, at most "
        f"exp(bound) times more or less likely{provided(plan)}. Bounds, rounded up: "
        f"{each}; {_in_words(total)} in all." + _chosen(resolved) + _caveats(resolved)
    )


def _fixed_scales(resolved: ResolvedPlan, lead: str) -> str:
    """Say that noise scales are fixed, where they follow the data and not the plan."""
    if all(not m.method.promise.caveat for m in resolved.attributes):
        return ""
    return f"{lead} fixed as they were computed from this table"


def _before_pooling(resolved: ResolvedPlan) -> str:
    return ", as they are before pooling," if resolved.pools else ""


def _as_released(resolved: ResolvedPlan) -> Level:
    pooled = {name for pool in resolved.pools for name in pool.names}
    shown = [m for m in resolved.attributes if m.method.clustered and m.name not in pooled]
    if not any(m.method.clustered for m in resolved.attributes):
        return _fixed_clusters(resolved).model_copy(
            update={
                "level": 3,
                "name": "as released",
                "statement": "No attribute is clustered: every masked value has noise of its own, "
                "and the statement of level 1 covers the confidential attributes as they are "
                "released." + _theorem(resolved),
            }
        )
    statement = (_structure(shown) if shown else "") + _theorem(resolved)
    return Level(
        level=3, name="as released", enforced=False, epsilon=None, statement=statement.strip()
    )


def _structure(shown: list[AttributeSettings]) -> str:
    """Say what individual clusters show where they are not pooled."""
    return (
        f"The table shows which records share a masked value in {names_of(shown)}, and noise does "
        "not hide that. Someone who knows every other record can tell which cluster a person is "
        "in, and so between which values of the clusters beside it the true value lies, whatever "
        f"epsilon is. A masked value of one attribute is shared by {min(m.k for m in shown)} "
        "records or more, but combinations of attributes may be unique: someone who knows original "
        "values can link rows to people by who shares values with whom, whatever epsilon is."
        + _same_category(shown)
    )


def _same_category(clustered: Iterable[AttributeSettings]) -> str:
    names = names_of(m for m in clustered if isinstance(m, CategorySettings))
    if not names:
        return ""
    return f" In {names} a cluster between others of one category tells the category itself."


def _theorem(resolved: ResolvedPlan) -> str:
    """Say what pooling promises, on which conditions, and what stays visible."""
    if not resolved.pools:
        return ""
    return (
        "".join(_promise(pool, resolved.plan) for pool in resolved.pools)
        + " This is a theorem about the way the release is made, not an estimate, and holds "
        "whatever epsilon is. It presumes that rows are in random order, and that no column "
        f"outside the group points to a row by itself{_pointers(resolved)}."
        + linked_records(resolved.plan)
        + _several_groups(resolved)
        + " Not hidden is which masked values, or which averages, a joint cluster has: someone who "
        "knows every other record can work out in which cluster of each attribute the remaining "
        "one is, and so about where its value lies; and what all records of a joint cluster have "
        "in common is disclosed for each of them."
    )


def _promise(pool: Pool, plan: Plan) -> str:
    names, (of, picked, condition) = ", ".join(pool.names), pooled_by(pool, plan)
    if pool.pooling == "average":
        done = (
            "averaged",
            f", so that every combination is shared by {pool.anonymity} rows or more",
        )
    else:
        blocks = [names_of(block) for block in pool.blocks if len(block) > 1]
        done = "exchanged at random", "".join(f", those of {block} together" for block in blocks)
    return (
        f" Masked values of {names} were {done[0]} within joint clusters of {pool.anonymity} "
        f"{of}{done[1]}. Whatever anyone knows of these attributes of everybody, the chance of "
        f"{picked} is at most 1/{pool.anonymity}{condition}."
    )


def _pointers(resolved: ResolvedPlan) -> str:
    """Name the columns that can point to a row although others are pooled."""
    pooled = {name for pool in resolved.pools for name in pool.names}
    strata = resolved.plan.within  # which are the same for all records of a joint cluster
    kept = [name for name in resolved.plan.kept if name not in strata]
    masked = [m.name for m in resolved.attributes if m.name not in pooled]
    moved = tuple(resolved.plan.shifted)
    can = [*([f"{', '.join(kept)} (kept)"] if kept else []),
           *([f"{', '.join(moved)} (moved by days)"] if moved else []),
           *([f"{', '.join(masked)} (masked, not pooled)"] if masked else [])]  # fmt: skip
    return f", as {' and '.join(can)} can" if can else ""


def _several_groups(resolved: ResolvedPlan) -> str:
    if len(resolved.pools) == 1:
        return ""
    return (
        " Groups have joint clusters of their own: someone who knows attributes of several groups "
        "can narrow a row down to the records that its joint clusters have in common."
    )


def _chosen(resolved: ResolvedPlan) -> str:
    names = names_of(m for m in resolved.attributes if m.chosen_from_data)
    if not names:
        return ""
    return (
        f" For {names} the data decided where clusters begin and end, and another table may be cut "
        "quite differently: there is no bound."
    )


def _caveats(resolved: ResolvedPlan) -> str:
    return _individual(resolved) + _exceptions(resolved)


def _individual(resolved: ResolvedPlan) -> str:
    caveats = dict.fromkeys(m.method.promise.caveat for m in resolved.attributes)
    return "".join(
        f" For {names_of(m for m in resolved.attributes if m.method.promise.caveat == caveat)} "
        f"{caveat}"
        for caveat in caveats
        if caveat
    )


def _exceptions(resolved: ResolvedPlan) -> str:
    text = ""
    from_data = [m for m in resolved.numeric if m.domain_source == "data"]
    if from_data:
        voided = names_of(filter(claim_is_void, from_data))
        text += (
            f" For {names_of(from_data)} it covers only values inside the range seen in the data, "
            "from which domain and noise grid were read"
        )
        text += f"; {voided} can claim no differential privacy." if voided else "."
    categories = [m for m in resolved.categorical if m.domain_source == "data"]
    if categories:
        voided = names_of(filter(claim_is_void, categories))
        text += f" For {names_of(categories)} it covers only categories seen in the data"
        text += f"; {voided} can claim no differential privacy." if voided else "."
    decimals = [m for m in resolved.numeric if m.grid_source == "data" and m not in from_data]
    if decimals:
        text += (
            f" For {names_of(decimals)} it covers only values that leave the noise grid as it is: "
            "it was taken from the data, where the last decimal and the largest value decide it."
        )
    return text


def _shares_clusters(settings: AttributeSettings) -> bool:
    """Whether several records of a person in one cluster void the bound."""
    if isinstance(settings, CategorySettings) or settings.persons == 1:
        return False
    return not settings.method.covers_shared_clusters


def _covers_reclustering_only(settings: AttributeSettings) -> bool:
    """Whether the noise follows the gaps between clusters, not the way across the domain."""
    if isinstance(settings, CategorySettings) or settings.guarantee == "fixed-clusters":
        return False
    return not settings.method.reclustered_covers_fixed


def _in_words(bound: float | None) -> str:
    return "no bound" if bound is None else rounded_up(bound)


def exactly(number: float) -> str:
    """Write a number with as many digits as tell it from all others."""
    return repr(number).removesuffix(".0")


def names_of(attributes: Iterable[AttributeSettings]) -> str:
    """Name attributes, with commas between."""
    return ", ".join(settings.name for settings in attributes)
