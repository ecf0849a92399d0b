"""Everything that is wrong with a plan, in itself and against a table, at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from microveil.engines.base import OpenTable
from microveil.engines.memory import memory_table
from microveil.errors import DataError, MicroveilError, PlanError, Problems, all_of, noted
from microveil.formats import load_table
from microveil.plan.plan import Plan, parse_settings, read_plan_text
from microveil.plan.problems import located, not_said, plan_and_problems
from microveil.release.budget_shares import warn_of_small_shares
from microveil.release.protect import require_plan
from microveil.release.resolve import resolve
from microveil.release.synthesise import resolve_synthetic
from microveil.types import UserTable


def check(data: UserTable, plan: Plan | str | Path) -> tuple[MicroveilError, ...]:
    """Check a plan against a table before anything is masked; return everything that is wrong.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        A plan, or the path of one in TOML; of that, problems also have the line.

    Returns
    -------
    tuple of MicroveilError
        One for each problem, with `message`, `attribute`, `setting` and `line`; empty if `protect`
        would take plan and table.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> attributes = {"age": "confidential", "wages": "confidential"}
    >>> plan = Plan.published(epsilon=1.0, k=10, attributes=attributes)
    >>> for problem in check(people, plan):
    ...     print(problem.attribute, problem.setting)
    wages None
    age k
    """
    try:
        if isinstance(plan, str | Path):
            with located(read_plan_text(plan)):
                fit(plan_with(parse_settings(read_plan_text(plan), Path(plan).parent), data), data)
        else:
            require_plan(plan)
            fit(plan, data)
    except (PlanError, DataError) as error:
        return error.problems
    return ()


def plan_with(settings: Mapping[str, Any], data: UserTable | None) -> Plan:
    """Make a plan of settings; if they are wrong, say also what does not fit the table."""
    plan, found = plan_and_problems(Plan, settings)
    if plan is not None and not found:
        return plan
    problems = Problems()
    wanted = plan is not None and plan.release == settings.get("release", plan.release)
    if plan is not None and data is not None and wanted:  # and not what is left of another release
        with problems, noted():
            fit(plan, data)
    raise all_of([*found, *not_said(problems.found, found, settings)])


def fit(plan: Plan, data: UserTable) -> None:
    """Raise everything in which a plan does not fit a table."""
    table = _open(plan, data)
    try:
        if plan.release == "synthetic":
            resolve_synthetic(plan, table)
        else:
            warn_of_small_shares(resolve(plan, table), table)
    finally:
        table.discard()


def _open(plan: Plan, data: UserTable) -> OpenTable:
    if type(data).__module__.startswith("pyspark."):
        from microveil.engines.spark.spark_engine import SparkTable

        return SparkTable.open(data, plan, None)
    read = load_table(data, **plan.reading)
    return memory_table(read.data, inferred=read.meta.inferred)
