"""Figures of the rules of a plan: what still breaks them, and what keeping them changed."""

import numpy as np

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import column_of, describe, numbers_with_gaps
from microveil.plan.rules import parse
from microveil.release.resolve_rules import typed


def rule_figures(seen: Examined, _: Asked) -> Items:
    """Count the released records that break a rule, and those that were changed to keep it."""
    pair = seen.pair
    for text in seen.planned.rules:
        columns = {n: describe(dtype) for n, dtype in pair.table.schema.items()}
        rule = typed(parse(text), columns)
        values = {name: numbers_with_gaps(column_of(pair.table, name)) for name in rule.factors}
        share = float(np.mean(rule.broken(values)))
        yield Figure("utility.rule_broken", text, share)
    yield from _changes(pair)


def _changes(pair: Pair) -> Items:
    rows = [] if pair.detail is None or pair.detail.rules is None else pair.detail.rules.to_dicts()
    for row in rows:
        if row["masked"] is None:
            yield NotComputed(("utility.rule_changed",), "not_counted_on_spark", row["rule"])
            continue
        share = row["masked"] / row["records"]
        facts = {name: row[name] or 0 for name in ("moved", "in_days", "original")}
        yield Figure("utility.rule_changed", row["rule"], share, facts)
