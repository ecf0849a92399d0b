"""What an exploration does once, however many points it has."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, explore, protect
from microveil.core.choices import Missing
from microveil.engines import local
from microveil.formats import TableMeta
from microveil.judge.explore import trials as measure
from microveil.judge.explore.repeated import repeated_table
from microveil.release import choose_k
from microveil.release.choose_k import resolve_and_choose
from microveil.release.protect import run_resolved
from microveil.release.store import LocalStore

_RANDOM = np.random.default_rng(8)
TABLE = pl.DataFrame(
    {
        "a": _RANDOM.normal(50, 10, 120).round(2),
        "b": _RANDOM.integers(0, 40, 120),
        "kind": _RANDOM.choice(["x", "y", "z"], 120),
        "class": _RANDOM.choice(["yes", "no"], 120),
    }
)
NUMBERS = {"a": Confidential(lower=0, upper=100), "b": Confidential(lower=0, upper=100)}
PLAN = Plan.published(epsilon=1.0, attributes={**NUMBERS, "kind": "identifier", "class": "kept"})


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], Callable[[Any, str], None]]:
    """Count how often functions are called, by their names."""
    calls: Counter[str] = Counter()

    def count(where: Any, name: str) -> None:  # noqa: ANN401 - a module or a class
        called = getattr(where, name)

        def counting(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            calls[name] += 1
            return called(*args, **named)

        monkeypatch.setattr(where, name, counting)

    return calls, count


def test_plans_are_resolved_and_columns_sorted_looked_at_and_clustered_jointly_once(
    counted: tuple[Counter[str], Callable[[Any, str], None]],
) -> None:
    calls, count = counted
    count(choose_k, "resolve")
    count(local, "_rank")
    count(local.LocalTable, "look")
    count(local, "cluster_points")
    found = explore(TABLE, PLAN, epsilons=[0.1, 1.0], runs=2)
    of_one = 3 * 5 + 3 + 1 + 2 * 3  # clusters of k, noise-optimal, without clusters, pooled
    assert len(found.points) == 2 * of_one
    assert calls == {
        "resolve": 2 * of_one,
        "_rank": 2,
        "look": 2,
        "cluster_points": 3 * 2,  # three numbers of records, two runs
    }


def test_the_original_is_learned_once(
    counted: tuple[Counter[str], Callable[[Any, str], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, count = counted
    monkeypatch.setattr(measure, "scores_of", lambda *_, **__: {"yes": 0.9})
    count(measure, "scores_of")
    explore(TABLE, PLAN, epsilons=[1.0], target="class", runs=2)
    assert calls["scores_of"] == (2 + 6) * 2 + 1  # points without and with pooling, two runs


@pytest.mark.parametrize("missing", ["keep", "drop"])
@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_an_engine_for_many_plans_releases_what_protect_does(missing: Missing) -> None:
    table = TABLE.with_columns(b=pl.when(pl.col("b") > 3).then("b"))
    kinds = {"kind": Confidential(kind="nominal", categories=("x", "y", "z"))}
    attributes = {**NUMBERS, "b": Confidential(), **kinds, "class": "kept"}
    plan = Plan.published(epsilon=1.0, missing=missing, attributes=attributes)
    plans = [plan.replace(epsilon=e, k=k) for e in (0.5, 5.0) for k in (3, 20)]
    plans.append(Plan(epsilon=1.0, missing=missing, attributes=attributes))
    opened, store = repeated_table(table), LocalStore(TableMeta())
    resolved = [resolve_and_choose(one, opened) for one in plans]
    for seed in (1, 2):
        for one in (*resolved, resolved[0]):
            again = run_resolved(one, opened, store, seed=seed)
            expected = protect(table, one.plan, seed=seed, keep_order=True)
            assert again.data.equals(expected.data)
            assert again.detail.clusters.equals(expected.detail.clusters)
            np.testing.assert_array_equal(again.rows.positions, expected.rows.positions)
