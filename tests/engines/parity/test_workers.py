"""What runs on the workers, without Spark: ranges of any length give the clusters of the whole."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from microveil.core.clusters import cluster_sizes, summarise
from microveil.core.grid import Integers
from microveil.engines.spark.arrow import longs, unpack
from microveil.engines.spark.workers import (
    Cut,
    join_pieces,
    numbers_of,
    pieces_of_clusters,
    rank,
    whole_clusters,
)


@given(
    values=st.lists(st.integers(-5, 5) | st.integers(-(2**60), 2**60), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    k=st.integers(1, 70),
    trim=st.sampled_from([0.0, 0.1, 0.25, 0.45]),
)
def test_ranges_are_cut_and_joined_into_the_clusters_of_the_whole(
    values: list[int], cuts: list[int], k: int, trim: float
) -> None:
    k = min(k, len(values))
    units = np.sort(np.array(values))
    keys = np.random.default_rng(0).permutation(len(units))
    bounds = [0, *sorted(min(cut, len(units)) for cut in cuts), len(units)]
    ranked = [
        batch
        for part, (start, end) in enumerate(pairwise(bounds))
        for batch in rank([shuffled(units[start:end], keys[start:end], part)])
    ]
    cut = Cut(np.array(bounds[:-1]), k, len(units) // k - 1, trim)
    found = [*whole_clusters(ranked, cut), *join_pieces(pieces_of_clusters(ranked, cut), trim)]
    table = pa.Table.from_batches(found).sort_by("cluster").combine_chunks().to_batches()[0]
    sizes = cluster_sizes(len(units), k)
    expected = summarise(units, sizes, trim)
    assert longs(table["cluster"]).tolist() == list(range(len(sizes)))
    summary = numbers_of(table, trim)
    for field, values_there in vars(expected).items():
        assert getattr(summary, field).tolist() == values_there.tolist()
    assert longs(table["before"])[1:].tolist() == expected.largest[:-1].tolist()
    assert longs(table["after"])[:-1].tolist() == expected.smallest[1:].tolist()
    members, size = unpack(table["members"])
    assert size.tolist() == sizes.tolist()
    assert np.sort(members).tolist() == list(range(len(units)))


def shuffled(units: Integers, keys: Integers, part: int) -> pa.RecordBatch:
    order = np.random.default_rng(part).permutation(len(units))
    parts = np.full(len(units), part, dtype=np.int32)
    columns = {"units": units[order], "key": keys[order], "tie": keys[order], "part": parts}
    return pa.record_batch({name: pa.array(column) for name, column in columns.items()})
