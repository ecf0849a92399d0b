"""What became of the rules of a plan in its release."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from microveil.core.linear_rules import KeptRule
from microveil.engines.base import OpenTable
from microveil.release.resolve import ResolvedPlan

RULE_COLUMNS: dict[str, type[pl.DataType]] = {
    "rule": pl.String, "records": pl.Int64, "original": pl.Int64, "masked": pl.Int64,
    "released": pl.Int64, "moved": pl.Float64, "in_days": pl.Boolean,
}  # fmt: skip


@dataclass(frozen=True)
class RuleOutcome:
    """What became of a rule; private, since it counts original records.

    Attributes
    ----------
    rule
        The rule as the plan has it.
    records
        Released records.
    original, masked, released
        How many records broke it in the original, after masking and pooling, and in the release;
        None where that is not counted, as on Spark.
    moved
        How far the masked records that broke it were moved, on average, to keep it.
    in_days
        Whether that is in days, and not in the unit of the columns.
    """

    rule: str
    records: int
    original: int | None
    masked: int | None = None
    released: int | None = None
    moved: float | None = None
    in_days: bool = False


def as_table(outcomes: Sequence[RuleOutcome]) -> pl.DataFrame:
    """Return outcomes as a table, as the private detail has them."""
    return pl.DataFrame([asdict(outcome) for outcome in outcomes], schema=RULE_COLUMNS)


def outcomes_of(
    resolved: ResolvedPlan,
    table: OpenTable,
    original: Sequence[int | None],
    kept: Sequence[KeptRule],
) -> tuple[RuleOutcome, ...]:
    """Return what became of every rule, given how many records broke it and what keeping it took.

    Rules among what derived attributes are computed from are kept by construction, and those of no
    system are.
    """
    by_text = {one.text: one for one in kept}
    told = {rule.text for system in resolved.systems for rule in system.rules}
    outcomes = []
    for rule, before in zip(resolved.rules, original, strict=True):
        days = any(table.columns[name].clock for name in rule.factors)
        outcome = RuleOutcome(rule.text, table.records, before, in_days=days)
        one = by_text.get(rule.text)
        if one is not None:
            outcome = replace(outcome, masked=one.before, released=one.after, moved=one.moved)
        elif rule.text not in told:
            outcome = replace(outcome, masked=0, released=0, moved=0.0)
        outcomes.append(outcome)
    return tuple(outcomes)
