"""Choose a point by a stated rule."""

import math
from collections.abc import Callable, Sequence

from microveil.judge.explore.exploration import AdviceRule, Exploration, Limits, Measured, Point
from microveil.plan.plan import Plan

LEARNING_LOSS = 0.02
"""How much of the original's F-measure may be lost."""

HARDLY_LEARNED = 0.5
"""Below this F-measure of the original, comparing with it says little."""

SPREAD_LOST = 0.1
"""The largest error without a target, as a share of that of publishing only the means."""


MeasuredPoint = tuple[Point, Measured]


def advise(
    base: Plan, points: Sequence[Point], limits: Limits, rule: AdviceRule, target: str | None = None
) -> Exploration:
    """Recommend the smallest ε that is good enough, with the settings of least measured error.

    Where the plan has uses, the settings are those with which the worst of them loses least.
    Nothing that breaks a limit is recommended. Values are pooled as in the plan given, unless only
    the other way keeps to the limits.
    """
    measured = [(point, point.found) for point in points if point.found is not None]
    within = [pair for pair in measured if not limits.broken_by(*pair)]
    if not within:
        nearest = min(measured, key=lambda pair: _away(limits, *pair))
        broken = limits.broken_by(*nearest)
        return Exploration(
            tuple(points), limits, nearest[0], broken, plan=None, rule=rule, target=target
        )
    as_given = [p for p in within if not p[0].pooled or p[0].plan.pooling == base.pooling]
    aside = {point.pooling for point, _ in within} - {point.pooling for point, _ in as_given}
    within, aside = (as_given, aside) if as_given else (within, set())
    enough = {"learning": _learns, "uses": _is_used}.get(rule) or _keeps_spread(measured)
    good_enough = [pair for pair in within if enough(*pair)]
    largest = max(point.epsilon for point, _ in within)
    smallest = min((point.epsilon for point, _ in good_enough), default=largest)
    eligible = [pair for pair in good_enough or within if pair[0].epsilon == smallest]
    best, found = min(eligible, key=_of_uses if rule == "uses" else _of_errors)
    return Exploration(
        tuple(points),
        limits,
        best,
        broken={},
        plan=best.plan.replace(from_data=_from_data(base, points)),
        rule=rule,
        good_enough=bool(good_enough),
        target=target,
        set_aside=tuple(sorted(aside)),
        hardly_learned=found.f_original is not None and found.f_original < HARDLY_LEARNED,
    )


def _away(limits: Limits, point: Point, found: Measured) -> tuple[int, float]:
    """Return how many limits a point breaks, and by which factor together."""
    broken = limits.broken_by(point, found).values()
    factors = (x / limit if x > limit else limit / max(1, x) for x, limit in broken)
    return len(broken), math.prod(factors)


def _of_errors(pair: MeasuredPoint) -> float:
    return pair[1].mean_sse


def _of_uses(pair: MeasuredPoint) -> tuple[float, float]:
    """Rank by the worst use, and by error what is the same for uses."""
    return pair[1].use_loss or 0.0, pair[1].mean_sse


def _is_used(_: Point, found: Measured) -> bool:
    return (found.use_loss or 0.0) <= 1


def _learns(_: Point, found: Measured) -> bool:
    return (found.f_measure or 0.0) >= (1 - LEARNING_LOSS) * (found.f_original or 0.0)


def _keeps_spread(measured: Sequence[MeasuredPoint]) -> Callable[[Point, Measured], bool]:
    """Compare masking with publishing only means, whose mean SSE is 1/m for m attributes.

    What pooling adds is the price of not being linked, and no budget would lower it.
    """

    def keeps(point: Point, found: Measured) -> bool:
        alone = (other for masked, other in measured if masked.plan == point.masking)
        masking = next(alone, found)
        return masking.mean_sse * masking.attributes <= SPREAD_LOST

    return keeps


def _from_data(base: Plan, points: Sequence[Point]) -> tuple[str, ...]:
    chosen = ["partition", "k", "trim", "anonymity", "pooling"]
    if len({point.epsilon for point in points}) > 1:
        chosen.insert(0, "epsilon")
    return tuple(dict.fromkeys([*base.from_data, *chosen]))
