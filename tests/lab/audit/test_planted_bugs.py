"""The audit runs the line itself: bugs planted anywhere on it are found, and nothing else is."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from microveil import Audit, Confidential, Plan, audit
from microveil.core import categories, mask
from microveil.core.attribute import AttributeSettings, CategorySettings, NumericSettings
from microveil.core.categories import CategorySummary
from microveil.core.clusters import ClusterSummary
from microveil.core.mask import Masked, mask_clusters
from microveil.core.noise import add_discrete_laplace
from microveil.core.partition import cut
from microveil.core.random_words import SeededWords, Words, WordSource
from microveil.engines import local, strata
from microveil.formats import load_table
from microveil.lab.audit.audit_words import FLAWS, audit_in_words
from microveil.lab.audit.checks import Flaw
from microveil.lab.audit.line import ReleaseLine, open_read
from microveil.lab.audit.targets import open_targets
from microveil.release import protect
from microveil.release.resolve import resolve
from microveil.types import Integers, Reals

pytestmark = pytest.mark.filterwarnings("ignore::microveil.errors.PrivacyWarning")

RANDOM = np.random.default_rng(3)
TABLE = pl.DataFrame(
    {
        "x": RANDOM.normal(50, 10, 30).round(2),
        "y": RANDOM.integers(0, 100, 30),
        "z": RANDOM.integers(0, 5, 30),  # many are equal
        "sex": RANDOM.choice(["f", "m"], 30),
    }
)
DOMAIN = Confidential(lower=0, upper=100)
SEX = Confidential(kind="nominal", categories=("f", "m"))
NUMBERS = {"x": DOMAIN, "z": DOMAIN}
METHODS = ["DP-UM", "iDP-CBLS"]


def plan_of(method: str, **settings: Any) -> Plan:  # noqa: ANN401
    given: dict[str, Any] = {"epsilon": 4.0, "method": method, **settings}
    if method != "DP":
        given.setdefault("k", 3)
    return Plan.published(**given)


def audit_line(plan: Plan, table: Any = TABLE, releases: int = 60, seed: int = 1) -> Audit:  # noqa: ANN401
    table = table.select(*plan.attributes) if isinstance(table, pl.DataFrame) else table
    return audit(table, plan, runs=100, releases=releases, seed=seed)


def found(outcome: Audit) -> set[Flaw]:
    return {check.looked_for for check in outcome.checks if check.broken}


# Each plants a bug, and is found by at least one of some checks.

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def fixed_seed(patch: Patch) -> None:
    patch.setattr(local, "open_words", lambda _, purpose: SeededWords(1, purpose))


def one_stream_for_all(patch: Patch) -> None:
    patch.setattr(local, "open_words", lambda seed, _: SeededWords(seed, "all attributes"))


def constant_words(patch: Patch) -> None:
    class Constant:
        def words(self, count: int) -> Words:
            return np.full(count, 0x9E3779B97F4A7C15, dtype=np.uint64)

    patch.setattr(local, "open_words", lambda *_: Constant())


def entropy_of_16_bits(patch: Patch) -> None:
    patch.setattr(local, "open_words", lambda seed, purpose: SeededWords(seed % 2**16, purpose))


def no_noise(patch: Patch) -> None:
    patch.setattr(mask, "add_discrete_laplace", lambda centroids, *_: centroids)


def scales_times(factor: float) -> Plant:
    def plant(patch: Patch) -> None:
        def scaled(centroids: Integers, scales: Integers, source: WordSource) -> Integers:
            return add_discrete_laplace(centroids, (scales * factor).astype(np.int64), source)

        patch.setattr(mask, "add_discrete_laplace", scaled)

    return plant


def calibrated_to_half(patch: Patch) -> None:
    original = mask.calibrate
    patch.setattr(mask, "calibrate", lambda *case: original(*case) // 2)


def one_cluster_without(patch: Patch) -> None:
    def forgetful(centroids: Integers, scales: Integers, source: WordSource) -> Integers:
        first = np.arange(len(scales)) == len(scales) // 2
        return add_discrete_laplace(centroids, np.where(first, 0, scales), source)

    patch.setattr(mask, "add_discrete_laplace", forgetful)


def shared_by_clusters(patch: Patch) -> None:
    def shared(centroids: Integers, scales: Integers, source: WordSource) -> Integers:
        one = add_discrete_laplace(np.zeros(1, np.int64), np.array([2**40]), source)[0] / 2**40
        return np.asarray(centroids + np.rint(one * scales).astype(np.int64))

    patch.setattr(mask, "add_discrete_laplace", shared)


def clamped_to_the_data(patch: Patch) -> None:
    def clamped(
        summary: ClusterSummary | CategorySummary, settings: AttributeSettings, words: WordSource
    ) -> Masked:
        masked = mask_clusters(summary, settings, words)
        if not isinstance(settings, NumericSettings) or not isinstance(summary, ClusterSummary):
            return masked
        ends = np.array([summary.smallest.min(), summary.largest.max()])
        return replace(masked, values=np.clip(masked.values, *settings.grid.to_values(ends)))

    patch.setattr(strata, "mask_clusters", clamped)


def clusters_of_two(patch: Patch) -> None:
    def smaller(ranked: Integers, settings: AttributeSettings) -> Integers:
        return cut(ranked, replace(settings, k=2))

    patch.setattr(strata, "cut", smaller)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (fixed_seed, {Flaw.REPEATED_NOISE}),
        (one_stream_for_all, {Flaw.DEPENDENT_ATTRIBUTES}),
        (constant_words, {Flaw.REPEATED_NOISE, Flaw.SAME_SIGN}),
        (no_noise, {Flaw.EXACT_CENTROIDS, Flaw.NOISE_SIZE}),
        (scales_times(0.5), {Flaw.NOISE_SIZE}),
        (scales_times(0.7), {Flaw.NOISE_SIZE}),
        (scales_times(1.3), {Flaw.NOISE_SIZE}),
        (calibrated_to_half, {Flaw.NOISE_SIZE}),
        (one_cluster_without, {Flaw.EXACT_CENTROIDS}),
        (shared_by_clusters, {Flaw.SAME_SIGN}),
        (clamped_to_the_data, {Flaw.INSIDE_RANGE}),
        (clusters_of_two, {Flaw.TOO_FEW_ALIKE, Flaw.OTHER_CLUSTERS}),
    ],
)
def test_planted_bugs_are_found(
    plant: Plant, expected: set[Flaw], method: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    outcome = audit_line(plan_of(method, attributes=NUMBERS))
    assert outcome.broken
    assert expected <= found(outcome)
    reading = audit_in_words(outcome)
    assert all(f"releases show {FLAWS[flaw]}, in " in reading for flaw in expected)


@pytest.mark.long
@pytest.mark.parametrize("method", ["iDP-CBLS", "DP-UM"])
def test_words_from_16_bits_are_found_by_their_repetition(method: str, monkeypatch: Patch) -> None:
    entropy_of_16_bits(monkeypatch)
    outcome = audit_line(plan_of(method, attributes={"x": DOMAIN}), releases=600)
    assert found(outcome) == {Flaw.REPEATED_NOISE}


def test_noise_in_floating_point_is_found_on_the_line(monkeypatch: Patch) -> None:
    random = np.random.default_rng(1)

    def floating(
        summary: ClusterSummary, scales: Integers, settings: NumericSettings, *_: object
    ) -> Reals:
        values = settings.grid.to_values(settings.method.centroid(summary, 0))
        noisy = values + random.laplace(scale=scales * settings.grid.step)
        return np.clip(noisy, settings.published_lower, settings.published_upper)

    monkeypatch.setattr(mask, "publish_centroids", floating)
    assert audit_line(plan_of("iDP-LS", attributes={"x": DOMAIN})).off_grid == ("x",)


def test_noise_of_the_right_size_and_the_wrong_shape_is_found(monkeypatch: Patch) -> None:
    random = np.random.default_rng(1)

    def gaussian(centroids: Integers, scales: Integers, _: WordSource) -> Integers:
        drawn = np.rint(random.normal(0, scales * np.sqrt(np.pi / 2))).astype(np.int64)
        return np.asarray(centroids + drawn)

    monkeypatch.setattr(mask, "add_discrete_laplace", gaussian)
    table = pl.DataFrame({"x": np.random.default_rng(2).normal(0, 1, 600)})
    plan = Plan.published(epsilon=1.0, k=5, attributes={"x": Confidential(decimals=6)})
    assert Flaw.NOISE_SIZE in found(audit_line(plan, table))


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (no_noise, Flaw.EXACT_CENTROIDS),
        (scales_times(0.7), Flaw.NOISE_SIZE),
        (fixed_seed, Flaw.REPEATED_NOISE),
        (one_stream_for_all, Flaw.DEPENDENT_ATTRIBUTES),
    ],
)
def test_bugs_are_found_where_nothing_is_clustered(
    plant: Plant, expected: str, monkeypatch: Patch
) -> None:
    plant(monkeypatch)
    assert expected in found(audit_line(plan_of("DP", attributes=NUMBERS, epsilon=20.0)))


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (scales_times(0.5), Flaw.NOISE_SIZE),
        (fixed_seed, Flaw.REPEATED_NOISE),
        (one_stream_for_all, Flaw.DEPENDENT_ATTRIBUTES),
        (shared_by_clusters, Flaw.SAME_SIGN),
    ],
)
def test_bugs_are_found_through_isotonic_regression(
    plant: Plant, expected: str, monkeypatch: Patch
) -> None:
    attributes = {"x": DOMAIN, "y": DOMAIN}
    plan = plan_of("iDP-CBLS", attributes=attributes, post="penalised-isotonic")
    plant(monkeypatch)
    assert expected in found(audit_line(plan, releases=100))


# Categories.


Bools = NDArray[np.bool_]


def always_the_leader(patch: Patch) -> None:
    original = categories.representatives

    def plain(summary: CategorySummary, as_is: Bools, *rest: Any) -> Integers:  # noqa: ANN401
        return original(summary, np.ones_like(as_is), *rest)

    patch.setattr(mask, "representatives", plain)


def flips_at_half_the_rate(patch: Patch) -> None:
    original = categories.representatives

    def hasty(
        summary: CategorySummary, as_is: Bools, settings: CategorySettings, words: WordSource
    ) -> Integers:
        return original(summary, as_is, replace(settings, epsilon=settings.epsilon * 2), words)

    patch.setattr(mask, "representatives", hasty)


def always_the_truth(patch: Patch) -> None:
    patch.setattr(mask, "respond", lambda codes, *_: codes)


@pytest.mark.parametrize(
    ("method", "plant", "expected"),
    [
        ("DP-UM", always_the_leader, Flaw.NOISE_SIZE),
        ("DP-UM", flips_at_half_the_rate, Flaw.NOISE_SIZE),
        ("DP-UM", fixed_seed, Flaw.REPEATED_NOISE),
        ("DP-UM", constant_words, Flaw.REPEATED_NOISE),
        ("DP-UM", clusters_of_two, Flaw.OTHER_CLUSTERS),
        ("iDP-LS", always_the_leader, Flaw.NOISE_SIZE),
        ("DP", always_the_truth, Flaw.NOISE_SIZE),
        ("DP", fixed_seed, Flaw.REPEATED_NOISE),
    ],
)
def test_bugs_are_found_in_categories(
    method: str, plant: Plant, expected: str, monkeypatch: Patch
) -> None:
    plan = plan_of(method, attributes={"sex": SEX}, epsilon=0.5)
    assert not audit_line(plan).broken
    plant(monkeypatch)
    assert expected in found(audit_line(plan))


# As run.


def test_scales_that_follow_the_data_break_dp_um_as_run(monkeypatch: Patch) -> None:
    # The audit's own calibration has the bug as well: the releases are as they should be by it.
    def follows(summary: ClusterSummary, *_: object) -> Integers:
        return (summary.largest - summary.smallest) // 3 + 1

    monkeypatch.setattr(mask, "calibrate", follows)
    monkeypatch.setattr("microveil.lab.audit.number_targets.calibrate", follows)
    outcome = audit_line(plan_of("DP-UM", attributes={"x": DOMAIN}, epsilon=0.5))
    assert not found(outcome)
    assert {run.attribute for run in outcome.as_run if run.broken} == {"x", "all together"}
    reading = audit_in_words(outcome)
    assert "the loss is larger than it should be for x (fixed clusters)" in reading
    assert "x (as run)" in reading


def test_scales_recomputed_tell_more_than_epsilon_under_idp_and_nothing_is_broken() -> None:
    # {20, 20, 20} is published as it is; {20, 20, 100} with noise: docs/explanation/guarantees.md.
    table = pl.DataFrame({"x": [20.0, 20.0, 20.0]})
    plan = Plan.published(epsilon=1.0, k=3, attributes={"x": DOMAIN})
    outcome = audit_line(plan, table)
    x, _ = outcome.as_run
    assert (x.claimed, x.epsilon, x.told_apart) == (None, 1.0, 1.0)
    assert x.found > 1 == x.epsilon
    assert x.beyond_epsilon
    assert not outcome.broken
    assert outcome.findings[0].exact == 0  # with noise scales fixed
    reading = audit_in_words(outcome)
    assert "The loss exceeds epsilon for x, all together. This is not an error" in reading


def test_dp_um_is_told_apart_as_run_no_better_than_epsilon_allows() -> None:
    table = pl.DataFrame({"x": [0.0, 0.0, 100.0, 100.0]})
    plan = Plan.published(epsilon=1.0, k=2, method="DP-UM", attributes={"x": DOMAIN})
    x, together = audit_line(plan, table, releases=250).as_run
    assert x.claimed == together.claimed == pytest.approx(1)
    assert 0.2 < x.found <= 1
    # Laplace noise of scale Δ tells with probability 1 − exp(−1/2)/2.
    assert x.told_apart == pytest.approx(1 - np.exp(-0.5) / 2, abs=0.05)
    assert x.allowed == pytest.approx(np.e / (1 + np.e))
    assert not x.broken


# What is as it should be passes.

PEOPLE = TABLE.with_columns(
    pl.Series("born", np.random.default_rng(1).integers(0, 9_000, 30)).cast(pl.Date),
    pl.col("x").cast(pl.Float32).alias("single"),
    pl.when(pl.int_range(30) % 5 > 0).then("y").alias("y"),
    region=pl.Series(np.random.default_rng(2).choice(list("abc"), 30)),
)
KINDS = {
    "x": Confidential(lower=0, upper=100, decimals=1),
    "y": DOMAIN,
    "z": DOMAIN,
    "sex": SEX,
    "born": Confidential(lower=date(1960, 1, 1), upper=date(2000, 1, 1)),
    "single": Confidential(lower=0, upper=100),
    "region": Confidential(kind="ordinal", categories=("a", "b", "c")),
}


@pytest.mark.parametrize("guarantee", ["fixed-clusters", "re-clustered"])
@pytest.mark.parametrize("method", ["DP", "DP-UM", "iDP-LS", "iDP-CBLS"])
def test_honest_releases_of_all_kinds_pass(method: str, guarantee: str) -> None:
    plan = plan_of(method, attributes=KINDS, guarantee=guarantee, missing="keep", epsilon=20.0)
    outcome = audit_line(plan, PEOPLE, releases=40)
    assert not outcome.broken, str(outcome)
    assert [run.attribute for run in outcome.as_run] == [*KINDS, "all together"]
    assert all((run.claimed is None) == (method not in ("DP", "DP-UM")) for run in outcome.as_run)


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_tables_of_other_libraries_are_changed_and_released(library: str) -> None:
    kinds = {name: KINDS[name] for name in ("x", "z", "sex", "single")}
    table = PEOPLE.select(*kinds)
    other = table.to_pandas() if library == "pandas" else table.to_arrow()
    plan = plan_of("iDP-LS", attributes=kinds)
    assert audit_line(plan, other, releases=20) == audit_line(plan, table, releases=20)


def test_records_left_out_do_not_shift_the_neighbour() -> None:
    plan = plan_of("iDP-CBLS", attributes={"x": DOMAIN, "y": DOMAIN}, missing="drop")
    whole = audit_line(plan, PEOPLE, releases=20)
    assert whole == audit_line(plan, PEOPLE.drop_nulls("y"), releases=20)


def test_a_file_is_read_and_claimed_for_as_protect_does(tmp_path: Path) -> None:
    # Types of a CSV file are inferred from its values, which voids the claim of DP-UM: one record
    # with a decimal would change them.
    path = tmp_path / "people.csv"
    TABLE.select("y").write_csv(path)
    for attribute in (DOMAIN, Confidential(lower=0, upper=100, kind="integer")):
        plan = plan_of("DP-UM", attributes={"y": attribute})
        level = protect.protect(path, plan).certificate.levels[1]
        x, together = audit_line(plan, path, releases=20).as_run
        assert x.claimed == together.claimed
        assert (x.claimed is None) == (level.epsilon is None) == (attribute is DOMAIN)


def test_whole_numbers_as_reals_have_whole_numbers_for_neighbours() -> None:
    ends = Confidential(kind="real", lower=-0.5, upper=99.5)
    outcome = audit_line(plan_of("DP-UM", attributes={"y": ends}), releases=20)
    assert not outcome.broken


@pytest.mark.parametrize("partition", ["noise-optimal", "least-squares"])
def test_tables_are_told_apart_where_the_data_decide_on_clusters(partition: str) -> None:
    plan = plan_of("iDP-CBLS", attributes=NUMBERS, partition=partition, cap=6)
    outcome = audit_line(plan, releases=60)
    assert not outcome.broken
    assert [run.attribute for run in outcome.as_run] == ["x", "z", "all together"]
    assert all(run.claimed is None for run in outcome.as_run)
    together = outcome.as_run[-1]
    assert together.told_apart == 1 > together.allowed
    assert "told 100% of 120 releases apart" in audit_in_words(outcome)


def test_a_table_is_not_told_from_itself_where_the_data_decide_on_clusters() -> None:
    plan = plan_of("iDP-CBLS", attributes={"x": DOMAIN}, partition="noise-optimal", cap=6)
    table, random = load_table(TABLE.select("x")), np.random.default_rng(1)
    opened = open_read(table)
    here = ReleaseLine(table, plan, open_targets(opened, resolve(plan, opened)))
    there = here.of_neighbour(TABLE.select("x"))
    for one, other in ((here, there), (there, here)):
        one.compare_with(other, "x")
    for seed in range(10):
        here.observe(seed, random)
    assert not here.ratios("x").any()
