"""Own values that meet again: by chance and by relations, and by memory where tuples survive."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Plan, Verdict, protect, verdict
from microveil.attacks.own_values import own_values_met
from microveil.compare.figures import Figure
from microveil.core.related_exchange import RelatedExchange
from microveil.core.relation_model import RowValues, StateWeights

NAMES = [f"a{i}" for i in range(4)]


def table(records: int = 1_000, noise: float = 1.0) -> pl.DataFrame:
    random = np.random.default_rng(5)
    common = random.normal(size=(records, 1))
    values = (1_000 * (common + noise * random.normal(size=(records, 4)))).round()
    return pl.DataFrame(values, schema=NAMES)


def judged(data: pl.DataFrame, **settings: Any) -> Verdict:  # noqa: ANN401 - settings of a plan
    plan = Plan.published(
        epsilon=50.0, k=3, anonymity=10, attributes=dict.fromkeys(NAMES, "confidential"), **settings
    )
    return verdict(data, protect(data, plan, seed=1), seed=1)


def own(found: Verdict) -> Figure:
    (figure,) = [f for f in found.figures if f.measure == "linkage.own_values"]
    return figure


def test_whole_tuples_that_survive_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # One permutation for all attributes: the exchange of the first versions.
    def whole(exchange: RelatedExchange, _: Any, given: list[Any], words: Any) -> Any:  # noqa: ANN401
        from microveil.core.pooling import exchange as permuted

        giver = permuted(exchange.clusters, words)
        return [(place, giver) for place in range(len(given))]

    data = table()
    plan = Plan.published(
        epsilon=50.0, k=3, anonymity=10, attributes=dict.fromkeys(NAMES, "confidential")
    )
    with monkeypatch.context() as patched:
        patched.setattr(RelatedExchange, "draw", whole)
        release = protect(data, plan, seed=1)
    found = verdict(data, release, seed=1)
    assert own(found).value > 0.8
    assert not found.passed


def test_relations_alone_pass_however_strong_they_are() -> None:
    for noise in (1.0, 0.1):
        found = own(judged(table(noise=noise), rules=[]))
        assert found.value < 0.05  # of some 900 people; the standard error is below 0.02
        assert found.facts["block"] == 3
    assert found.facts["control"] > 0.3  # relations bring values back, memory does not
    assert judged(table()).passed


def test_a_model_that_remembers_people_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every person's own pair of categories as a weight of its own, and no blocks.
    random = np.random.default_rng(1)
    a, b = random.integers(0, 40, (2, 1_500))
    data = pl.DataFrame({"a": [f"x{p:03d}" for p in a], "b": [f"y{p:03d}" for p in b]})
    codes = [data[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in ("a", "b")]
    roles: Any = {
        name: {"role": "confidential", "kind": "nominal", "categories": sorted(set(data[name])),
               "method": "iDP-CBLS"}
        for name in ("a", "b")
    }  # fmt: skip
    plan = Plan.published(epsilon=500.0, k=3, anonymity=10, attributes=roles)
    release = protect(data, plan, seed=1)
    assert own(verdict(data, release, seed=1)).value < 0.05

    fit = RelatedExchange.fit

    def remembered(*given: Any, **more: Any) -> RelatedExchange:  # noqa: ANN401
        found = fit(*given, **more)
        model = found.parts[0].model
        assert model is not None
        kinds = len(model.columns[0])
        own_columns = np.arange(kinds, dtype=np.int32)
        weights = np.zeros((kinds, kinds))
        weights[codes[1], codes[0]] = 50.0
        everyone = np.ones(kinds, dtype=np.bool_)
        states = (StateWeights(everyone, np.zeros((kinds, 0))), StateWeights(everyone, weights))
        changed = replace(model, columns=(own_columns, own_columns), states=states)
        return RelatedExchange(found.clusters, (replace(found.parts[0], model=changed),), 1)

    with monkeypatch.context() as patched:
        patched.setattr(RelatedExchange, "fit", remembered)
        release = protect(data, plan, seed=1)
    assert own(verdict(data, release, seed=1)).value > 0.3


def test_rows_where_own_values_went_are_compared() -> None:
    rows = np.array([[0, 0, -1], [1, 0, 2], [2, -1, -1], [-1, 3, 3]])
    assert own_values_met(rows) == (2 / 3, 3)
    assert own_values_met(rows[:, :0]) == (0.0, 0)
    assert RowValues(None, np.arange(3)).take(np.array([2])).states is not None
