"""What runs on Spark's workers: Arrow batches in, Arrow batches out, NumPy in between.

Nothing here imports PySpark. Ranked records arrive as one table per range of ranks; clusters that
lie across two ranges are put together in `mend`. Errors leave a worker as a row with a `problem`,
since an exception would be wrapped in Spark's own, with a trace that may show data.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from microveil.accounting import Totals, held_losses, passing_losses, totals_of
from microveil.clusters import (
    NOTHING_AFTER,
    NOTHING_BEFORE,
    ClusterSummary,
    PartialSummary,
    singletons,
    summarise,
)
from microveil.engines.memory import MemoryEngine
from microveil.errors import DataError
from microveil.grid import Integers, Reals, observed_decimals
from microveil.mechanism import calibrate, describe, mask
from microveil.noise import open_words
from microveil.roles import Derived
from microveil.settle import Masking

Batches = Iterable[pa.RecordBatch]
Work = Callable[[pa.RecordBatch], pa.RecordBatch]

PLACE_BITS = 33
"""Bits of Spark's `monotonically_increasing_id` that count records within a partition."""

_SUMMARY = (
    "size", "total", "smallest", "second_smallest", "third_smallest", "largest", "second_largest",
    "third_largest",
)  # fmt: skip
_LONGS = pa.list_(pa.int64())

_BESIDE = ("before", "after")


def _fields(kind: pa.DataType, *names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for name in names]


CLUSTERS = pa.schema(
    _fields(pa.int64(), "cluster", *_SUMMARY, *_BESIDE) + _fields(_LONGS, "members", "units")
)
"""A cluster with its records' keys. `units` is null but in pieces that are still to be mended."""

DESCRIBED = pa.schema(
    _fields(pa.int64(), "cluster", "records")
    + _fields(pa.float64(), "smallest", "largest", "centroid", "sensitivity", "scale")
)
MASKED = pa.schema(
    [
        *DESCRIBED,
        *pa.schema(_fields(pa.float64(), "held", "up", "down", "masked")),
        pa.field("members", _LONGS),
        pa.field("problem", pa.string()),
    ]
)
"""A cluster with what is published of it, what it may lose, and its records' keys."""

MASKED_RECORDS = pa.schema(
    [
        ("key", pa.int64()),
        ("masked", pa.float64()),
        ("held", pa.float64()),
        ("problem", pa.string()),
    ]
)
TOTALS = pa.schema([("records", pa.int64()), *_fields(pa.float64(), "up", "down")])


def decimals_seen(batches: Batches, single: list[bool]) -> Iterator[pa.RecordBatch]:
    """Count the decimals of each column, batch by batch."""
    for batch in batches:
        seen = [
            observed_decimals(_reals(column.drop_null()), single_precision=is_single)
            for column, is_single in zip(batch.columns, single, strict=True)
        ]
        yield pa.record_batch([pa.array([n], pa.int32()) for n in seen], batch.schema.names)


def cut_clusters(
    batches: Batches, offsets: Integers, k: int, last: int
) -> Iterator[pa.RecordBatch]:
    """Cut one range of ranked records into clusters of k; the remainder joins the last.

    The first and the last cluster of a range may go on in another one, and do not know what stands
    beside them there. They leave as pieces with their values, and each end of the range leaves a
    word for the cluster that may begin or end there.
    """
    table = _together(batches)
    if table is None:
        return
    units, keys, place = (_longs(table[name]) for name in ("units", "key", "place"))
    rank = offsets[place >> PLACE_BITS] + (place & (2**PLACE_BITS - 1))
    cluster = np.minimum(rank // k, last)
    start = np.flatnonzero(np.diff(cluster, prepend=-1))
    end = np.append(start[1:], len(units))
    if len(start) > 2:
        inner, sizes = slice(start[1], end[-2]), (end - start)[1:-1]
        yield _clusters(
            cluster[start[1:-1]],
            summarise(units[inner], sizes),
            before=units[start[1:-1] - 1],
            after=units[end[1:-1]],
            members=_lists(keys[inner], sizes),
        )
    first, final, several = cluster[0], cluster[-1], len(start) > 1
    loose = [(first - 1, NOTHING_BEFORE, units[0], 0, 0)]
    loose += [(first, NOTHING_BEFORE, units[end[0]] if several else NOTHING_AFTER, 0, end[0])]
    if several:
        loose += [(final, units[start[-1] - 1], NOTHING_AFTER, start[-1], end[-1])]
    loose += [(final + 1, units[-1], NOTHING_AFTER, end[-1], end[-1])]
    number, before, after, begins, ends = np.array(loose, dtype=np.int64).T
    here = np.concatenate([np.arange(*bounds) for bounds in zip(begins, ends, strict=True)])
    yield _clusters(
        number,
        singletons(np.zeros_like(number)),
        before,
        after,
        _lists(keys[here], ends - begins),
        _lists(units[here], ends - begins),
    )


def mend(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Put clusters together whose pieces, and words about their neighbours, all arrive here."""
    table = _together(batches)
    if table is None:
        return
    owner, before, after = (_longs(table[name]) for name in ("cluster", *_BESIDE))
    units, keys = (_longs(table[name].combine_chunks().flatten()) for name in ("units", "members"))
    cluster = np.repeat(owner, _longs(table["units"].combine_chunks().value_lengths()))
    if not len(cluster):
        return
    order = np.lexsort((units, cluster))
    found, size = np.unique(cluster, return_counts=True)
    at, known = np.searchsorted(found, owner), np.isin(owner, found)
    ahead, behind = np.full(len(found), NOTHING_BEFORE), np.full(len(found), NOTHING_AFTER)
    np.maximum.at(ahead, at[known], before[known])
    np.minimum.at(behind, at[known], after[known])
    yield _clusters(found, summarise(units[order], size), ahead, behind, _lists(keys[order], size))


def sum_totals(batches: Batches, masking: Masking) -> Iterator[pa.RecordBatch]:
    """Add up, batch by batch, what the noise of each cluster depends on in all others."""
    for batch in batches:
        if batch.num_rows:
            totals = totals_of(masking.method, _summary(batch), masking.domain_units)
            yield _batch(TOTALS, records=[totals.records], up=[totals.up], down=[totals.down])


def mask_clusters(
    clusters: pa.RecordBatch, masking: Masking, totals: Totals | None, seed: int | None
) -> pa.RecordBatch:
    """Mask the centroids of some clusters with this machine's randomness, or a seed's."""
    clusters = clusters.sort_by("cluster") if seed is not None else clusters
    summary, number = _summary(clusters), _longs(clusters["cluster"])
    words = open_words(seed, f"attribute {masking.name}, clusters from {number[0]}")
    try:
        scales = calibrate(summary, masking, totals)
    except DataError as error:
        return _batch(MASKED, problem=[str(error)])
    case = masking.method, summary, masking.domain_units, scales
    up, down = passing_losses(*case)
    described = describe(summary, masking, scales).drop("attribute", "cluster")
    return _batch(
        MASKED,
        **{name: described[name].to_numpy() for name in described.columns},
        cluster=number,
        held=held_losses(*case),
        up=up,
        down=down,
        masked=mask(summary, scales, masking, words),
        members=clusters["members"],
    )


def mask_records(records: pa.RecordBatch, masking: Masking, seed: int | None) -> pa.RecordBatch:
    """Mask some records, each by itself, with this machine's randomness, or a seed's."""
    records = records.sort_by("key") if seed is not None else records
    summary, keys = singletons(_longs(records["units"])), _longs(records["key"])
    words = open_words(seed, f"attribute {masking.name}, records from {keys[0]}")
    try:
        scales = calibrate(summary, masking)
    except DataError as error:
        return _batch(MASKED_RECORDS, problem=[str(error)])
    held = held_losses(masking.method, summary, masking.domain_units, scales)
    return _batch(MASKED_RECORDS, key=keys, masked=mask(summary, scales, masking, words), held=held)


def each_batch(batches: Batches, work: Work) -> Iterator[pa.RecordBatch]:
    """Do the work on every batch that is not empty."""
    return (work(batch) for batch in batches if batch.num_rows)


def on_groups(work: Work) -> Callable[[pa.Table], pa.Table]:
    """Make a function that does the work on a whole group of rows at once."""

    def on_group(group: pa.Table) -> pa.Table:
        return pa.Table.from_batches([work(group.combine_chunks().to_batches()[0])])

    return on_group


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
            problems = [str(error)] * len(batch)
            break
        problems[:undefined] = [column] * undefined
    return _batch(batch.schema, **{**columns, "problem": problems})


def _derived(inputs: pa.Table, name: str, derived: Derived) -> tuple[pa.Array, int]:
    """Return a derived column, and how many records have no finite result."""
    whole, undefined = _by_memory(inputs, name, derived)
    half = len(inputs) // 2
    if half:
        parts = [_by_memory(part, name, derived)[0] for part in (inputs[:half], inputs[half:])]
        if not pl.Series(whole).equals(pl.Series(pa.concat_arrays(parts))):
            raise DataError(
                f"attribute {name!r}: its expression depends on other records, and on Spark it is "
                "computed record by record; change it, or protect the table in memory"
            )
    return whole, undefined


def _by_memory(inputs: pa.Table, name: str, derived: Derived) -> tuple[pa.Array, int]:
    engine = MemoryEngine(inputs)
    undefined = engine.derive(name, derived)
    return engine.finish([name])[name].combine_chunks(), undefined


def _together(batches: Batches) -> pa.Table | None:
    filled = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(filled).combine_chunks() if filled else None


def _clusters(
    number: Integers,
    summary: ClusterSummary,
    before: Integers,
    after: Integers,
    members: pa.ListArray,
    units: pa.ListArray | None = None,
) -> pa.RecordBatch:
    summaries = {name: getattr(summary, name) for name in _SUMMARY}
    pieces = {} if units is None else {"units": units}
    return _batch(
        CLUSTERS, cluster=number, before=before, after=after, members=members, **summaries, **pieces
    )


def _batch(schema: pa.Schema, **columns: Any) -> pa.RecordBatch:  # noqa: ANN401
    """Make a batch of this schema; columns that are not given are null."""
    rows = len(next(iter(columns.values())))
    filled = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(filled, schema=schema)


def _summary(clusters: pa.RecordBatch) -> PartialSummary:
    return PartialSummary(*(_longs(clusters[name]) for name in (*_SUMMARY, *_BESIDE)))


def _lists(values: Integers, sizes: Integers) -> pa.ListArray:
    ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values))


def _longs(column: pa.Array | pa.ChunkedArray) -> Integers:
    return np.asarray(column, dtype=np.int64)


def _reals(column: pa.Array | pa.ChunkedArray) -> Reals:
    return np.asarray(column, dtype=np.float64)
