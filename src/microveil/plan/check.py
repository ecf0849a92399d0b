"""What a plan may not ask for at once: contradictions, and claims that could not be kept."""

import graphlib
import math
from typing import TYPE_CHECKING

from microveil.core.methods import GUARANTEES, METHODS, Method, methods_that
from microveil.errors import PlanError
from microveil.plan.roles import did_you_mean

if TYPE_CHECKING:
    from microveil.plan.plan import Plan


def check_plan(plan: "Plan") -> None:
    """Refuse the first thing in a plan that is wrong in itself."""
    _check_settings(plan)
    _check_groups(plan)
    for name in plan.confidential:
        _check_clusters(plan, name)
        _check_k(plan, name)
        _check_trim(plan, name)
        _check_persons(plan, name)
        _check_domain(plan, name)
    _check_derived(plan)


def _check_settings(plan: "Plan") -> None:
    if not math.isfinite(plan.epsilon) or plan.epsilon <= 0:
        raise PlanError(
            f"epsilon must be a finite number above 0, got {plan.epsilon}", setting="epsilon"
        )
    smallest = plan.k if isinstance(plan.k, int) else 3
    if plan.partition == "noise-optimal" and plan.cap < 2 * smallest - 1:
        raise PlanError(
            f"cap must be 2k - 1 or more, got {plan.cap} for k = {plan.k}", setting="cap"
        )
    if plan.records_per_person < 1:
        raise PlanError(
            f"records_per_person must be 1 or more, got {plan.records_per_person}",
            setting="records_per_person",
        )
    if not plan.confidential:
        raise PlanError(
            "attributes must hold at least one of role confidential, got none",
            setting="attributes",
        )
    if plan.k != "auto" and plan.k < 1:
        raise PlanError(f"k must be 1 or more, got {plan.k}", setting="k")


def _check_groups(plan: "Plan") -> None:
    if plan.groups and plan.partition == "joint":
        raise PlanError(
            'partition = "joint" is one group of everything; remove it or the groups',
            setting="partition",
        )
    seen: set[str] = set()
    for group in plan.joint_groups:
        if not group.attributes:
            raise PlanError("a group must name attributes, got none", setting="groups")
        for name in group.attributes:
            if name not in plan.attributes:
                close = did_you_mean(name, plan.confidential)
                raise PlanError(f"groups: no attribute {name!r}{close}", setting="groups")
            if name not in plan.confidential:
                raise PlanError(
                    "only confidential attributes are clustered, but its role is "
                    f"{plan.attributes[name].role}; leave it out of the group",
                    attribute=name,
                    setting="groups",
                )
            if name in seen:
                raise PlanError(
                    "named twice in groups; leave it in one place", attribute=name, setting="groups"
                )
            seen.add(name)
            _check_member(plan, name)


def _check_member(plan: "Plan", name: str) -> None:
    """Refuse an attribute in a group whose promise joint clusters cannot keep."""
    method = _method(plan, name)
    if plan.confidential[name].k is not None:
        raise PlanError(
            "in a group, k is that of the group; remove its own", attribute=name, setting="k"
        )
    if not method.promise.survives_data:
        others = methods_that(lambda other: other.promise.survives_data)
        raise PlanError(
            f"joint clusters follow the data, which voids the claim of {method.name}; use {others} "
            "in a group",
            attribute=name,
            setting="method",
        )
    if plan.k_of(name) == "auto":
        raise PlanError(
            'k = "auto" is for attributes by themselves; give the group a number for k',
            attribute=name,
            setting="k",
        )
    if not GUARANTEES[plan.guarantee].allows_chosen_clusters:
        raise PlanError(
            "one record can move many joint clusters, which re-clustering cannot cover; use "
            'guarantee = "fixed-clusters", or leave it out of groups',
            attribute=name,
            setting="guarantee",
        )


def _check_clusters(plan: "Plan", name: str) -> None:
    """Refuse clusters that follow the data where a claim would not survive it."""
    method, partition = _method(plan, name), plan.partition_of(name)
    chosen: dict[str, str] = {"partition": partition} if partition not in ("fixed", "joint") else {}
    chosen |= {"k": "auto"} if plan.k_of(name) == "auto" else {}
    if not chosen or not method.clustered:
        return
    setting, value = next(iter(chosen.items()))
    if plan.confidential[name].is_category:
        raise PlanError(
            'k = "auto" weighs squared errors, which categories have none of; give it a k of its '
            "own",
            attribute=name,
            setting="k",
        )
    if not method.promise.survives_data:
        others = methods_that(lambda other: other.promise.survives_data)
        raise PlanError(
            f'{setting} = "{value}" looks at the data, which voids the claim of {method.name}; use '
            f"it with {others}, or choose a number for k",
            attribute=name,
            setting=setting,
        )
    if not GUARANTEES[plan.guarantee].allows_chosen_clusters:
        raise PlanError(
            f'{setting} = "{value}" looks at the data, which re-clustering cannot cover; use a '
            'fixed partition and k, or guarantee = "fixed-clusters"',
            attribute=name,
            setting=setting,
        )
    if len(chosen) == 2:
        raise PlanError(
            f'{setting} = "{value}" chooses its own sizes; give the smallest as a number for k',
            attribute=name,
            setting="k",
        )


def _check_k(plan: "Plan", name: str) -> None:
    method, k = _method(plan, name), plan.k_of(name)
    if k != "auto" and k < method.least_k:
        raise PlanError(
            f"k must be {method.least_k} or more for {method.name}, got {k}",
            attribute=name,
            setting="k",
        )


def _check_trim(plan: "Plan", name: str) -> None:
    """Refuse to trim an attribute by a method that uses all values of a cluster as they are."""
    method = _method(plan, name)
    if plan.confidential[name].trim and not method.pulls_in:
        others = methods_that(lambda other: other.pulls_in)
        raise PlanError(
            f"only {others} leaves out the ends of clusters, but its method is {method.name}; "
            f"remove trim, or use {others}",
            attribute=name,
            setting="trim",
        )


def _check_persons(plan: "Plan", name: str) -> None:
    method, records = _method(plan, name), plan.records_per_person
    if plan.guarantee == "fixed-clusters" or records == 1:
        return
    if not method.promise.covers_persons_reclustered:
        others = methods_that(lambda other: other.promise.covers_persons_reclustered)
        raise PlanError(
            f'with guarantee = "{plan.guarantee}", {method.name} covers one record per person, got '
            f"records_per_person = {records}; use {others}",
            attribute=name,
            setting="records_per_person",
        )


def _check_domain(plan: "Plan", name: str) -> None:
    attribute, method = plan.confidential[name], _method(plan, name)
    marked = sorted(plan.read_from_data(name) & {"lower", "upper", "categories", "taxonomy"})
    known = attribute.has_domain and not marked
    if known or plan.domain_from_data or method.promise.survives_data:
        return
    others = methods_that(lambda other: not other.needs_domain)
    voids = "(domain_from_data = true reads them from the data and voids the DP claim)"
    if marked:
        raise PlanError(
            f"{method.name} needs what is known without the data, and from_data says that "
            f"{' and '.join(marked)} were taken from it; check them and take the mark out of "
            f"from_data, or choose {others} {voids}",
            attribute=name,
            setting=marked[0],
        )
    if attribute.is_category:
        raise PlanError(
            f"{method.name} needs declared categories; list all that are possible, or choose "
            f"{others} {voids}",
            attribute=name,
            setting="categories",
        )
    raise PlanError(
        f"{method.name} needs a declared domain, got lower = {attribute.lower} and "
        f"upper = {attribute.upper}; declare both from what is known without the data, or choose "
        f"{others}, which needs none {voids}",
        attribute=name,
        setting="lower" if attribute.lower is None else "upper",
    )


def _check_derived(plan: "Plan") -> None:
    released = {name for name, a in plan.attributes.items() if a.role != "identifier"}
    for name, derived in plan.derived.items():
        unknown = sorted(derived.inputs - released)
        if unknown:
            dropped = unknown[0] in plan.attributes
            raise PlanError(
                f"the expression names {unknown[0]!r}, "
                f"{'an identifier' if dropped else 'which is not in the plan'}; "
                "name only attributes that are released",
                attribute=name,
                setting="expression",
            )
    try:
        _ = plan.derivation_order
    except graphlib.CycleError as error:
        raise PlanError(
            "derived attributes must not be computed from each other in a circle",
            attribute=error.args[1][0],
            setting="expression",
        ) from None


def _method(plan: "Plan", name: str) -> Method:
    return METHODS[plan.method_of(name)]
