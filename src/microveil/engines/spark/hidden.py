"""Pseudonyms and shifted dates on Spark: made by the workers when records are dealt.

The key travels to the workers inside the pickled function of a task, and is no part of query plans
or event logs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil.engines.base import Column
from microveil.engines.dtypes import each_text, shifted
from microveil.engines.refusals import leaves_the_calendar, no_person
from microveil.engines.spark import join
from microveil.engines.spark.arrow import Batches
from microveil.engines.spark.tasks import map_batches


class Moving(NamedTuple):
    """How dates move: with whom, by how many days, and what their type can hold."""

    person: str
    days: Callable[[str], int]
    column: Column


@dataclass(eq=False)
class Hiding:
    """What becomes of identifiers and dates, by the places of their columns."""

    pseudonyms: dict[str, Callable[[str], str]] = field(default_factory=dict)
    moving: dict[str, Moving] = field(default_factory=dict)

    def hide(self, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
        """Put pseudonyms and moved dates in the place of what there was."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for place, pseudonym in self.pseudonyms.items():
            columns[place] = each_text(_texts(batch[place]), pseudonym, pl.String()).to_arrow()
        for place, shift in self.moving.items():
            columns[place] = moved(batch, place, shift)[0].to_arrow()
        arrays = [columns[name].cast(schema.field(name).type) for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def deal_hidden(
    batches: Batches, hiding: Hiding, schema: pa.Schema, buckets: int
) -> Iterator[pa.RecordBatch]:
    """Deal whole records, of which no identifier is left."""
    nothing = not hiding.pseudonyms and not hiding.moving
    hidden = batches if nothing else (hiding.hide(batch, schema) for batch in batches)
    yield from join.deal_records(hidden, schema=schema, buckets=buckets)


def moved(batch: pa.RecordBatch, place: str, shift: Moving) -> tuple[pl.Series, int]:
    """Move dates with their people; count those that leave what their type can hold."""
    days = each_text(_texts(batch[shift.person]), shift.days, pl.Int64())
    return shifted(pl.Series(batch[place]), days, shift.column)


def most_records(values: DataFrame) -> int:
    """Count the records of the person with most of them; the driver learns only that number."""
    (name,) = values.columns
    sizes = values.where(F.col(name).isNotNull()).groupBy(name).count()
    return int(sizes.agg(F.max("count")).collect()[0][0] or 0)


def check_moving(records: DataFrame, place: str, shift: Moving, names: tuple[str, str]) -> None:
    """Refuse dates without a person, and dates that would leave the calendar."""
    nobody = F.col(shift.person).isNull() & F.col(place).isNotNull()
    unknown = int(records.agg(F.count_if(nobody)).collect()[0][0])
    if unknown:
        raise no_person(*names, unknown)

    def count(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"outside": [moved(batch, place, shift)[1]]})

    dates = records.select(shift.person, place)
    found = map_batches(dates, count, pa.schema([("outside", pa.int64())]))
    outside = found.agg(F.sum("outside")).collect()[0][0]
    if outside:
        raise leaves_the_calendar(names[0], int(outside))


def _texts(column: pa.Array) -> pl.Series:
    return pl.Series(column).cast(pl.String)
