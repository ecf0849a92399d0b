from hashlib import sha256
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil.lab.paper.datasets import CENSUS, WINE, DataSet, PaperTable
from microveil.lab.paper.experiments import (
    EXPERIMENT_COLUMNS,
    KS,
    QUICK_KS,
    Experiment,
    list_experiments,
    perform,
)
from microveil.measures.distances import mean_sse
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.release.protect import protect


@pytest.fixture(scope="module")
def table(tiny: DataSet) -> PaperTable:
    """Ninety records, the second attribute with many ties; the class follows the first."""
    generator = np.random.default_rng(1)
    first = generator.gamma(2.0, 100.0, 90)
    attributes = pl.DataFrame({"a": first, "b": np.repeat([1.0, 2.0, 7.0], [60, 20, 10])})
    return PaperTable(tiny, attributes, first > np.median(first))


@pytest.fixture(scope="module")
def results(table: PaperTable) -> pl.DataFrame:
    return perform(Experiment("Tiny", 5, 1), table)


@pytest.fixture(scope="module")
def without_k(table: PaperTable) -> pl.DataFrame:
    return perform(Experiment("Tiny", None, 1), table)


def test_a_task_makes_every_release(results: pl.DataFrame, without_k: pl.DataFrame) -> None:
    assert dict(results.schema) == EXPERIMENT_COLUMNS
    made = results.group_by("method").len().sort("method").rows()
    assert made == [("DP-UM", 6), ("iDP-CBLS", 6), ("iDP-LS", 6), ("noiseless", 1)]
    made = without_k.group_by("method").len().sort("method").rows()
    assert made == [("DP", 6), ("constant", 1), ("microveil", 6), ("original", 1)]
    assert without_k["k"].null_count() == len(without_k)


def test_runs_can_be_repeated_and_differ(table: PaperTable, results: pl.DataFrame) -> None:
    first = results
    assert first.equals(perform(Experiment("Tiny", 5, 1), table))
    second = perform(Experiment("Tiny", 5, 2), table)
    noisy = first.filter(pl.col("method") != "noiseless").drop("run")
    assert not noisy.equals(second.filter(pl.col("method") != "noiseless").drop("run"))
    assert first["mean_sse_std"].n_unique() == len(first)


def test_values_stay_in_the_domain(table: PaperTable, without_k: pl.DataFrame) -> None:
    """No value moves further than its domain is wide, so mean SSE has a bound."""
    results = without_k.filter(method="DP", epsilon=0.01)
    original = table.attributes.to_numpy()
    for alpha, sse in results.select("alpha", "mean_sse_std").rows():
        ends = np.maximum(original, alpha * original.max(axis=0) - original)
        bound = np.mean(np.sum((ends / original.std(axis=0, ddof=1)) ** 2, axis=1)) / 4
        assert 0.25 * bound < sse <= bound


def test_microaggregation_alone_is_what_it_says(table: PaperTable) -> None:
    """Mean SSE of the pre-processed cluster means, worked out record by record."""
    noiseless = perform(Experiment("Tiny", 7, 1), table).filter(method="noiseless")
    total = 0.0
    for column in table.attributes:
        values = sorted(column.to_list())
        clusters = [values[i : i + 7] for i in range(0, 77, 7)] + [values[77:]]
        for cluster in clusters:
            inner = cluster[1:-1]
            mean = (sum(inner) + inner[0] + inner[-1]) / len(cluster)
            total += sum((value - mean) ** 2 for value in cluster) / np.var(values, ddof=1)
    assert noiseless["mean_sse_std"].item() == pytest.approx(total / 90 / 4, rel=1e-6)


@pytest.mark.parametrize(
    ("k", "method", "settings"),
    [
        (5, "iDP-CBLS", {"k": 5, "partition": "fixed", "post": "none"}),
        (None, "microveil",
         {"k": 3, "partition": "noise-optimal", "trim": 0.1, "post": "penalised-isotonic"}),
    ],
)  # fmt: skip
def test_releases_can_be_made_by_hand(
    table: PaperTable,
    results: pl.DataFrame,
    without_k: pl.DataFrame,
    k: int | None,
    method: str,
    settings: dict[str, Any],
) -> None:
    original = table.attributes.to_numpy()
    domains = {
        name: Confidential(lower=0.0, upper=3.0 * most)
        for name, most in zip(table.attributes.columns, original.max(axis=0).tolist(), strict=True)
    }
    key = ("Tiny", k, 1, method, 3.0, 0.1)
    seed = int.from_bytes(sha256(repr(key).encode()).digest()[:4])
    plan = Plan.published(epsilon=0.1, attributes=domains, **settings)
    masked = protect(table.attributes, plan, seed=seed, keep_order=True).data.to_numpy()
    made_by_task = without_k if k is None else results
    [made] = made_by_task.filter(method=method, alpha=3.0, epsilon=0.1).to_dicts()
    assert made["mean_sse_std"] == mean_sse(original, masked, scale="std")
    assert made["f_first_class"] is not None


def test_learning_is_perfect_where_the_class_is_plain(
    table: PaperTable, without_k: pl.DataFrame
) -> None:
    original = without_k.filter(method="original")
    assert original["f_first_class"].item() > 0.9
    test_records = table.second_class[59:]  # 66% of 90 is 59.4
    share = test_records.mean()
    constant = without_k.filter(method="constant")
    assert constant["f_second_class"].item() == pytest.approx(2 * share / (1 + share))
    assert constant["f_first_class"].item() == pytest.approx(2 * (1 - share) / (2 - share))


def test_the_values_of_k_are_the_papers() -> None:
    for ks in (KS, QUICK_KS):
        assert (min(ks[CENSUS.name]), max(ks[CENSUS.name])) == (3, 100)
        assert (min(ks[WINE.name]), max(ks[WINE.name])) == (3, 400)
        assert all(list(values) == sorted(set(values)) for values in ks.values())
    assert all(set(QUICK_KS[name]) <= set(KS[name]) for name in KS)


def test_tasks_cover_everything_once() -> None:
    listed = list_experiments(2, quick=True)
    assert len(set(listed)) == len(listed) == 2 * (5 + 1 + 5 + 1)
    assert len({task.name for task in listed}) == len(listed)
    assert set(listed) <= set(list_experiments(10, quick=False))
