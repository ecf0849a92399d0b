"""What people see of a plan: its settings, a row for each attribute, and how ε is shared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from microveil.charts.summary import MOST_BARS, Summary
from microveil.core.accounting import budget_shares

if TYPE_CHECKING:
    import altair as alt

    from microveil.plan.plan import AttributeRole, Plan


def summary(plan: "Plan") -> Summary:
    """Say what a plan does."""
    masked = len(plan.confidential)
    title = (
        f"Plan: {masked:,} of {len(plan.attributes):,} attributes are masked with {plan.method} at "
        f"ε = {plan.epsilon:g} per person"
    )
    rows = [
        (name, attribute.role, _written(settings_of(attribute)))
        for name, attribute in plan.attributes.items()
    ]
    lines = [_written(settings_of_plan(plan))]
    return Summary(title, lines, ("attribute", "role", "settings"), rows, lambda: _chart(plan))


def settings_of_plan(plan: "Plan") -> dict[str, Any]:
    """Return the settings of a plan itself: k, and those that are not left at their defaults."""
    apart = ("epsilon", "method", "attributes")
    return {name: value for name, value in plan.given().items() if name not in apart}


def settings_of(attribute: "AttributeRole") -> dict[str, Any]:
    """Return the settings of an attribute that are not left at their defaults, but for its role."""
    return {
        name: getattr(attribute, name)
        for name, field in type(attribute).model_fields.items()
        if name != "role" and (field.is_required() or getattr(attribute, name) != field.default)
    }


def in_words(name: str, value: object) -> str:
    """Write one setting as TOML has it, but of long ones only how much there is."""
    if name in ("categories", "taxonomy", "from_data", "groups", "together", "scenarios"):
        size = len(value) if isinstance(value, tuple | Mapping) else 0
        return f"{name}: {size}"
    if isinstance(value, bool):
        return f"{name} = {str(value).lower()}"
    if isinstance(value, float):
        return f"{name} = {value:.10g}"
    return f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}"


def _written(settings: Mapping[str, object]) -> str:
    return ", ".join(in_words(name, value) for name, value in settings.items())


def _chart(plan: "Plan") -> "alt.LayerChart":
    from microveil.charts.overviews import amounts

    weights = [attribute.weight for attribute in plan.confidential.values()]
    shares = budget_shares(plan.epsilon, weights)[:MOST_BARS]
    names = list(plan.confidential)[:MOST_BARS]
    return amounts(names, shares, title="share of ε", description="How ε is shared by attributes")
