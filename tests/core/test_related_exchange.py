"""Exchange that keeps relations: what rows depend on, how seldom own values meet, what it keeps."""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.core import random_words, relation_model
from microveil.core.kernels import category_swaps, rank_tables
from microveil.core.pooling import JointClusters, collect_clusters
from microveil.core.random_words import SeededWords, Words, WordSource, draw_all
from microveil.core.related_exchange import Part, ReadRows, RelatedExchange
from microveil.core.relation_model import (
    RelationModel,
    RowValues,
    StateWeights,
    fit_relations,
    latent_correlation,
    normal_quantiles,
    numbers_in_rows,
)
from microveil.types import Integers, Reals


def reading(columns: Sequence[RowValues]) -> list[ReadRows]:
    return [lambda one=one: one for one in columns]  # type: ignore[misc]


def released(
    exchange: RelatedExchange,
    columns: Sequence[RowValues],
    source: WordSource,
    kept: Sequence[RowValues] = (),
) -> list[Reals]:
    """Return what rows show of each attribute: its number, or its category."""
    rows: list[Reals] = [np.empty(0)] * len(columns)
    for place, giver in exchange.draw(reading(kept), reading(columns), source):
        values = columns[place].take(giver)
        shown = values.states if values.numbers is None else values.numbers
        assert shown is not None
        rows[place] = shown.astype(np.float64)
    return rows


def fitted(
    clusters: JointClusters, columns: Sequence[RowValues], block: int = 1,
    kept: Sequence[RowValues] = (), strata: Integers | None = None,
) -> RelatedExchange:  # fmt: skip
    return RelatedExchange.fit(
        clusters, reading(kept), reading(columns), block, SeededWords(1), strata=strata
    )


def mixed(records: int, seed: int) -> tuple[list[RowValues], list[RowValues]]:
    """Make two numbers, one with gaps, two categories and a kept column, all of them related."""
    random = np.random.default_rng(seed)
    common = random.normal(size=records)
    numbers = [np.round(common + random.normal(size=records), 1) for _ in range(2)]
    numbers[1][random.random(records) < 0.2] = np.nan
    states = [np.clip(np.round(common + random.normal(size=records)) + 2, 0, 4) for _ in range(3)]
    columns = [numbers_in_rows(x) for x in numbers]
    categories = [RowValues(None, x.astype(np.int64)) for x in states]
    return [*columns, *categories[:2]], categories[2:]


def moved(values: RowValues, clusters: JointClusters, random: np.random.Generator) -> RowValues:
    """Give the values of each cluster to its rows in another order."""
    giver = np.empty(len(clusters.order), dtype=np.int64)
    for rows in np.split(clusters.order, clusters.ends[:-1]):
        giver[rows] = random.permutation(rows)
    return values.take(giver)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]))
def test_rows_do_not_depend_on_who_had_which_value(seed: int, block: int) -> None:
    # The same words give the same rows, to the last bit, whoever had which of a cluster's values:
    # so the law of rows depends on sets of values, kept columns and the model alone.
    columns, kept = mixed(1_500, 3)
    random = np.random.default_rng(seed)
    clusters = collect_clusters(np.repeat(np.arange(100), 15))
    model = fitted(clusters, columns, block, kept)
    assert model.parts[0].model is not None
    others = [moved(values, clusters, random) for values in columns]
    for mine, theirs in zip(
        released(model, columns, SeededWords(seed), kept),
        released(model, others, SeededWords(seed), kept),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)


class Script:
    """Words as they are written down: a list for each time that words are asked for."""

    def __init__(self, *calls: Sequence[int]) -> None:
        self._calls = [list(call) for call in calls]

    def words(self, count: int) -> Words:
        """Return the next list, and zeros behind it."""
        given = self._calls.pop(0)
        return np.array(given + [0] * (count - len(given)), dtype=np.uint64)


def never_rejected(draw: int, bound: int) -> int:
    return bound * (2**40 // bound) + draw


def every_draw(
    numbers: Reals, model: RelationModel, block: int, latent: int, kept: Sequence[RowValues] = ()
) -> Iterator[Reals]:
    """Draw every release there is but for the normal samples, which come from one seed."""
    rows = len(numbers)
    clusters = collect_clusters(np.zeros(rows, dtype=np.int64))
    exchange = RelatedExchange(clusters, (Part(0, 1, model),), block)
    columns = [RowValues(column, None) for column in numbers.T]
    samples = np.random.default_rng(latent).integers(0, 2**63, rows, dtype=np.uint64).tolist()
    blocks, left = [], rows
    while left:
        size = left if left < 2 * block else block
        blocks.append(factorial(size))
        left -= size
    bounds = list(range(rows, 1, -1))
    for shuffle in product(*map(range, bounds)):
        first = [never_rejected(*pair) for pair in zip(shuffle, bounds, strict=True)]
        for draws in product(*map(range, blocks * 2)):
            script = [never_rejected(*pair) for pair in zip(draws, blocks * 2, strict=True)]
            source = Script(first, samples, script[: len(blocks)], script[len(blocks) :])
            yield np.column_stack(released(exchange, columns, source, kept))


def correlated(correlation: float, slopes: Sequence[Sequence[float]] = ()) -> RelationModel:
    root = np.sqrt(max(0.0, 1 - correlation**2))
    loadings = np.array([[1.0, 0.0], [correlation, root]])
    return RelationModel((), (None, None), np.array(slopes).reshape(-1, 2), loadings, None)


def every_release(numbers: Reals, correlation: float, block: int, latent: int) -> Counter[bytes]:
    """Count what is released over all draws but the normal samples."""
    drawn = every_draw(numbers, correlated(correlation), block, latent)
    return Counter(rows.tobytes() for rows in drawn)


@pytest.mark.parametrize("kept", [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1)])
def test_who_knows_the_model_and_its_samples_picks_a_row_of_a_class_by_chance(
    kept: tuple[int, ...],
) -> None:
    # He knows all but shuffles: everybody's values, slopes, R, even normal samples. Of all draws
    # that show the same rows in some order he names the row that is most often the person's.
    numbers = np.array([(1, 10), (2, 20), (3, 30), (4, 40)], dtype=np.float64)
    stay = np.array(kept, dtype=np.float64)
    model = correlated(0.9, [[0.5, -0.3]])
    for person, own in enumerate(kept):
        seen: dict[tuple[bytes, ...], Counter[bytes]] = {}
        drawn = 0
        for rows in every_draw(numbers, model, 2, 5, [RowValues(stay, None)]):
            table = [row.tobytes() for row in np.column_stack([rows, stay])]
            seen.setdefault(tuple(sorted(table)), Counter())[table[person]] += 1
            drawn += 1
        right = sum(
            max(Fraction(n, table.count(row)) for row, n in mine.items())
            for table, mine in seen.items()
        )
        assert Fraction(right, drawn) == Fraction(1, kept.count(own))


@pytest.mark.parametrize("correlation", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("table", [[(1, 10), (2, 20), (3, 30), (4, 40)], [(1, 9), (1, 8), (2, 8)]])
def test_every_order_of_rows_is_as_likely(table: list[tuple[int, int]], correlation: float) -> None:
    # All shuffles and all arrangements of blocks, for samples that are fixed: exact. Whoever had
    # which values, the release is as likely, and so is every order of its rows.
    numbers = np.array(table, dtype=np.float64)
    counts = every_release(numbers, correlation, 2, latent=5)
    for key, count in counts.items():
        rows = np.frombuffer(key).reshape(-1, 2)
        assert all(counts[rows[list(order)].tobytes()] == count
                   for order in permutations(range(len(rows))))  # fmt: skip
    swapped = numbers.copy()
    swapped[:2, 1] = swapped[1::-1, 1]
    assert every_release(swapped, correlation, 2, latent=5) == counts


@pytest.mark.parametrize("latent", range(5))
def test_own_values_meet_in_one_of_a_block_however_strong_a_relation_is(latent: int) -> None:
    numbers = np.array([(1, 1), (2, 2), (3, 3), (4, 4)], dtype=np.float64)
    counts = every_release(numbers, 1.0, 2, latent)
    total = sum(counts.values())
    for person in numbers:
        met = sum(n for key, n in counts.items()
                  if (np.frombuffer(key).reshape(-1, 2) == person).all(axis=1).any())  # fmt: skip
        assert Fraction(met, total) == Fraction(1, 2)


def strong(kinds: int, weight: float) -> RelationModel:
    """Make a model in which a category goes with the one of its number, or the next."""
    own = np.arange(kinds, dtype=np.int32)
    related = np.ones(kinds, dtype=np.bool_)
    weights = np.where(own[:, np.newaxis] == own, weight, 0.0)
    states = (
        StateWeights(related, np.zeros((kinds, 0))), StateWeights(related, weights),
    )  # fmt: skip
    return RelationModel(
        (own, own + np.int32(kinds)), states, np.zeros((2 * kinds, 0)), np.zeros((0, 0)), 30
    )


@pytest.mark.parametrize(("size", "block"), [(6, 2), (10, 3), (12, 4)])
def test_own_categories_meet_in_one_of_a_block_however_strong_a_relation_is(
    size: int, block: int
) -> None:
    clusters = collect_clusters(np.repeat(np.arange(4_000), size))
    own = np.tile(np.arange(size), 4_000)
    exchange = RelatedExchange(clusters, (Part(0, 4_000, strong(size, 50.0)),), block)
    first, second = released(exchange, [RowValues(None, own)] * 2, SeededWords(2))
    met = np.mean(first == second)  # of 4,000 · size pairs, some thousands of them independent
    assert met < 1 / block + 5 * np.sqrt(1 / block / 4_000)
    without = RelatedExchange(clusters, exchange.parts, 1)
    first, second = released(without, [RowValues(None, own)] * 2, SeededWords(2))
    assert np.mean(first == second) > 0.8  # the model alone reunites most


def test_categories_are_drawn_from_their_model() -> None:
    # Two rows with categories a, b and a, b: they agree with the chance 1/(1 + exp(-2·weight)).
    clusters = collect_clusters(np.repeat(np.arange(40_000), 2))
    exchange = RelatedExchange(clusters, (Part(0, 40_000, strong(2, 0.4)),), 1)
    own = np.tile([0, 1], 40_000)
    first, second = released(exchange, [RowValues(None, own)] * 2, SeededWords(1))
    assert np.mean(first == second) == pytest.approx(1 / (1 + np.exp(-0.8)), abs=0.012)


def test_relations_survive_in_every_kind_of_column() -> None:
    columns, kept = mixed(6_000, 1)
    label = np.random.default_rng(0).permutation(6_000) // 50
    clusters = collect_clusters(label)
    exchange = fitted(clusters, columns, 5, kept)
    rows = released(exchange, columns, SeededWords(3), kept)
    assert kept[0].states is not None
    everything = [*rows, kept[0].states.astype(np.float64)]
    before = [v.states if v.numbers is None else v.numbers for v in (*columns, *kept)]

    def correlations(found: Sequence[Reals]) -> Reals:
        table = np.column_stack(found)
        table = table[~np.isnan(table).any(axis=1)]
        upper: Reals = np.asarray(np.corrcoef(table.T))[np.triu_indices(table.shape[1], 1)]
        return upper

    original = correlations([x.astype(np.float64) for x in before if x is not None])
    assert original.min() > 0.3
    # Independent exchange would leave hardly any: joint clusters are random here.
    assert np.abs(correlations(everything) - original).max() < 0.06


def test_correlations_of_heavily_tied_numbers_survive() -> None:
    random = np.random.default_rng(4)
    common = random.normal(size=20_000)
    binary = (common + 0.5 * random.normal(size=20_000) > 0.5).astype(np.float64)
    columns = [RowValues(common, None), RowValues(binary, None)]
    clusters = collect_clusters(np.arange(20_000) // 50)
    for block in (1, 5):
        rows = released(fitted(clusters, columns, block), columns, SeededWords(1))
        before, after = np.corrcoef(common, binary)[0, 1], np.corrcoef(rows[0], rows[1])[0, 1]
        assert after == pytest.approx(before, abs=0.03)


def test_small_tables_have_no_model_and_middling_ones_none_of_categories() -> None:
    columns, _ = mixed(999, 1)
    ends = np.array([999])
    model = fit_relations([], columns, ends, 1)
    assert model is not None
    assert model.least is None
    assert all((own < 0).all() for own in model.columns)
    numbers = [RowValues(x, None) for x in np.random.default_rng(1).normal(size=(8, 139))]
    assert fit_relations([], numbers, np.array([139]), 1) is None  # 28 correlations need 140
    assert fit_relations([], [RowValues(x.numbers[:1].repeat(140), None) for x in numbers
                              if x.numbers is not None], np.array([140]), 1)  # fmt: skip
    # Categories of 29 persons have no weights, however many records these have.
    states = np.zeros(3_000, dtype=np.int64)
    states[:290] = 1
    states[290:400] = 2
    people = np.arange(3_000)
    people[:290] = np.arange(290) % 29
    two = [RowValues(None, states), RowValues(None, np.arange(3_000) % 2)]
    model = fit_relations([], two, np.array([3_000]), 1, people)
    assert model is not None
    assert [c.tolist() for c in model.columns] == [[0, -1, 1], [2, 3]]


def test_many_categories_take_more_persons_each() -> None:
    random = np.random.default_rng(1)
    columns = [RowValues(None, (40 * random.random(3_000) ** 2).astype(np.int64))] * 2
    model = fit_relations([], columns, np.full(60, 50).cumsum(), 1)
    assert model is not None
    assert model.least is not None
    assert model.least > 30
    weights = (np.count_nonzero(model.columns[0] >= 0) - 1) ** 2
    assert 5 * weights <= 3_000


def reunited(first: Integers, second: Integers, whom: Integers, draws: int, k: int) -> float:
    """How often people get both of their categories in one row."""
    random = np.random.default_rng(0)
    clusters = collect_clusters(random.permutation(len(first)) // k)
    columns = [RowValues(None, first), RowValues(None, second)]
    exchange = fitted(clusters, columns)
    cluster = np.empty(len(first), dtype=np.int64)
    cluster[clusters.order] = np.repeat(np.arange(len(clusters.size)), clusters.size)
    met = 0
    for seed in range(draws):
        a, b = released(exchange, columns, SeededWords(seed))
        there = set(zip(cluster.tolist(), a.tolist(), b.tolist(), strict=True))
        met += sum((cluster[i], first[i], second[i]) in there for i in whom.tolist())
    return met / draws / len(whom)


def test_people_rare_in_two_attributes_meet_their_values_by_chance() -> None:
    random = np.random.default_rng(7)
    first, second = random.integers(0, 4, (2, 1_000))
    rare = random.choice(1_000, 60, replace=False)
    first[rare[:60]] = 4 + np.arange(60) // 3  # twenty categories of three people each
    second[rare[:60]] = 4 + np.arange(60) // 3
    chance = 1 / 25
    rate = reunited(first, second, rare, 40, 25)
    # Three people of a category may share a cluster; 2,400 draws, so 5 deviations are 0.02.
    assert rate < chance + 0.025


def test_people_with_rare_amounts_meet_their_values_by_chance() -> None:
    # Two amounts of which five people have any: that these go together is about them alone.
    random = np.random.default_rng(2)
    amounts = np.zeros((2, 1_000))
    whom = random.choice(1_000, 5, replace=False)
    amounts[:, whom] = random.integers(1, 1_000, (2, 5))
    label = random.permutation(1_000) // 25
    columns = [RowValues(one, None) for one in amounts]
    exchange, met = fitted(collect_clusters(label), columns), 0
    for seed in range(200):
        first, second = released(exchange, columns, SeededWords(seed))
        there = set(zip(first.tolist(), second.tolist(), strict=True))
        met += sum((amounts[0, i], amounts[1, i]) in there for i in whom.tolist())
    assert met / 1_000 < 0.12  # by chance 0.04; without any guard 0.6


def test_a_kept_amount_of_few_does_not_bring_their_values_back() -> None:
    random = np.random.default_rng(6)
    amount, whom = np.zeros(2_000), random.choice(2_000, 4, replace=False)
    amount[whom] = random.integers(1, 1_000, 4)
    states, income = random.integers(0, 8, 2_000), random.normal(size=2_000)
    income[whom] = 3.0
    columns, kept = [RowValues(None, states), RowValues(income, None)], [RowValues(amount, None)]
    clusters = collect_clusters(random.permutation(2_000) // 25)
    exchange, same, above = fitted(clusters, columns, 1, kept), 0, 0.0
    for seed in range(300):
        category, number = released(exchange, columns, SeededWords(seed), kept)
        same += int(np.sum(category[whom] == states[whom]))
        above += float(np.mean(number[whom]))
    assert same / 1_200 < 0.25  # one in eight, and what else is in their joint clusters
    assert above / 300 < 1.0  # 0.1 by chance


def test_a_model_of_others_reunites_as_often() -> None:
    # 4,000 people with one rare category each: weights from themselves, and from 4,000 others.
    random = np.random.default_rng(3)
    first = np.where(random.random(8_000) < 0.1, random.integers(1, 9, 8_000), 0)
    second = random.integers(0, 6, 8_000)
    columns = [RowValues(None, first), RowValues(None, second)]
    own, others = np.arange(4_000), np.arange(4_000, 8_000)
    clusters = collect_clusters(np.arange(4_000) // 25)
    whom = np.flatnonzero(first[:4_000])

    def rate(fit_to: Integers) -> float:
        model = fitted(clusters, [v.take(fit_to) for v in columns])
        mine, met = [v.take(own) for v in columns], 0.0
        for seed in range(60):
            a, b = released(model, mine, SeededWords(seed))
            there = set(zip((np.arange(4_000) // 25).tolist(), a.tolist(), b.tolist(),
                            strict=True))  # fmt: skip
            met += sum((i // 25, first[i], second[i]) in there for i in whom.tolist())
        return met / 60 / len(whom)

    assert rate(own) - rate(others) < 0.06


@pytest.mark.parametrize("most", [1, 50])
def test_how_words_are_cut_does_not_change_rows(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random, ends = np.random.default_rng(1), np.full(40, 30).cumsum()
    numbers, categories = random.normal(size=1_200).round(1), random.integers(0, 5, 1_200)
    columns = random.integers(-1, 3, (1_200, 1)).astype(np.int32)
    weights, scores = random.normal(size=(5, 3)), np.zeros((1_200, 0), dtype=np.float32)
    samples = random.integers(0, 2**16, (1_200, 1)).astype(np.uint16)
    arrangements = np.array([factorial(n) for n in range(21)], dtype=np.uint64)
    normal, one = normal_quantiles().astype(np.float32), np.ones(1, dtype=np.float32)

    def drawn() -> list[list[int]]:
        states, givers = categories.copy(), np.empty(1_200, dtype=np.int64)
        arrange = partial(
            category_swaps.arrange, states, ends, np.ones(5, dtype=np.bool_), weights, columns,
            scores, 3, 4,
        )  # fmt: skip
        give = partial(
            rank_tables.give_by_rank, numbers, np.empty(0, np.bool_), ends, samples, normal, one,
            np.empty(0, np.float32), 25, arrangements, givers, 0,
        )  # fmt: skip
        draw_all(40, SeededWords(1), arrange)
        draw_all(40, SeededWords(2), give)
        return [states.tolist(), givers.tolist()]

    whole = drawn()
    monkeypatch.setattr(random_words, "_MOST_WORDS", most)
    assert drawn() == whole


def test_strata_have_models_of_their_own_where_they_are_large() -> None:
    random = np.random.default_rng(1)
    stratum = np.repeat([0, 1, 2], [2_000, 2_000, 400])
    x, noise = random.normal(size=(2, 4_400))
    y = np.where(stratum == 0, x, -x) + 0.3 * noise
    columns = [RowValues(x, None), RowValues(y, None)]
    clusters = collect_clusters(np.arange(4_400) // 50)
    exchange = fitted(clusters, columns, 5, strata=stratum)
    assert [part.last - part.first for part in exchange.parts] == [40, 40, 8]
    a, b = released(exchange, columns, SeededWords(1))
    for number in range(3):
        here = stratum == number
        before, after = np.corrcoef(x[here], y[here])[0, 1], np.corrcoef(a[here], b[here])[0, 1]
        assert after == pytest.approx(before, abs=0.05)


def test_categories_that_the_model_has_not_seen_are_exchanged_alone() -> None:
    random = np.random.default_rng(1)
    states = random.integers(0, 6, 3_000)
    columns = [RowValues(None, states), RowValues(None, states[::-1].copy())]
    exchange = fitted(collect_clusters(np.arange(3_000) // 10), columns, 3)
    here = [RowValues(None, np.arange(20) % 10), RowValues(None, np.zeros(20, dtype=np.int64))]
    moved_on = exchange.elsewhere(collect_clusters(np.arange(20) // 10))
    first, _ = released(moved_on, here, SeededWords(1))
    assert sorted(first[:10]) == sorted(first[10:]) == list(range(10))


def test_what_is_missing_stays_as_often_and_moves() -> None:
    columns, kept = mixed(1_500, 5)
    clusters = collect_clusters(np.arange(1_500) // 15)
    rows = released(fitted(clusters, columns, 3, kept), columns, SeededWords(1), kept)
    before = columns[1].numbers
    assert before is not None
    gone, now = np.isnan(before), np.isnan(rows[1])
    label = np.arange(1_500) // 15
    assert np.bincount(label[gone]).tolist() == np.bincount(label[now]).tolist()
    assert not np.array_equal(gone, now)


def test_a_correlation_is_found_again_from_what_ranks_keep_of_it() -> None:
    kept, squares = np.array([0.9, 0.8]), np.array([0.9, 0.75])
    rest = (squares - kept**2).min()
    for r in (-0.9, 0.0, 0.3, 1.0):
        seen = kept.prod() * r + rest * r**5
        covariance = np.array([[1.0, seen], [seen, 1.0]])
        found = latent_correlation(covariance, kept, squares)
        assert found[0, 1] == pytest.approx(r, abs=1e-9)
    assert relation_model.LEAST_PERSONS == 1_000
