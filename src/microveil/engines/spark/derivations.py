"""Derived attributes that depend on other records, on Spark.

An average, sum, least, greatest or number of a column is worked out by Spark in a release that was
written, and put into the expression as a number; the rest of it is computed record by record.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import NumericType

from microveil.engines.spark import join
from microveil.engines.spark.arrow import Batches
from microveil.errors import PlanError
from microveil.plan.roles import Derived

_AGGREGATE = re.compile(r'\b(AVG|SUM|MIN|MAX|COUNT)\s*\(\s*("[^"]+"|[a-z_]\w*)\s*\)', re.IGNORECASE)
_FUNCTIONS = {"avg": F.avg, "sum": F.sum, "min": F.min, "max": F.max, "count": F.count}

Steps = list[dict[str, Derived]]


def in_steps(derived: Mapping[str, Derived]) -> Steps:
    """Part derived attributes, by column, into steps; after the first each needs totals."""
    steps: Steps = [{}]
    for column, attribute in derived.items():
        if _AGGREGATE.search(attribute.expression):
            steps.append({})
        steps[-1][column] = attribute
    return steps


def with_totals(
    step: Mapping[str, Derived], written: DataFrame, places: Mapping[str, str]
) -> dict[str, Derived]:
    """Put numbers in the place of averages, sums and so on of columns of numbers."""
    calls = chain(*(_AGGREGATE.finditer(attribute.expression) for attribute in step.values()))
    found: dict[str, Column] = {}
    for call in calls:
        place = places.get(call.group(2).strip('"'))
        if place and isinstance(written.schema[place].dataType, NumericType):
            of = F.col(place).cast("double")
            found[call.group()] = _FUNCTIONS[call.group(1).lower()](of)
    if not found:
        return dict(step)
    totals = written.agg(*found.values()).collect()[0]
    numbers = dict(zip(found, totals, strict=True))
    return {column: _filled(attribute, numbers) for column, attribute in step.items()}


def _filled(derived: Derived, numbers: Mapping[str, float | None]) -> Derived:
    def number(call: re.Match[str]) -> str:
        value = numbers.get(call.group())
        return call.group() if value is None else f"({float(value)!r})"

    try:
        return Derived(expression=_AGGREGATE.sub(number, derived.expression))
    except PlanError:  # it names no attribute any more
        return derived


def derive_more(
    batches: Batches, names: Mapping[str, str], derived: Mapping[str, Derived]
) -> Iterator[pa.RecordBatch]:
    """Recompute derived attributes of records that were put together before."""
    for batch in batches:
        if batch.num_rows:
            yield join.derive(batch, dict(names), dict(derived))
