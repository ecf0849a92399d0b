"""Explore what a table would lose at which ε, by which method, and recommend a plan."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw

from microveil.core.tables import UserTable
from microveil.engines.memory import open_table
from microveil.errors import DataError, PlanError, PrivacyWarning
from microveil.evaluation.expected import expected_of
from microveil.evaluation.learning import check_number_of_classes, open_target
from microveil.exploration.advice import advise
from microveil.exploration.engine import RepeatedEngine
from microveil.exploration.frontier import candidates, chosen, starting_plan
from microveil.exploration.measure import Measurer
from microveil.exploration.result import Exploration, Point
from microveil.formats import Table, load, source_of
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.protect import Progress
from microveil.release.store import LocalStore

__all__ = ["Exploration", "Point", "explore"]


def explore(
    data: UserTable,
    plan: Plan | None = None,
    *,
    epsilons: Sequence[float] = (0.01, 0.1, 1.0),
    target: Any = None,  # noqa: ANN401 - a name, or classes of any kind
    runs: int = 3,
    seed: int = 0,
    progress: Progress | None = None,
) -> Exploration:
    """Compare methods, partitions, k and ε on a table, and recommend one point.

    Every point has its expected error, for which no noise is drawn. For each ε two points are also
    run and measured: clusters of the best k, and `Plan.recommended`, both with iDP-CBLS. What
    comes out is a function of the data that ε does not cover: keep it private. No run is released.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        Roles, domains and what else is to stay; method, ε, k, partition and post are varied, also
        where a numeric attribute has its own. Expected error is that of numbers, dates and times;
        categories are masked along with them, in clusters of the k that is tried, and measured.
        Since no error weighs them, a method and k of their own stay. By default the roles that
        `microveil plan` proposes, with the target dropped. DP, DP-UM and iDP-LS are left out unless
        every attribute they would mask has a declared domain.
    epsilons
        The budgets to compare.
    target
        The name of a column that is not confidential and holds classes to learn, or the classes
        themselves, one for each record.
    runs
        How often each of the measured points is run.
    seed
        Of the runs and of the models.
    progress
        Called after every point, expected and measured.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> found = explore(people(200), people_plan(), epsilons=[0.1, 1.0], runs=1)
    >>> found.plan.method, found.plan.partition, found.plan.epsilon
    ('iDP-CBLS', 'noise-optimal', 1.0)
    >>> found.to_frame().columns[:5]
    ['method', 'partition', 'k', 'epsilon', 'expected']
    """
    if runs < 1:
        raise DataError(f"runs must be 1 or more, got {runs}")
    if not len(epsilons):
        raise PlanError("epsilons must hold at least one budget, got none")
    loaded, name = _load(data, plan)
    table = open_table(loaded.data)
    _check_target(table, target, plan)
    base = starting_plan(table, name, plan, target)
    budgets = sorted({float(epsilon) for epsilon in epsilons})
    engine = RepeatedEngine(loaded.data, inferred=loaded.meta.inferred)
    measurer = Measurer(
        table, engine, LocalStore(loaded.meta), target, runs=runs, seed=seed
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # nothing is released; protect warns
        points = _explore(engine, candidates(base, table, budgets), measurer, progress)
    return advise(base, points, None if target is None else _name(target))


def _explore(
    engine: RepeatedEngine, plans: list[Plan], measurer: Measurer, progress: Progress | None
) -> list[Point]:
    points, resolved = [], []
    for done, plan in enumerate(plans, start=1):
        resolved.append(resolve_and_choose(plan, engine))
        expected = expected_of(resolved[-1], engine, clamped=True)
        points.append(Point(plan, expected.mean_sse))
        if progress:
            progress("expected error", done, len(plans))
    to_run = chosen(points)
    for done, place in enumerate(to_run, start=1):
        points[place] = replace(points[place], found=measurer.measure(resolved[place]))
        if progress:
            progress("running and measuring", done, len(to_run))
    return points


def _load(data: UserTable, plan: Plan | None) -> tuple[Table, str]:
    if plan is not None and not isinstance(plan, Plan):
        raise PlanError(
            f"plan must be a microveil.Plan, got {type(plan).__name__}; "
            "Plan.read reads one from a TOML file"
        )
    table = load(data, verbatim=() if plan is None else plan.verbatim)
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


def _name(target: Any) -> str:  # noqa: ANN401 - a name, or classes of any kind
    return repr(target) if isinstance(target, str) else "the classes"
