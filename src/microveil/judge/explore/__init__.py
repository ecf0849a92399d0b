"""Explore what a table would lose at which ε, by which method, and recommend a plan."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw

from microveil.attacks.attack_rows import LOW_LINKAGE
from microveil.engines.memory import open_table
from microveil.errors import DataError, PlanError, noted
from microveil.formats import LoadedTable, load_table, source_of
from microveil.judge.explore.advice import advise
from microveil.judge.explore.candidates import candidates, chosen, pooled, starting_plan
from microveil.judge.explore.exploration import AdviceRule, Exploration, Limits, Point
from microveil.judge.explore.repeated import RepeatedTable, repeated_table
from microveil.judge.explore.trials import Measurer
from microveil.measures.expected_error import expected_of
from microveil.measures.learning import check_number_of_classes, open_target
from microveil.plan.plan import Plan
from microveil.plan.synthetic_checks import require_masked
from microveil.release.choose_k import resolve_and_choose
from microveil.release.resolve import ResolvedPlan
from microveil.release.store import LocalStore
from microveil.types import Progress, UserTable

__all__ = ["Exploration", "Limits", "Point", "explore"]

Tried = tuple[Point, ResolvedPlan]
"""A point, and its plan as it was resolved against the table."""


def explore(
    data: UserTable,
    plan: Plan | None = None,
    *,
    epsilons: Sequence[float] = (0.01, 0.1, 1.0),
    target: Any = None,  # noqa: ANN401 - a name, or classes of any kind
    max_linkage: float = LOW_LINKAGE,
    max_error: float = math.inf,
    min_anonymity: int = 0,
    runs: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Compare methods, partitions, k, ε and pooling on a table, and recommend one point.

    Every point has its expected error, for which no noise is drawn. For each ε some points are also
    run, measured and attacked: clusters of the best k, noise-optimal ones, both with iDP-CBLS, and
    the better of them with masked values pooled among 5, 10 and 25 records, as many as the plan
    says, and as many as the limits need. Where the plan has uses and no target is given, the plan
    is recommended that is best for them. What comes out is a function of the data that ε does not
    cover: keep it private. No run is released.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        Roles, domains, groups, uses and what else is to stay; method, ε, k, partition, trim, post,
        anonymity and pooling are varied, also where a numeric attribute has its own. Expected error
        is that of numbers, dates and times; categories are masked along with them, in clusters of
        the k that is tried, and measured.
        Since no error weighs them, a method and k of their own stay. By default the roles that
        `microveil plan` proposes, with the target dropped. DP, DP-UM and iDP-LS are left out unless
        every attribute they would mask has a declared domain.
    epsilons
        The budgets to compare.
    target
        The name of a column that is not confidential and holds classes to learn, or the classes
        themselves, one for each record.
    max_linkage, max_error, min_anonymity
        What the recommended plan must keep to: the share of rows that the most successful attack
        links, its measured mean SSE, and how many records its joint clusters have. A plan that does
        not is never recommended; if none does, nothing is.
    runs
        How often each of the measured points is run; the first run is attacked, where values are
        pooled by distance only.
    seed
        Of the runs and of the models.
    progress
        Called after every point, expected and measured.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> found = explore(people(200), people_plan(), epsilons=[0.1, 1.0], runs=1)
    >>> found.plan.partition, found.plan.epsilon, found.plan.anonymity
    ('noise-optimal', 1.0, 25)
    >>> found.to_frame().columns[:5]
    ['method', 'partition', 'k', 'epsilon', 'trim']
    """
    if runs < 1:
        raise DataError(f"runs must be 1 or more, got {runs}")
    if not len(epsilons):
        raise PlanError("epsilons must hold at least one budget, got none")
    loaded, name = _load(data, plan)
    table = open_table(loaded.data)
    _check_target(table, target, plan)
    limits = Limits(max_linkage, max_error, min_anonymity)
    base = starting_plan(table, name, plan, target, loaded.meta.described)
    source = source_of(data)
    if source is not None:  # the plan that is recommended reads the file as it was read here
        base = base.replace(na=tuple(source.na) or base.na, dates=source.dates or base.dates)
    budgets = sorted({float(epsilon) for epsilon in epsilons})
    opened = repeated_table(loaded.data, inferred=loaded.meta.inferred)
    measurer = Measurer(
        table, opened, LocalStore(loaded.meta), target, runs=runs, seed=seed
    )  # fmt: skip
    with noted():  # nothing is released; protect warns
        tried = _expect(opened, base, candidates(base, table, budgets), limits, progress)
        points = _measure(tried, measurer, progress)
    used = any(point.found and point.found.use_loss is not None for point in points)
    rule: AdviceRule = "learning" if target is not None else "uses" if used else "spread"
    return advise(base, points, limits, rule, target if isinstance(target, str) else None)


def _expect(
    table: RepeatedTable,
    base: Plan,
    plans: list[Plan],
    limits: Limits,
    progress: Progress | None,
) -> list[Tried]:
    """Return what is expected of every plan, and then of the best of each ε with values pooled."""
    tried = []
    for done, plan in enumerate(plans, start=1):
        tried.append(_expected(table, plan))
        if progress:
            progress("expected error", done, len(plans))
    best: dict[float, Point] = {}
    for place in chosen([point for point, _ in tried]):
        point, _ = tried[place]
        best[point.epsilon] = min(best.get(point.epsilon, point), point, key=_by_expected)
    for point in best.values():
        variants = pooled(base, point.plan, _fewest(table, tried[0][1]), limits)
        tried += [_expected(table, plan) for plan in variants]
    return tried


def _fewest(table: RepeatedTable, resolved: ResolvedPlan) -> int:
    """Count what is pooled in the smallest stratum."""
    return int(table.prepared(resolved.preparation).stratum_sizes().min())


def _by_expected(point: Point) -> float:
    return point.expected


def _expected(table: RepeatedTable, plan: Plan) -> Tried:
    resolved = resolve_and_choose(plan, table)
    expected = expected_of(resolved, table, clamped=True)
    return Point(plan, expected.mean_sse), resolved


def _measure(tried: list[Tried], measurer: Measurer, progress: Progress | None) -> list[Point]:
    """Run and measure the best points without pooling, and all with it."""
    points = [point for point, _ in tried]
    places = [*chosen(points), *(place for place, point in enumerate(points) if point.pooled)]
    for done, place in enumerate(places, start=1):
        found = measurer.measure(tried[place][1])
        points[place] = replace(points[place], found=found)
        if progress:
            progress("running and measuring", done, len(places))
    return points


def _load(data: UserTable, plan: Plan | None) -> tuple[LoadedTable, str]:
    if plan is not None and not isinstance(plan, Plan):
        raise PlanError(
            f"plan must be a microveil.Plan, got {type(plan).__name__}; "
            "Plan.read reads one from a TOML file"
        )
    if plan is not None:
        require_masked(plan, "explore")
    table = load_table(data) if plan is None else load_table(data, **plan.reading)
    source = source_of(data)
    return table, "the table" if source is None else source.name


def _check_target(table: nw.DataFrame[Any], target: Any, plan: Plan | None) -> None:  # noqa: ANN401
    """Refuse, before anything takes time, a target that could not be learned."""
    if target is None:
        return
    _, classes = open_target(table, target)
    if plan is not None and isinstance(target, str) and target in plan.confidential:
        raise DataError(
            f"target {target!r}: a class must not be one of the confidential attributes; make it "
            "an identifier or kept, or give the classes as an array, one for each record"
        )
    check_number_of_classes(classes.drop_nulls().n_unique())
