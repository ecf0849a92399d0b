"""Plans made from column names or a file, and from the flags of the command line."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any

from microveil.errors import PlanError
from microveil.plan.fields import AttributesGiven
from microveil.plan.parts import did_you_mean
from microveil.plan.plan import Plan, parse_settings, read_plan_text
from microveil.plan.roles import Bound
from microveil.plan.scenarios import Scenario
from microveil.plan.uses import Use


def plan_for_columns(
    columns: Iterable[str],
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    nominal: Iterable[str] = (),
    domains: Mapping[str, tuple[Bound, Bound]] = MappingProxyType({}),
    epsilon: float,
    **settings: Any,  # noqa: ANN401 - any setting
) -> Plan:
    """Make a plan in which every column not dropped or kept is confidential.

    Examples
    --------
    >>> plan = plan_for_columns(["name", "age"], drop=["name"], epsilon=1)
    >>> plan.names("confidential")
    ('age',)
    """
    attributes = dict.fromkeys(columns, "confidential")
    changed = override(attributes, drop=drop, keep=keep, nominal=nominal, domains=domains)
    return Plan(epsilon=epsilon, attributes=changed, **settings)


def settings_from_file(
    path: Path,
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    nominal: Iterable[str] = (),
    domains: Mapping[str, tuple[Bound, Bound]] = MappingProxyType({}),
    **settings: Any,  # noqa: ANN401 - any setting
) -> dict[str, Any]:
    """Read the settings of a plan with some of its roles and settings changed, not checked yet."""
    given = parse_settings(read_plan_text(path), path.parent)
    attributes = given.get("attributes")
    if isinstance(attributes, dict):
        given["attributes"] = override(
            attributes, drop=drop, keep=keep, nominal=nominal, domains=domains
        )
    return {**given, **settings}


def with_scenario(plan: Plan, known: Iterable[str], people: float) -> Plan:
    """Add an attacker to test, unless it is the one who knows everything, who always is tested."""
    scenario = Scenario(known=tuple(known) or None, people=people)
    if scenario == Scenario() or scenario in plan.scenarios:
        return plan
    return plan.replace(scenarios=(*plan.scenarios, scenario))


def with_uses(plan: Plan, texts: Iterable[str]) -> Plan:
    """Add what a release will be used for, in the text form of uses."""
    new = [use for use in map(Use.parse, texts) if use not in plan.uses]
    return plan.replace(uses=(*plan.uses, *new)) if new else plan


def override(
    attributes: AttributesGiven,
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    nominal: Iterable[str] = (),
    domains: Mapping[str, tuple[Bound, Bound]] = MappingProxyType({}),
) -> dict[str, object]:
    """Return the attributes with some of them dropped, kept, nominal or given a domain instead.

    They are as TOML has them: the name of a role, or a table of settings.
    """
    changed = dict(attributes)
    options = {"drop": drop, "keep": keep, "nominal": nominal, "domain": domains}
    for (one, names), (other, others) in combinations(options.items(), 2):
        both = sorted(set(names) & set(others))
        if both:
            raise PlanError(
                f"{one} and {other} {both[0]!r}: an attribute can be one of them; remove one"
            )
    for option, names in options.items():
        for name in names:
            if name not in changed:
                raise PlanError(
                    f"{option} {name!r}: no such attribute{did_you_mean(name, changed)}"
                )
    changed |= dict.fromkeys(drop, "identifier") | dict.fromkeys(keep, "kept")
    changed |= {name: {"role": "confidential", "kind": "nominal"} for name in nominal}
    for name, (lower, upper) in domains.items():
        attribute = changed[name]
        settings = {"role": attribute} if isinstance(attribute, str) else attribute
        if not isinstance(settings, dict) or settings.get("role") != "confidential":
            raise PlanError(
                f"domain {name!r}: only a confidential attribute has a domain; remove it"
            )
        bounded = {**settings, "lower": lower, "upper": upper}
        bounded.pop("resolution", None)  # which is for attributes without a domain
        changed[name] = bounded
    return changed
