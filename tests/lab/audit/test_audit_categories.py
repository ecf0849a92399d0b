"""The audit of categories, against enumerations of its own."""

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, pairwise, permutations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from microveil import Audit, Confidential, Plan, audit
from microveil.core.attribute import CategoryKind, CategorySettings
from microveil.core.categories import CategorySummary, leaders, representatives
from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.methods import GUARANTEES
from microveil.core.random_words import WordSource
from microveil.engines.memory import memory_table
from microveil.lab.audit.audit_words import audit_in_words
from microveil.lab.audit.category_targets import (
    _MOST_CATEGORIES,
    CategoryMechanism,
    CategoryTarget,
    mask_counts,
)
from microveil.lab.audit.fixed_scales import Finding
from microveil.lab.audit.released import narrowed
from microveil.lab.audit.targets import AnyTarget, open_targets, worst_neighbour
from microveil.release.resolve import resolve
from microveil.types import Integers

pytestmark = pytest.mark.filterwarnings("ignore::microveil.errors.PrivacyWarning")

LETTERS = tuple("abcdefghijklmnopqrst")
Cluster = tuple[int, ...]  # the categories of its records, as numbers
Probabilities = list[float]


def open_case(table: pl.DataFrame, plan: Plan) -> tuple[AnyTarget, ...]:
    opened = memory_table(table)
    return open_targets(opened, resolve(plan, opened))


def open_letters(codes: list[int], plan: Plan) -> CategoryTarget:
    (target,) = open_case(pl.DataFrame({"x": [LETTERS[code] for code in codes]}), plan)
    assert isinstance(target, CategoryTarget)
    return target


def letters(kind: CategoryKind, categories: int) -> Confidential:
    return Confidential(kind=kind, categories=LETTERS[:categories])


# An implementation of its own of what categories publish, one cluster and one order at a time.


def scores_of(cluster: Cluster, kind: str, categories: int) -> list[int]:
    if kind == "nominal":
        return [cluster.count(c) for c in range(categories)]
    return [
        -max(sum(v < c for v in cluster), sum(v > c for v in cluster)) for c in range(categories)
    ]


def keeps_its_leader(scores: list[int], records: int) -> bool:
    leader = scores.index(max(scores))
    return all(
        scores[leader] - score >= 2 * records + (c < leader)
        for c, score in enumerate(scores)
        if c != leader
    )


def permute_and_flip(scores: list[int], rate: float) -> Probabilities:
    """Add up over all orders in which the categories may come up."""
    accept = [math.exp(-rate * (max(scores) - score)) for score in scores]
    chosen = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1.0
        for c in order:
            chosen[c] += left * accept[c] / len(orders)
            left *= 1 - accept[c]
    return chosen


def randomised_response(code: int, epsilon: float, categories: int) -> Probabilities:
    weights = [math.exp(epsilon * (c == code)) for c in range(categories)]
    return [weight / sum(weights) for weight in weights]


def of_all_outcomes(clusters: list[Probabilities]) -> list[float]:
    return [math.prod(choice) for choice in product(*clusters)]


def largest_loss(here: list[Probabilities], there: list[Probabilities]) -> float:
    pairs = zip(of_all_outcomes(here), of_all_outcomes(there), strict=True)
    return max(abs(math.log(p / q)) for p, q in pairs if (p, q) != (0, 0))


class Case:
    """A small table and a plan, every neighbour of which can be looked at."""

    def __init__(self, codes: list[int], settings: CategorySettings, labels: list[int]) -> None:
        self.codes, self.settings, self.labels = codes, settings, labels
        self.categories = len(settings.categories)
        self.as_is = [
            settings.method.promise.name == "iDP"
            and keeps_its_leader(
                scores_of(cluster, settings.kind, self.categories), settings.persons
            )
            for cluster in self.clusters(codes)
        ]

    def clusters(self, codes: list[int]) -> list[Cluster]:
        members: dict[int, list[int]] = {}
        for label, code in sorted(zip(self.labels, codes, strict=True)):
            members.setdefault(label, []).append(code)
        return [tuple(cluster) for cluster in members.values()]

    def reclustered(self, codes: list[int]) -> list[Cluster]:
        sizes = [len(list(same)) for _, same in groupby(sorted(self.labels))]
        ends = np.cumsum([0, *sizes]).tolist()
        ranked = sorted(codes)
        return [tuple(ranked[start:end]) for start, end in pairwise(ends)]

    def publishes(self, clusters: list[Cluster]) -> list[Probabilities]:
        rate = float(self.settings.rate)
        if not self.settings.method.clustered:
            return [randomised_response(code, 2 * rate, self.categories) for (code,) in clusters]
        probabilities = []
        for cluster, as_is in zip(clusters, self.as_is, strict=True):
            scores = scores_of(cluster, self.settings.kind, self.categories)
            leader = scores.index(max(scores))
            certain = [float(c == leader) for c in range(self.categories)]
            probabilities.append(certain if as_is else permute_and_flip(scores, rate))
        return probabilities

    def losses(self, *, fixed: bool) -> Iterator[tuple[int, int, float]]:
        fixed |= not self.settings.method.clustered
        form = self.clusters if fixed else self.reclustered
        here = self.publishes(self.clusters(self.codes))
        for record, code in product(range(len(self.codes)), range(self.categories)):
            if code != self.codes[record]:
                changed = [*self.codes[:record], code, *self.codes[record + 1 :]]
                yield record, code, largest_loss(here, self.publishes(form(changed)))


def labels_of(codes: list[int], plan: Plan) -> list[int]:
    if plan.method == "DP":
        return list(range(len(codes)))
    order = sorted(range(len(codes)), key=lambda record: (codes[record], record))
    k = plan.k
    assert isinstance(k, int)
    clusters, labels = len(codes) // k, [0] * len(codes)
    for rank, record in enumerate(order):
        labels[record] = min(rank // k, clusters - 1)
    return labels


METHODS: list[MethodName] = ["DP", "DP-UM", "iDP-LS", "iDP-CBLS"]


@st.composite
def small_cases(draw: st.DrawFn) -> tuple[list[int], Plan]:
    categories = draw(st.integers(2, 4))
    codes = draw(st.lists(st.integers(0, categories - 1), min_size=3, max_size=9))
    method = draw(st.sampled_from(METHODS))
    k = draw(st.integers(3 if method == "iDP-CBLS" else 2, max(3, len(codes) // 2)))
    persons = draw(st.sampled_from([1, 1, 2]))
    guarantee = draw(st.sampled_from(list(GUARANTEES)))
    assume(persons == 1 or guarantee == "fixed-clusters")
    assume(method != "DP" or len(codes) <= 5)
    return codes, Plan.published(
        epsilon=draw(st.sampled_from([0.1, 1.0, 5.0])), method=method, guarantee=guarantee,
        records_per_person=persons, k=k,
        attributes={"x": letters(draw(st.sampled_from(["nominal", "ordinal"])), categories)},
    )  # fmt: skip


@given(small_cases())
@settings(max_examples=150)
def test_losses_are_those_of_all_single_record_changes(case: tuple[list[int], Plan]) -> None:
    codes, plan = case
    target = open_letters(codes, plan)
    by_hand = Case(codes, target.settings, labels_of(codes, plan))
    epsilon = plan.epsilon / plan.records_per_person
    changing = min(len(by_hand.as_is), len(target.settings.categories) - 1)
    reclustered = 1 if plan.guarantee == "re-clustered" or plan.method == "DP" else changing
    for fixed, claimed in ((True, epsilon), (False, epsilon * reclustered)):
        losses = list(by_hand.losses(fixed=fixed))
        for record, code, loss in losses:
            there = target.changed(record, code, fixed=fixed)
            assert target.loss(there) == pytest.approx(loss, abs=1e-9)
        worst = max(loss for _, _, loss in losses)
        assert worst <= claimed * (1 + 1e-9)
        found = worst_neighbour([target], target.telling_records(fixed=fixed), fixed=fixed)
        assert found.loss == pytest.approx(worst, abs=1e-9)


def test_losses_of_several_attributes_add_up_outcome_by_outcome() -> None:
    x, y = [0, 0, 1, 1, 1, 2], [0, 1, 0, 1, 1, 1]
    table = pl.DataFrame({"x": [LETTERS[c] for c in x], "y": [LETTERS[c] for c in y]})
    attributes = {"x": letters("nominal", 3), "y": letters("nominal", 2)}
    plan = Plan.published(epsilon=2.0, k=3, method="DP-UM", attributes=attributes)
    targets = open_case(table, plan)
    cases = []
    for codes, target in zip((x, y), targets, strict=True):
        assert isinstance(target, CategoryTarget)
        cases.append(Case(codes, target.settings, labels_of(codes, plan)))
    here = [p for case in cases for p in case.publishes(case.clusters(case.codes))]
    worst = 0.0
    for a, b in product(range(3), range(2)):
        changed = [[*case.codes[:-1], code] for case, code in zip(cases, (a, b), strict=True)]
        there = [
            p
            for case, codes in zip(cases, changed, strict=True)
            for p in case.publishes(case.clusters(codes))
        ]
        worst = max(worst, largest_loss(here, there))
    assert worst_neighbour(targets, [5], fixed=True).loss == pytest.approx(worst, abs=1e-9)


def test_many_categories_are_looked_at_from_both_ends() -> None:
    codes = np.random.default_rng(2).integers(0, 16, 60).tolist()
    plan = Plan.published(
        epsilon=1.0, k=4, method="DP-UM", attributes={"x": letters("ordinal", 16)}
    )
    target = open_letters(codes, plan)
    assert len(set(codes)) > _MOST_CATEGORIES
    found = worst_neighbour([target], target.telling_records(fixed=False), fixed=False)
    losses = [
        target.loss(target.changed(record, code, fixed=False))
        for record, code in product(range(60), range(16))
    ]
    assert 0.9 * max(losses) < found.loss <= max(losses)


def test_probabilities_too_small_for_a_double_still_compare() -> None:
    plan = Plan.published(
        epsilon=900.0, k=20, method="DP-UM", attributes={"x": letters("nominal", 2)}
    )
    target = open_letters([0] * 20, plan)
    assert target.loss(target.changed(0, 1, fixed=True)) == pytest.approx(900)


# What is honest is not flagged, and what is broken is caught.

EIGHT = [0, 0, 0, 0, 1, 1, 2, 2, 2]


def audit_letters(
    codes: list[int], plan: Plan, mechanism: CategoryMechanism = mask_counts, runs: int = 20_000,
    seed: int = 1,
) -> Audit:  # fmt: skip
    table = pl.DataFrame({"x": [LETTERS[code] for code in codes]})
    return audit(table, plan, runs=runs, releases=20, seed=seed, category_mechanism=mechanism)


@pytest.mark.parametrize("guarantee", ["fixed-clusters", "re-clustered"])
@pytest.mark.parametrize("kind", ["nominal", "ordinal"])
@pytest.mark.parametrize("method", METHODS)
def test_an_honest_mechanism_is_never_found_to_lose_more(
    method: MethodName, kind: CategoryKind, guarantee: GuaranteeName
) -> None:
    plan = Plan.published(
        epsilon=3.0, method=method, guarantee=guarantee, attributes={"x": letters(kind, 3)},
        k=3,
    )  # fmt: skip
    outcome = audit_letters(EIGHT, plan, runs=4_000)
    assert not outcome.broken
    assert len(outcome.findings) == 4
    assert all(finding.found <= finding.exact for finding in outcome.findings)
    for finding in outcome.findings:
        assert finding.claimed is not None
        assert finding.exact <= finding.claimed * (1 + 1e-12)


def test_few_of_many_audits_exceed_the_exact_loss() -> None:
    plan = Plan.published(epsilon=1.0, k=3, method="DP-UM", attributes={"x": letters("nominal", 2)})
    outcomes = [audit_letters([0, 0, 1], plan, runs=2_000, seed=seed) for seed in range(20)]
    assert sum(outcome.broken for outcome in outcomes) <= 1
    assert max(outcome.findings[0].found for outcome in outcomes) > 0.75


@pytest.mark.parametrize(("method", "least"), [("DP", 0.85), ("DP-UM", 0.85), ("iDP-LS", 0.85)])
def test_many_runs_come_near_the_exact_loss(method: MethodName, least: float) -> None:
    plan = Plan.published(epsilon=1.0, method=method, attributes={"x": letters("nominal", 2)}, k=3)
    outcome = audit_letters([0, 0, 1, 1, 1], plan, runs=100_000)
    for finding in outcome.findings:
        assert finding.exact == pytest.approx(1.0)
        assert least < finding.found <= finding.exact


Bools = NDArray[np.bool_]


def doubled(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    return mask_counts(summary, as_is, replace(settings, epsilon=2 * settings.epsilon), source)


def always_the_mode(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    return representatives(summary, np.ones_like(as_is), settings, source)


def stable_with_a_lead_of_two(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    ordered = np.sort(summary.scores(settings.kind), axis=1)
    return representatives(
        summary, as_is | (ordered[:, -1] - ordered[:, -2] >= 2), settings, source
    )


def last_of_equals(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    """Break ties in favour of the last category, which is_stable does not reckon with."""
    chosen = representatives(summary, as_is, settings, source)
    scores = summary.scores(settings.kind)
    last = scores.shape[1] - 1 - leaders(scores[:, ::-1])
    return np.where(as_is, last, chosen)


def reused(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    """Draw all clusters of a run with the same words."""

    class Same:
        def __init__(self, words: NDArray[np.uint64]) -> None:
            self.all = words

        def words(self, count: int) -> NDArray[np.uint64]:
            return self.all[:count]

    clusters = 2
    chosen = np.empty(len(summary), dtype=np.int64)
    for run in range(0, len(summary), clusters):
        words = source.words(200)
        for cluster in range(run, run + clusters):
            one = slice(cluster, cluster + 1)
            part = CategorySummary(summary.size[one], summary.counts[one], summary.persons)
            chosen[one] = mask_counts(part, as_is[one], settings, Same(words))
    return chosen


def honest_half_of_the_time(
    summary: CategorySummary, as_is: Bools, settings: CategorySettings, source: WordSource
) -> Integers:
    masked = mask_counts(summary, as_is, settings, source)
    return np.where(source.words(len(summary)) % 2 == 0, leaders(summary.counts), masked)


@pytest.mark.parametrize(
    ("codes", "method", "k", "broken"),
    [
        ([0, 0, 1], "DP-UM", 3, doubled),
        ([0, 0, 1], "iDP-LS", 3, doubled),
        ([0, 1], "DP", None, doubled),
        ([0, 1, 1, 0, 0], "iDP-CBLS", 5, always_the_mode),
        ([1, 1], "iDP-LS", 2, stable_with_a_lead_of_two),
        ([0, 0], "iDP-LS", 2, last_of_equals),
        ([0, 0, 0, 0], "DP-UM", 2, reused),
        ([0, 1], "DP", None, reused),
        ([0, 1], "DP", None, honest_half_of_the_time),
        ([0, 0, 1], "DP-UM", 3, honest_half_of_the_time),
    ],
)
def test_broken_mechanisms_are_caught(
    codes: list[int], method: MethodName, k: int | None, broken: CategoryMechanism
) -> None:
    plan = Plan.published(
        epsilon=1.0, method=method, attributes={"x": letters("nominal", 2)}, k=k or 1
    )
    assert not audit_letters(codes, plan, runs=4_000).broken
    outcome = audit_letters(codes, plan, broken, runs=4_000)
    assert outcome.broken
    assert "BROKEN" in str(outcome)


def test_more_lost_than_claimed_is_broken_even_if_no_attack_found_it() -> None:
    assert Finding("x", 1, claimed=1.0, exact=1.5, found=0.3).broken
    assert not Finding("x", 1, claimed=1.5, exact=1.0, found=0.3).broken


# The informed attacker.


def possible_by_hand(target: CategoryTarget, published: list[int], record: int) -> set[int]:
    """Try every category in every order of ties: which leave all other records where they are?"""
    codes, settings = target.values.tolist(), target.settings
    sizes = target.sizes.tolist()
    starts = np.cumsum([0, *sizes]).tolist()

    def clusters(codes: list[int], ties: tuple[int, ...]) -> list[frozenset[int]]:
        order = sorted(ties, key=lambda one: codes[one])
        return [frozenset(order[a:b]) for a, b in pairwise(starts)]

    seen = clusters(codes, tuple(range(len(codes))))
    possible = set()
    for code in range(len(settings.categories)):
        changed = [*codes[:record], code, *codes[record + 1 :]]
        if not any(clusters(changed, ties) == seen for ties in permutations(range(len(codes)))):
            continue
        again = [tuple(changed[one] for one in members) for members in seen]
        scores = [scores_of(cluster, settings.kind, len(settings.categories)) for cluster in again]
        if all(
            settings.method.promise.name == "DP"
            or not keeps_its_leader(one, settings.persons)
            or one.index(max(one)) == chosen
            for one, chosen in zip(scores, published, strict=True)
        ):
            possible.add(code)
    return possible


@pytest.mark.parametrize("method", ["DP-UM", "iDP-LS"])
@pytest.mark.parametrize("seed", range(8))
def test_the_informed_attacker_by_brute_force(method: MethodName, seed: int) -> None:
    random = np.random.default_rng(seed)
    codes = random.integers(0, 3, 6).tolist()
    kind: CategoryKind = "ordinal" if seed % 2 else "nominal"
    plan = Plan.published(
        epsilon=0.5, k=2 + seed % 2, method=method, attributes={"x": letters(kind, 3)}
    )
    target = open_letters(codes, plan)
    published = leaders(target.summary.scores(target.settings.kind))
    noisy = ~target.as_is
    published[noisy] = random.integers(0, 3, np.count_nonzero(noisy))
    left = [len(possible_by_hand(target, published.tolist(), record)) for record in range(6)]
    result = narrowed(target, published)
    assert result.certain == pytest.approx(np.mean([one == 1 for one in left]))
    assert result.possible == pytest.approx(np.mean(left))
    assert result.categories == 3


def test_the_informed_attacker_by_hand() -> None:
    # aaa aab bcc, published a, b, c. The first cluster's neighbour begins with a: certain. The
    # second lies between a and b. Without its b it is aa: with a it would be stable and publish a,
    # so the b is certain; for an a both are possible. The third lies between b and c.
    codes = [0, 0, 0, 0, 0, 1, 1, 2, 2]
    plan = Plan.published(
        epsilon=1.0, k=3, method="iDP-LS", attributes={"x": letters("nominal", 3)}
    )
    result = narrowed(open_letters(codes, plan), np.array([0, 1, 2]))
    assert result.certain == pytest.approx(4 / 9)
    assert result.possible == pytest.approx((4 * 1 + 5 * 2) / 9)
    # Under DP-UM every choice is possible, and so the b is not certain.
    result = narrowed(open_letters(codes, plan.replace(method="DP-UM")), np.array([0, 1, 2]))
    assert result.certain == pytest.approx(3 / 9)


def test_a_mixed_table_with_a_group_and_missing_values() -> None:
    random = np.random.default_rng(5)
    table = pl.DataFrame(
        {
            "region": random.choice(list("abc"), 60),
            "school": random.choice([1, 2, 3, 4], 60),
            "smokes": [None, *(random.random(59) < 0.3)],
            "age": random.integers(18, 90, 60),
            "pay": random.normal(3_000, 500, 60).round(),
        }
    )
    plan = Plan.published(
        epsilon=2.0, k=3, missing="keep", anonymity=5, groups=[["region", "pay"]],
        attributes={
            "region": letters("nominal", 3),
            "school": Confidential(kind="ordinal", categories=(1, 2, 3, 4)),
            "smokes": Confidential(kind="nominal"),
            "age": Confidential(lower=0, upper=120),
            "pay": Confidential(lower=0, upper=20_000),
        },
    )  # fmt: skip
    outcome = audit(table, plan, runs=500, releases=20, seed=3)
    assert not outcome.broken
    levels = {(finding.attribute, finding.level) for finding in outcome.findings}
    everything = {*plan.confidential, "all together"}
    assert levels == {(name, level) for name in everything for level in (1, 2)}
    assert [one.attribute for one in outcome.released] == ["age", "pay"]
    assert [one.attribute for one in outcome.narrowed] == ["region", "school", "smokes"]
    assert outcome.pooled == ("region", "pay", "school", "smokes", "age")
    reading = audit_in_words(outcome)
    assert "were attacked before pooling" in reading
    assert "is certain of" in reading
    assert outcome.to_frame().height == len(levels)
    assert outcome == audit(table, plan, runs=500, releases=20, seed=3)


def test_randomised_response_leaves_the_informed_attacker_nothing() -> None:
    plan = Plan.published(epsilon=1.0, method="DP", attributes={"x": letters("nominal", 3)})
    outcome = audit_letters(EIGHT, plan, runs=200)
    assert (outcome.released, outcome.narrowed, outcome.pooled) == ((), (), ())
    assert "is certain of" not in audit_in_words(outcome)
