"""Settings of a plan that are not left at their defaults, and how two plans differ."""

from collections.abc import Mapping
from typing import Any

from microveil.plan.fields import AttributeRole, PlanFields


def settings_of_plan(plan: PlanFields) -> dict[str, Any]:
    """Return the settings of a plan itself: k, and those that are not left at their defaults."""
    apart = ("epsilon", "method", "attributes")
    return {name: value for name, value in plan.given().items() if name not in apart}


def settings_of(attribute: AttributeRole) -> dict[str, Any]:
    """Return the settings of an attribute that are not left at their defaults, but for its role."""
    return {
        name: getattr(attribute, name)
        for name, field in type(attribute).model_fields.items()
        if name != "role" and (field.is_required() or getattr(attribute, name) != field.default)
    }


def setting_in_words(name: str, value: object) -> str:
    """Write one setting as TOML has it, but of long ones only how much there is."""
    if name in ("categories", "taxonomy", "from_data", "groups", "rules", "scenarios", "uses"):
        size = len(value) if isinstance(value, tuple | Mapping) else 0
        return f"{size} {name}"
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, float):
        return f"{name} = {value:.10g}"
    if isinstance(value, str):
        return f"{name} = '{value}'" if '"' in value else f'{name} = "{value}"'
    return f"{name} = {value}"


def difference(one: PlanFields, other: PlanFields) -> str:
    """Say what is different in another plan, a line for each setting."""
    lines = _changes("", _settings(one), _settings(other))
    for name in dict.fromkeys([*one.attributes, *other.attributes]):
        before, after = one.attributes.get(name), other.attributes.get(name)
        if before is None or after is None or before.role != after.role:
            roles = [attribute.role if attribute else "not there" for attribute in (before, after)]
            lines.append(f"{name}: {' → '.join(roles)}")
        if after is not None:
            had = settings_of(before) if before and before.role == after.role else {}
            lines += _changes(f"{name}.", had, settings_of(after))
    return "\n".join(lines) or "no differences"


def _settings(plan: PlanFields) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in type(plan).model_fields if name != "attributes"}


def _changes(prefix: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    lines = []
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            lines.append(f"{prefix}{name}: {_change(name, before.get(name), after.get(name))}")
    return lines


def _change(name: str, before: object, after: object) -> str:
    if isinstance(before, tuple) and isinstance(after, tuple):
        added, gone = (
            sum(item not in others for item in items)
            for items, others in ((after, before), (before, after))
        )
        return f"{added} added, {gone} removed" if added or gone else "in another order"
    return " → ".join(
        "not set" if value is None else setting_in_words(name, value).removeprefix(f"{name} = ")
        for value in (before, after)
    )
