"""Arrow batches to NumPy arrays and back."""

from collections.abc import Iterable, Iterator, Sized

import numpy as np
import pyarrow as pa

from microveil.types import Integers, Reals

Batches = Iterable[pa.RecordBatch]

AT_ONCE = 2**24
"""Bytes that are dealt at once: with thousands of buckets, each still gets a handful."""


def batch_of(schema: pa.Schema, **columns: Sized | pa.Array) -> pa.RecordBatch:
    """Make a batch of this schema; columns that are not given are null."""
    rows = len(next(iter(columns.values())))
    filled = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(filled, schema=schema)


def fields(kind: pa.DataType, *names: str) -> list[pa.Field]:
    """Name fields of one type."""
    return [pa.field(name, kind) for name in names]


def longs(column: pa.Array) -> Integers:
    """Return a column of whole numbers."""
    return np.asarray(column, dtype=np.int64)


def reals(column: pa.Array) -> Reals:
    """Return a column of doubles."""
    return np.asarray(column, dtype=np.float64)


def pack(values: Integers | Reals, sizes: Integers) -> pa.BinaryArray:
    """Pack numbers of eight bytes, so many to a value: Spark moves bytes far faster than arrays."""
    ends = np.append(0, 8 * np.cumsum(sizes)).astype(np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def unpack(packed: pa.BinaryArray) -> tuple[Integers, Integers]:
    """Return the numbers of all values one after another, and how many each value holds."""
    _, ends, numbers = packed.cast(pa.binary()).buffers()
    at = np.frombuffer(ends, dtype=np.int32)[packed.offset : packed.offset + len(packed) + 1]
    values = np.frombuffer(numbers, dtype=np.uint8)[at[0] : at[-1]].view(np.int64)
    return values, np.diff(at).astype(np.int64) // 8


def unpack_all(batches: Batches, name: str) -> Integers:
    """Return the numbers that a column of some batches holds, one after another."""
    return np.concatenate([unpack(batch[name])[0] for batch in batches])


def in_groups(group: Integers, groups: int) -> tuple[Integers, Integers]:
    """Return the order that puts groups one after another, and how many each has."""
    narrow = group.astype(np.min_scalar_type(groups))  # NumPy sorts 16 bits in two passes
    return np.argsort(narrow, kind="stable"), np.bincount(narrow, minlength=groups)


def together(batches: Batches) -> pa.RecordBatch | None:
    """Put batches together into one; None if there are no rows."""
    return next(gathered(batches), None)


def gathered(batches: Batches, least: float = np.inf) -> Iterator[pa.RecordBatch]:
    """Put batches together until they have so many bytes."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held += [batch] if batch.num_rows else []
        size += batch.nbytes
        if held and size >= least:
            yield pa.concat_batches(held)
            held, size = [], 0
    if held:
        yield pa.concat_batches(held)
