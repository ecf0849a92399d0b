"""Whole strata on one worker each: what looks at all records of a unit or a stratum together.

The worker opens them as a table in memory, whose engine masks and pools them: there is one way to
mask by unit, and within strata.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from microveil.core.attribute import AttributeSettings, NumericSettings
from microveil.core.pooling import Pool
from microveil.core.random_words import open_words
from microveil.engines.base import Pooled, Preparation
from microveil.engines.local import LocalEngine, LocalTable
from microveil.engines.memory import memory_table
from microveil.engines.spark import join, workers
from microveil.engines.spark.arrow import (
    AT_ONCE,
    Batches,
    batch_of,
    fields,
    gathered,
    in_groups,
    longs,
    reals,
)
from microveil.engines.spark.failures import packed
from microveil.engines.spark.joint_clusters import pooled_schema
from microveil.errors import DataError
from microveil.types import Integers

DEALT_STRATA = pa.schema(fields(pa.int32(), "part") + fields(pa.binary(), "records"))
"""Some records of some strata, which are one worker's part, as Arrow."""

MASKED_STRATA = pa.schema(
    [
        *join.DEALT_COLUMNS,
        *fields(pa.int32(), "part"),
        *fields(pa.int64(), "clusters", "counted", "records"),
        *fields(pa.float64(), "fixed", "again"),
        *fields(pa.binary(), "about"),
        *fields(pa.string(), "problem"),
    ]
)
"""Masked values, dealt to their records, and in a row without any what is said of a part.

`counted` are the values that were masked, one for each unit where there is one; `records` those
that have one. `about` describes the clusters, as Arrow.
"""

_RECORDS_AT_ONCE = 2**20


class Sheet(NamedTuple):
    """How the records of some strata become a table in memory.

    `records` is the schema in which they are dealt, `names` has by columns their names in the plan.
    """

    records: pa.Schema
    names: dict[str, str]
    preparation: Preparation


class _Opened(NamedTuple):
    """The records of a part, in the order of their keys, and the table that they are."""

    part: int
    records: pa.RecordBatch
    table: LocalTable


def deal_strata(batches: Batches, schema: pa.Schema, part_of: Integers) -> Iterator[pa.RecordBatch]:
    """Deal whole records into parts, given that of each stratum."""
    for batch in (found.cast(schema) for found in gathered(batches, AT_ONCE)):
        order, sizes = in_groups(part_of[longs(batch["stratum"])], int(part_of[-1]) + 1)
        records = join.cut_records(batch, order, sizes)
        dealt = batch_of(DEALT_STRATA, part=np.arange(len(sizes)), records=records)
        yield dealt.filter(pa.array(sizes > 0))


def errors_of_strata(
    batches: Batches, sheet: Sheet, settings: NumericSettings, ks: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Return the expected squared error of a part, for every k."""
    opened = _open(batches, sheet)
    if opened is not None and opened.table.present(settings.name).any():
        errors = opened.table.expected_errors(settings, ks)
        yield batch_of(workers.ERRORS, errors=[errors])


def mask_part(
    batches: Batches,
    sheet: Sheet,
    settings: AttributeSettings,
    column: str,
    buckets: int,
    seed: int | None,
) -> Iterator[pa.RecordBatch]:
    """Mask an attribute in the strata of a part."""
    opened = _open(batches, sheet)
    if opened is None or not opened.table.present(settings.name).any():
        return
    engine = opened.table.engine()
    try:
        losses = engine.mask(settings, _own_seed(seed, opened.part))
    except DataError as error:
        yield batch_of(MASKED_STRATA, problem=[packed(error)])
        return
    about = pl.DataFrame(engine.clusters([settings.name])).select(workers.OF_ATTRIBUTE.names)
    values = engine.masked(settings)
    there = ~np.isnan(values)
    yield batch_of(
        MASKED_STRATA,
        part=[opened.part],
        clusters=[len(about)],
        counted=[int(opened.table.present(settings.name).sum())],
        records=[int(there.sum())],
        fixed=losses["fixed_clusters"],
        again=losses["re_clustered"],
        about=[about.write_ipc_stream(None).getvalue()],
    )
    keys, values = longs(opened.records["key"])[there], values[there]
    for start in range(0, len(keys), _RECORDS_AT_ONCE):
        some = slice(start, start + _RECORDS_AT_ONCE)
        dealt = join.deal_column(keys[some], values[some], column, buckets)
        found = dict(zip(dealt.schema.names, dealt.columns, strict=True))
        yield batch_of(MASKED_STRATA, **found)


def describe_part(batches: Batches, first: dict[int, int]) -> Iterator[pa.RecordBatch]:
    """Return the private description of clusters, given the number of the first of each part."""
    for batch in batches:
        for part, about in zip(batch["part"].to_pylist(), batch["about"].to_pylist(), strict=True):
            rows = pl.read_ipc_stream(about)
            rows = rows.with_columns(pl.col("cluster") + first[part])
            table = rows.to_arrow().cast(workers.OF_ATTRIBUTE).combine_chunks()
            yield from table.to_batches()


def pool_part(
    batches: Batches, sheet: Sheet, pool: Pool, seed: int | None
) -> Iterator[pa.RecordBatch]:
    """Pool the masked values of a part's strata: `m0`, `m1`, … in the order of the attributes."""
    opened = _open(batches, sheet)
    if opened is None:
        return
    schema = pooled_schema(len(pool.attributes), len(pool.levels))
    pool, engine = _pool_of_part(pool, opened.table), opened.table.engine()
    for number, attribute in enumerate(pool.attributes):
        engine.take(attribute, reals(opened.records[f"m{number}"].fill_null(np.nan)))
    try:
        pooled = engine.pool(pool, _own_seed(seed, opened.part))
    except DataError as error:
        yield batch_of(schema, problem=[packed(error)])
        return
    found = _pooled(opened, pool, engine, pooled)
    for start in range(0, len(found["key"]), _RECORDS_AT_ONCE):
        some = {name: values[start : start + _RECORDS_AT_ONCE] for name, values in found.items()}
        yield batch_of(schema, **some)


def _pooled(
    opened: _Opened, pool: Pool, engine: LocalEngine, pooled: Pooled
) -> dict[str, pa.Array]:
    records = len(opened.records)
    return {
        "key": opened.records["key"],
        "block": pa.array(np.full(records, opened.part)),
        "parts": pa.array(np.append(pooled.parts, np.zeros(records - 1)).astype(np.int32)),
        "related": pa.array(np.full(records, pooled.related)),
        **{
            f"m{number}": pa.array(engine.masked(attribute), from_pandas=True)
            for number, attribute in enumerate(pool.attributes)
        },
        **{f"joint{n}": pa.array(label) for n, label in enumerate(pooled.joint.values())},
    }


def _pool_of_part(pool: Pool, table: LocalTable) -> Pool:
    """Return a pool of which the attributes count their values in these strata."""
    own = {a.name: replace(a, records=int(table.present(a.name).sum())) for a in pool.attributes}
    return replace(pool, attributes=tuple(own.values()))


def _open(batches: Batches, sheet: Sheet) -> _Opened | None:
    dealt = [batch for batch in batches if batch.num_rows]
    if not dealt:
        return None
    records = join.whole_records((batch["records"] for batch in dealt), sheet.records)
    columns = {name: records[column] for column, name in sheet.names.items()}
    table = memory_table(pl.DataFrame(pa.table(columns))).prepared(sheet.preparation)
    return _Opened(dealt[0]["part"][0].as_py(), records, table)


def _own_seed(seed: int | None, part: int) -> int | None:
    """Return a seed for each part; of the first it is that of all."""
    if seed is None or part == 0:
        return seed
    return int(open_words(seed, f"part {part}").words(1)[0] >> np.uint64(1))
