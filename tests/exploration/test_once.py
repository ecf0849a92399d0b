"""What an exploration does once, however many points it has."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, explore, protect
from microveil.core.choices import Missing
from microveil.engines import memory
from microveil.exploration.engine import RepeatedEngine
from microveil.formats import TableMeta
from microveil.release import choose_k
from microveil.release.choose_k import resolve_and_choose
from microveil.release.protect import run_resolved
from microveil.release.store import LocalStore

_RANDOM = np.random.default_rng(8)
TABLE = pl.DataFrame(
    {
        "a": _RANDOM.normal(50, 10, 400).round(2),
        "b": _RANDOM.integers(0, 40, 400),
        "kind": _RANDOM.choice(["x", "y", "z"], 400),
        "class": _RANDOM.choice(["yes", "no"], 400),
    }
)
NUMBERS = {"a": Confidential(lower=0, upper=100), "b": Confidential(lower=0, upper=100)}
PLAN = Plan(epsilon=1.0, attributes={**NUMBERS, "kind": "identifier", "class": "kept"})


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


def test_plans_are_resolved_and_columns_sorted_and_looked_at_once(
    counted: tuple[Counter[str], Callable[[Any, str], None]],
) -> None:
    calls, count = counted
    count(choose_k, "resolve")
    count(memory, "_rank")
    count(memory.MemoryEngine, "_look")
    found = explore(TABLE, PLAN, epsilons=[0.1, 1.0, 10.0], runs=3)
    assert len(found.points) == 72
    assert calls == {"resolve": 72, "_rank": 2, "_look": 2}


def test_the_original_is_learned_once(
    counted: tuple[Counter[str], Callable[[Any, str], None]],
) -> None:
    from sklearn.ensemble import RandomForestClassifier

    calls, count = counted
    count(RandomForestClassifier, "fit")
    explore(TABLE, PLAN, epsilons=[1.0], target="class", runs=2)
    assert calls["fit"] == 2 * 2 + 1  # two points, two runs


@pytest.mark.parametrize("missing", ["keep", "drop"])
@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_an_engine_for_many_plans_releases_what_protect_does(missing: Missing) -> None:
    table = TABLE.with_columns(b=pl.when(pl.col("b") > 3).then("b"))
    kinds = {"kind": Confidential(kind="nominal", categories=("x", "y", "z"))}
    attributes = {**NUMBERS, "b": Confidential(), **kinds, "class": "kept"}
    plan = Plan(epsilon=1.0, missing=missing, attributes=attributes)
    plans = [plan.replace(epsilon=e, k=k) for e in (0.5, 5.0) for k in (3, 20)]
    plans.append(Plan.recommended(epsilon=1.0, missing=missing, attributes=attributes))
    engine, store = RepeatedEngine(table), LocalStore(TableMeta())
    resolved = [resolve_and_choose(one, engine) for one in plans]
    for seed in (1, 2):
        for one in (*resolved, resolved[0]):
            again = run_resolved(one, engine, store, seed=seed)
            expected = protect(table, one.plan, seed=seed)
            assert again.data.equals(expected.data)
            assert again.detail.clusters.equals(expected.detail.clusters)
            np.testing.assert_array_equal(again.rows.positions, expected.rows.positions)
