"""The next step: the one change that would help a release most, tried before it is proposed."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

import numpy as np

from microveil.attacks import linkage
from microveil.attacks.known import EVERYTHING, what_is_known
from microveil.attacks.whole_units import link_units
from microveil.compare.figures import LINKAGE, Figure, percent
from microveil.compare.paired_columns import kind_of
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import column_of
from microveil.errors import PlanError
from microveil.judge.change import Change
from microveil.judge.evaluated import Evaluation
from microveil.judge.glance import RECORDS, Glance, glance_again
from microveil.judge.grades import (
    LIMITS,
    LOW_LINKAGE,
    grade_of,
    how_useful,
    worst,
    worst_linkage,
    worst_loss,
)
from microveil.measures.category_figures import category_figures
from microveil.measures.distributions_and_errors import distribution_figures, error_figures
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.plan.scenarios import Scenario
from microveil.plan.settings import RECOMMENDED

ENOUGH = math.ceil(1 / LOW_LINKAGE)
"""Records in a joint cluster that keep linkage low: nobody is found with more than 1 in so many."""

_LOSSES = {
    "utility.il1s": "how far a number moves on average, in standard deviations,",
    "utility.quantiles": "how far a quantile moves at most, in standard deviations,",
    "utility.pearson": "the largest change of a correlation",
    "utility.cramers_v": "the largest change of an association of categories",
    "utility.total_variation": "the largest share of records with another category",
}
_WORTHWHILE = 0.9  # an error is lower if it is at most this share of what it was


_NOTHING_HELPS = Change(
    "compare other plans with microveil explore", "no single change that was tried loses less"
)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A change that was tried, and the share of people that was linked after it."""

    change: Change
    linked: float


def next_step(
    look: Glance, figures: Sequence[Figure], scenarios: Sequence[Scenario], seed: int | None = None
) -> Change | None:
    """Propose the one change that helps most; None if nothing needs one or helps."""
    random = np.random.default_rng(seed)
    linked, kept = worst_linkage(figures), worst(figures, "risk.unique_kept")
    if linked is not None and grade_of(linked) != "good":
        if linked.measure == "risk.linkage_of_units":
            return _with_units_pooled(look, linked, random)
        if linked.measure not in LINKAGE:
            return _with_kept_masked(look, linked, random)
        named = {scenario.label: scenario for scenario in scenarios}
        scenario = named[linked.attribute] if linked.attribute else EVERYTHING
        return _against_linkage(look, linked, scenario, random)
    if kept is not None and kept.value > LIMITS["risk.unique_records"][1]:
        return _against_kept(look)
    deciding = worst_loss(figures)
    if deciding is not None and grade_of(deciding) == "poor":
        return _for_use(look, deciding, random)
    return _against_kept(look) if kept is not None and kept.value else None


def next_step_after(evaluation: Evaluation) -> Change | None:
    """Propose the one change that helps most a release that was evaluated."""
    if evaluation.drawn is not None:
        return evaluation.change
    linked = worst_linkage(evaluation.figures)
    look = glance_again(evaluation.pair, np.random.default_rng(0))
    if look is not None:
        return next_step(look, evaluation.figures, evaluation.scenarios, seed=0)
    if linked is None or grade_of(linked) == "good":
        return None
    return Change(f"add anonymity = {ENOUGH} to the plan", _at_most(linked, ENOUGH))


def _against_linkage(
    look: Glance, linked: Figure, scenario: Scenario, random: np.random.Generator
) -> Change | None:
    """Take the first change after which linkage is low, or else that after which it is lowest."""
    tried = []
    candidates = (_pooled(look, linked, scenario, random), _without_kept(look, linked, scenario))
    for found in chain(*candidates):
        if found.linked <= LOW_LINKAGE:
            return found.change
        tried.append(found)
    return min(tried, key=lambda found: found.linked).change if tried else None


def _pooled(
    look: Glance, linked: Figure, scenario: Scenario, random: np.random.Generator
) -> Iterator[_Tried]:
    """Pool masked values in joint clusters, or in larger ones."""
    plan = look.plan
    whole = plan.anonymity and not plan.groups
    number = 2 * plan.anonymity if whole and plan.anonymity >= ENOUGH else ENOUGH
    after = _replaced(plan, anonymity=number, groups=())
    pair = None if after is None else look.trial(after, RECORDS, random)
    if after is None:
        return
    what = f"raise anonymity from {plan.anonymity} to {number}" if whole else (
        f"add anonymity = {number}" if not plan.groups
        else f"remove groups and set anonymity = {number}"
    )  # fmt: skip
    if pair is None:
        yield _Tried(Change(what, _at_most(linked, number), after), 1 / number)
        return
    share = _share_linked(pair, scenario)
    effect = f"linkage {percent(linked.value)} → about {percent(share)}{_cost(look, pair)}"
    yield _Tried(Change(what, effect, after), share)


def _without_kept(look: Glance, linked: Figure, scenario: Scenario) -> Iterator[_Tried]:
    """Leave out a column that is known exactly."""
    for name in scenario.known or ():
        if name not in look.plan.kept:
            continue
        others = tuple(other for other in scenario.known or () if other != name)
        after = _replaced(
            look.plan, scenarios=(), attributes={**look.plan.attributes, name: "identifier"}
        )
        share = look.nearest(Scenario(known=others)).share if others else 1 / look.records
        effect = f"linkage {percent(linked.value)} → about {percent(share)}"
        yield _Tried(Change(f"drop {name}, or mask it", effect, after), share)


def _with_kept_masked(look: Glance, linked: Figure, random: np.random.Generator) -> Change | None:
    """Mask the kept columns too, so that they are pooled with the others."""
    kept = look.plan.kept
    masked = {name: Confidential(kind=_kind_of(look, name)) for name in kept}
    after = _replaced(look.plan, attributes={**look.plan.attributes, **masked})
    pair = None if after is None else look.trial(after, RECORDS, random)
    if pair is None:
        return _against_kept(look)
    share = _share_linked(pair, EVERYTHING)
    return Change(
        f"mask what is kept ({', '.join(kept)}), so that it is pooled too",
        f"linkage by someone who knows it {percent(linked.value)} → about {percent(share)}",
        after,
    )


def _with_units_pooled(look: Glance, linked: Figure, random: np.random.Generator) -> Change | None:
    """Pool units in one group, or in larger joint clusters."""
    plan = look.plan
    whole = plan.anonymity >= ENOUGH and not plan.groups
    number = 2 * plan.anonymity if whole else ENOUGH
    after = _replaced(plan, anonymity=number, groups=())
    pair = None if after is None else look.trial(after, RECORDS, random)
    found = None if pair is None else link_units(pair)
    if found is None or found.share >= linked.value:
        return None
    return Change(
        f"{'remove groups and ' if plan.groups else ''}set anonymity = {number}",
        f"linkage of whole units {percent(linked.value)} → about {percent(found.share)}",
        after,
    )


def _kind_of(look: Glance, name: str) -> Literal["nominal"] | None:
    return "nominal" if kind_of(column_of(look.pair.source, name)) == "categories" else None


def _against_kept(look: Glance) -> Change | None:
    """Drop the kept column without which fewest records are unique."""
    kept = look.plan.kept
    shares = {
        name: look.unique(others) if (others := [other for other in kept if other != name]) else 0.0
        for name in kept
    }
    name = min(shares, key=shares.__getitem__)
    return Change(
        f"drop {name}, make it coarser or mask it",
        f"records with a unique combination of kept columns {percent(look.unique(kept))} → "
        f"{percent(shares[name])}",
        _replaced(look.plan, scenarios=(), attributes={**look.plan.attributes, name: "identifier"}),
    )


def _for_use(look: Glance, deciding: Figure, random: np.random.Generator) -> Change | None:
    """Take the mildest change after which usefulness is no longer poor, if linkage stays low.

    Failing that, take the one that helps most.
    """
    measure, tried = deciding.measure, []
    before = _worst_loss(look.trial(look.plan, RECORDS, random), measure)
    for after in _more_useful(look.plan, deciding):
        pair = look.trial(after, RECORDS, random)
        value = _worst_loss(pair, measure)
        if pair is None or before is None or value is None or value > _WORTHWHILE * before:
            continue
        if _share_linked(pair, EVERYTHING) > LOW_LINKAGE:
            continue
        effect = f"{_LOSSES[measure]} {_said(measure, before)} → about {_said(measure, value)}"
        change = Change(f"set {_difference(look.plan, after)}", effect, after)
        if how_useful(losses_of(pair)).grade != "poor":
            return change
        tried.append((value, change))
    return min(tried, key=lambda pair: pair[0])[1] if tried else _NOTHING_HELPS


def _more_useful(plan: Plan, deciding: Figure) -> Iterator[Plan]:
    """Propose plans that lose less, those first that give up least."""
    related = deciding.measure in ("utility.pearson", "utility.cramers_v")
    names = (deciding.attribute or "").split(" × ")
    candidates = [
        _replaced(plan, together=_joined(plan.together, names)) if related else None,
        _as_recommended(plan),
        _replaced(plan, pooling="average", together=()) if plan.anonymity else None,
        _replaced(plan, epsilon=10 * plan.epsilon),
    ]
    yield from (after for after in candidates if after is not None and after != plan)


def _joined(together: Sequence[Sequence[str]], names: Sequence[str]) -> list[list[str]]:
    """Put attributes together, and with what each of them is together with already."""
    touched = [block for block in together if set(block) & set(names)]
    others = [list(block) for block in together if block not in touched]
    return [*others, list(dict.fromkeys([*chain(*touched), *names]))]


def _as_recommended(plan: Plan) -> Plan | None:
    """Mask as recommended, and pool as before."""
    masking = {name: value for name, value in RECOMMENDED.items()
               if name not in ("anonymity", "pooling")}  # fmt: skip
    return _replaced(plan, **masking)


def _replaced(plan: Plan, **changes: Any) -> Plan | None:  # noqa: ANN401 - settings of a plan
    try:
        return plan.replace(**changes)
    except PlanError:
        return None


def _difference(before: Plan, after: Plan) -> str:
    """List the settings that differ, as a plan has them."""
    changed = [name for name in type(after).model_fields
               if getattr(before, name) != getattr(after, name)]  # fmt: skip
    return ", ".join(f"{name} = {json.dumps(getattr(after, name))}" for name in changed)


def _share_linked(pair: Pair, scenario: Scenario) -> float:
    """Return the share of people linked by the quicker two attacks."""
    known = what_is_known(pair, scenario)
    tables = (known.original, known.masked)
    given: dict[str, Any] = {"nominal": known.columns("nominal"), "exact": known.columns("exact"),
                             "people": scenario.people}  # fmt: skip
    attacks = (linkage.nearest, linkage.one_to_one)
    return max(attack(*tables, **given).share for attack in attacks)


def _at_most(linked: Figure, number: int) -> str:
    return f"linkage {percent(linked.value)} → at most 1 in {number} by the pooled attributes"


def _cost(look: Glance, after: Pair) -> str:
    """Say what a change costs, where all records were tried."""
    before, then = _moved(look.pair), _moved(after)
    if not look.is_whole or before is None or then is None:
        return ""
    return (
        f"; a number then moves by about {then:.2g} standard deviations on average instead of "
        f"{before:.2g}"
    )


def losses_of(pair: Pair) -> list[Figure]:
    """Measure what was lost by what usefulness is graded on."""
    found = chain(error_figures(pair, "std"), distribution_figures(pair), category_figures(pair))
    return [item for item in found if isinstance(item, Figure) and item.measure in LIMITS]


def _worst_loss(pair: Pair | None, measure: str) -> float | None:
    figure = None if pair is None else worst(losses_of(pair), measure)
    return None if figure is None else abs(figure.value)


def _moved(pair: Pair) -> float | None:
    """Return by how many standard deviations a number moves on average."""
    value = _worst_loss(pair, "utility.il1s")
    return None if value is None else math.sqrt(2) * value


def _said(measure: str, value: float) -> str:
    return f"{math.sqrt(2) * value if measure == 'utility.il1s' else value:.2g}"
