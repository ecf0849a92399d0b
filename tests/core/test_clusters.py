import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microveil.core.clusters import (
    TrimmedSummary,
    cluster_sizes,
    left_out,
    singletons,
    summarise,
)

values = st.lists(st.integers(-20, 20), min_size=1, max_size=30)


@given(st.integers(1, 60), st.integers(1, 60))
def test_the_remainder_joins_the_last_cluster(records: int, k: int) -> None:
    if records < k:
        return
    sizes = cluster_sizes(records, k)
    assert len(sizes) == records // k
    assert sizes.sum() == records
    assert np.all(sizes[:-1] == k)
    assert k <= sizes[-1] <= 2 * k - 1


@given(values, st.integers(1, 10))
def test_summaries_agree_with_sorted_lists(data: list[int], k: int) -> None:
    if len(data) < k:
        return
    ranked, sizes = sorted(data), cluster_sizes(len(data), k)
    summary = summarise(np.array(ranked), sizes)
    start = 0
    for j, size in enumerate(sizes):
        cluster = ranked[start : start + size]
        start += size
        assert summary.total[j] == sum(cluster)
        up = [summary.smallest[j], summary.second_smallest[j], summary.third_smallest[j]]
        down = [summary.largest[j], summary.second_largest[j], summary.third_largest[j]]
        assert up[: len(cluster)] == cluster[:3]
        assert down[: len(cluster)] == cluster[::-1][:3]
        assert summary.mean()[j] == np.floor(sum(cluster) / size + 0.5)


def test_pre_processing_of_the_papers_example() -> None:
    # {3, 3, 3, 4, 5, 6, 6}: second smallest is 3 and second largest 6, so nothing changes.
    summary = summarise(np.array([3, 3, 3, 4, 5, 6, 6]) * 7, np.array([7]))
    assert summary.winsorised_mean() == summary.mean() == 30


def test_pre_processing_replaces_one_record_at_each_end() -> None:
    # {1, 2, 4, 8, 20} becomes {2, 2, 4, 8, 8}: mean 24/5 instead of 35/5.
    summary = summarise(np.array([1, 2, 4, 8, 20]) * 5, np.array([5]))
    assert summary.mean() == 35
    assert summary.winsorised_mean() == 24


@given(values, st.integers(1, 12), st.sampled_from([0.1, 0.25, 0.4, 0.49]))
def test_trimmed_summaries_agree_with_sorted_lists(data: list[int], k: int, trim: float) -> None:
    if len(data) < k:
        return
    ranked, sizes = sorted(data), cluster_sizes(len(data), k)
    summary = summarise(np.array(ranked), sizes, trim)
    assert isinstance(summary, TrimmedSummary)
    start = 0
    for j, size in enumerate(sizes):
        cluster, t = ranked[start : start + size], int(trim * size)
        start += size
        assert summary.left_out[j] == t
        assert summary.averaged[j] == size - 2 * t
        if not t:
            continue
        inner = cluster[t:-t]
        assert summary.winsorised_mean()[j] == np.floor(sum(inner) / len(inner) + 0.5)
        assert summary.inner_total[j] == sum(inner)
        assert (summary.lowest[j], summary.highest[j]) == (inner[0], inner[-1])
        assert (summary.below[j], summary.above[j]) == (cluster[t - 1], cluster[-t])


def test_clusters_too_small_to_trim_have_the_papers_pre_processing() -> None:
    ranked, sizes = np.array([1, 2, 4, 8, 20, 1, 2, 4, 8, 20, 30, 90]) * 60, np.array([5, 7])
    summary, plain = summarise(ranked, sizes, 0.15), summarise(ranked, sizes)
    assert summary.winsorised_mean()[0] == plain.winsorised_mean()[0] == 24 * 12
    # {1, 2, 4, 8, 20, 30, 90} without 1 and 90: 64/5.
    assert summary.winsorised_mean()[1] == 64 * 12
    # Halves upwards, after the sums have moved: 60 more over 5 is 12, 2 more over 5 rounds to 0.
    assert summary.winsorised_mean(np.array([0, 60]))[1] == 64 * 12 + 12
    assert summary.winsorised_mean(np.array([0, 2]))[1] == 64 * 12


def test_at_least_one_record_is_kept() -> None:
    assert left_out(np.array([1, 2, 3, 4, 5]), np.nextafter(0.5, 0)).tolist() == [0, 0, 1, 1, 2]


def test_trimmed_sums_beyond_64_bits_are_exact() -> None:
    base = 2**60 - 100
    summary = summarise(base + np.array([0, 1, 2, 3, 4, 5, 6, 7, 99]), np.array([9]), 0.25)
    assert summary.winsorised_mean() == base + 4
    assert summary.winsorised_mean(np.array([5])) == base + 5


def test_sums_beyond_64_bits_are_exact() -> None:
    base, spread = 2**60 - 10, np.arange(9)
    summary = summarise(base + spread, np.array([9]))
    assert summary.mean() == base + 4
    assert summary.winsorised_mean() == base + 4
    assert summary.mean(np.array([9])) == base + 5
    assert summary.fits()


def test_a_sum_of_distances_that_does_not_fit_is_noticed() -> None:
    assert not summarise(np.array([-(2**60), 0, 2**60]), np.array([3])).fits()


def test_singletons_are_in_record_order() -> None:
    summary = singletons(np.array([5, 1, 3]))
    assert summary.mean().tolist() == [5, 1, 3]
    assert summary.size.tolist() == [1, 1, 1]
