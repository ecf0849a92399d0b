"""What runs on the workers, without Spark: ranges of any length give the clusters of the whole."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from microveil.core.clusters import cluster_sizes, summarise
from microveil.engines.spark.arrow import longs, unpack
from microveil.engines.spark.ranking import Bounds, deal_ranges, rank_range
from microveil.engines.spark.workers import (
    Cut,
    Edges,
    join_pieces,
    numbers_of,
    pieces_of_clusters,
    whole_clusters,
)
from microveil.types import Integers


@given(
    values=st.lists(st.integers(-5, 5) | st.integers(-(2**60), 2**60), min_size=1, max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    k=st.integers(1, 70),
    trim=st.sampled_from([0.0, 0.1, 0.25, 0.45]),
    enough=st.sampled_from([0, 2, 10]),
)
def test_ranges_are_cut_and_joined_into_the_clusters_of_the_whole(
    values: list[int], cuts: list[int], k: int, trim: float, enough: int
) -> None:
    k = min(k, len(values))
    steps = np.sort(np.array(values))
    keys = np.random.default_rng(0).permutation(len(steps))
    ranked = ranked_in_ranges(
        steps, keys, np.minimum(np.array(cuts, dtype=np.int64), len(steps) - 1), 2 * k + enough
    )
    lengths = np.zeros(len(cuts) + 1, dtype=np.int64)
    for one in ranked:
        lengths[one["part"][0].as_py()] = one["records"][0].as_py()
    ends = {one["part"][0].as_py(): unpack(one["end_steps"])[0] for one in ranked}
    counts = [len(ends.get(part, ())) for part in range(len(lengths))]
    together = np.concatenate([ends[part] for part in sorted(ends)])
    edges = Edges(together, np.append(0, np.cumsum(counts)), enough)
    cut = Cut(np.cumsum(lengths) - lengths, k, len(steps) // k - 1, trim, edges)
    found = [*whole_clusters(ranked, cut), *join_pieces(pieces_of_clusters(ranked, cut), cut)]
    table = pa.Table.from_batches(found).sort_by("cluster").combine_chunks().to_batches()[0]
    sizes = cluster_sizes(len(steps), k)
    expected = summarise(steps, sizes, trim)
    assert longs(table["cluster"]).tolist() == list(range(len(sizes)))
    summary = numbers_of(table, trim)
    few = expected.persons < enough
    assert np.array_equal(summary.persons < enough, few)
    for field in ("persons", "nearest"):
        assert getattr(summary, field)[few].tolist() == getattr(expected, field)[few].tolist()
    for field, values_there in vars(expected).items():
        if field in ("persons", "nearest"):
            continue
        assert getattr(summary, field).tolist() == values_there.tolist()
    assert longs(table["before"])[1:].tolist() == expected.largest[:-1].tolist()
    assert longs(table["after"])[:-1].tolist() == expected.smallest[1:].tolist()
    members, size = unpack(table["members"])
    assert size.tolist() == sizes.tolist()
    assert np.sort(members).tolist() == list(range(len(steps)))


def ranked_in_ranges(
    steps: Integers, keys: Integers, at: Integers, ends: int
) -> list[pa.RecordBatch]:
    """Deal records into ranges that begin at some of them, and rank each range."""
    bounds = Bounds(steps[at], keys[at], secret=7)
    order = np.lexsort((bounds.ties(bounds.keys), bounds.steps))
    bounds = Bounds(bounds.steps[order], bounds.keys[order], bounds.secret)
    shuffled = np.random.default_rng(1).permutation(len(steps))
    records = pa.record_batch({"steps": steps[shuffled], "key": keys[shuffled]})
    dealt = pa.Table.from_batches(deal_ranges([records[:7], records[7:]], bounds))
    parts = (dealt.filter(pc.equal(dealt["part"], part)) for part in range(len(at) + 1))
    return [batch for part in parts for batch in rank_range(part.to_batches(), bounds, ends)]
