"""What people see of a plan: its settings, a row for each attribute, and how ε is shared."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from microveil.core.accounting import budget_shares
from microveil.plan.differences import setting_in_words, settings_of, settings_of_plan
from microveil.show.screens import MOST_BARS, ResultScreen

if TYPE_CHECKING:
    import altair as alt

    from microveil.plan.plan import Plan


def plan_screen(plan: "Plan") -> ResultScreen:
    """Say what a plan does."""
    masked = len(plan.confidential)
    done = "drawn anew" if plan.release == "synthetic" else f"masked with {plan.method}"
    title = (
        f"Plan: {masked:,} of {len(plan.attributes):,} attributes are {done} at "
        f"ε = {plan.epsilon:g} per {'person' if plan.unit is None else 'unit'}"
    )
    rows = [
        (name, attribute.role, _written(settings_of(attribute)))
        for name, attribute in plan.attributes.items()
    ]
    lines = [_written(settings_of_plan(plan))]
    return ResultScreen(title, lines, ("attribute", "role", "settings"), rows, lambda: _chart(plan))


def _written(settings: Mapping[str, object]) -> str:
    return ", ".join(setting_in_words(name, value) for name, value in settings.items())


def _chart(plan: "Plan") -> "alt.LayerChart":
    from microveil.show.charts.overviews import amounts

    weights = [attribute.budget_share for attribute in plan.confidential.values()]
    shares = budget_shares(plan.epsilon, weights)[:MOST_BARS]
    names = list(plan.confidential)[:MOST_BARS]
    return amounts(names, shares, title="share of ε", description="How ε is shared by attributes")
