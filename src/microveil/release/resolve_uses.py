"""Uses meet the table: what they name holds numbers, or groups, as they need."""

from collections.abc import Mapping, Sequence

from microveil.engines.base import Column
from microveil.errors import Problems
from microveil.plan.fields import PlanFields
from microveil.plan.uses import Use, Wanted, check_holds, wanted_by


def check_uses_of(
    uses: Sequence[Use], columns: Mapping[str, Column], plan: PlanFields | None
) -> None:
    """Refuse uses of columns that do not hold what they need, before any work is done.

    Parameters
    ----------
    uses
        What is to be computed.
    columns
        The columns of the original; those that it does not have are left aside.
    plan
        What is done to them, if it is known: a use of masked attributes was checked with it.
    """
    problems = Problems()
    masked = {} if plan is None else plan.confidential
    for use in uses:
        for name, wanted in wanted_by(use):
            if name in columns and (name not in masked or columns[name].clock):
                with problems:
                    _check_content(use, name, wanted, columns[name])
    problems.raise_found()


def _check_content(use: Use, name: str, wanted: Wanted, column: Column) -> None:
    whole = column.kind == "integer" and wanted == "groups"
    in_years = wanted == "bands" and column.clock in ("date", "datetime")
    times = column.type_name if column.clock and not in_years else ""
    check_holds(use, name, wanted, categories=column.kind is None or whole, times=times)
