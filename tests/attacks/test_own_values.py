"""Own values that meet again: always in blocks, by chance where attributes are exchanged alone."""

from itertools import product
from math import prod
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Plan, Verdict, protect, verdict
from microveil.attacks.own_values import own_values_met
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure
from microveil.show.verdicts import verdict_lines

NAMES = [f"a{i}" for i in range(4)]


def table(records: int = 1_000) -> pl.DataFrame:
    random = np.random.default_rng(5)
    common = random.normal(size=(records, 1))
    values = (1_000 * (common + random.normal(size=(records, 4)))).round()
    return pl.DataFrame(values, schema=NAMES)


def judged(**settings: Any) -> Verdict:  # noqa: ANN401 - settings of a plan
    plan = Plan.published(
        epsilon=50.0, k=3, anonymity=10, attributes=dict.fromkeys(NAMES, "confidential"), **settings
    )
    return verdict(table(), protect(table(), plan, seed=1, keep_order=True), seed=1)


def own(found: Verdict) -> Figure:
    (figure,) = [f for f in found.figures if f.measure == "linkage.own_values"]
    return figure


def test_whole_tuples_that_survive_do_not_pass() -> None:
    found = judged(together=[NAMES])
    assert own(found).value > 0.9
    assert not found.passed
    assert found.change is not None
    assert found.change.names == ("together",)
    assert found.change.plan is not None
    assert found.change.plan.together == ()


def test_of_large_tables_some_records_are_protected_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Spark, where nobody has all records in memory."""
    monkeypatch.setattr(Examined, "everyone", None)
    found = judged(together=[NAMES])
    assert own(found).value > 0.9
    assert not found.passed
    read = dict(verdict_lines(found))["Risk"]
    assert "from a sample of 1,000 of 1,000 records, protected again by the same plan)" in read
    assert own(judged()).value < 0.05


def test_a_block_of_two_is_found() -> None:
    found = judged(together=[NAMES[:2]])
    assert own(found).value > 0.2
    assert not found.passed


def test_rules_that_move_tuples_do_not_pass() -> None:
    assert not judged(rules=["a0 <= a1 + 100000"]).passed


def test_attributes_exchanged_alone_meet_by_chance() -> None:
    found = judged()
    assert own(found).value < 0.05  # of some 900 people; the standard error is below 0.02
    assert found.passed


@pytest.mark.parametrize(("own_ones", "rows"), [(2, 3), (3, 4), (3, 2)])
def test_the_control_is_exact(own_ones: int, rows: int) -> None:
    draws = list(product(range(rows), repeat=own_ones))
    by_hand = sum(len(set(draw)) < own_ones for draw in draws) / len(draws)
    places = np.arange(own_ones)[np.newaxis]
    _, control, _ = own_values_met(places, np.full_like(places, rows))
    assert control == pytest.approx(by_hand)
    assert control == pytest.approx(1 - prod(max(0, rows - s) / rows for s in range(own_ones)))
