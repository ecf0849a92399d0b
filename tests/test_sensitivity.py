"""The sensitivities against brute force over all changes of one record within a cluster."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.accounting import noise_scales
from microveil.clusters import ClusterSummary, summarise
from microveil.sensitivity import (
    DomainUnits,
    cluster_reach,
    down_reach,
    global_reach,
    local_reach,
    up_reach,
)

LOWER, UPPER = 0, 9
clusters = st.lists(st.integers(LOWER, UPPER), min_size=3, max_size=7)
few_values = st.lists(st.sampled_from([0, 4, 9]), min_size=3, max_size=7)
epsilons = st.sampled_from([0.01, 0.1, 0.3, 1.0, 2.5])


def summary_of(values: list[int]) -> ClusterSummary:
    return summarise(np.array(sorted(values)), np.array([len(values)]))


def winsorised_sum(values: list[int]) -> int:
    ranked = sorted(values)
    return sum(ranked) - ranked[0] - ranked[-1] + ranked[1] + ranked[-2]


def neighbours(values: list[int], replacements: range) -> list[list[int]]:
    return [
        [*values[:i], new, *values[i + 1 :]] for i in range(len(values)) for new in replacements
    ]


@given(clusters | few_values)
def test_local_reach_is_the_largest_change_within_the_domain(values: list[int]) -> None:
    inside = neighbours(values, range(LOWER, UPPER + 1))
    largest = max(abs(sum(n) - sum(values)) for n in inside)
    assert local_reach(summary_of(values), DomainUnits(LOWER, UPPER))[0] == largest


@given(clusters | few_values)
def test_cluster_reach_is_the_largest_change_to_any_value(values: list[int]) -> None:
    anywhere = neighbours(values, range(LOWER - 20, UPPER + 21))
    changes = [winsorised_sum(n) - winsorised_sum(values) for n in anywhere]
    summary = summary_of(values)
    assert cluster_reach(summary)[0] == max(map(abs, changes))
    assert up_reach(summary)[0] == max(changes)
    assert down_reach(summary)[0] == -min(changes)


def test_global_reach_is_the_largest_local_reach() -> None:
    domain = DomainUnits(0, 4)
    every = [list(values) for values in product(range(5), repeat=3)]
    largest = max(local_reach(summary_of(values), domain)[0] for values in every)
    assert global_reach(summary_of(every[0]), domain)[0] == largest == 4


@given(clusters | few_values, epsilons)
@settings(max_examples=200)
def test_the_loss_of_a_rounded_centroid_is_within_epsilon(
    values: list[int], epsilon: float
) -> None:
    summary, domain = summary_of(values), DomainUnits(LOWER, UPPER)
    for reach, centroid in (
        (local_reach(summary, domain), "mean"),
        (cluster_reach(summary), "winsorised_mean"),
    ):
        scale = noise_scales(reach, summary.size, epsilon)[0]
        for neighbour in neighbours(values, range(LOWER, UPPER + 1)):
            moved = abs(getattr(summary_of(neighbour), centroid) - getattr(summary, centroid))[0]
            assert moved <= scale * epsilon * (1 + 1e-15)


def test_no_reach_where_all_records_agree() -> None:
    assert cluster_reach(summary_of([4, 4, 4]))[0] == 0
    assert cluster_reach(summary_of([4, 4, 5]))[0] > 0
