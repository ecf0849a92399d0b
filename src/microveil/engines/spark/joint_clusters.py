"""What pools masked values on Spark's workers: blocks of neighbours, joint clusters within each.

A record comes as its key, its values `u0`, `u1`, … in grid steps or codes, its masked values `m0`,
`m1`, …, both in the order of the pool's attributes and null where there is none, and what it has in
kept columns, `x0`, `x1`, …: numbers, or fingerprints of categories.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.blocks import BlockTree
from microveil.core.joint import Scaling, cluster_points, placed_by
from microveil.core.pooling import (
    JointClusters,
    Pool,
    average,
    collect_clusters,
    holds_the_same,
)
from microveil.core.random_words import WordSource, open_words
from microveil.core.related_exchange import ReadRows, RelatedExchange
from microveil.core.relation_model import RowValues, masked_in_rows, numbers_in_rows
from microveil.engines.refusals import pooled_wrongly
from microveil.engines.spark.arrow import (
    AT_ONCE,
    Batches,
    batch_of,
    fields,
    gathered,
    in_groups,
    longs,
    pack,
    unpack_all,
)
from microveil.engines.spark.failures import packed
from microveil.errors import DataError
from microveil.types import Integers, Reals


def masked_columns(attributes: int) -> list[str]:
    """Name the columns of masked values."""
    return [f"m{number}" for number in range(attributes)]


COUNTED = pa.schema(fields(pa.int32(), "block") + fields(pa.int64(), "records"))

DEALT_BLOCKS = pa.schema(fields(pa.int32(), "block") + fields(pa.binary(), "keys", "values"))
"""Some records of a block: their keys, and all else of one after another, packed."""


def pooled_schema(attributes: int, levels: int = 1) -> pa.Schema:
    """Return a record with its pooled values and its joint clusters, numbered within its block.

    There is one for each level of the pool. `parts`, of the first record of a block, says in how
    many parts it was clustered, and `related` whether its values were exchanged by a model.
    """
    joint = [f"joint{number}" for number in range(levels)]
    return pa.schema(
        fields(pa.int64(), "key")
        + fields(pa.float64(), *masked_columns(attributes))
        + fields(pa.int32(), "block", "parts")
        + fields(pa.bool_(), "related")
        + fields(pa.int64(), *joint)
        + fields(pa.string(), "problem")
    )


def placed_by_columns(pool: Pool) -> list[str]:
    """Name the columns that decide who are neighbours: masked values, or those in grid steps."""
    kind = "m" if pool.follows_masked_values else "u"
    return [f"{kind}{number}" for number in range(len(pool.attributes))]


class PoolSpace(NamedTuple):
    """The space in which the records of a pool are neighbours.

    `numbers` says which kept columns hold numbers, and not fingerprints of categories.
    """

    pool: Pool
    scalings: tuple[Scaling, ...]
    numbers: tuple[bool, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns of a record."""
        each = range(len(self.pool.attributes))
        kept = (f"x{number}" for number in range(len(self.numbers)))
        return [*(f"u{number}" for number in each), *masked_columns(len(each)), *kept]

    def points(self, records: pa.RecordBatch) -> Reals:
        """Place records."""
        names, columns = placed_by_columns(self.pool), []
        each = zip(names, self.pool.attributes, self.scalings, strict=True)
        for name, attribute, scaling in each:
            values, present = _values(records, name)
            columns.append(placed_by(values[present], attribute, present, scaling))
        return np.hstack(columns)


def count_blocks(batches: Batches, space: PoolSpace, tree: BlockTree) -> Iterator[pa.RecordBatch]:
    """Count the records of each block."""
    for batch in gathered(batches, AT_ONCE):
        counts = np.bincount(_leaf_of(batch, space, tree))
        some = np.flatnonzero(counts)
        yield batch_of(COUNTED, block=some, records=counts[some])


def deal_blocks(
    batches: Batches, space: PoolSpace, tree: BlockTree, label: Integers
) -> Iterator[pa.RecordBatch]:
    """Deal records into blocks."""
    names = space.columns
    for batch in gathered(batches, AT_ONCE):
        order, sizes = in_groups(label[_leaf_of(batch, space, tree)], int(label.max()) + 1)
        values = np.column_stack([_with_nan(batch, name) for name in names])[order]
        dealt = batch_of(
            DEALT_BLOCKS,
            block=np.arange(len(sizes)),
            keys=pack(longs(batch["key"])[order], sizes),
            values=pack(values.ravel(), sizes * len(names)),
        )
        yield dealt.filter(pa.array(sizes > 0))


def _leaf_of(records: pa.RecordBatch, space: PoolSpace, tree: BlockTree) -> Integers:
    keys = longs(records["key"]).view(np.uint64)  # random, and their leading bits used
    chance = (keys & np.uint64(2**32 - 1)).astype(np.float64) / 2**32
    return tree.leaf_of(space.points(records), chance)


def pool_block(batches: Batches, space: PoolSpace, seed: int | None) -> Iterator[pa.RecordBatch]:
    """Pool the masked values of one block's records, which all arrive here."""
    dealt = [batch for batch in batches if batch.num_rows]
    if not dealt:
        return
    names, keys = space.columns, unpack_all(dealt, "keys")
    order = np.argsort(keys)
    values = unpack_all(dealt, "values").view(np.float64).reshape(len(keys), len(names))[order]
    columns = {name: pa.array(values[:, at], from_pandas=True) for at, name in enumerate(names)}
    records = pa.record_batch({"key": keys[order], **columns})
    try:
        yield _pooled(records, dealt[0]["block"][0].as_py(), space, seed)
    except DataError as error:
        schema = pooled_schema(len(space.pool.attributes))
        yield batch_of(schema, problem=[packed(error)])


def _pooled(
    records: pa.RecordBatch, block: int, space: PoolSpace, seed: int | None
) -> pa.RecordBatch:
    pool = space.pool
    name = f"{', '.join(pool.names)}, block {block}"
    label, parts = cluster_points(
        space.points(records), pool.anonymity, open_words(seed, f"joint {name}")
    )
    clusters = collect_clusters(label)
    if clusters.smallest < pool.anonymity:
        raise pooled_wrongly(pool.names, f"a joint cluster has {clusters.smallest} records")
    words = open_words(seed, f"pooling {name}")
    if pool.pooling == "average":
        pooled, related = _averaged(records, pool, clusters, words), False
    else:
        pooled, related = _exchanged(records, space, clusters, words)
    return batch_of(
        pooled_schema(len(pool.attributes)),
        key=records["key"],
        block=np.full(len(label), block),
        joint0=label,
        parts=np.append(parts, np.zeros(len(label) - 1)).astype(np.int32),
        related=np.full(len(label), related),
        **{name: pa.array(values, from_pandas=True) for name, values in pooled.items()},
    )


def _exchanged(
    records: pa.RecordBatch, space: PoolSpace, clusters: JointClusters, words: WordSource
) -> tuple[dict[str, Reals], bool]:
    """Exchange the values of a block, and say whether by a model of it or independently."""
    pool, pooled = space.pool, {}
    kept = [partial(_kept, records, f"x{at}", numbers=one) for at, one in enumerate(space.numbers)]
    exchanged: list[ReadRows] = [
        partial(_masked, records, f"m{at}", attribute)
        for at, attribute in enumerate(pool.attributes)
    ]
    related = RelatedExchange.fit(clusters, kept, exchanged, pool.block, words)
    for number, giver in related.draw(kept, exchanged, words):
        before = _with_nan(records, f"m{number}")
        pooled[f"m{number}"] = before[giver]
        if not holds_the_same(before, pooled[f"m{number}"], clusters):
            attribute = pool.attributes[number].name
            raise pooled_wrongly([attribute], "a masked value left its joint cluster")
    return pooled, related.related


def _kept(records: pa.RecordBatch, name: str, *, numbers: bool) -> RowValues:
    values = _with_nan(records, name)
    if numbers:
        return numbers_in_rows(values)
    return RowValues(None, np.unique(values, return_inverse=True)[1])


def _masked(records: pa.RecordBatch, name: str, attribute: AttributeSettings) -> RowValues:
    return masked_in_rows(attribute, _with_nan(records, name))


def _averaged(
    records: pa.RecordBatch, pool: Pool, clusters: JointClusters, words: WordSource
) -> dict[str, Reals]:
    pooled = {}
    for number, attribute in enumerate(pool.attributes):
        name = f"m{number}"
        values, present = _values(records, name)
        categories = isinstance(attribute, CategorySettings)
        values = values.astype(np.int64) if categories else values
        means = average(attribute, values, clusters, present, words)
        means = np.where(means < 0, np.nan, means) if categories else means
        pooled[name] = clusters.spread(means)
    return pooled


def _values(records: pa.RecordBatch, name: str) -> tuple[Reals, NDArray[Any]]:
    """Return a column, 0 where there is none, and where there is one."""
    values = _with_nan(records, name)
    present = ~np.isnan(values)
    return np.where(present, values, 0.0), present


def _with_nan(records: pa.RecordBatch, name: str) -> Reals:
    return np.asarray(records[name].to_numpy(zero_copy_only=False), dtype=np.float64).copy()
