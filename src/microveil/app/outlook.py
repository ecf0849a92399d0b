"""What a plan is expected to lose, before anything is masked."""

from collections.abc import Iterator
from typing import NamedTuple

import narwhals as nw
import polars as pl

from microveil.app.upload import caught_warnings
from microveil.engines.memory import MemoryEngine
from microveil.expected import ExpectedError, expected_error
from microveil.explore.frontier import candidates, starting_plan
from microveil.methods import METHODS
from microveil.plan import Plan
from microveil.settle import settle

FRONTIER = {"epsilon": pl.Float64, "k": pl.Int64, "mean_sse": pl.Float64}
EPSILONS = (0.01, 0.1, 1.0, 10.0)
"""The budgets that are compared with the one chosen."""

_RECORDS = 20_000
_CELLS = 200_000


class Outlook(NamedTuple):
    """What was predicted, and on how many records; None where only categories are masked."""

    expected: ExpectedError | None
    records: int


def check(table: pl.DataFrame, plan: Plan) -> list[str]:
    """Check the whole table against the plan; return what weakens the guarantee."""
    with caught_warnings() as notes:
        settle(plan, MemoryEngine(table))
    return notes


def some_records(table: pl.DataFrame) -> pl.DataFrame:
    """Take as many records as can be predicted while a slider moves.

    The same ones every time, so that what is shown changes only with the plan.
    """
    most = max(1_000, min(_RECORDS, _CELLS // max(1, table.width)))
    return table if table.height <= most else table.sample(most, seed=0)


def outlook(records: pl.DataFrame, plan: Plan) -> Outlook:
    """Predict the error of a plan on some records, noise cut off at the domain."""
    if not _numbers(plan):
        return Outlook(None, records.height)
    with caught_warnings():
        return Outlook(expected_error(records, plan, clamped=True), records.height)


def frontier(records: pl.DataFrame, plan: Plan, epsilon: float) -> pl.DataFrame:
    """Predict the error of the plan's method at one ε, for clusters of several sizes."""
    if not _numbers(plan):
        return pl.DataFrame(schema=FRONTIER)
    return pl.DataFrame(list(_frontier(records, plan, epsilon)), schema=FRONTIER, orient="row")


def _frontier(
    records: pl.DataFrame, plan: Plan, epsilon: float
) -> Iterator[tuple[float, int | None, float]]:
    table = nw.from_native(records, eager_only=True)
    base = starting_plan(table, "the table", plan, None)
    clustered = METHODS[plan.method].clustered
    with caught_warnings():
        for candidate in candidates(base, table, [epsilon]):
            if candidate.method == plan.method and candidate.partition == "fixed":
                error = expected_error(records, candidate, clamped=True).mean_sse
                yield epsilon, candidate.k if clustered else None, error  # type: ignore[misc]


def _numbers(plan: Plan) -> bool:
    return any(not attribute.is_category for attribute in plan.confidential.values())
