"""What brings masked values back to their records, on Spark's workers.

Records and masked values are dealt into buckets by the leading bits of their keys, packed, moved
there in one shuffle, and put together in the order of their keys.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from microveil.core.attribute import Category
from microveil.core.linear_rules import System
from microveil.engines.memory import memory_table
from microveil.engines.spark.arrow import (
    AT_ONCE,
    Batches,
    batch_of,
    gathered,
    in_groups,
    longs,
    pack,
    reals,
    unpack,
    unpack_all,
)
from microveil.engines.spark.failures import packed
from microveil.engines.spark.rule_tasks import keep_rules_of_batch
from microveil.engines.spark.workers import unpacked_clusters
from microveil.errors import DataError
from microveil.plan.roles import Derived
from microveil.types import Integers, Reals

DEALT_COLUMNS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("column", pa.string()),
        pa.field("keys", pa.binary()),
        pa.field("values", pa.binary()),
    ]
)
"""Keys of some records of a bucket and their values in one column, or in all columns as Arrow."""

WHOLE_RECORDS = ""
"""The name under which whole records are dealt."""


def deal_values(batches: Batches, places: dict[str, str], buckets: int) -> Iterator[pa.RecordBatch]:
    """Deal (key, masked value) of records; `places` says which columns they are for."""
    for batch in gathered(batches, AT_ONCE):
        for name, column in places.items():
            some = batch.filter(batch[name].is_valid()) if batch[name].null_count else batch
            yield deal_column(longs(some["key"]), reals(some[name]), column, buckets)


def deal_clusters(
    batches: Batches, column: str, buckets: int, values: Callable[[pa.RecordBatch], Reals]
) -> Iterator[pa.RecordBatch]:
    """Deal (key, masked value) of the members of clusters, `values` being those of clusters."""
    for batch in unpacked_clusters(batches):
        keys, sizes = unpack(batch["members"])
        yield deal_column(keys, np.repeat(values(batch), sizes), column, buckets)


def masked_values(batch: pa.RecordBatch) -> Reals:
    """Return the masked values of clusters as they are."""
    return reals(batch["masked"])


def deal_records(batches: Batches, schema: pa.Schema, buckets: int) -> Iterator[pa.RecordBatch]:
    """Deal whole records, of which one column is the key."""
    for batch in (found.cast(schema) for found in gathered(batches, AT_ONCE)):
        keys = longs(batch["key"])
        order, sizes = _by_bucket(keys, buckets)
        yield _dealt(WHOLE_RECORDS, keys[order], sizes, cut_records(batch, order, sizes))


def cut_records(batch: pa.RecordBatch, order: Integers, sizes: Integers) -> pa.BinaryArray:
    """Put records in an order and cut them into pieces of these sizes, each as Arrow."""
    dealt, ends = batch.take(pa.array(order)), np.cumsum(sizes)
    pieces = [
        dealt.slice(end - size, size).serialize().to_pybytes()
        for end, size in zip(ends, sizes, strict=True)
    ]
    return pa.array(pieces, pa.binary())


def whole_records(pieces: Iterable[pa.BinaryArray], schema: pa.Schema) -> pa.RecordBatch:
    """Put pieces of records together again, in the order of their keys."""
    buffers = (one.as_buffer() for piece in pieces for one in piece)
    records = pa.concat_batches([pa.ipc.read_record_batch(b, schema) for b in buffers])
    return records.take(pa.array(_order(longs(records["key"]))))


def deal_column(keys: Integers, values: Reals, column: str, buckets: int) -> pa.RecordBatch:
    """Deal keys of some records and their values in a column."""
    order, sizes = _by_bucket(keys, buckets)
    return _dealt(column, keys[order], sizes, pack(values[order], sizes))


def _by_bucket(keys: Integers, buckets: int) -> tuple[Integers, Integers]:
    bucket = (keys.view(np.uint64) >> np.uint64(32)) * np.uint64(buckets) >> np.uint64(32)
    return in_groups(bucket.astype(np.int64), buckets)


def _dealt(column: str, keys: Integers, sizes: Integers, values: pa.BinaryArray) -> pa.RecordBatch:
    dealt = batch_of(
        DEALT_COLUMNS,
        bucket=np.arange(len(sizes)),
        column=[column] * len(sizes),
        keys=pack(keys, sizes),
        values=values,
    )
    return dealt.filter(pa.array(sizes > 0))


class Assembly(NamedTuple):
    """How the columns of a release come about.

    `records` is the schema of dealt records; `released` that of the release, whose column
    `problem`, there if something is derived, is null where all is well; `masked` are the masked
    columns, with the categories of those whose masked values are numbers of categories; `names` are
    the released columns' names in the plan; `derived` are in the order in which they can be
    computed, once the rules of `systems` are kept.
    """

    records: pa.Schema
    released: pa.Schema
    masked: dict[str, tuple[Category, ...] | None]
    names: dict[str, str]
    derived: dict[str, Derived]
    systems: tuple[System, ...] = ()


def assemble(batches: Batches, assembly: Assembly) -> Iterator[pa.RecordBatch]:
    """Put the records of one bucket together with their masked values, in the order of keys."""
    bucket = _bucket(batches, assembly.records)
    if bucket is None:
        return
    columns = bucket.columns
    for name, categories in assembly.masked.items():
        values = bucket.masked(name)
        columns[name] = _column(values, categories, assembly.released.field(name).type)
    wanted = {
        field.name: columns[field.name] for field in assembly.released if field.name in columns
    }
    released = batch_of(assembly.released, **wanted)
    if assembly.systems:
        released = keep_rules_of_batch(released, assembly.names, assembly.systems)
    yield derive(released, assembly.names, assembly.derived) if assembly.derived else released


def gather(
    batches: Batches, records: pa.Schema, masked: dict[str, str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Put records and masked values of one bucket side by side, each column by its own name."""
    bucket = _bucket(batches, records)
    if bucket is not None:
        values = {
            name: pa.array(bucket.masked(column), from_pandas=True)
            for column, name in masked.items()
        }
        yield batch_of(schema, **bucket.columns, **values)


class _Bucket(NamedTuple):
    """The records of a bucket in the order of their keys, and what was dealt to it besides."""

    columns: dict[str, pa.Array]
    dealt: dict[str, list[pa.RecordBatch]]

    def masked(self, column: str) -> Reals:
        """Return masked values in the order of the records' keys; NaN where a record has none."""
        keys, dealt = longs(self.columns["key"]), self.dealt.get(column, [])
        values = np.full(len(keys), np.nan)
        if dealt:
            owners, found = unpack_all(dealt, "keys"), unpack_all(dealt, "values").view(np.float64)
            order = _order(owners)
            owners, found = owners[order], found[order]
            if np.array_equal(owners, keys):
                return found
            at = np.searchsorted(keys.view(np.uint64), owners.view(np.uint64))
            values[at] = found
        return values


def _bucket(batches: Batches, schema: pa.Schema) -> _Bucket | None:
    dealt: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        for row in range(batch.num_rows):
            one = batch.slice(row, 1)
            dealt.setdefault(one["column"][0].as_py(), []).append(one)
    if WHOLE_RECORDS not in dealt:
        return None
    records = whole_records((one["values"] for one in dealt[WHOLE_RECORDS]), schema)
    return _Bucket(dict(zip(records.schema.names, records.columns, strict=True)), dealt)


def _order(keys: Integers) -> Integers:
    from microveil.core.kernels.keys import order_of_random

    return order_of_random(keys.view(np.uint64))


def _column(values: Reals, categories: tuple[Category, ...] | None, kind: pa.DataType) -> pa.Array:
    """Make a column of masked values of its own type; null where there is none."""
    if categories is not None:
        codes = pa.array(values, from_pandas=True).cast(pa.int64())
        return pa.array([*categories]).take(codes).cast(kind)
    if pa.types.is_temporal(kind):
        whole = pa.array(np.rint(values), from_pandas=True).cast(pa.int64())
        return whole.cast(pa.int32()).cast(kind) if pa.types.is_date32(kind) else whole.cast(kind)
    return pa.array(values, from_pandas=True).cast(kind, safe=False)


def derive(
    batch: pa.RecordBatch, names: dict[str, str], derived: dict[str, Derived]
) -> pa.RecordBatch:
    """Recompute derived attributes by the memory engine.

    `names` are those of the batch's columns in the plan. Records without a finite result are
    counted by as many rows whose problem is the name of the attribute's column.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    problems: list[str | None] = [None] * len(batch)
    for column, attribute in derived.items():
        wanted = {*attribute.inputs, names[column]}
        inputs = pa.table({name: columns[at] for at, name in names.items() if name in wanted})
        try:
            columns[column], undefined = _derived(inputs, names[column], attribute)
        except DataError as error:
            problems = [packed(error)] * len(batch)
            break
        problems[:undefined] = [column] * undefined
    return batch_of(batch.schema, **{**columns, "problem": problems})


def _derived(inputs: pa.Table, name: str, derived: Derived) -> tuple[pa.Array, int]:
    """Return a derived column, and how many records have no finite result."""
    whole, undefined = _by_memory(inputs, name, derived)
    half = len(inputs) // 2
    if half:
        parts = [_by_memory(part, name, derived)[0] for part in (inputs[:half], inputs[half:])]
        if not pl.Series(whole).equals(pl.Series(pa.concat_arrays(parts))):
            raise DataError(
                "its expression depends on other records; on Spark only AVG, SUM, MIN, MAX and "
                "COUNT of a numeric column may do so; change it, or protect the table "
                "in memory",
                attribute=name,
                setting="expression",
            )
    return whole, undefined


def _by_memory(inputs: pa.Table, name: str, derived: Derived) -> tuple[pa.Array, int]:
    engine = memory_table(inputs).engine()
    undefined = engine.derive_one(name, derived)
    return engine.finish([name], {}).data[name].combine_chunks(), undefined
