"""The next step: the one change that would help a release most, tried before it is proposed."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from microveil.attacks.attack_rows import GAINS, LINKAGE, LOW_LINKAGE
from microveil.attacks.known import EVERYTHING
from microveil.attacks.nearest import link_to_nearest
from microveil.attacks.one_to_one import link_one_to_one
from microveil.attacks.questions import question_items
from microveil.attacks.whole_units import link_units
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed, figures_in
from microveil.compare.paired_columns import kind_of
from microveil.engines.dtypes import column_of, comparable
from microveil.errors import PlanError
from microveil.judge.change import Change
from microveil.judge.evaluated import Evaluation
from microveil.judge.grades import grade_of, how_useful, worst, worst_linkage, worst_loss
from microveil.judge.registry import MEASURES
from microveil.measures.category_shares import share_figures
from microveil.measures.record_moves import move_figures
from microveil.measures.relations import association_figures, correlation_figures
from microveil.measures.univariate import estimate_figures
from microveil.measures.use_figures import use_figures
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.plan.scenarios import Scenario
from microveil.plan.settings import RECOMMENDED

ENOUGH: int = RECOMMENDED["anonymity"]
"""Records in a joint cluster that keep linkage low: nobody is found with more than 1 in so many."""

_RELATIONS = ("utility.pearson", "utility.cramers_v")
_TRIED_ON = 10_000
_MANY_UNIQUE = 0.05
_WORTHWHILE = 0.9  # an error is lower if it is at most this share of what it was


def next_step(
    seen: Examined,
    figures: Sequence[Figure],
    scenarios: Sequence[Scenario],
    seed: int | None = None,
) -> Change | None:
    """Propose the one change that helps most; None if nothing needs one or helps."""
    random = np.random.default_rng(seed)
    linked, kept = worst_linkage(figures), worst(figures, "risk.unique_kept")
    if linked is not None and grade_of(linked) != "good":
        if linked.measure == "risk.linkage_of_units":
            return _with_units_pooled(seen, linked, random)
        if linked.measure == "linkage.own_values" and seen.planned.rules:
            return _without_rules(seen, linked)
        if linked.measure not in LINKAGE and seen.planned.kept:
            return _with_kept_masked(seen, linked, random)
        named = {scenario.label: scenario for scenario in scenarios}
        scenario = named[linked.attribute] if linked.attribute else EVERYTHING
        return _against_linkage(seen, linked, scenario, random)
    if kept is not None and kept.value > _MANY_UNIQUE:
        return _against_kept(seen)
    told = max((f for f in figures if f.measure in GAINS), key=lambda f: f.counted, default=None)
    if told is not None and grade_of(told) == "poor":
        return _against_inference(seen, told, random)
    deciding = worst_loss(figures)
    if deciding is not None and grade_of(deciding) == "poor":
        return _for_use(seen, deciding, random)
    return _against_kept(seen) if kept is not None and kept.value else None


def next_step_after(evaluation: Evaluation) -> Change | None:
    """Propose the one change that helps most a release that was evaluated."""
    if evaluation.drawn is not None:
        return evaluation.change
    seen, linked = evaluation.seen, worst_linkage(evaluation.figures)
    if seen.plan is not None and seen.paired:
        return next_step(seen, evaluation.figures, evaluation.scenarios, seed=0)
    if linked is None or grade_of(linked) == "good":
        return None
    return Change("pool", measure=linked.measure, before=linked.value, most=ENOUGH)


def _against_linkage(
    seen: Examined, linked: Figure, scenario: Scenario, random: np.random.Generator
) -> Change | None:
    """Take the first change after which linkage is low, or else that after which it is lowest."""
    tried = []
    for change in chain(
        _pooled(seen, linked, scenario, random), _without_kept(seen, linked, scenario)
    ):
        if _linked_after(change) <= LOW_LINKAGE:
            return change
        tried.append(change)
    return min(tried, key=_linked_after, default=None)


def _linked_after(change: Change) -> float:
    return 1 / (change.most or 1) if change.after is None else change.after


def _pooled(
    seen: Examined, linked: Figure, scenario: Scenario, random: np.random.Generator
) -> Iterator[Change]:
    """Pool masked values in joint clusters, or in larger ones."""
    plan = seen.planned
    whole = plan.anonymity and not plan.groups
    number = 2 * plan.anonymity if whole and plan.anonymity >= ENOUGH else ENOUGH
    after = _replaced(seen, anonymity=number, groups=())
    if after is None:
        return
    trial = seen.trial(after, _TRIED_ON, random)
    yield Change(
        "pool",
        measure=linked.measure,
        before=linked.value,
        after=None if trial is None else _share_linked(trial, scenario),
        most=number,
        cost=None if trial is None else _cost(seen, trial),
        plan=after,
        earlier=plan,
    )


def _without_kept(seen: Examined, linked: Figure, scenario: Scenario) -> Iterator[Change]:
    """Leave out a column that is known exactly."""
    plan = seen.planned
    for name in scenario.known or ():
        if name not in plan.kept:
            continue
        others = tuple(other for other in scenario.known or () if other != name)
        after = _replaced(seen, scenarios=(), attributes={**plan.attributes, name: "identifier"})
        known = Scenario(known=others) if others else None
        share = link_to_nearest(seen, known).share if known else 1 / seen.records
        yield Change("drop", (name,), linked.measure, linked.value, share, plan=after, earlier=plan)


def _with_kept_masked(seen: Examined, linked: Figure, random: np.random.Generator) -> Change | None:
    """Mask the kept columns too, so that they are pooled with the others."""
    plan = seen.planned
    weights = plan.names("sampling_weight")
    masked = {
        name: Confidential(sampling_weight=True)
        if name in weights
        else Confidential(kind=_kind_of(seen, name))
        for name in plan.kept
    }
    after = _replaced(seen, attributes={**plan.attributes, **masked})
    trial = None if after is None else seen.trial(after, _TRIED_ON, random)
    if trial is None:
        return _against_kept(seen)
    share = _share_linked(trial, EVERYTHING)
    return Change(
        "mask kept", plan.kept, linked.measure, linked.value, share, plan=after, earlier=plan
    )


def _without_rules(seen: Examined, linked: Figure) -> Change | None:
    """Leave released values where exchange put them."""
    plan = seen.planned
    after = _replaced(seen, rules=())
    return Change(
        "settings", ("rules",), linked.measure, linked.value, 0.0, plan=after, earlier=plan
    )


def _with_units_pooled(
    seen: Examined, linked: Figure, random: np.random.Generator
) -> Change | None:
    """Pool units in one group, or in larger joint clusters."""
    plan = seen.planned
    whole = plan.anonymity >= ENOUGH and not plan.groups
    number = 2 * plan.anonymity if whole else ENOUGH
    after = _replaced(seen, anonymity=number, groups=())
    trial = None if after is None else seen.trial(after, _TRIED_ON, random)
    found = None if trial is None else link_units(trial.pair)
    if found is None or found.share >= linked.value:
        return None
    return Change(
        "pool", (), linked.measure, linked.value, found.share, number, plan=after, earlier=plan
    )


def _against_inference(seen: Examined, told: Figure, random: np.random.Generator) -> Change | None:
    """Pool masked values in larger joint clusters."""
    plan = seen.planned
    whole = plan.anonymity >= ENOUGH and not plan.groups
    number = 5 * plan.anonymity if whole else ENOUGH
    after = _replaced(seen, anonymity=number, groups=())
    if after is None:
        return _exploring(plan)
    found = figures_in(question_items(seen, int(random.integers(2**32)), after))
    gains = [figure.value for figure in found if figure.measure == told.measure]
    if not gains or max(gains) > _WORTHWHILE * told.value:
        return _exploring(plan)
    return Change(
        "pool", (), told.measure, told.value, max(gains), number, plan=after, earlier=plan
    )


def _kind_of(seen: Examined, name: str) -> Literal["nominal"] | None:
    return "nominal" if kind_of(column_of(seen.given.source, name)) == "categories" else None


def _against_kept(seen: Examined) -> Change | None:
    """Drop the kept column without which fewest records are unique.

    Where that is the same for several, it is the one that has most values.
    """
    plan, kept = seen.planned, seen.planned.kept
    shares = {
        name: seen.classes(others).unique if (others := [o for o in kept if o != name]) else 0.0
        for name in kept
    }
    source = seen.given.source
    name = min(kept, key=lambda n: (shares[n], -comparable(column_of(source, n), n).n_unique()))
    attributes = {**plan.attributes, name: "identifier"}
    return Change(
        "drop",
        (name,),
        "risk.unique_kept",
        seen.classes(kept).unique,
        shares[name],
        plan=_replaced(seen, scenarios=(), attributes=attributes),
        earlier=plan,
    )


def _for_use(seen: Examined, deciding: Figure, random: np.random.Generator) -> Change | None:
    """Take the mildest change after which usefulness is no longer poor, if linkage stays low.

    Failing that, take the one that helps most.
    """
    measure, plan, tried = deciding.measure, seen.planned, []
    before = _worst_loss(losses_of(seen.trial(plan, _TRIED_ON, random)), measure)
    for after in _more_useful(seen):
        trial = seen.trial(after, _TRIED_ON, random)
        lost = losses_of(trial)
        value = _worst_loss(lost, measure)
        if trial is None or before is None or value is None or value > _WORTHWHILE * before:
            continue
        if _share_linked(trial, EVERYTHING) > LOW_LINKAGE:
            continue
        names = tuple(n for n in type(plan).model_fields if getattr(plan, n) != getattr(after, n))
        change = Change("settings", names, measure, before, value, plan=after, earlier=plan)
        if how_useful(lost).grade != "poor":
            return change
        tried.append((value, change))
    return min(tried, key=lambda pair: pair[0])[1] if tried else _exploring(plan)


def _exploring(plan: Plan) -> Change | None:
    """Propose to compare other plans, which explore does by the errors of numbers."""
    numbers = any(not attribute.is_category for attribute in plan.confidential.values())
    return Change("explore") if numbers else None


def _more_useful(seen: Examined) -> Iterator[Plan]:
    """Propose plans that lose less, those first that give up least."""
    plan = seen.planned
    candidates = [
        _as_recommended(seen),
        _replaced(seen, pooling="average") if plan.anonymity else None,
        _replaced(seen, epsilon=10 * plan.epsilon),
    ]
    yield from (after for after in candidates if after is not None and after != plan)


def _as_recommended(seen: Examined) -> Plan | None:
    """Mask as recommended, and pool as before."""
    masking = {name: value for name, value in RECOMMENDED.items()
               if name not in ("anonymity", "pooling")}  # fmt: skip
    return _replaced(seen, **masking)


def _replaced(seen: Examined, **changes: Any) -> Plan | None:  # noqa: ANN401 - settings of a plan
    """Change the plan; None if there is no such plan, or the table does not take it."""
    try:
        after = seen.planned.replace(**changes)
    except PlanError:
        return None
    return after if seen.fits(after) else None


def _share_linked(trial: Examined, scenario: Scenario) -> float:
    """Return the share of people linked by the quicker two attacks."""
    by_distance = link_to_nearest(trial, scenario), link_one_to_one(trial, scenario)
    return max(linked.share for linked in by_distance)


def _cost(seen: Examined, after: Examined) -> tuple[str, float, float] | None:
    """Return what is lost before and after a change, where all records were tried.

    That is how far numbers move or, if rows belong to nobody then, how far relations change.
    """
    for measure in _RELATIONS if after.planned.exchanged else ("utility.il1s",):
        before, then = (_worst_loss(losses_of(each), measure) for each in (seen, after))
        if seen.whole and before is not None and then is not None:
            return measure, before, then
    return None


def loss_items(seen: Examined, asked: Asked) -> Items:
    """Measure what was lost by what usefulness is graded on."""
    by_rows = () if seen.planned.exchanged else (move_figures,)
    for compute in (
        use_figures, *by_rows, estimate_figures, correlation_figures, share_figures,
        association_figures,
    ):  # fmt: skip
        for item in compute(seen, asked):
            if isinstance(item, NotComputed) or MEASURES[item.measure].limits:
                yield item


def losses_of(seen: Examined | None) -> list[Figure]:
    """Return the figures that were lost; none of what could not be tried."""
    return [] if seen is None else figures_in(loss_items(seen, Asked()))


def _worst_loss(figures: Sequence[Figure], measure: str) -> float | None:
    figure = worst(figures, measure)
    return None if figure is None else abs(figure.value)
