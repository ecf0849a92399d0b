"""What the audit reads from released rows, what it expects of them, and how often it errs."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from microveil import Confidential, Plan
from microveil.core.mask import publish_centroids
from microveil.core.random_words import SeededWords
from microveil.engines.memory import memory_table
from microveil.lab.audit.checks import CHECKS, Flaw, Observed, check_releases
from microveil.lab.audit.distinguishers import lower_bound, most_provable
from microveil.lab.audit.models import CategoryModel, NumericModel, fingerprints
from microveil.lab.audit.number_targets import NumericTarget
from microveil.lab.audit.rows import OtherClustersError, RowReader
from microveil.lab.audit.targets import AnyTarget, open_targets
from microveil.release.resolve import resolve

pytestmark = pytest.mark.filterwarnings("ignore::microveil.errors.PrivacyWarning")

DOMAIN = Confidential(lower=0, upper=100)
RANDOM = np.random.default_rng(7)


def open_any(values: list[float] | list[str], **settings: Any) -> AnyTarget:  # noqa: ANN401
    table = memory_table(pl.DataFrame({"x": values}))
    given: dict[str, Any] = {"epsilon": 1.0, "attributes": {"x": DOMAIN}, **settings}
    plan = Plan.published(**given)
    return open_targets(table, resolve(plan, table))[0]


def open_target(values: list[float], **settings: Any) -> NumericTarget:  # noqa: ANN401
    target = open_any(values, **settings)
    assert isinstance(target, NumericTarget)
    return target


# From rows back to clusters.


@given(st.lists(st.integers(0, 4), min_size=3, max_size=40), st.integers(1, 5), st.data())
def test_rows_are_read_as_the_clusters_they_are_of(
    values: list[int], k: int, data: st.DataObject
) -> None:
    k = min(k, len(values))
    target = open_target([float(v) for v in values], method="DP-UM", k=k)
    clusters = len(target.sizes)
    masked = np.array(data.draw(st.lists(st.integers(0, 2), min_size=clusters, max_size=clusters)))
    order = np.lexsort((RANDOM.random(len(values)), np.array(values)))  # ties at random
    rows = np.empty(len(values))
    rows[order] = np.repeat(masked, target.sizes)
    reader = RowReader(target)
    read = reader.read(rows, RANDOM)
    np.testing.assert_array_equal(reader.clusters, np.arange(clusters))
    # Clusters of one value and one size are alike; all others are read exactly.
    ends = np.cumsum(target.sizes)
    ranked = np.sort(values)
    kinds = [tuple(ranked[end - size : end]) for end, size in zip(ends, target.sizes, strict=True)]
    for kind in set(kinds):
        these = [one == kind for one in kinds]
        assert sorted(read[these]) == sorted(masked[these])
        assert len(set(kind)) == 1 or sum(these) == 1


def test_rows_of_other_clusters_are_refused() -> None:
    reader = RowReader(open_target([1.0, 2, 3, 4, 5, 6], k=3))
    assert reader.read(np.array([1.0, 1, 1, 9, 9, 9]), RANDOM).tolist() == [1, 9]
    with pytest.raises(OtherClustersError):
        reader.read(np.array([1.0, 1, 9, 9, 9, 9]), RANDOM)
    equal = RowReader(open_target([5.0] * 6, k=3))
    assert sorted(equal.read(np.array([1.0, 9, 1, 9, 1, 9]), RANDOM).tolist()) == [1, 9]
    with pytest.raises(OtherClustersError):
        equal.read(np.array([1.0, 1, 9, 9, 9, 9]), RANDOM)


def test_clusters_of_one_value_and_different_noise_are_left_out() -> None:
    # Re-clustered, the middle one of three clusters of fives cannot move and has no noise.
    values = [5.0] * 9 + [7.0, 80.0, 99.0]
    fives = open_target(values, k=3, method="iDP-LS", guarantee="re-clustered")
    assert RowReader(fives).clusters.tolist() == [3]
    rising = open_target(values, k=3, method="iDP-LS", guarantee="re-clustered", post="isotonic")
    reader = RowReader(rising)
    assert reader.clusters.tolist() == [0, 1, 2, 3]
    assert reader.read(np.repeat([3.0, 5.0, 6.0, 70.0], 3), RANDOM).tolist() == [3, 5, 6, 70]


# What is expected.


@pytest.mark.parametrize("scale", [0, 1, 3, 40])
@pytest.mark.parametrize("ends", [(0, 100), (47, 52)])
def test_probabilities_of_published_values_add_up_and_are_those_drawn(
    scale: int, ends: tuple[int, int]
) -> None:
    attribute = Confidential(lower=ends[0], upper=ends[1])
    target = open_target([48, 50, 50, 51], k=3, method="DP-UM", attributes={"x": attribute})
    units = 2**40 // 128 if ends == (0, 100) else 2**40 // 8
    centroid = target.settings.grid.to_steps(np.array([50.3]))
    model = NumericModel(target.settings, centroid, np.array([scale * units]), (0, 1), False)
    only, values = np.array([0]), np.arange(ends[0], ends[1] + 1.0)
    probabilities = np.exp(model.log_likelihood(values[:, np.newaxis], only)[:, 0])
    assert probabilities.sum() == pytest.approx(1, abs=1e-9)
    drawn = model.draw(20_000, only, RANDOM)[:, 0]
    counts = np.array([np.sum(drawn == value) for value in values])
    likely = probabilities * 20_000 > 5
    assert counts[likely].sum() > 19_000
    z = (counts - probabilities * 20_000)[likely] / np.sqrt(probabilities[likely] * 20_000)
    assert np.abs(z).max() < 5


@pytest.mark.parametrize("post", ["none", "isotonic", "penalised-isotonic"])
def test_draws_are_of_what_the_mechanism_publishes(post: str) -> None:
    values = np.random.default_rng(1).normal(50, 10, 30).tolist()
    target = open_target(values, k=3, method="iDP-LS", epsilon=5.0, post=post)
    model, every = target.own_model, np.arange(10)
    drawn = model.draw(2_000, every, RANDOM)
    assert isinstance(model, NumericModel)
    published = np.stack(
        [
            publish_centroids(target.summary, model.scales, target.settings, SeededWords(run))
            for run in range(500)
        ]
    )
    p = [stats.ks_2samp(drawn[:, j], published[:, j]).pvalue for j in every]
    assert min(p) > 1e-4
    wrong = [stats.ks_2samp(drawn[:, j] + 3, published[:, j]).pvalue for j in every]
    assert min(wrong) < 1e-6


def test_categories_are_drawn_with_their_probabilities() -> None:
    sex = Confidential(kind="nominal", categories=("f", "m", "x"))
    target = open_any(["f", "f", "m"], k=3, method="DP-UM", attributes={"x": sex})
    model = target.own_model
    assert isinstance(model, CategoryModel)
    drawn = model.draw(30_000, np.array([0]), RANDOM)
    shares = np.bincount(drawn[:, 0], minlength=3) / 30_000
    np.testing.assert_allclose(shares, np.exp(model.logarithms[0]), atol=0.015)
    np.testing.assert_allclose(
        np.exp(model.log_likelihood(np.array([[0], [1], [2]]), np.array([0])))[:, 0],
        np.exp(model.logarithms[0]),
    )


def test_divergence_is_that_of_two_laplace_distributions() -> None:
    one, two = (open_target(values, k=3) for values in ([1.0, 2, 6], [1.0, 5, 9]))
    x = np.linspace(-400, 500, 900_001)
    densities = []
    for target in (one, two):
        model = target.own_model
        assert isinstance(model, NumericModel)
        centre, scale = (float(v[0]) for v in model._in_values(np.array([0])))
        densities.append(stats.laplace.pdf(x, centre, scale))
    p, q = densities
    both = np.trapezoid((p - q) * np.log(p / q), x)
    assert one.own_model.divergence(two.own_model)[0] == pytest.approx(both, rel=1e-4)


def test_fingerprints_tell_values_and_not_their_order() -> None:
    rows = np.array([[1.0, 2, 3], [3, 1, 2], [1, 2, 4], [0.0, 1, 2], [-0.0, 2, 1]])
    prints = fingerprints(rows)
    assert prints[0] == prints[1] != prints[2]
    assert prints[3] == prints[4] != prints[0]


# How often it errs.


def attributes_of(method: str) -> list[NumericTarget]:
    random = np.random.default_rng(5)
    coarse = open_target(random.integers(0, 5, 12).tolist(), k=3, method=method, epsilon=9.0)
    fine = open_target(random.normal(50, 9, 12).tolist(), k=3, method=method, epsilon=2.0)
    return [coarse, fine]


def draws(
    targets: list[NumericTarget], releases: int, random: np.random.Generator
) -> list[Observed]:
    return [
        Observed(
            name, target.own_model, clusters, target.own_model.draw(releases, clusters, random)
        )
        for name, target in zip("ab", targets, strict=True)
        if len(clusters := np.arange(len(target.sizes)))
    ]


@pytest.mark.parametrize("method", ["DP-UM", "iDP-CBLS"])
def test_checks_of_what_is_as_it_should_be_seldom_give_an_alarm(method: str) -> None:
    targets, random = attributes_of(method), np.random.default_rng(11)
    alarms = np.zeros(CHECKS)
    repetitions, alarm = 80, 0.2
    for _ in range(repetitions):
        checks = check_releases([draws(targets, 25, random) for _ in range(2)], alarm, random)
        alarms += [check.broken for check in checks]
    assert alarms.sum() <= stats.binom.ppf(0.999, repetitions, alarm)
    assert alarms.max() <= stats.binom.ppf(0.9999, repetitions, alarm / CHECKS)


def test_one_repeated_release_is_enough_where_none_can_repeat() -> None:
    target, random = attributes_of("DP-UM")[1], np.random.default_rng(3)
    seen = draws([target, target], 60, random)[0]
    checks = {check.looked_for: check for check in check_releases([[seen]], 0.025, random)}
    assert not checks[Flaw.REPEATED_NOISE].broken
    seen.published[17] = seen.published[44]
    checks = {check.looked_for: check for check in check_releases([[seen]], 0.025, random)}
    assert checks[Flaw.REPEATED_NOISE].where == ("a",)


def test_lower_bounds_are_seldom_above_the_loss() -> None:
    # Laplace noise of scale 1 and a shift by 1 lose exactly 1.
    random = np.random.default_rng(1)
    wrong, doubt, repetitions = 0, 0.1, 300
    for _ in range(repetitions):
        halves = [
            (random.laplace(0.5, 1, (1, 400)), random.laplace(-0.5, 1, (1, 400))) for _ in range(2)
        ]
        wrong += lower_bound([(halves[0], halves[1])], doubt) > 1
    assert wrong <= stats.binom.ppf(0.999, repetitions, doubt)


def test_what_runs_can_prove_at_most() -> None:
    # All of 100 here and none there: ln p − ln q at Clopper and Pearson's ends for 2.5% each.
    low, high = 0.025 ** (1 / 100), 1 - 0.025 ** (1 / 100)
    assert most_provable(100, 0.05) == pytest.approx(np.log(low / high))
