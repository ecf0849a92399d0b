"""Shares, scales and losses, against brute force over all neighbours."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil import PlanError
from microveil.core.accounting import (
    budget_shares,
    fixed_loss,
    fixed_scales,
    noise_scales,
    reclustered_bound,
    reclustered_loss,
    reclustered_scales,
)
from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.clusters import ClusterSummary, cluster_sizes, singletons, summarise
from microveil.core.methods import METHODS
from microveil.core.sensitivity import DomainSteps, Reaches
from microveil.types import Integers

DOMAIN = DomainSteps(0, 12)
CLUSTERED: list[MethodName] = ["DP-UM", "iDP-LS", "iDP-CBLS"]
GUARANTEES: list[GuaranteeName] = ["fixed-clusters", "re-clustered"]

spread_out = st.lists(st.integers(0, 12), min_size=3, max_size=24)
heavily_tied = st.lists(st.sampled_from([0, 5, 6, 12]), min_size=3, max_size=24)
tables = spread_out | heavily_tied
epsilons = st.sampled_from([0.1, 0.5, 1.0, 3.0])


@given(
    st.floats(min_value=1e-9, max_value=1e4),
    st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=40),
)
def test_shares_add_up_to_epsilon_exactly_and_follow_the_weights(
    epsilon: float, weights: list[float]
) -> None:
    shares = budget_shares(epsilon, weights)
    assert sum(shares) == sum(reversed(shares)) == math.fsum(shares) == epsilon
    assert sum(map(Fraction, shares)) == Fraction(epsilon)
    expected = epsilon * np.array(weights) / sum(weights)
    assert np.allclose(shares, expected, rtol=0, atol=(len(weights) + 1) * math.ulp(epsilon))


def test_an_epsilon_too_small_to_be_shared() -> None:
    with pytest.raises(PlanError, match="epsilon is too small"):
        budget_shares(5e-324, [1, 1])


def test_held_scales_by_hand() -> None:
    # (reach/n + 1)/ε: (9/3 + 1)/0.5 = 8; (10/4 + 1)/0.3 = 11.67 → 12; no reach, no noise.
    scales = fixed_scales(np.array([9, 10, 0]), np.array([3, 4, 5]), 1.0)
    assert scales.tolist() == [4, 4, 0]
    assert fixed_scales(np.array([9]), np.array([3]), 0.5) == 8
    assert fixed_scales(np.array([10]), np.array([4]), 0.3) == 12


@given(st.integers(1, 2**62), st.integers(1, 10**6), st.floats(min_value=1e-3, max_value=10))
def test_held_scales_are_never_too_small(reach: int, size: int, epsilon: float) -> None:
    scale = fixed_scales(np.array([reach]), np.array([size]), epsilon)[0]
    furthest = -(-reach // size)
    if scale <= 2**62:
        assert Fraction(furthest) <= Fraction(int(scale)) * Fraction(epsilon)


def clusters_of(*sizes: int) -> ClusterSummary:
    """Summarise clusters of which only the sizes matter."""
    return summarise(np.arange(sum(sizes)), np.array(sizes))


def test_reclustered_scales_by_hand() -> None:
    # Two clusters of 2, moves of 8 million units up and 1 and 27 million down, ε = 1. Larger moves
    # w = 8, 27 million: b = (w/2)^(1/3)·Σ w^(2/3)·2^(1/3) = 2·13, 3·13 million. The moves up lose
    # 8/26 + 8/39, those down 1/26 + 27/39 = 0.7308: that share of the scales is enough.
    million = 1_000_000
    reaches = Reaches(np.array([16, 16]) * million, np.array([2, 54]) * million)
    scales = reclustered_scales(reaches, clusters_of(2, 2), 1.0)
    assert scales == pytest.approx(np.array([26, 39]) * million * (1 / 26 + 27 / 39), rel=1e-5)


@given(
    st.lists(st.integers(10**7, 10**10), min_size=1, max_size=20),
    st.lists(st.floats(0.5, 2.0), min_size=20, max_size=20),
)
def test_no_other_scales_add_less_noise(moves: list[int], factors: list[float]) -> None:
    summary, reach = clusters_of(*[3] * len(moves)), np.array(moves)
    ours = reclustered_scales(Reaches(reach, reach), summary, 1.0).astype(float)
    other = ours * np.array(factors[: len(moves)])
    other *= np.sum((reach / 3 + 1) / other)  # so that they lose exactly ε as well
    assert np.sum(ours**2) <= np.sum(other**2) * (1 + 1e-5)


def recluster(values: list[int], k: int, trim: float = 0.0) -> ClusterSummary:
    return summarise(np.array(sorted(values)), cluster_sizes(len(values), k), trim)


def kept_values(tables: Integers, sizes: Integers, trim: float) -> list[Integers]:
    """Values that iDP-CBLS averages in each cluster of many tables, each sorted and cut."""
    ranked, ends, kept = np.sort(tables, axis=1), np.cumsum(sizes), []
    for start, end in zip(ends - sizes, ends, strict=True):
        cluster, left_out = ranked[:, start:end].copy(), math.floor(trim * (end - start))
        if left_out:
            cluster = cluster[:, left_out:-left_out]
        else:
            cluster[:, 0], cluster[:, -1] = cluster[:, 1], cluster[:, -2]
        kept.append(cluster)
    return kept


def centroids(tables: Integers, sizes: Integers, *, pulled_in: bool, trim: float = 0.0) -> Integers:
    """Rounded centroids of many tables at once: no summaries."""
    if pulled_in:
        clusters = kept_values(tables, sizes, trim)
    else:
        clusters = np.split(np.sort(tables, axis=1), np.cumsum(sizes)[:-1], axis=1)
    means = [np.floor(values.mean(axis=1) + 0.5) for values in clusters]
    return np.stack(means, axis=1).astype(np.int64)


def brute_force_loss(
    name: MethodName, values: list[int], k: int, scales: Integers, trim: float = 0.0
) -> float:
    """Largest loss over all tables with one record changed, clusters formed again, scales held."""
    anywhere = range(-30, 43) if name == "iDP-CBLS" else range(DOMAIN.lower, DOMAIN.upper + 1)
    neighbours = np.array(
        [[*values[:i], new, *values[i + 1 :]] for i in range(len(values)) for new in anywhere]
    )
    sizes = cluster_sizes(len(values), k)
    pulled_in = name == "iDP-CBLS"
    here = centroids(np.array([values]), sizes, pulled_in=pulled_in, trim=trim)
    moved = np.abs(centroids(neighbours, sizes, pulled_in=pulled_in, trim=trim) - here)
    if np.any(moved[:, scales == 0]):
        return math.inf
    noisy = scales > 0
    return float((moved[:, noisy] / scales[noisy]).sum(axis=1).max(initial=0.0))


@pytest.mark.parametrize("name", CLUSTERED)
@pytest.mark.parametrize("guarantee", GUARANTEES)
@given(values=tables, k=st.integers(3, 9), epsilon=epsilons)
@settings(max_examples=300)
def test_the_closed_form_is_the_largest_loss_over_all_neighbours(
    name: MethodName, guarantee: GuaranteeName, values: list[int], k: int, epsilon: float
) -> None:
    k = min(k, len(values))
    summary, method = recluster(values, k), METHODS[name]
    scales = noise_scales(method, summary, DOMAIN, epsilon, guarantee)
    exact = reclustered_loss(method, summary, DOMAIN, scales)
    assert exact == pytest.approx(brute_force_loss(name, values, k, scales), rel=1e-12)
    if guarantee == "re-clustered":
        assert exact <= epsilon
    bound = reclustered_bound(
        method,
        epsilon,
        clusters=len(summary),
        records=len(values),
        width=DOMAIN.upper - DOMAIN.lower,
    )
    assert exact <= bound * (1 + 1e-12)


trims = st.sampled_from([0.05, 0.1, 0.2, 0.25, 1 / 3, 0.4, 0.49])


@pytest.mark.parametrize("guarantee", GUARANTEES)
@given(values=tables, k=st.integers(3, 12), epsilon=epsilons, trim=trims)
@settings(max_examples=300)
def test_the_loss_of_trimmed_centroids_is_the_largest_over_all_neighbours(
    guarantee: GuaranteeName, values: list[int], k: int, epsilon: float, trim: float
) -> None:
    k = min(k, len(values))
    summary, method = recluster(values, k, trim), METHODS["iDP-CBLS"]
    scales = noise_scales(method, summary, DOMAIN, epsilon, guarantee)
    exact = reclustered_loss(method, summary, DOMAIN, scales)
    brute = brute_force_loss("iDP-CBLS", values, k, scales, trim)
    assert exact == pytest.approx(brute, rel=1e-12)
    assert fixed_loss(method, summary, DOMAIN, scales) <= epsilon
    assert exact <= (epsilon if guarantee == "re-clustered" else epsilon * len(summary))


def exact_losses(
    values: list[int], sizes: Integers, trim: float, weights: list[Fraction]
) -> dict[str, Fraction]:
    """Largest losses of unrounded centroids over all neighbours, in fractions.

    `fixed`: the record that changes stays in its cluster. `re-clustered`: clusters formed again.
    """
    ranked, anywhere = sorted(values), [*range(-3, 16), -50, 60]
    edges = [0, *np.cumsum(sizes).tolist()]
    where = np.repeat(np.arange(len(sizes)), sizes).tolist()
    shared = math.lcm(*(weight.denominator for weight in weights))
    whole = np.array([int(weight * shared) for weight in weights])

    def sums(tables: list[list[int]]) -> Integers:
        kept = kept_values(np.array(tables), sizes, trim)
        return np.stack([cluster.sum(axis=1) for cluster in kept], axis=1)

    neighbours, owners, inside = [], [], []
    for i, new in [(i, new) for i in range(len(ranked)) for new in anywhere]:
        neighbours.append([*ranked[:i], new, *ranked[i + 1 :]])
        owners.append(where[i])
        own = slice(edges[where[i]], edges[where[i] + 1])
        inside.append([*ranked[: own.start], *sorted(neighbours[-1][own]), *ranked[own.stop :]])
    here = sums([ranked])
    again = np.abs(sums(neighbours) - here) @ whole
    held = np.empty(len(inside), dtype=np.int64)
    for j, (start, end) in enumerate(pairwise(edges)):
        mine = [row[start:end] for row, owner in zip(inside, owners, strict=True) if owner == j]
        kept = kept_values(np.array(mine), sizes[j : j + 1], trim)[0].sum(axis=1)
        held[np.array(owners) == j] = np.abs(kept - here[0, j]) * whole[j]
    fixed, reclustered = (Fraction(int(losses.max()), shared) for losses in (held, again))
    return {"fixed": fixed, "re-clustered": reclustered}


@given(
    values=tables,
    k=st.integers(3, 12),
    trim=trims,
    scales=st.lists(st.integers(1, 9), min_size=8, max_size=8),
)
@settings(max_examples=500)
def test_sensitivities_of_trimmed_centroids_in_exact_fractions(
    values: list[int], k: int, trim: float, scales: list[int]
) -> None:
    sizes = cluster_sizes(len(values), min(k, len(values)))
    summary = recluster(values, min(k, len(values)), trim)
    reaches = METHODS["iDP-CBLS"].calibration(summary, DOMAIN)
    pairs = zip(summary.averaged.tolist(), scales, strict=False)
    weights = [Fraction(1, averaged * scale) for averaged, scale in pairs]
    up, down = ([int(r) * w for r, w in zip(reach, weights, strict=True)] for reach in reaches)
    expected = {"fixed": max(up + down), "re-clustered": max(sum(up), sum(down))}
    assert exact_losses(values, sizes, trim, weights) == expected


@given(values=st.lists(st.integers(0, 12), min_size=2, max_size=8), epsilon=epsilons)
def test_dp_loses_the_same_at_both_levels(values: list[int], epsilon: float) -> None:
    method, summary = METHODS["DP"], singletons(np.array(values))
    scales = noise_scales(method, summary, DOMAIN, epsilon, "re-clustered")
    furthest = max(max(12 - v, v) for v in values)
    assert fixed_loss(method, summary, DOMAIN, scales) == furthest / scales[0]
    assert reclustered_loss(method, summary, DOMAIN, scales) == furthest / scales[0] <= epsilon


def held_brute_force(name: MethodName, values: list[int], scale: int) -> float:
    return brute_force_loss(name, values, len(values), np.array([scale]))


@pytest.mark.parametrize("name", CLUSTERED)
@given(values=st.lists(st.integers(0, 12), min_size=3, max_size=9), epsilon=epsilons)
def test_the_held_loss_of_one_cluster_is_the_largest(
    name: MethodName, values: list[int], epsilon: float
) -> None:
    # With a single cluster there is nothing to form again: brute force sees the held loss.
    method, summary = METHODS[name], recluster(values, len(values))
    scales = noise_scales(method, summary, DOMAIN, epsilon)
    exact = fixed_loss(method, summary, DOMAIN, scales)
    assert exact == pytest.approx(held_brute_force(name, values, int(scales[0])), rel=1e-12)
    assert exact <= epsilon


def test_reclustering_costs_more_than_epsilon() -> None:
    # Evenly spread values: the smallest record passes the largest, and every cluster shifts.
    method, domain = METHODS["iDP-CBLS"], DomainSteps(0, 0)
    summary = recluster(list(range(0, 12_000_000, 1_000_000)), 3)
    scales = noise_scales(method, summary, domain, 1.0)
    assert reclustered_loss(method, summary, domain, scales) == pytest.approx(4, rel=1e-5)


def test_evenly_spread_data_cost_idp_ls_two_ln_two() -> None:
    million, count = 1_000_000, 3000
    domain = DomainSteps(0, count * million)
    method, summary = METHODS["iDP-LS"], recluster([i * million for i in range(count)], 3)
    scales = noise_scales(method, summary, domain, 1.0)
    loss = reclustered_loss(method, summary, domain, scales)
    assert loss == pytest.approx(2 * math.log(2), rel=1e-3)


def person_loss(name: MethodName, values: list[int], others: list[list[int]], eps: float) -> float:
    """Largest loss between a table of one cluster and others, scales held."""
    sizes, pulled_in = np.array([len(values)]), name == "iDP-CBLS"
    scales = noise_scales(METHODS[name], recluster(values, len(values)), DOMAIN, eps)
    here, there = (centroids(np.array(t), sizes, pulled_in=pulled_in) for t in ([values], others))
    moved = int(np.abs(there - here).max())
    return moved / int(scales[0]) if scales[0] else math.inf * moved if moved else 0.0


def one_changed(values: list[int]) -> list[list[int]]:
    return [[*values[:i], x, *values[i + 1 :]] for i in range(len(values)) for x in range(13)]


def test_two_records_of_a_person_in_one_cluster_are_not_covered_by_idp_cbls() -> None:
    """ε/c per record is not ε per person here: a mistake in the design notes, shown by example.

    All records of the cluster agree, so one record cannot move it and it gets no noise. Two
    records can, and nothing hides it.
    """
    values, both_changed = [4, 4, 4, 4], [4, 4, 9, 9]
    assert person_loss("iDP-CBLS", values, one_changed(values), 0.5) == 0
    assert person_loss("iDP-CBLS", values, [both_changed], 0.5) == math.inf


@pytest.mark.parametrize("name", ["DP-UM", "iDP-LS"])
@given(values=st.lists(st.integers(0, 12), min_size=3, max_size=5))
@settings(max_examples=25)
def test_two_records_of_a_person_are_covered_by_the_linear_methods(
    name: MethodName, values: list[int]
) -> None:
    two_changed = [other for one in one_changed(values) for other in one_changed(one)]
    assert person_loss(name, values, two_changed, 0.5) <= 2 * 0.5 * (1 + 1e-12)
