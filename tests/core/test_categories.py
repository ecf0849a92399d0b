"""Categories against brute force: every permutation, every neighbour, every cluster."""

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from microveil import Confidential, Plan, protect
from microveil.core.attribute import CategoryKind, CategorySettings
from microveil.core.categories import (
    CategorySummary,
    choice_probabilities,
    is_stable,
    leaders,
    released_as_is,
    summarise_categories,
)
from microveil.core.clusters import cluster_sizes
from microveil.core.noise import permute_and_flip, randomised_response
from microveil.core.random_words import SeededWords, SystemWords
from microveil.engines.memory import memory_table
from microveil.release.resolve import resolve
from microveil.types import Integers, Reals

DRAWS = 100_000

pytestmark = pytest.mark.filterwarnings("ignore:attribute 'x'. iDP publishes the category")

kinds = st.sampled_from(["nominal", "ordinal"])
clusters = st.integers(2, 4).flatmap(
    lambda r: st.lists(st.integers(0, r - 1), min_size=3, max_size=7).map(lambda c: (c, r))
)


def summary_of(codes: list[int], categories: int) -> CategorySummary:
    return summarise_categories(np.array(codes), np.array([len(codes)]), categories)


def by_definition(scores: Integers, rate: float) -> Reals:
    """Permute-and-flip, order by order: the first accepted category is chosen."""
    accept = np.exp(-rate * (scores.max() - scores))
    chosen = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for category in order:
            chosen[category] += reached * accept[category] / len(orders)
            reached *= 1 - accept[category]
    return chosen


def changes(codes: list[int], categories: int) -> list[list[int]]:
    """Every cluster in which one record is of another category."""
    return [
        [*codes[:i], other, *codes[i + 1 :]]
        for i in range(len(codes))
        for other in range(categories)
        if other != codes[i]
    ]


def settings_of(**settings: Any) -> CategorySettings:  # noqa: ANN401
    codes, categories = settings.pop("codes"), settings.pop("categories")
    names = [f"c{number}" for number in range(categories)]
    attribute = Confidential(kind=settings.pop("kind", "nominal"), categories=names)
    plan = Plan.published(attributes={"x": attribute}, **settings)
    table = pl.DataFrame({"x": [names[code] for code in codes]})
    (found,) = resolve(plan, memory_table(table)).categorical
    return found


@given(clusters, st.sampled_from([0.01, 0.5, 3.0]), kinds)
def test_probabilities_are_those_of_the_definition(
    cluster: tuple[list[int], int], rate: float, kind: CategoryKind
) -> None:
    scores = summary_of(*cluster).scores(kind)
    expected = by_definition(scores[0], rate)
    np.testing.assert_allclose(choice_probabilities(scores, rate)[0], expected, rtol=1e-9)


@given(clusters, st.sampled_from([0.05, 1.0, 4.0]), kinds)
def test_one_record_changes_the_odds_of_every_choice_by_at_most_epsilon(
    cluster: tuple[list[int], int], epsilon: float, kind: CategoryKind
) -> None:
    codes, categories = cluster
    here = by_definition(summary_of(*cluster).scores(kind)[0], epsilon / 2)
    for changed in changes(codes, categories):
        there = by_definition(summary_of(changed, categories).scores(kind)[0], epsilon / 2)
        assert np.all(here <= there * np.exp(epsilon) * (1 + 1e-12))
        assert np.all(there <= here * np.exp(epsilon) * (1 + 1e-12))


def test_twice_the_rate_would_lose_more_than_epsilon() -> None:
    # The counts 2, 1 become 1, 2: the odds of the first category change by more than exp(ε).
    here, there = (by_definition(np.array(counts), 1.0) for counts in ([2, 1], [1, 2]))
    assert here[0] / there[0] > np.exp(1.0)


@given(clusters)
def test_modes_are_stable_just_where_no_record_can_change_them(
    cluster: tuple[list[int], int],
) -> None:
    codes, categories = cluster
    scores = summary_of(*cluster).scores("nominal")
    after = [leaders(summary_of(c, categories).counts)[0] for c in changes(codes, categories)]
    unchanged = all(leader == leaders(scores)[0] for leader in after)
    assert is_stable(scores)[0] == unchanged


agreeing = st.tuples(
    st.integers(0, 2), st.integers(3, 7), st.lists(st.integers(0, 2), max_size=2)
).map(lambda c: ([c[0]] * c[1] + c[2], 3))


@given(agreeing, kinds, st.integers(1, 2))
def test_what_is_stable_stays_whatever_a_persons_records_become(
    cluster: tuple[list[int], int], kind: CategoryKind, records: int
) -> None:
    codes, categories = cluster
    scores = summary_of(*cluster).scores(kind)
    assume(is_stable(scores, records)[0])
    reached = [codes]
    for _ in range(records):
        reached = [c for tables in reached for c in changes(tables, categories)]
    for changed in reached:
        assert leaders(summary_of(changed, categories).scores(kind))[0] == leaders(scores)[0]


@pytest.mark.parametrize(
    ("counts", "stable"),
    [([3, 0, 0], True), ([2, 0, 0], True), ([0, 2, 0], False), ([0, 3, 0], True), ([4, 2, 1], True),
     ([2, 4, 1], False), ([2, 5, 1], True), ([3, 2, 0], False)],
)  # fmt: skip
def test_a_lead_of_three_is_enough_and_of_two_with_the_tie_break(
    counts: list[int], stable: bool
) -> None:
    assert is_stable(np.array([counts]))[0] == stable


@given(clusters)
def test_the_ordinal_representative_is_a_median(cluster: tuple[list[int], int]) -> None:
    codes, _ = cluster
    chosen = leaders(summary_of(*cluster).scores("ordinal"))[0]
    below, above = sum(c < chosen for c in codes), sum(c > chosen for c in codes)
    assert below <= len(codes) / 2
    assert above <= len(codes) / 2


tables = st.tuples(st.integers(2, 4), st.integers(3, 4)).flatmap(
    lambda sizes: st.tuples(
        st.lists(st.integers(0, sizes[0] - 1), min_size=sizes[1], max_size=14),
        st.just(sizes[0]),
        st.just(sizes[1]),
    )
)


def loss(
    here: CategorySummary, there: CategorySummary, settings: CategorySettings, kind: CategoryKind
) -> float:
    """Loss of the vector of released categories, with what is released as it is held."""
    as_is = released_as_is(here, settings)
    assert np.all(leaders(here.scores(kind))[as_is] == leaders(there.scores(kind))[as_is])
    one, two = (
        np.log(choice_probabilities(s.scores(kind)[~as_is], float(settings.rate)))
        for s in (here, there)
    )
    return float(np.sum(np.max(np.abs(one - two), axis=1, initial=0.0)))


@given(tables, st.sampled_from(["DP-UM", "iDP-LS", "iDP-CBLS"]), kinds, st.booleans())
def test_clusters_formed_again_lose_no_more_than_the_certificate_says(
    table: tuple[list[int], int, int], method: str, kind: CategoryKind, enforced: bool
) -> None:
    codes, categories, k = table
    guarantee = "re-clustered" if enforced else "fixed-clusters"
    settings = settings_of(
        codes=codes, categories=categories, kind=kind, epsilon=2.0, k=k, method=method,
        guarantee=guarantee,
    )  # fmt: skip
    bound = 2.0 if enforced else settings.most_changing * 2.0
    sizes = cluster_sizes(len(codes), k)
    here = summarise_categories(np.sort(codes), sizes, categories)
    for changed in changes(codes, categories):
        there = summarise_categories(np.sort(changed), sizes, categories)
        different = np.any(here.counts != there.counts, axis=1)
        assert np.count_nonzero(different) <= settings.most_changing
        assert loss(here, there, settings, kind) <= bound * (1 + 1e-9)


def test_frequency_order_would_let_one_record_change_clusters_without_bound() -> None:
    # privacy.md clusters nominal categories in order of frequency. With a and b equally frequent
    # one record decides which of them comes first, and every cluster of either is exchanged:
    # neither min(p, r − 1) clusters nor one record in each. So the order is the declared one.
    a, b, k = ["a"] * 30, ["b"] * 29, 5
    sizes = cluster_sizes(60, k)

    def counts(values: list[str]) -> Integers:
        frequent = sorted(set(values), key=lambda v: (-values.count(v), v))
        codes = np.sort([frequent.index(value) for value in values])
        named = [sorted(set(values)).index(frequent[code]) for code in codes]
        return summarise_categories(np.array(named), sizes, 2).counts

    here, there = counts([*a, "a", *b]), counts([*a, "b", "b", *b[1:]])
    assert np.count_nonzero(np.any(here != there, axis=1)) == 1
    here, there = counts([*a, "b", *b]), counts([*a[1:], "b", "b", *b])
    assert np.count_nonzero(np.any(here != there, axis=1)) == 12
    assert np.max(np.abs(here - there)) == k


def p_value(sample: Integers, probabilities: Reals) -> float:
    observed = np.bincount(sample, minlength=len(probabilities))
    return float(
        stats.chisquare(observed, probabilities / probabilities.sum() * len(sample)).pvalue
    )


@pytest.mark.parametrize("rate", [0.003, 0.2, 1.7])
def test_draws_follow_the_rate_and_no_other(rate: float) -> None:
    scores = np.array([[9, 4, 8, 0 if rate < 1 else 7]])
    drawn = permute_and_flip(np.repeat(scores, DRAWS, axis=0), Fraction(rate), SeededWords(3))
    assert p_value(drawn, choice_probabilities(scores, rate)[0]) > 1e-4
    if rate > 0.1:
        assert p_value(drawn, choice_probabilities(scores, rate * 1.3)[0]) < 1e-9
        assert p_value(drawn, choice_probabilities(scores, rate * 0.7)[0]) < 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 2.5])
def test_randomised_response_follows_epsilon_and_no_other(epsilon: float) -> None:
    answers = randomised_response(np.full(DRAWS, 2), 4, Fraction(epsilon), SystemWords())

    def law(e: float) -> Reals:
        shares: Reals = np.array([1, 1, np.exp(e), 1]) / (3 + np.exp(e))
        return shares

    assert p_value(answers, law(epsilon)) > 1e-6
    assert p_value(answers, law(epsilon * 1.3)) < 1e-9
    assert p_value(answers, law(epsilon * 0.7)) < 1e-9


def test_draws_do_not_depend_on_how_words_are_cut() -> None:
    scores = np.tile([[5, 4, 0, 1]], (3_000, 1))

    class Trickle(SeededWords):
        def words(self, count: int) -> Any:  # noqa: ANN401
            return super().words(min(count, 7))

    whole, parts = (
        permute_and_flip(scores, Fraction(1, 10), source(5)) for source in (SeededWords, Trickle)
    )
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 2**80), Fraction(10**30)])
def test_rates_beyond_64_bits_are_cut_off_safely(rate: Fraction) -> None:
    scores = np.tile([[1, 0]], (2_000, 1))
    share = float(np.mean(permute_and_flip(scores, rate, SeededWords(1)) == 0))
    assert share == 1.0 if rate > 1 else 0.4 < share < 0.6


def test_stable_modes_are_released_unchanged() -> None:
    table = pl.DataFrame({"x": ["a"] * 7 + ["b"] * 8 + ["c"] * 6})
    attribute = Confidential(kind="nominal", categories=["a", "b", "c"])
    for seed in range(20):
        plan = Plan.published(epsilon=0.01, k=5, attributes={"x": attribute})
        released = protect(table, plan, seed=seed, keep_order=True)
        same = released.data["x"] == table["x"]
        # Clusters a5, a2 b3, b5, c6: all but the second are of one category.
        assert int(same.sum()) >= 16
        clusters = released.detail.clusters
        assert clusters["sensitivity"].to_list() == [0.0, 1.0, 0.0, 0.0]
        assert clusters["category"].to_list() == ["a", "b", "b", "c"]
        assert clusters["lead"].to_list() == [5, 1, 5, 6]
        assert released.detail.losses["fixed_clusters"].to_list() == [0.01]


def test_dp_um_gives_every_cluster_noise() -> None:
    table = pl.DataFrame({"x": ["a"] * 50 + ["b"] * 50})
    attribute = Confidential(kind="nominal", categories=["a", "b"])
    plan = Plan.published(epsilon=0.001, method="DP-UM", k=5, attributes={"x": attribute})
    released = protect(table, plan, seed=1, keep_order=True)
    assert 10 < int((released.data["x"] == table["x"]).sum()) < 90
    assert released.detail.clusters["sensitivity"].unique().to_list() == [1.0]
