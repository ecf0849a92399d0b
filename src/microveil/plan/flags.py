"""Plans made of column names and a few words about some of them, as flags give them."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from types import MappingProxyType
from typing import Unpack

from microveil.errors import PlanError
from microveil.plan.plan import AttributesGiven, Plan, PlanOptions
from microveil.plan.roles import Bound, Confidential, Identifier, Kept, did_you_mean


def plan_for_columns(
    columns: Iterable[str],
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    nominal: Iterable[str] = (),
    domains: Mapping[str, tuple[Bound, Bound]] = MappingProxyType({}),
    epsilon: float,
    **settings: Unpack[PlanOptions],
) -> Plan:
    """Make a plan in which every column not dropped or kept is confidential.

    Examples
    --------
    >>> plan = plan_for_columns(["name", "age"], drop=["name"], epsilon=1)
    >>> plan.names("confidential")
    ('age',)
    """
    base = {name: Confidential() for name in columns}
    return Plan(
        epsilon=epsilon,
        attributes=override(base, drop=drop, keep=keep, nominal=nominal, domains=domains),
        **settings,
    )


def override(
    attributes: AttributesGiven,
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    nominal: Iterable[str] = (),
    domains: Mapping[str, tuple[Bound, Bound]] = MappingProxyType({}),
) -> dict[str, object]:
    """Return the attributes with some of them dropped, kept, nominal or given a domain instead."""
    changed = dict(attributes)
    options = {"drop": drop, "keep": keep, "nominal": nominal, "domain": domains}
    for (one, names), (other, others) in combinations(options.items(), 2):
        both = sorted(set(names) & set(others))
        if both:
            raise PlanError(f"{one} and {other} {both[0]!r}: an attribute can be only one of them")
    for option, names in options.items():
        for name in names:
            if name not in changed:
                raise PlanError(
                    f"{option} {name!r}: no such attribute{did_you_mean(name, changed)}"
                )
    changed |= {name: Identifier() for name in drop} | {name: Kept() for name in keep}
    changed |= {name: Confidential(kind="nominal") for name in nominal}
    for name, (lower, upper) in domains.items():
        attribute = changed[name]
        if not isinstance(attribute, Confidential):
            raise PlanError(f"domain {name!r}: only a confidential attribute has a domain")
        settings = attribute.model_dump(exclude_defaults=True, exclude={"resolution"})
        changed[name] = {**settings, "role": "confidential", "lower": lower, "upper": upper}
    return changed
