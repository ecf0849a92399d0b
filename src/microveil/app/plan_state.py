"""The plan so far in a few words, which is always in view."""

from collections.abc import Iterator

from microveil.app.session_state import Draft, Protected, verdict_known
from microveil.plan.plan import Plan


def plan_state(draft: Draft, outcome: Protected | None) -> Iterator[tuple[str, str]]:
    """Say what the plan does, each fact with what it is about, and how far it has come."""
    chosen, plan = draft.chosen, draft.checked().plan
    yield "Table", f"{chosen.name}, {chosen.data.height:,} records"
    if plan is None:
        yield "Plan", "does not hold: put right what is marked"
        return
    yield from _of_plan(plan)
    yield "Release", _how_far(plan, outcome)


def _of_plan(plan: Plan) -> Iterator[tuple[str, str]]:
    dropped = len(plan.names("identifier"))
    yield "Columns", f"{len(plan.confidential)} masked, {dropped} dropped"
    if plan.kept:
        yield "Published as they are", ", ".join(plan.kept)
    if plan.unit is not None:
        yield "Persons by", plan.unit
    yield "Crowd", f"{plan.anonymity} persons" if plan.anonymity else "none"
    yield "Budget ε", f"{plan.epsilon:g}"
    if plan.scenarios:
        yield "Known", plan.scenarios[0].knowledge
    if plan.uses:
        yield "Uses", f"{len(plan.uses)}"


def _how_far(plan: Plan, outcome: Protected | None) -> str:
    if outcome is None:
        return "not made yet"
    if outcome.plan != plan:
        return "is of an earlier plan: protect again"
    passed = verdict_known(outcome)
    if passed is None:
        return "made"
    return "made, passes" if passed else "made, does not pass"
