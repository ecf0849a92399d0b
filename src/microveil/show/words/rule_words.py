"""What became of a rule, in a sentence for the data holder."""

from microveil.release.rule_outcomes import RuleOutcome


def rule_statement(outcome: RuleOutcome) -> str:
    """Say how many records broke a rule, and what was done about it."""
    before = "" if outcome.original is None else f"{_records(outcome.original)} broke it"
    if outcome.masked is None:
        said = f"{before} in the original; " if before else ""
        return f"Rule {outcome.rule}: {said}masked records that broke it were changed to keep it."
    changed = f" and {outcome.masked:,} after masking, which were moved by {_how_far(outcome)}"
    left = (
        f"{outcome.released:,} could not be changed to keep it"
        if outcome.released
        else ("none breaks it now")
    )
    return (
        f"Rule {outcome.rule}: {before} in the original{changed if outcome.masked else ''}; {left}."
    )


def _how_far(outcome: RuleOutcome) -> str:
    return f"{outcome.moved or 0.0:.3g}{' days' if outcome.in_days else ''} on average"


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count:,} records" if count else "no record"
