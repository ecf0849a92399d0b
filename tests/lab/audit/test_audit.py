"""The audit finds what is there, never more, and catches mechanisms broken on purpose."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from microveil import Audit, Confidential, DataError, Plan, audit
from microveil.core.attribute import NumericSettings
from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.clusters import ClusterSummary
from microveil.core.mask import publish_centroids
from microveil.core.methods import METHODS
from microveil.core.noise import add_discrete_laplace
from microveil.core.random_words import WordSource
from microveil.engines.memory import memory_table
from microveil.lab.audit.distinguishers import _clopper_pearson
from microveil.lab.audit.number_targets import Mechanism, NumericTarget
from microveil.lab.audit.released import pinned
from microveil.lab.audit.targets import open_targets
from microveil.plan.sample import people, people_plan
from microveil.release.resolve import resolve
from microveil.types import Integers, Reals

CLUSTERS = 4
TABLE = pl.DataFrame({"x": np.random.default_rng(3).normal(50, 10, 12).round(2)})
REAL = {"x": Confidential(decimals=None, resolution=2.0**-30)}
PLAN = Plan.published(epsilon=1.0, k=3, attributes=REAL)


def found(outcome: Audit, attribute: str, level: int) -> float:
    return next(f.found for f in outcome.findings if (f.attribute, f.level) == (attribute, level))


def test_many_runs_come_near_the_loss_of_plain_laplace_noise() -> None:
    domain = Confidential(lower=0, upper=1)
    plan = Plan.published(epsilon=0.1, method="DP", attributes={"x": domain})
    outcome = audit(pl.DataFrame({"x": [0.0, 1.0]}), plan, runs=400_000, releases=20, seed=1)
    assert not outcome.broken
    assert 0.08 < found(outcome, "x", 1) < 0.1
    assert outcome.findings[0].exact == pytest.approx(0.1, rel=1e-6)
    assert outcome.findings[0].claimed == 0.1


@pytest.mark.parametrize("guarantee", ["fixed-clusters", "re-clustered"])
@pytest.mark.parametrize(
    ("method", "k", "trim"),
    [("DP", 3, 0.0), ("DP-UM", 3, 0.0), ("iDP-LS", 3, 0.0), ("iDP-CBLS", 3, 0.0),
     ("iDP-CBLS", 5, 0.2)],
)  # fmt: skip
def test_an_honest_mechanism_is_never_found_to_lose_more(
    method: MethodName, k: int, trim: float, guarantee: GuaranteeName
) -> None:
    domain = Confidential(lower=0, upper=100)
    table = TABLE.with_columns(y=pl.Series([5.0] * 9 + [7.0, 80.0, 99.0]))
    plan = Plan.published(
        epsilon=3.0, k=k, method=method, guarantee=guarantee, trim=trim,
        attributes={"x": domain, "y": domain},
    )  # fmt: skip
    outcome = audit(table, plan, runs=4_000, releases=50, seed=5)
    assert not outcome.broken
    assert all(finding.found <= finding.exact for finding in outcome.findings)
    assert outcome.to_frame().height == 6


@pytest.mark.parametrize(("k", "trim"), [(3, 0.0), (5, 0.2)])
def test_the_attack_comes_near_the_exact_loss_at_both_levels(k: int, trim: float) -> None:
    plan = PLAN.replace(guarantee="re-clustered", k=k, trim=trim)
    outcome = audit(TABLE, plan, runs=40_000, releases=20, seed=2)
    exact = {f.level: f.exact for f in outcome.findings if f.attribute == "x"}
    assert exact[2] == pytest.approx(1, rel=1e-6)
    for level in (1, 2):
        assert 0.7 * exact[level] < found(outcome, "x", level) <= exact[level]


def test_published_noise_loses_more_than_epsilon_when_clusters_are_formed_again() -> None:
    outcome = audit(TABLE, PLAN, runs=20_000, releases=20, seed=2)
    assert found(outcome, "x", 1) <= 1 < found(outcome, "x", 2)
    assert not outcome.broken


def halved(
    summary: ClusterSummary, scales: Integers, settings: NumericSettings, source: WordSource
) -> Reals:
    return publish_centroids(summary, scales // 2, settings, source)


def reused(
    summary: ClusterSummary, scales: Integers, settings: NumericSettings, source: WordSource
) -> Reals:
    runs = len(scales) // CLUSTERS
    one = add_discrete_laplace(np.zeros(runs, dtype=np.int64), scales[::CLUSTERS], source)
    noise = np.repeat(one / scales[::CLUSTERS], CLUSTERS) * scales
    return settings.grid.to_values(
        settings.method.centroid(summary, 0) + np.rint(noise).astype(int)
    )


def reused_raw(
    summary: ClusterSummary, scales: Integers, settings: NumericSettings, source: WordSource
) -> Reals:
    runs = len(scales) // CLUSTERS
    one = add_discrete_laplace(np.zeros(runs, dtype=np.int64), scales[::CLUSTERS], source)
    return settings.grid.to_values(settings.method.centroid(summary, 0) + np.repeat(one, CLUSTERS))


def not_pulled_in(
    summary: ClusterSummary, scales: Integers, settings: NumericSettings, source: WordSource
) -> Reals:
    method = replace(METHODS["iDP-CBLS"], centroid=ClusterSummary.mean)
    return publish_centroids(summary, scales, replace(settings, method=method), source)


def unmasked(
    summary: ClusterSummary, scales: Integers, settings: NumericSettings, source: WordSource
) -> Reals:
    forgotten = np.where(np.arange(len(scales)) % CLUSTERS == 1, 0, scales)
    return publish_centroids(summary, forgotten, settings, source)


@pytest.mark.parametrize("broken", [halved, reused, reused_raw, not_pulled_in, unmasked])
def test_broken_mechanisms_are_caught(broken: Mechanism) -> None:
    outcome = audit(TABLE, PLAN, runs=20_000, releases=20, seed=4, mechanism=broken)
    assert outcome.broken
    assert "BROKEN" in str(outcome)


@pytest.mark.parametrize("broken", [halved, not_pulled_in])
def test_broken_mechanisms_are_caught_on_trimmed_clusters(broken: Mechanism) -> None:
    plan = PLAN.replace(k=5, trim=0.2)
    outcome = audit(TABLE, plan, runs=20_000, releases=20, seed=4, mechanism=broken)
    assert outcome.broken


def test_noise_in_floating_point_is_caught_by_its_low_bits() -> None:
    random = np.random.default_rng(1)

    def floating(
        summary: ClusterSummary, scales: Integers, settings: NumericSettings, _: WordSource
    ) -> Reals:
        step = settings.grid.step
        return settings.grid.to_values(settings.method.centroid(summary, 0)) + random.laplace(
            scale=scales * step
        )

    assert audit(TABLE, PLAN, runs=200, releases=20, seed=1, mechanism=floating).off_grid == ("x",)
    assert audit(TABLE, PLAN, runs=200, releases=20, seed=1).off_grid == ()


@pytest.mark.parametrize(("likely", "unlikely"), [(60, 20), (100, 0), (0, 100), (50, 50)])
def test_bounds_of_probabilities_agree_with_scipy(likely: int, unlikely: int) -> None:
    low, high = (
        stats.binomtest(count, 100).proportion_ci(0.95, method="exact")
        for count in (likely, unlikely)
    )
    with np.errstate(divide="ignore"):
        expected = np.log(low.low) - np.log(high.high)
    bound = _clopper_pearson(np.array([likely]), np.array([unlikely]), 100, 0.05)[0]
    assert bound == pytest.approx(expected)


def test_the_informed_attacker_by_hand() -> None:
    # {1, 2, 4}, {5, 7, 11}, {20, 21, 30}: knowing all others, the middle cluster's values are
    # pinned to [4, 20]; the first one's to [0, 5] and the last one's to [11, 40], by the domain.
    values = [1.0, 2, 4, 5, 7, 11, 20, 21, 30]
    plan = Plan.published(epsilon=1, k=3, attributes={"x": Confidential(lower=0, upper=40)})
    table = memory_table(pl.DataFrame({"x": values}))
    (target,) = open_targets(table, resolve(plan, table))
    assert isinstance(target, NumericTarget)
    result = pinned(target, np.array([2.0, 8.0, 25.0]))
    deviation = np.std(values)
    assert result.median_width == pytest.approx(16 / deviation)
    assert result.open_ended == 0
    # Where two clusters are published with the same value, they cannot be told apart.
    merged = pinned(target, np.array([2.0, 8.0, 8.0]))
    assert merged.median_width == pytest.approx(36 / deviation)


def test_clusters_at_the_ends_are_open_without_a_domain() -> None:
    outcome = audit(TABLE, PLAN, runs=200, releases=20, seed=1)
    assert outcome.released[0].open_ended == 0.5


def test_the_whole_sample_with_missing_values_and_several_records_per_person() -> None:
    plan = people_plan().replace(method="iDP-LS", records_per_person=2)
    outcome = audit(people(300), plan, runs=200, releases=20, seed=1)
    assert {f.attribute for f in outcome.findings} == {*plan.confidential, "all together"}
    assert outcome.findings[0].claimed == pytest.approx(1 / 9 / 2)
    assert not outcome.broken


def test_the_time_budget_ends_the_audit() -> None:
    told: list[tuple[str, int, int]] = []
    outcome = audit(
        TABLE, PLAN, runs=10**9, releases=10**6, seconds=0.5, seed=1,
        progress=lambda *step: told.append(step),
    )  # fmt: skip
    assert 100 <= outcome.runs < 10**8
    assert told[-1] == ("attacking", outcome.runs, 10**9)


def test_too_few_runs() -> None:
    with pytest.raises(DataError, match="at least 100 runs and 20 releases, got 5 and 20"):
        audit(TABLE, PLAN, runs=5)


def test_a_seed_repeats_an_audit() -> None:
    once: Callable[[], Audit] = lambda: audit(TABLE, PLAN, runs=500, releases=20, seed=9)  # noqa: E731
    assert once() == once()
