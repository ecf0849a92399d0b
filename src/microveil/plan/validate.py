"""Settings that contradict each other, and claims that a plan could not keep."""

import graphlib
import math
from collections.abc import Iterable

from microveil.core.methods import GUARANTEES, METHODS, Method, methods_that
from microveil.errors import PlanError, Problems
from microveil.plan.fields import PlanFields
from microveil.plan.parts import did_you_mean
from microveil.plan.roles import check_trim
from microveil.plan.settings import FOLLOWING

_MOST_RECORDS = 1_000_000_000_000
"""More than any table has, and few enough to compute with."""


def check_settings(plan: PlanFields) -> None:
    """Refuse a plan that is wrong in itself, with everything that is wrong."""
    problems = Problems()
    for setting in ("k", "cap", "anonymity", "exact_from", "records_per_person"):
        with problems:
            _check_records(getattr(plan, setting), setting)
    with problems:
        check_trim(plan.trim)
    for check in (
        _check_epsilon,
        _check_cap,
        _check_exact_from,
        _check_records_per_person,
        _check_some_confidential,
        _check_plans_k,
        _check_groups,
        _check_shifted,
        _check_sampling_weights,
    ):
        with problems:
            check(plan)
    for name in plan.confidential:
        _check_attribute(plan, name, problems)
    with problems:
        _check_derived(plan)
    problems.raise_found()


def _check_attribute(plan: PlanFields, name: str, problems: Problems) -> None:
    with problems:
        _check_records(plan.confidential[name].k, "k", name)
    for check in (_check_clusters, _check_k, _check_trim, _check_persons, _check_domain):
        with problems:
            check(plan, name)


def _check_epsilon(plan: PlanFields) -> None:
    if not math.isfinite(plan.epsilon) or plan.epsilon <= 0:
        raise PlanError(
            f"epsilon must be a finite number above 0, got {plan.epsilon}", setting="epsilon"
        )


def _check_cap(plan: PlanFields) -> None:
    smallest = plan.k if isinstance(plan.k, int) else FOLLOWING["k"]
    if plan.partition == "noise-optimal" and plan.cap < 2 * smallest - 1:
        raise PlanError(
            f"cap must be 2k - 1 or more, got {plan.cap} for k = {smallest}; raise cap or lower k",
            setting="cap",
        )


def _check_exact_from(plan: PlanFields) -> None:
    if plan.exact_from < 0:
        raise PlanError(
            f"exact_from must be 0 or more, got {plan.exact_from}; 10 is the default, 0 turns it "
            "off",
            setting="exact_from",
        )


def _check_records_per_person(plan: PlanFields) -> None:
    if plan.records_per_person < 1:
        raise PlanError(
            f"records_per_person must be 1 or more, got {plan.records_per_person}",
            setting="records_per_person",
        )


def _check_some_confidential(plan: PlanFields) -> None:
    if not plan.confidential:
        raise PlanError(
            "attributes must have at least one with role confidential, got none",
            setting="attributes",
        )


def _check_plans_k(plan: PlanFields) -> None:
    if isinstance(plan.k, int) and plan.k < 1:
        raise PlanError(f"k must be 1 or more, got {plan.k}", setting="k")


def _check_records(records: object, setting: str, attribute: str | None = None) -> None:
    if isinstance(records, int) and records > _MOST_RECORDS:
        raise PlanError(
            f"{setting} must be at most {_MOST_RECORDS:,}, got more",
            attribute=attribute,
            setting=setting,
        )


def _check_groups(plan: PlanFields) -> None:
    _check_anonymity(plan.anonymity, "anonymity")
    for group in plan.groups:
        if not group.attributes:
            raise PlanError("a group must name attributes, got none", setting="groups")
        if group.anonymity is not None:
            _check_anonymity(group.anonymity, "groups")
        elif plan.anonymity == 0:
            raise PlanError(
                "groups need anonymity, got 0; set anonymity = 10, for example, or give each group "
                "its own",
                setting="anonymity",
            )
    _check_names(plan, "groups", [group.attributes for group in plan.groups])


def _check_anonymity(anonymity: int, setting: str) -> None:
    _check_records(anonymity, setting)
    if anonymity != 0 and anonymity < 2:
        raise PlanError(
            f"anonymity must be 2 records or more, or 0 for no pooling, got {anonymity}",
            setting=setting,
        )


def _check_names(plan: PlanFields, setting: str, lists: Iterable[Iterable[str]]) -> None:
    """Refuse names that are not those of confidential attributes, and names that come twice."""
    problems, seen = Problems(), set[str]()
    for name in (name for names in lists for name in names):
        with problems:
            _check_name(plan, setting, name, seen)
        seen.add(name)
    problems.raise_found()


def _check_name(plan: PlanFields, setting: str, name: str, seen: set[str]) -> None:
    if name not in plan.attributes:
        close = did_you_mean(name, plan.confidential)
        raise PlanError(f"{setting}: no attribute {name!r}{close}", setting=setting)
    if name not in plan.confidential:
        raise PlanError(
            f"only confidential attributes can be in {setting}, but its role is "
            f"{plan.attributes[name].role}; remove it from {setting}",
            attribute=name,
            setting=setting,
        )
    if name in seen:
        raise PlanError(f"named twice in {setting}; remove one", attribute=name, setting=setting)


def _check_clusters(plan: PlanFields, name: str) -> None:
    """Refuse clusters that follow the data where a claim would not survive it."""
    method, partition = _method(plan, name), plan.partition_of(name)
    chosen: dict[str, str] = {"partition": partition} if partition != "fixed" else {}
    chosen |= {"k": "auto"} if plan.k_of(name) == "auto" else {}
    if not chosen or not method.clustered:
        return
    setting, value = next(iter(chosen.items()))
    if plan.confidential[name].is_category:
        raise PlanError(
            'k = "auto" is for numbers, dates and times, but it holds categories; give it a number '
            "for k",
            attribute=name,
            setting="k",
        )
    if not method.promise.survives_data:
        others = methods_that(lambda other: other.promise.survives_data)
        instead = "a number for k" if setting == "k" else 'partition = "fixed"'
        raise PlanError(
            f'{setting} = "{value}" looks at the data, which voids the claim of {method.name}; use '
            f"it with {others}, or {instead}",
            attribute=name,
            setting=setting,
        )
    if not GUARANTEES[plan.guarantee].allows_chosen_clusters:
        raise PlanError(
            f'{setting} = "{value}" looks at the data, which guarantee = "re-clustered" does not '
            'cover; use a fixed partition and k, or guarantee = "fixed-clusters"',
            attribute=name,
            setting=setting,
        )
    if len(chosen) == 2:
        raise PlanError(
            f'{setting} = "{value}" chooses the sizes of clusters, got k = "auto"; set k to the '
            "smallest size",
            attribute=name,
            setting="k",
        )


def _check_k(plan: PlanFields, name: str) -> None:
    method, k = _method(plan, name), plan.k_of(name)
    said = plan.confidential[name].k is None and isinstance(plan.k, int) and plan.k < 1
    if k != "auto" and k < method.least_k and not said:
        raise PlanError(
            f"k must be {method.least_k} or more for {method.name}, got {k}",
            attribute=name,
            setting="k",
        )


def _check_trim(plan: PlanFields, name: str) -> None:
    """Refuse to trim an attribute by a method that uses all values of a cluster as they are."""
    method = _method(plan, name)
    if plan.confidential[name].trim and not method.pulls_in:
        others = methods_that(lambda other: other.pulls_in)
        raise PlanError(
            f"only {others} can trim, but its method is {method.name}; remove trim, or use "
            f"{others}",
            attribute=name,
            setting="trim",
        )


def _check_persons(plan: PlanFields, name: str) -> None:
    method, records = _method(plan, name), plan.persons_of(name)
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


def _check_domain(plan: PlanFields, name: str) -> None:
    attribute, method = plan.confidential[name], _method(plan, name)
    marked = sorted(plan.read_from_data(name) & {"lower", "upper", "categories", "taxonomy"})
    known = attribute.has_domain and not marked
    if known or plan.domain_from_data or method.promise.survives_data:
        return
    others = methods_that(lambda other: not other.needs_domain)
    voids = "(domain_from_data = true reads them from the data and voids the DP claim)"
    if marked:
        raise PlanError(
            f"{method.name} needs settings that are known without the data, but from_data lists "
            f"{' and '.join(marked)}; check them and remove them from from_data, or choose "
            f"{others} {voids}",
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


def _check_derived(plan: PlanFields) -> None:
    problems = Problems()
    for name in plan.derived:
        with problems:
            _check_inputs(plan, name)
    problems.raise_found()
    try:
        _ = plan.derivation_order
    except graphlib.CycleError as error:
        raise PlanError(
            "derived attributes must not be computed from each other in a circle; change one of "
            "their expressions",
            attribute=error.args[1][0],
            setting="expression",
        ) from None


def _check_shifted(plan: PlanFields) -> None:
    people = plan.names("pseudonym")
    for name in plan.shifted:
        if len(people) != 1:
            raise PlanError(
                'shifted dates need one attribute with role = "pseudonym", which says whose they '
                f"are, got {len(people)}; give one attribute this role",
                attribute=name,
                setting="role",
            )


def _check_sampling_weights(plan: PlanFields) -> None:
    _, *others = plan.sampling_weights or ("",)
    for name in others:
        raise PlanError(
            f"a plan can have one sampling weight, got {len(others) + 1}; give the others the role "
            "kept or identifier",
            attribute=name,
            setting="sampling_weight" if name in plan.confidential else "role",
        )


def _check_inputs(plan: PlanFields, name: str) -> None:
    hidden = ("identifier", "pseudonym")
    released = {name for name, a in plan.attributes.items() if a.role not in hidden}
    unknown = sorted(plan.derived[name].inputs - released)
    if unknown:
        roles = {"identifier": "an identifier", "pseudonym": "a pseudonym"}
        own = plan.attributes.get(unknown[0])
        raise PlanError(
            f"the expression names {unknown[0]!r}, "
            f"{roles[own.role] if own else 'which is not in the plan'}; "
            "name only attributes that are released",
            attribute=name,
            setting="expression",
        )


def _method(plan: PlanFields, name: str) -> Method:
    return METHODS[plan.method_of(name)]
