"""Exchange and averages, against enumeration, chance and sorted lists."""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
from math import factorial, prod
from statistics import multimode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from microveil.core import random_words
from microveil.core.pooling import (
    JointClusters,
    average_categories,
    average_numbers,
    collect_clusters,
    exchange,
    holds_the_same,
)
from microveil.core.random_words import SeededWords, SystemWords, Words
from microveil.types import Integers

labels = st.lists(st.integers(0, 4), min_size=1, max_size=40).map(
    lambda drawn: np.unique(drawn, return_inverse=True)[1]
)


class GivenWords:
    """Words that say what is drawn: bound·(a large number) + draw is never rejected."""

    def __init__(self, draws: tuple[int, ...], bounds: tuple[int, ...]) -> None:
        pairs = zip(draws, bounds, strict=True)
        self._words = [bound * (2**40 // bound) + draw for draw, bound in pairs]

    def words(self, count: int) -> Words:
        """Return the next words, and zeros once there are no more."""
        given, self._words = self._words[:count], self._words[count:]
        return np.array(given + [0] * (count - len(given)), dtype=np.uint64)


def every_exchange(clusters: JointClusters) -> Iterator[Integers]:
    """Yield what is drawn from every sequence of draws, all of which are equally likely."""
    bounds = tuple(left for size in clusters.size.tolist() for left in range(size, 1, -1))
    for draws in product(*map(range, bounds)):
        yield exchange(clusters, GivenWords(draws, bounds))


@pytest.mark.parametrize("label", [[0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 2, 1, 2, 2]])
def test_every_permutation_within_clusters_comes_from_one_sequence_of_draws(
    label: list[int],
) -> None:
    clusters = collect_clusters(np.array(label))
    drawn = [tuple(giver.tolist()) for giver in every_exchange(clusters)]
    assert len(set(drawn)) == len(drawn) == prod(map(factorial, clusters.size.tolist()))
    for giver in drawn:
        assert sorted(giver) == list(range(len(label)))
        assert [label[record] for record in giver] == label


def releases(table: Integers, clusters: JointClusters) -> dict[bytes, Fraction]:
    """Probability of each released table, its attributes exchanged independently of each other."""
    givers = list(every_exchange(clusters))
    pairs = Counter(
        np.stack([table[a, 0], table[b, 1]]).tobytes() for a, b in product(givers, repeat=2)
    )
    return {key: Fraction(count, len(givers) ** 2) for key, count in pairs.items()}


@pytest.mark.parametrize(
    "table", [[(1, 10), (2, 20), (3, 30)], [(1, 10), (1, 20), (3, 20)], [(1, 10), (2, 20), (2, 20)]]
)
def test_what_is_released_says_nothing_about_whose_row_is_whose(
    table: list[tuple[int, int]],
) -> None:
    # An attacker who knows everybody's values and sees the released rows: the likelihood of what
    # is seen is the same however people are assigned to rows, so the posterior is uniform.
    clusters = collect_clusters(np.zeros(len(table), dtype=np.int64))
    likelihoods = [releases(np.array(rows), clusters) for rows in permutations(table)]
    assert all(likelihood == likelihoods[0] for likelihood in likelihoods)
    assert sum(likelihoods[0].values()) == 1
    # Exchanged together, rows stay whole: nothing is hidden then but by the row's place.
    one = {np.array(table)[giver].tobytes() for giver in every_exchange(clusters)}
    assert one == {np.array(rows).tobytes() for rows in permutations(table)}


def p_value(shuffle: Callable[[JointClusters, int], Integers], size: int = 4) -> float:
    """Chi-square test that all permutations of clusters are equally likely, over many seeds."""
    clusters = collect_clusters(np.repeat(np.arange(500), size))
    counts: Counter[bytes] = Counter()
    for seed in range(20):
        drawn = shuffle(clusters, seed).reshape(-1, size) % size
        counts.update(row.tobytes() for row in drawn)
    missing = [0] * (factorial(size) - len(counts))
    return float(stats.chisquare([*counts.values(), *missing]).pvalue)


def test_permutations_are_uniform_and_the_test_notices_those_that_are_not() -> None:
    def drawn_below(
        bound: Callable[[int, int], int], words: int = 2**32
    ) -> Callable[[JointClusters, int], Integers]:
        """Shuffle with draws below a wrong bound, or from so few words that a remainder leans."""

        def shuffle(clusters: JointClusters, seed: int) -> Integers:
            random, order, start = np.random.default_rng(seed), clusters.order.copy(), 0
            for size in clusters.size.tolist():
                for i in range(size):
                    low, wide = (0, size) if bound(size, i) > size - i else (i, bound(size, i))
                    j = start + low + int(random.integers(0, words)) % max(1, wide)
                    order[start + i], order[j] = order[j], order[start + i]
                start += size
            return order

        return shuffle

    assert p_value(lambda clusters, seed: exchange(clusters, SeededWords(seed))) > 1e-4
    assert p_value(lambda clusters, _: exchange(clusters, SystemWords())) > 1e-6
    assert p_value(drawn_below(lambda size, i: size - i)) > 1e-4  # right, for comparison
    assert p_value(drawn_below(lambda size, i: size - i, words=8)) < 1e-9  # naive remainder
    assert p_value(drawn_below(lambda size, i: size - i - 1)) < 1e-9  # one place is missing
    assert p_value(drawn_below(lambda size, i: size + 1 if i else size)) < 1e-9  # any place


def test_clusters_are_shuffled_independently_of_each_other() -> None:
    clusters = collect_clusters(np.repeat(np.arange(20_000), 2))
    swapped = exchange(clusters, SeededWords(3))[::2] % 2
    table = np.histogram2d(swapped[::2], swapped[1::2], bins=2)[0]
    assert stats.chisquare(table.ravel()).pvalue > 1e-4


@pytest.mark.parametrize("most", [1, 7, 100])
def test_how_words_are_cut_does_not_matter(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    clusters = collect_clusters(np.append(np.arange(30), random.integers(0, 30, 300)))
    codes, present = random.integers(0, 3, 330), random.random(330) < 0.8

    def pooled() -> list[list[int]]:
        choices = [
            average_categories(codes, clusters, present, SeededWords(2), ordinal=ordinal)
            for ordinal in (False, True)
        ]
        return [drawn.tolist() for drawn in (exchange(clusters, SeededWords(1)), *choices)]

    whole = pooled()
    monkeypatch.setattr(random_words, "_MOST_WORDS", most)
    assert pooled() == whole


@given(labels, st.integers(0, 9))
def test_every_cluster_keeps_its_values(label: Integers, seed: int) -> None:
    clusters = collect_clusters(label)
    assert clusters.size.tolist() == np.bincount(label).tolist()
    assert clusters.order.tolist() == np.argsort(label, kind="stable").tolist()
    assert clusters.smallest == min(Counter(label.tolist()).values())
    assert clusters.spread(np.arange(len(clusters.size))).tolist() == label.tolist()
    values = np.random.default_rng(seed).choice([1.5, 2.0, np.nan, -0.0, 0.0], len(label))
    released = values[exchange(clusters, SeededWords(seed))]
    assert holds_the_same(values, released, clusters)
    order = np.lexsort((values, label)), np.lexsort((released, label))
    np.testing.assert_array_equal(values[order[0]], released[order[1]])


def test_a_value_that_left_its_cluster_is_noticed() -> None:
    clusters, values = collect_clusters(np.array([0, 0, 1, 1])), np.array([1, 2, 3, 4])
    assert holds_the_same(values, np.array([2, 1, 4, 3]), clusters)
    assert not holds_the_same(values, np.array([3, 2, 1, 4]), clusters)
    assert not holds_the_same(values, np.array([1, 1, 3, 4]), clusters)
    assert not holds_the_same(values / 1, np.array([1, np.nan, 3, 4]), clusters)


@given(labels, st.integers(0, 99))
def test_averages_are_those_of_sorted_lists(label: Integers, seed: int) -> None:
    random, clusters = np.random.default_rng(seed), collect_clusters(label)
    codes, present = random.integers(0, 4, len(label)), random.random(len(label)) < 0.6
    means = average_numbers(codes * np.float64(0.1), clusters, present)
    modes, medians = (
        average_categories(codes, clusters, present, SeededWords(seed), ordinal=ordinal)
        for ordinal in (False, True)
    )
    for j in range(len(clusters.size)):
        here = sorted(codes[(label == j) & present].tolist())
        if 2 * len(here) < np.sum(label == j):
            assert np.isnan(means[j])
            assert modes[j] == medians[j] == -1
            continue
        assert means[j] == pytest.approx(0.1 * sum(here) / len(here))
        assert modes[j] in multimode(here)
        assert medians[j] in {here[(len(here) - 1) // 2], here[len(here) // 2]}


def test_averages_by_hand() -> None:
    clusters = collect_clusters(np.repeat([0, 1, 2], 4))
    codes = np.array([1, 1, 1, 1, 0, 2, 2, 3, 3, 3, 0, 0])
    present = np.array([1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0], dtype=np.bool_)
    # Three equal values keep their last bit: 3 · 0.1 / 3 is more than 0.1 in doubles.
    means = average_numbers(codes * 0.1, clusters, present)
    assert means[0] == 0.1
    assert means[1] == pytest.approx(0.7 / 4)
    assert np.isnan(means[2])
    modes = average_categories(codes, clusters, present, SeededWords(1), ordinal=False)
    assert modes.tolist() == [1, 2, -1]
    # Half of a cluster is enough.
    present[9] = True
    assert average_numbers(codes * 1.0, clusters, present)[2] == 3


@pytest.mark.parametrize(
    ("members", "ordinal", "expected"),
    [
        ([0, 0, 3, 3, 1], False, {0: 1 / 2, 3: 1 / 2}),
        ([2, 0, 4], False, {0: 1 / 3, 2: 1 / 3, 4: 1 / 3}),
        ([0, 1, 3, 3], True, {1: 1 / 2, 3: 1 / 2}),
    ],
)
def test_ties_are_drawn_at_random(
    members: list[int], ordinal: bool, expected: dict[int, float]
) -> None:
    count = 20_000
    clusters = collect_clusters(np.repeat(np.arange(count), len(members)))
    codes, present = np.tile(members, count), np.ones(count * len(members), dtype=np.bool_)
    chosen = average_categories(codes, clusters, present, SeededWords(1), ordinal=ordinal)
    found = Counter(chosen.tolist())
    assert found.keys() == expected.keys()
    frequencies = [count * share for share in expected.values()]
    assert stats.chisquare([found[code] for code in expected], frequencies).pvalue > 1e-4


def test_the_order_of_records_does_not_change_the_last_digit_of_a_mean() -> None:
    values, present = np.array([0.1, 0.7, 1e16, -1e16, 0.3]), np.ones(5, dtype=np.bool_)
    clusters = collect_clusters(np.zeros(5, dtype=np.int64))
    means = {
        float(average_numbers(values[list(order)], clusters, present)[0])
        for order in permutations(range(5))
    }
    assert len(means) == 1
