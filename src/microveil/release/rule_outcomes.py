"""Keep the rules of a plan in its release, and say what that took."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import polars as pl

from microveil.engines.base import Engine
from microveil.release.resolve import ResolvedPlan

_SCHEMA = {
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

    def __str__(self) -> str:
        before = "" if self.original is None else f"{_records(self.original)} broke it"
        if self.masked is None:
            said = f"{before} in the original; " if before else ""
            return f"Rule {self.rule}: {said}masked records that did were changed to keep it."
        changed = f" and {self.masked:,} after masking, which were moved by {self.how_far}"
        left = f"{self.released:,} could not be changed to keep it" if self.released else "none now"
        return (
            f"Rule {self.rule}: {before} in the original{changed if self.masked else ''}; {left}."
        )

    @property
    def how_far(self) -> str:
        """Say how far records were moved."""
        return f"{self.moved or 0.0:.3g}{' days' if self.in_days else ''} on average"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records" if count else "no record"


def as_table(outcomes: Sequence[RuleOutcome]) -> pl.DataFrame:
    """Return outcomes as a table, as the private detail has them."""
    return pl.DataFrame([asdict(outcome) for outcome in outcomes], schema=_SCHEMA)


def keep_rules(
    engine: Engine, resolved: ResolvedPlan, original: Sequence[int | None]
) -> tuple[RuleOutcome, ...]:
    """Change masked values so that every record keeps the rules; say what that took.

    Rules among what derived attributes are computed from are kept by construction, and those of no
    system are.
    """
    kept = {one.text: one for system in resolved.systems for one in engine.keep_rules(system) or ()}
    told = {rule.text for system in resolved.systems for rule in system.rules}
    outcomes = []
    for rule, before in zip(resolved.rules, original, strict=True):
        days = any(engine.columns[name].clock for name in rule.factors)
        outcome = RuleOutcome(rule.text, engine.records, before, in_days=days)
        one = kept.get(rule.text)
        if one is not None:
            outcome = replace(outcome, masked=one.before, released=one.after, moved=one.moved)
        elif rule.text not in told:
            outcome = replace(outcome, masked=0, released=0, moved=0.0)
        outcomes.append(outcome)
    return tuple(outcomes)
