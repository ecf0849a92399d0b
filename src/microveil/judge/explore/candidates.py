"""The points of the frontier: combinations of method, partition, k, ε and pooling worth a look."""

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import narwhals as nw

from microveil.core.choices import DEFAULT_METHOD, MethodName, Pooling
from microveil.core.methods import GUARANTEES, METHODS
from microveil.errors import DataError, PlanError
from microveil.judge.explore.exploration import Limits, Point
from microveil.plan.plan import Plan
from microveil.plan.propose.columns import Described, as_polars
from microveil.plan.propose.proposal import propose_plan
from microveil.plan.roles import Confidential, Identifier
from microveil.plan.settings import FOLLOWING

_K = (3, 5, 10, 25, 50, 100, 200)
_ANONYMITIES = (10, 25, 50)
_STAYS = (
    "cap", "guarantee", "missing", "exact_from",
    "records_per_person", "unit", "within", "domain_from_data", "from_data", "attributes",
    "na", "dates", "rules", "scenarios", "ledger", "uses",
)  # fmt: skip


def starting_plan(
    table: nw.DataFrame[Any],
    name: str,
    plan: Plan | None,
    target: Any,  # noqa: ANN401 - a name, or classes of any kind
    described: Mapping[str, Described] = MappingProxyType({}),
) -> Plan:
    """Return the plan given, or one proposed, without settings that numbers have of their own."""
    if plan is None:
        plan = _proposed(table, name, target if isinstance(target, str) else None, described)
    if all(attribute.is_category for attribute in plan.confidential.values()):
        raise DataError(
            "explore weighs squared errors, which categories have none of, and the plan masks "
            "nothing else; evaluate a release instead"
        )
    everything = {**plan.attributes, **{n: _varied(a) for n, a in plan.confidential.items()}}
    return plan.replace(
        attributes=everything, method=DEFAULT_METHOD, k=None, partition=None,
    )  # fmt: skip


def _varied(attribute: Confidential) -> Confidential:
    """Take from an attribute what is varied; a category keeps its own, which no error weighs."""
    if not attribute.is_category:
        return attribute.model_copy(update={"method": None, "k": None, "trim": None})
    if attribute.method is None and isinstance(attribute.k, int):
        k = max(attribute.k, *(method.least_k for method in METHODS.values()))
        return attribute.model_copy(update={"k": k})
    return attribute


def _proposed(
    table: nw.DataFrame[Any], name: str, target: str | None, described: Mapping[str, Described]
) -> Plan:
    features = as_polars(table.to_native())
    if target is None:
        return Plan.from_toml(propose_plan(features, name, described))
    plan = Plan.from_toml(propose_plan(features.drop(target), name, described))
    return plan.replace(attributes={**plan.attributes, target: Identifier()})


def candidates(base: Plan, table: nw.DataFrame[Any], epsilons: Sequence[float]) -> list[Plan]:
    """List the plans to compare, without pooling.

    Where units have several values of an attribute, only methods whose clusters are of units.
    """
    with_domains = all(a.has_domain for a in base.confidential.values() if a.method is None)
    several = base.unit is not None and len(base.per_unit) < len(base.confidential)
    methods = [
        method.name
        for method in METHODS.values()
        if (with_domains or not method.needs_domain) and (method.clusters_units or not several)
    ]
    ks = _sizes(base, table)
    return [p for e in epsilons for m in methods for p in _of_method(base, m, e, ks)]


def _of_method(base: Plan, name: MethodName, epsilon: float, ks: list[int]) -> Iterator[Plan]:
    stays = {setting: getattr(base, setting) for setting in _STAYS}
    common = {**stays, "method": name, "epsilon": epsilon}
    method = METHODS[name]
    if not method.clustered:
        yield Plan.published(**common)
        return
    for k in ks:
        yield Plan.published(**common, k=k)
    alone = {**common, "anonymity": 0}
    if not GUARANTEES[base.guarantee].allows_chosen_clusters:
        for k in ks if method.pulls_in else ():
            yield Plan(**alone, partition="fixed", k=k)
    elif method.promise.survives_data:
        yield Plan(**alone, **FOLLOWING)
        if method.pulls_in:
            yield Plan(**alone, **FOLLOWING, trim=0.0)


def pooled(base: Plan, masking: Plan, records: int, limits: Limits) -> list[Plan]:
    """Pool what a plan masks, in the groups of another one: with several anonymities, both ways.

    Where groups have their own, some come to the same; the plan's own settings stand for those.
    """
    least = max(0 if base.groups else 2, limits.min_anonymity)
    numbers = (base.anonymity, *_anonymities(limits), limits.min_anonymity or base.anonymity)
    wanted = [number for number in numbers if least <= number <= records]
    plans: list[Plan] = []
    others: tuple[Pooling, ...] = ("exchange", "average")
    for pooling in (base.pooling, *others):
        for anonymity in wanted:
            try:
                plan = masking.replace(anonymity=anonymity, pooling=pooling, groups=base.groups)
            except PlanError:  # averages that a rule ties to what is not averaged
                continue
            groups = plan.pooled_groups
            if groups and all(groups != other.pooled_groups for other in plans):
                plans.append(plan)
    return sorted(plans, key=lambda plan: (plan.pooling != base.pooling, plan.anonymity))


def _anonymities(limits: Limits) -> list[int]:
    """Take some numbers, and larger ones where these need not keep linkage below its limit.

    Pooled among n records, a person's row is picked with a chance of 1/n at most; how many are
    linked in one release varies about that.
    """
    enough = math.ceil(1 / limits.max_linkage)
    return [*_ANONYMITIES, *(n for n in (enough, 2 * enough) if n > _ANONYMITIES[-1])]


def _sizes(base: Plan, table: nw.DataFrame[Any]) -> list[int]:
    """Take k up to half the records that the attribute with the fewest has."""
    names = [name for name in base.confidential if name in table.columns]
    if base.missing == "drop":
        table = table.drop_nulls(names)
    records = min((_fewest(base, table, name) for name in names), default=0)
    return [k for k in _K if k <= records // 2] or [METHODS[DEFAULT_METHOD].least_k]


def _fewest(base: Plan, table: nw.DataFrame[Any], name: str) -> int:
    """Count the values of an attribute in the stratum that has the fewest."""
    if name in base.per_unit and base.unit in table.columns:
        table = table.unique(base.unit)
    strata = [stratum for stratum in base.within if stratum in table.columns]
    if not strata:
        return len(table) - table[name].null_count()
    sizes = table.drop_nulls(name).group_by(strata).agg(nw.len().alias("records"))["records"]
    return int(sizes.min()) if len(sizes) else 0


def chosen(points: Sequence[Point]) -> list[int]:
    """Choose which of the points without pooling are measured: for each ε, the best two.

    Those of the best k and noise-optimal, only of the default method, iDP-CBLS, which has the least
    noise.
    """
    best: dict[tuple[float, str | None], int] = {}
    for place, point in enumerate(points):
        if point.method == DEFAULT_METHOD and not point.pooled:
            first = best.setdefault((point.epsilon, point.partition), place)
            if point.expected < points[first].expected:
                best[point.epsilon, point.partition] = place
    return list(best.values())
