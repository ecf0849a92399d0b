"""Figures of the rules of a plan: what still breaks them, and what keeping them changed."""

import numpy as np

from microveil.compare.figures import Figure, Items, NotComputed, percent
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import column_of, describe, with_gaps
from microveil.plan.rules import parse
from microveil.release.resolve_rules import typed
from microveil.release.rule_outcomes import RuleOutcome


def rule_figures(pair: Pair) -> Items:
    """Count the released records that break a rule, and those that were changed to keep it."""
    for text in pair.plan.rules if pair.plan else ():
        columns = {n: describe(dtype) for n, dtype in pair.table.schema.items()}
        rule = typed(parse(text), columns)
        values = {name: with_gaps(column_of(pair.table, name)) for name in rule.factors}
        share = float(np.mean(rule.broken(values)))
        left = f"{percent(share)} of released records break it" if share else "no record breaks it"
        yield Figure("utility.rule_broken", text, share, left)
    yield from _changes(pair)


def _changes(pair: Pair) -> Items:
    rows = [] if pair.detail is None or pair.detail.rules is None else pair.detail.rules.to_dicts()
    for row in rows:
        if row["masked"] is None:
            yield NotComputed(("utility.rule_changed",), "it is not counted on Spark", row["rule"])
            continue
        share, outcome = row["masked"] / row["records"], RuleOutcome(**row)
        yield Figure(
            "utility.rule_changed",
            row["rule"],
            share,
            f"{percent(share)} of masked records broke it and were changed to keep it, by "
            f"{outcome.moved or 0.0:.3g}{' days' if outcome.in_days else ''} on average; "
            f"{outcome.original or 0:,} records of the original break it",
        )
