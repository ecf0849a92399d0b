"""Own values that meet again: by chance and by relations, and by memory where tuples survive."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Plan, Verdict, protect, verdict
from microveil.attacks.own_values import own_values_met
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure
from microveil.core.related_exchange import RelatedExchange
from microveil.show.words.readings import reading

NAMES = [f"a{i}" for i in range(4)]


def table(records: int = 1_000, noise: float = 1.0) -> pl.DataFrame:
    random = np.random.default_rng(5)
    common = random.normal(size=(records, 1))
    values = (1_000 * (common + noise * random.normal(size=(records, 4)))).round()
    return pl.DataFrame(values, schema=NAMES)


def judged(data: pl.DataFrame, **settings: Any) -> Verdict:  # noqa: ANN401 - settings of a plan
    plan = Plan.published(
        epsilon=50.0,
        k=3,
        anonymity=25,
        exact_from=10,
        attributes=dict.fromkeys(NAMES, "confidential"),
        **settings,
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
        epsilon=50.0,
        k=3,
        anonymity=25,
        exact_from=10,
        attributes=dict.fromkeys(NAMES, "confidential"),
    )
    with monkeypatch.context() as patched:
        patched.setattr(RelatedExchange, "draw", whole)
        release = protect(data, plan, seed=1)
    found = verdict(data, release, seed=1)
    assert own(found).value > 0.8
    assert not found.passed


def test_of_large_tables_some_records_are_protected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Spark, where nobody has all records in memory."""
    monkeypatch.setattr(Examined, "everyone", None)
    found = own(judged(table()))
    assert found.value < 0.05
    read = reading(found)
    assert "from a sample of 1,000 of 1,000 records, protected again by the same plan)" in read


def test_relations_alone_pass_however_strong_they_are() -> None:
    for noise in (1.0, 0.1):
        found = own(judged(table(noise=noise), rules=[]))
        assert found.value < 0.05  # of some 900 people; the standard error is below 0.02
        assert found.facts["block"] == 5
    assert float(str(found.facts["control"])) > 0.05  # relations bring values back, memory does not
    assert judged(table()).passed


def test_rows_where_own_values_went_are_compared() -> None:
    rows = np.array([[0, 0, -1], [1, 0, 2], [2, -1, -1], [-1, 3, 3]])
    assert own_values_met(rows) == (2 / 3, 3)
    assert own_values_met(rows[:, :0]) == (0.0, 0)
