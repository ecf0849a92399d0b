"""What an exploration recommends, why, and what its ε covers, in words."""

from collections.abc import Iterator

from microveil.core.methods import methods_that
from microveil.judge.explore.advice import LEARNING_LOSS, SPREAD_LOST
from microveil.judge.explore.exploration import Exploration, Measured, Point
from microveil.plan.plan import Plan
from microveil.release.guarantees import exactly
from microveil.show.words.numbers import percent

_RULES = {
    "spread": f"loses at most {percent(SPREAD_LOST)} of what publishing only the mean of each "
    "numeric attribute would lose",
    "learning": f"gives an F-measure within {percent(LEARNING_LOSS)} of the original's",
    "uses": "is good for every use of the plan",
}
_NOTHING = "No measured plan keeps to the limits"

_WRITTEN = {"max_linkage": "{:.1%}", "max_error": "{:.2g}", "min_anonymity": "{:.0f}"}


def recommendation_heading(exploration: Exploration) -> str:
    """Say whether anything is recommended."""
    return "Recommended" if exploration.plan else "Nothing recommended"


def recommendation_headline(exploration: Exploration) -> str:
    """Say in one line which plan is recommended."""
    if exploration.recommended is None:
        return _NOTHING
    return _settings_and_figures(exploration, exploration.recommended)


def recommendation_text(exploration: Exploration) -> str:
    """Say which plan is recommended, by which rule, and what its ε covers, a line for each."""
    if exploration.recommended is None:
        return _nothing_recommended(exploration)
    return "\n".join(_recommendation(exploration, exploration.recommended))


def _recommendation(exploration: Exploration, point: Point) -> Iterator[str]:
    limit = percent(exploration.limits.max_linkage)
    yield f"{_settings_and_figures(exploration, point)}."
    yield _why(exploration)
    if exploration.hardly_learned:
        yield (
            "These classes are hardly learned even from the original, so this rule says little: "
            "look at the error too."
        )
    if point.found is not None and point.found.unchanged is not None:
        hiding = methods_that(lambda method: not method.promise.publishes_agreement)
        yield (
            "Error covers numbers only. An attacker who takes a released category for the true one "
            "is right as often as categories are unchanged; to hide categories, give them "
            f"{hiding} as a method of their own, which explore leaves as it is."
        )
    yield (
        "Linkage is the share of records that the most successful of three attacks links if the "
        f"attacker knows every original value; the limit is {limit}."
    )
    yield _coverage(point.plan)
    if point.anonymity:
        yield _picked(point)
    yield (
        "The data were used to choose, and ε does not cover that: keep these figures private, and "
        "leave from_data in the plan so that the certificate says so."
    )


def _why(exploration: Exploration) -> str:
    rule = _RULES[exploration.rule]
    aside = " and ".join(exploration.set_aside)
    error = "error" if exploration.rule != "uses" else "loss in their worst use"
    least = f"these have the smallest {error}" + (
        f", leaving aside pooling by {aside}, which the plan does not ask for" if aside else ""
    )
    if exploration.good_enough:
        return f"It is the smallest ε tried that {rule}; of the settings that do so, {least}."
    return (
        f"No ε tried {rule}, so this is the largest one that keeps to the limits; of the settings "
        f"measured at this ε, {least}."
    )


def _nothing_recommended(exploration: Exploration) -> str:
    broken = " and ".join(
        f"{name} ({_WRITTEN[name].format(found)}, limit {_WRITTEN[name].format(limit)})"
        for name, (found, limit) in exploration.broken.items()
    )
    return (
        f"{_NOTHING}, so none is recommended. The nearest is "
        f"{_settings_and_figures(exploration, exploration.best)}; it breaks {broken}. "
        "Loosen a limit, try other budgets, or protect fewer attributes."
    )


def _settings_and_figures(exploration: Exploration, point: Point) -> str:
    settings = (
        f"{point.method}, {point.clusters}, {point.pooled or 'not pooled'}, "
        f"ε = {exactly(point.epsilon)}"
    )
    return f"{settings}: {', '.join(_figures(exploration, point.found))}"


def _figures(exploration: Exploration, found: Measured | None) -> Iterator[str]:
    if found is None:
        return
    if exploration.rule == "learning":
        learned = "the classes" if exploration.target is None else repr(exploration.target)
        yield f"F-measure of {learned} {found.f_measure:.2f} (original {found.f_original:.2f})"
    if found.use_loss is not None:
        yield f"worst use at {percent(found.use_loss)} of what is good"
    yield f"mean SSE {found.mean_sse:.2g}"
    if found.unchanged is not None:
        yield f"{percent(found.unchanged)} of categories unchanged"
    yield f"{percent(found.linkage)} of records linked by the strongest attack"


def _picked(point: Point) -> str:
    several = len(point.plan.pooled_groups) > 1
    known = "the attributes of one group" if several else "the confidential attributes"
    whose = "a person's" if point.plan.unit is None else "a unit's"
    return (
        f"An attacker who knows {known} picks {whose} row with probability at most "
        f"1/{point.anonymity} (level 3)."
    )


def _coverage(plan: Plan) -> str:
    """Say what ε covers; the certificate of a release says it in full."""
    whom = "a person" if plan.unit is None else "a unit"
    if plan.guarantee == "re-clustered":
        return (
            f"With fixed noise scales, this ε covers {whom} by individual differential privacy, "
            "both with fixed clusters (level 1) and re-clustered for the same k (level 2)."
        )
    several = any(plan.persons_of(name) > 1 for name in plan.confidential)
    fixed = (
        f"With fixed clusters and noise scales, this ε covers {whom} by individual differential "
        f"privacy{', provided no two records of a person share a cluster' if several else ''} "
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
        f"{fixed} Re-clustered (level 2), there is no bound, because cluster boundaries follow the "
        f"data and clusters may be as small as k = {plan.k} records."
    )
