"""What a plan is expected to lose, before anything is masked."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import narwhals as nw
import polars as pl

from microveil.core.methods import METHODS
from microveil.engines.memory import memory_table
from microveil.errors import noted
from microveil.judge.explore import Exploration, explore
from microveil.judge.explore.candidates import candidates, starting_plan
from microveil.judge.explore.repeated import repeated_table
from microveil.measures.expected_error import ExpectedError, expected_error, expected_of
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.resolve import resolve

FRONTIER = {"epsilon": pl.Float64, "k": pl.Int64, "error": pl.Float64}
COMPARED_EPSILONS = (0.01, 0.1, 1.0, 10.0)
"""The budgets that are compared with the one chosen."""

_RECORDS = 20_000
_CELLS = 200_000


class Outlook(NamedTuple):
    """What was predicted on how many records.

    `error` is the root mean square of the attributes' errors, in their standard deviations;
    `attributes` has a row for each that holds numbers, dates or times.
    """

    error: float
    attributes: pl.DataFrame
    records: int


def guarantee_notes(table: pl.DataFrame, plan: Plan) -> list[str]:
    """Check the whole table against the plan; return what weakens the guarantee."""
    with noted() as notes:
        resolve(plan, memory_table(table))
    return notes


def some_records(table: pl.DataFrame) -> pl.DataFrame:
    """Take as many records as can be predicted while a slider moves.

    The same ones every time, so that what is shown changes only with the plan.
    """
    most = max(1_000, min(_RECORDS, _CELLS // max(1, table.width)))
    return table if table.height <= most else table.sample(most, seed=0)


def why_unpredicted(plan: Plan) -> str | None:
    """Say why nothing is predicted for a plan; None if it can be."""
    if all(attribute.is_category for attribute in plan.confidential.values()):
        return "Only categories are masked; errors are predicted for numbers and dates only."
    return None


def outlook(records: pl.DataFrame, plan: Plan) -> Outlook:
    """Predict the error of a plan on some records.

    Examples
    --------
    >>> table = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan.published(epsilon=10.0, k=3, attributes={"age": "confidential"})
    >>> found = outlook(table, plan)
    >>> round(found.error, 2)
    0.25
    """
    with noted():
        found = expected_error(records, plan, clamped=True)
    return Outlook(_typical(found), found.attributes, records.height)


def predicted_frontier(records: pl.DataFrame, plan: Plan, epsilon: float) -> pl.DataFrame:
    """Predict the error of the plan's method at one ε, for clusters of several sizes."""
    return pl.DataFrame(list(_frontier(records, plan, epsilon)), schema=FRONTIER, orient="row")


def _frontier(
    records: pl.DataFrame, plan: Plan, epsilon: float
) -> Iterator[tuple[float, int | None, float]]:
    table = nw.from_native(records, eager_only=True)
    base = starting_plan(table, "the table", plan, None)
    clustered = METHODS[plan.method].clustered
    opened = repeated_table(records)
    with noted():
        for candidate in candidates(base, table, [epsilon]):
            same = candidate.method == plan.method and candidate.partition == "fixed"
            if same and not candidate.trim:
                resolved = resolve_and_choose(candidate.replace(trim=plan.trim), opened)
                error = _typical(expected_of(resolved, opened, clamped=True))
                yield epsilon, candidate.k if clustered else None, error  # type: ignore[misc]


def others(records: pl.DataFrame, plan: Plan) -> Exploration:
    """Compare other plans at the same ε on some records, by running and attacking the best."""
    with noted():
        return explore(records, plan, epsilons=[plan.epsilon], runs=1)


def _typical(found: ExpectedError) -> float:
    shares = found.attributes.select(pl.sum_horizontal("within", "noise", "pooled")).to_series()
    return math.sqrt(shares.sum() / len(shares))
