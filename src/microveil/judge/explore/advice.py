"""Choose a point by a stated rule, and say in words what was chosen and what it covers."""

import math
from collections.abc import Callable, Sequence

from microveil.core.methods import methods_that
from microveil.judge.explore.exploration import Exploration, Limits, Measured, Point
from microveil.plan.plan import Plan
from microveil.release.guarantees import exactly

LEARNING_LOSS = 0.02
"""How much of the original's F-measure may be lost."""

HARDLY_LEARNED = 0.5
"""Below this F-measure of the original, comparing with it says little."""

SPREAD_LOST = 0.1
"""The largest error without a target, as a share of that of publishing only the means."""


Pair = tuple[Point, Measured]


def advise(base: Plan, points: Sequence[Point], limits: Limits, target: str | None) -> Exploration:
    """Recommend the smallest ε that is good enough, with the settings of least measured error.

    Nothing that breaks a limit is recommended. Values are pooled as in the plan given, unless only
    the other way keeps to the limits.
    """
    rule = _rule(target)
    measured = [(point, point.found) for point in points if point.found is not None]
    within = [pair for pair in measured if not limits.broken_by(*pair)]
    if not within:
        return _nothing(points, limits, measured, target)
    as_given = [p for p in within if not p[0].pooled or p[0].plan.pooling == base.pooling]
    aside = {point.pooling for point, _ in within} - {point.pooling for point, _ in as_given}
    within, aside = (as_given, aside) if as_given else (within, set())
    enough = _learns if target else _keeps_spread(measured)
    good_enough = [pair for pair in within if enough(*pair)]
    largest = max(point.epsilon for point, _ in within)
    smallest = min((point.epsilon for point, _ in good_enough), default=largest)
    eligible = [pair for pair in good_enough or within if pair[0].epsilon == smallest]
    best, found = min(eligible, key=lambda pair: pair[1].mean_sse)
    headline = f"{_settings(best)}: {_figures(found, target)}"
    why = (
        f"It is the smallest ε tried {rule}"
        if good_enough
        else f"No ε was tried {rule}, so this is the largest that keeps to the limits"
    )
    parts = [
        f"{headline}.",
        f"{why}; of the settings measured there{' that keep to it' if good_enough else ''}, these "
        f"have the least error{_set_aside(aside)}.",
        *_doubts(found),
        *_on_categories(found),
        "Linked is the share of records that the most successful of three attacks links, by "
        f"someone who knows everybody's original values; at most {100 * limits.max_linkage:.3g}% "
        "was asked for.",
        _covered(best.plan),
        *_hidden(best),
        "The choice looked at the data, which ε does not cover: keep these figures private, and "
        "leave from_data in the plan, so that the certificate says so.",
    ]
    plan = best.plan.replace(from_data=_from_data(base, points))
    return Exploration(tuple(points), limits, best, plan, headline, " ".join(parts))


def _set_aside(pooling: set[str]) -> str:
    """Say which way of pooling was left out of the choice."""
    if not pooling:
        return ""
    kinds = " and ".join(sorted(pooling))
    return f", leaving aside pooling by {kinds}, which the plan does not ask for"


def _nothing(
    points: Sequence[Point], limits: Limits, measured: Sequence[Pair], target: str | None
) -> Exploration:
    """Say that nothing keeps to the limits, and what comes nearest."""

    def away(pair: Pair) -> tuple[int, float]:
        factors = limits.broken_by(*pair).values()
        return len(factors), math.prod(factors)

    nearest, found = min(measured, key=away)
    headline = "Nothing that was measured keeps to the limits"
    broken = " and ".join(limits.broken_by(nearest, found))
    said = (
        f"{headline}, so nothing is recommended. Nearest is {_settings(nearest)}: "
        f"{_figures(found, target)}; it breaks them by {broken}. Loosen a limit, try other "
        "budgets, or protect fewer attributes."
    )
    return Exploration(tuple(points), limits, None, None, headline, said)


def _rule(target: str | None) -> str:
    if target is None:
        return (
            f"at which masking loses at most {100 * SPREAD_LOST:.3g}% of what publishing only the "
            "mean of each attribute of numbers would"
        )
    return f"whose F-measure is within {100 * LEARNING_LOSS:.3g}% of the original's"


def _learns(_: Point, found: Measured) -> bool:
    return (found.f_measure or 0.0) >= (1 - LEARNING_LOSS) * (found.f_original or 0.0)


def _keeps_spread(measured: Sequence[Pair]) -> Callable[[Point, Measured], bool]:
    """Compare masking with publishing only means, whose mean SSE is 1/m for m attributes.

    What pooling adds is the price of not being linked, and no budget would lower it.
    """

    def keeps(point: Point, found: Measured) -> bool:
        alone = (other for masked, other in measured if masked.plan == point.masking)
        masking = next(alone, found)
        return masking.mean_sse * masking.attributes <= SPREAD_LOST

    return keeps


def _settings(point: Point) -> str:
    pooled = point.pooled or "not pooled"
    return f"{point.method}, {point.clusters}, {pooled}, ε = {exactly(point.epsilon)}"


def _hidden(point: Point) -> list[str]:
    if not point.anonymity:
        return []
    several = len(point.plan.pooled_groups) > 1
    known = "the attributes of one group" if several else "the confidential attributes"
    whose = "a person's" if point.plan.unit is None else "a unit's"
    return [
        f"Nobody picks {whose} row by {known} with a better chance than 1 in "
        f"{point.anonymity} (level 3)."
    ]


def _figures(found: Measured, target: str | None) -> str:
    learned = ""
    if target is not None:
        learned = f"F-measure of {target} {found.f_measure:.2f} of {found.f_original:.2f}, "
    unchanged = ""
    if found.unchanged is not None:
        unchanged = f"{100 * found.unchanged:.3g}% of categories unchanged, "
    linkable = f"{100 * found.linkage:.3g}% linked by the strongest attack"
    return f"{learned}mean SSE {found.mean_sse:.2g}, {unchanged}{linkable}"


def _doubts(found: Measured) -> list[str]:
    if found.f_original is None or found.f_original >= HARDLY_LEARNED:
        return []
    return [
        "But these classes are hardly learned from the original itself, so that rule says little: "
        "look at the error too."
    ]


def _on_categories(found: Measured) -> list[str]:
    if found.unchanged is None:
        return []
    hiding = methods_that(lambda method: not method.promise.publishes_agreement)
    return [
        "Error is that of numbers. Someone who takes a released category for the true one is right "
        "as often as categories are unchanged; where they must be hidden, give them "
        f"{hiding} as a method of their own, which explore leaves as it is."
    ]


def _covered(plan: Plan) -> str:
    """Say what ε covers; the certificate of a release says it in full."""
    whom = "a person" if plan.unit is None else "a unit"
    if plan.guarantee == "re-clustered":
        return (
            f"With noise scales fixed, this ε covers {whom}, by individual differential privacy, "
            "both with fixed clusters (level 1) and re-clustered for the same k (level 2)."
        )
    several = any(plan.persons_of(name) > 1 for name in plan.confidential)
    fixed = (
        f"With fixed clusters and noise scales, this ε covers {whom}, by individual differential "
        f"privacy{', while no two records of a person share a cluster' if several else ''} "
        "(level 1)."
    )
    if plan.partition == "fixed" and not several:
        return (
            f"{fixed} Re-clustered (level 2), more can be lost: the certificate gives a bound for "
            "this k, as if k had not been chosen from the data."
        )
    if plan.partition == "fixed":
        return f"{fixed} Re-clustered (level 2), there is no bound."
    return (
        f"{fixed} Re-clustered (level 2), there is no bound, because the boundaries of clusters "
        f"follow the data, and clusters may be as small as k = {plan.k} records."
    )


def _from_data(base: Plan, points: Sequence[Point]) -> tuple[str, ...]:
    chosen = ["partition", "k", "trim", "anonymity", "pooling"]
    if len({point.epsilon for point in points}) > 1:
        chosen.insert(0, "epsilon")
    return tuple(dict.fromkeys([*base.from_data, *chosen]))
