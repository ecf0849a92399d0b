"""Rules on Spark: counted by aggregation, and kept where masked values meet their records."""

from collections.abc import Callable, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil.core.linear_rules import ROUNDING, Rule, System
from microveil.engines.memory import memory_table
from microveil.engines.spark.arrow import batch_of


def count_broken(
    table: DataFrame, rules: Sequence[Rule], number: Callable[[str], Column]
) -> list[int]:
    """Count the records that break each rule, all of them in one job."""
    counts = [F.count_if(_broken(rule, number)).alias(str(at)) for at, rule in enumerate(rules)]
    return [int(count) for count in table.agg(*counts).collect()[0]] if counts else []


def _broken(rule: Rule, number: Callable[[str], Column]) -> Column:
    """Say, as `Rule.broken` does, whether a record breaks a rule; null where a value is missing."""
    total, near = F.lit(rule.constant), F.lit(abs(rule.constant))
    for name, factor in rule.factors.items():
        term = number(name) * F.lit(float(factor))
        total, near = total + term, near + F.abs(term)
    near = F.lit(0.0) if rule.is_exact else near * ROUNDING
    if rule.sign == "==":
        broken = F.abs(total) > near
    else:
        broken = total > near if rule.sign == "<=" else total >= -near
    return broken & ~F.isnan(total)  # which for Spark is larger than all numbers


def keep_rules_of_batch(
    batch: pa.RecordBatch, names: dict[str, str], systems: Sequence[System]
) -> pa.RecordBatch:
    """Change masked values of some records so that rules are kept, by the memory engine.

    `names` are those of the batch's columns in the plan.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    places = {name: place for place, name in names.items()}
    for system in systems:
        values = pa.table({name: columns[places[name]] for name in system.names})
        engine = memory_table(values).engine()
        engine.keep_rules((), [system])
        kept = engine.finish(system.names, {}).data
        columns |= {places[name]: kept[name].combine_chunks() for name in system.names}
    return batch_of(batch.schema, **columns)
