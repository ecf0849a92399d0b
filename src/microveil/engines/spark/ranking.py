"""What ranks records on Spark's workers: dealt into ranges of ranks, each sorted where it arrives.

Records travel packed, some hundred thousand to a row: Spark moves bytes far faster than rows.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from microveil.core import partition
from microveil.core.attribute import NumericSettings
from microveil.engines.spark.arrow import (
    AT_ONCE,
    Batches,
    batch_of,
    fields,
    gathered,
    in_groups,
    longs,
    pack,
    together,
    unpack_all,
)
from microveil.types import Integers

DEALT_RANGES = pa.schema(fields(pa.int32(), "part") + fields(pa.binary(), "steps", "keys"))
"""Some records of a range of ranks: their values and keys, packed."""

RANKED = pa.schema(
    fields(pa.int32(), "part")
    + fields(pa.int64(), "records")
    + fields(pa.binary(), "steps", "keys", "end_steps", "end_keys", "sizes")
)
"""A range of ranks: its records' values and keys, ascending and packed.

`end_steps` and `end_keys` are those of its first and last records, as many of each.

`sizes` are those of its clusters where the data decide on them; null where there are too few values
for one.
"""


BOUNDS = pa.schema(fields(pa.binary(), "steps", "keys"))
"""The values and keys at which ranges of ranks begin, packed."""


class Bounds(NamedTuple):
    """Where one range of ranks ends and the next begins.

    Records of equal value are told apart by ties, which follow from their keys by a secret one, so
    many equal values do not end up on one worker.
    """

    steps: Integers
    keys: Integers
    secret: int

    def ties(self, keys: Integers) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        """Return what decides between records of equal value: random, and not the keys' order."""
        from microveil.core.kernels.keys import hashed

        found = hashed(keys.view(np.uint64), np.int64(self.secret).view(np.uint64))
        return found ^ np.uint64(2**63)  # in the order of signed numbers, as Spark has them

    def parts(self, steps: Integers, keys: Integers) -> Integers:
        """Return the range of each record."""
        from microveil.core.kernels.keys import ranges_of

        found = np.empty(len(steps), np.min_scalar_type(len(self.steps)))
        ranges_of(steps, self.ties(keys), self.steps, self.ties(self.keys), found)
        return found


def bounds_of(batches: Batches, ranges: int, secret: int) -> Iterator[pa.RecordBatch]:
    """Cut a sample of records, which all arrive here, into ranges of equal length."""
    sample = together(batches)
    if sample is not None:
        steps, keys = longs(sample["steps"]), longs(sample["key"])
        order = np.lexsort((Bounds(steps, keys, secret).ties(keys), steps))
        at = order[len(order) * np.arange(1, ranges) // ranges]
        one = np.array([len(at)])
        yield batch_of(BOUNDS, steps=pack(steps[at], one), keys=pack(keys[at], one))


def deal_ranges(batches: Batches, bounds: Bounds) -> Iterator[pa.RecordBatch]:
    """Deal values and keys of records into ranges of ranks."""
    number = len(bounds.steps) + 1
    for batch in gathered(batches, AT_ONCE):
        steps, keys = longs(batch["steps"]), longs(batch["key"])
        order, sizes = in_groups(bounds.parts(steps, keys), number)
        dealt = batch_of(
            DEALT_RANGES,
            part=np.arange(number),
            steps=pack(steps[order], sizes),
            keys=pack(keys[order], sizes),
        )
        yield dealt.filter(pa.array(sizes > 0))


def rank_range(
    batches: Batches, bounds: Bounds, ends: int, to_cut: NumericSettings | None = None
) -> Iterator[pa.RecordBatch]:
    """Sort the records of one range by value, equal ones by their random tie; cut it if asked.

    So many records of each end are given once more, so that they can be read without the others.
    """
    dealt = [batch for batch in batches if batch.num_rows]
    if not dealt:
        return
    steps, keys = (unpack_all(dealt, name) for name in ("steps", "keys"))
    steps, keys = _sorted(steps, keys, bounds)
    one = np.array([len(steps)])
    sizes = {}
    if to_cut is not None and len(steps) >= to_cut.k:
        cuts = partition.cut(steps, to_cut)
        sizes = {"sizes": pack(cuts, np.array([len(cuts)]))}
    at = np.arange(len(steps))
    at = at if len(at) <= 2 * ends else np.append(at[:ends], at[-ends:])
    few = np.array([len(at)])
    yield batch_of(
        RANKED,
        part=dealt[0]["part"][:1],
        records=one,
        steps=pack(steps, one),
        keys=pack(keys, one),
        end_steps=pack(steps[at], few),
        end_keys=pack(keys[at], few),
        **sizes,
    )


def _sorted(steps: Integers, keys: Integers, bounds: Bounds) -> tuple[Integers, Integers]:
    from microveil.core.kernels.keys import order_of_random
    from microveil.core.kernels.sorting import sort_steps as ranked

    at_random = order_of_random(bounds.ties(keys))
    keys, order = keys[at_random], np.empty(len(keys), np.int32)
    ascending = ranked(steps[at_random], order, np.empty_like(order))
    return ascending, keys[order]
