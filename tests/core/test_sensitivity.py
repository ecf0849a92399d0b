"""The sensitivities against brute force over all changes of one record within a cluster."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.core.accounting import fixed_scales
from microveil.core.clusters import ClusterSummary, summarise
from microveil.core.sensitivity import DomainSteps, cluster_reaches, global_reaches, local_reaches

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


DOMAIN = DomainSteps(LOWER, UPPER)


@given(clusters | few_values)
def test_local_reaches_are_the_largest_changes_within_the_domain(values: list[int]) -> None:
    changes = [sum(n) - sum(values) for n in neighbours(values, range(LOWER, UPPER + 1))]
    reaches = local_reaches(summary_of(values), DOMAIN)
    assert (reaches.up[0], -reaches.down[0]) == (max(changes), min(changes))
    assert reaches.largest[0] == max(map(abs, changes))


@given(clusters | few_values)
def test_cluster_reaches_are_the_largest_changes_to_any_value(values: list[int]) -> None:
    anywhere = neighbours(values, range(LOWER - 20, UPPER + 21))
    changes = [winsorised_sum(n) - winsorised_sum(values) for n in anywhere]
    reaches = cluster_reaches(summary_of(values), DOMAIN)
    assert (reaches.up[0], -reaches.down[0]) == (max(changes), min(changes))


def test_global_reach_is_the_largest_local_reach() -> None:
    domain = DomainSteps(0, 4)
    every = [list(values) for values in product(range(5), repeat=3)]
    largest = max(local_reaches(summary_of(values), domain).largest[0] for values in every)
    assert global_reaches(summary_of(every[0]), domain).largest[0] == largest == 4


@given(clusters | few_values, epsilons)
@settings(max_examples=200)
def test_the_loss_of_a_rounded_centroid_is_within_epsilon(
    values: list[int], epsilon: float
) -> None:
    summary = summary_of(values)
    for reaches, centroid in (
        (local_reaches(summary, DOMAIN), ClusterSummary.mean),
        (cluster_reaches(summary, DOMAIN), ClusterSummary.winsorised_mean),
    ):
        scale = fixed_scales(reaches.largest, summary.size, epsilon)[0]
        for neighbour in neighbours(values, range(LOWER, UPPER + 1)):
            moved = abs(centroid(summary_of(neighbour)) - centroid(summary))[0]
            assert moved <= scale * epsilon * (1 + 1e-15)


def test_no_reach_where_all_records_agree() -> None:
    assert cluster_reaches(summary_of([4, 4, 4]), DOMAIN).largest[0] == 0
    assert cluster_reaches(summary_of([4, 4, 5]), DOMAIN).largest[0] > 0
