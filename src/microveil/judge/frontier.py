"""The measured frontier: plans between more private and more useful, tried on some records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from microveil.attacks.attack_rows import ATTACKS
from microveil.attacks.known import EVERYTHING
from microveil.attacks.questions import question_items
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined, examine
from microveil.compare.figures import figures_in
from microveil.engines.beside_here import rows_of_units
from microveil.engines.dtypes import column_of
from microveil.errors import MicroveilError, noted
from microveil.judge.grades import Graded, how_risky, how_useful, passes, place_of
from microveil.judge.next_step import losses_of
from microveil.plan.plan import Plan
from microveil.release.protect import protect

_RECORDS, _RUNS = 10_000, 3


class Stop(NamedTuple):
    """What a plan promises whatever the data are: records in a joint cluster, and ε."""

    anonymity: int
    epsilon: float

    def protects_more_than(self, other: "Stop") -> bool:
        """Whether it promises as much in both, and more in one of them."""
        as_much = self.anonymity >= other.anonymity and self.epsilon <= other.epsilon
        return as_much and self != other


LADDER = tuple(
    Stop(*each) for each in ((200, 0.1), (100, 0.3), (50, 1.0), (25, 2.0), (10, 5.0), (5, 10.0))
)
"""From more private to more useful."""


@dataclass(frozen=True)
class TriedStop:
    """What a plan did to some records: it depends on the data, so it is private.

    Attributes
    ----------
    stop
        Of the plan.
    usefulness, risk
        Their grades; usefulness is the middle one of three runs, risk is that of this run.
    passed
        Whether the attacks that were made speak against the release.
    """

    stop: Stop
    usefulness: Graded
    risk: Graded
    passed: bool


def stop_of(plan: Plan) -> Stop:
    """Return what a plan promises."""
    return Stop(plan.anonymity, plan.epsilon)


def ladder(own: Iterable[Stop]) -> tuple[Stop, ...]:
    """Order promises from more private to more useful, with own ones among them.

    Those of the ladder that are neither more nor less private than an own one are left out.

    Examples
    --------
    >>> [tuple(each) for each in ladder([Stop(25, 1.0)])]
    [(200, 0.1), (100, 0.3), (50, 1.0), (25, 1.0), (25, 2.0), (10, 5.0), (5, 10.0)]
    """
    named = tuple(dict.fromkeys(own))
    others = [each for each in LADDER if all(_comparable(each, one) for one in named)]
    return tuple(sorted({*named, *others}, key=lambda each: (-each.anonymity, each.epsilon)))


def _comparable(one: Stop, other: Stop) -> bool:
    return one == other or one.protects_more_than(other) or other.protects_more_than(one)


def some_people(table: pl.DataFrame, plan: Plan) -> pl.DataFrame:
    """Draw some records, of whole units; always the same ones."""
    if table.height <= _RECORDS:
        return table
    if plan.unit is None:
        return table.sample(_RECORDS, seed=0)
    unit = column_of(nw.from_native(table, eager_only=True), plan.unit)
    return table[rows_of_units(unit, _RECORDS, np.random.default_rng(0))]


def try_plan(people: pl.DataFrame, plan: Plan) -> TriedStop | None:
    """Protect some records three times, and attack the middle run; None if they are too few.

    Attacked is by who is nearest, and by what the three questions ask.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> found = try_plan(people(200), people_plan().replace(anonymity=10))
    >>> found.stop, found.usefulness.grade
    (Stop(anonymity=10, epsilon=1.0), 'poor')
    """
    try:
        runs = [_run(people, plan, seed) for seed in range(_RUNS)]
    except MicroveilError:
        return None
    runs.sort(key=lambda run: place_of(run[1]) or 0.0)
    seen, usefulness = runs[_RUNS // 2]
    nearest = ATTACKS["linkage.nearest"].on_release
    assert nearest is not None  # noqa: S101 - which is made on releases
    asked = Asked(seed=0)
    items = [nearest(seen, EVERYTHING, asked), *question_items(seen, asked.seed)]
    figures = figures_in([item for item in items if item is not None])
    return TriedStop(stop_of(plan), usefulness, how_risky(figures), passes(figures))


def _run(people: pl.DataFrame, plan: Plan, seed: int) -> tuple[Examined, Graded]:
    with noted():
        release = protect(people, plan, seed=seed, keep_order=True)
        with examine(people, release, random=np.random.default_rng(seed)) as seen:
            return seen, how_useful(losses_of(seen))


def on_frontier(tried: Sequence[TriedStop]) -> tuple[TriedStop, ...]:
    """Leave out what gives up protection and gains nothing that was measured.

    A plan is on the frontier if none that promises more was measured to be as useful.
    """
    return tuple(
        one
        for one in tried
        if not any(
            other.stop.protects_more_than(one.stop) and _loss(other) <= _loss(one)
            for other in tried
        )
    )


def _loss(tried: TriedStop) -> float:
    place = place_of(tried.usefulness)
    return 1.0 if place is None else place
