"""Grades go by what is gained over chance, and words say what grades go by."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Plan, protect, verdict
from microveil.attacks.attack_rows import LOW_LINKAGE
from microveil.attacks.linked import linked_share, luck
from microveil.compare.figures import Figure, Sample
from microveil.judge.grades import grade_of, how_risky, passes
from microveil.show.words.grading import what_counts


def nine(seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(random.normal(50, 10, (9, 3)).round(), schema=["a", "b", "c"])


def plan(**settings: Any) -> Plan:  # noqa: ANN401 - settings of a plan
    roles = {name: {"role": "confidential", "lower": 0, "upper": 100} for name in "abc"}
    given = {
        "epsilon": 1.0, "method": "DP", "partition": "fixed", "post": "none", "anonymity": 0,
        "attributes": roles,
    }  # fmt: skip
    return Plan(**{**given, **settings})


@pytest.mark.parametrize("seed", range(12))
def test_nine_records_of_pure_noise_pass(seed: int) -> None:
    """Five or more of nine are found by guessing in one of 700; more than one of nine in half."""
    found = verdict(nine(seed), protect(nine(seed), plan(epsilon=1e-4), seed=seed), seed=seed)
    assert found.passed


@pytest.mark.parametrize("seed", range(3))
def test_nine_records_that_are_given_away_do_not(seed: int) -> None:
    found = verdict(nine(seed), protect(nine(seed), plan(epsilon=1e5), seed=seed), seed=seed)
    assert not found.passed
    assert found.risk.grade == "poor"
    pooled = plan(epsilon=1.0, method="iDP-CBLS", k=3, anonymity=3)
    known = verdict(nine(seed), protect(nine(seed), pooled, seed=seed), seed=seed)
    assert not known.passed  # one in three, where guessing finds one in nine


def linked(rate: float, records: int, bound: float | None = None) -> Figure:
    found = linked_share("linkage.nearest", rate, records, records, records)
    facts = {"chance": found.chance, "luck": found.luck, "known": None, "people": 1.0}
    return Figure("linkage.nearest", None, rate, facts, None, bound)


def test_a_gain_by_hand() -> None:
    assert linked(0.28, 100).counted == pytest.approx(0.273)  # 27 of 99
    assert linked(0.0595, 100).counted == pytest.approx(0.05)
    assert grade_of(linked(0.0594, 100)) == "good"
    assert grade_of(linked(0.061, 100)) == "fair"
    assert linked(4 / 9, 9).counted == 0
    assert linked(5 / 9, 9).counted == pytest.approx(0.5)
    assert luck(1 / 9, 9) == pytest.approx(4 / 9)


def test_a_gain_that_may_be_luck_does_not_count() -> None:
    facts = {"rate": 0.44, "control": 0.3, "tried": 20}
    gain = Figure("risk.inference", "sex", 0.2, facts, Sample(20, 20, 0.0, 0.6))
    assert grade_of(gain) == "good"
    shown = Figure("risk.inference", "sex", 0.2, facts, Sample(20, 20, 0.01, 0.6))
    assert grade_of(shown) == "fair"
    others = [linked(0.02, 100)]
    assert how_risky([*others, shown]).grade == "fair"
    assert passes([*others, shown])
    worse = Figure("risk.inference", "sex", 0.34, facts, Sample(20, 20, 0.1, 0.6))
    assert not passes([*others, worse])
    assert not passes([shown])  # without attacks nothing is known


@given(st.floats(0, 1), st.integers(2, 100_000), st.sampled_from([None, 0.1, 0.2]))
def test_what_is_written_is_what_is_graded(rate: float, records: int, bound: float | None) -> None:
    figure = linked(rate, records, bound)
    said = what_counts(how_risky([figure]))
    written = said.split("a gain of ", 1)[1].split("%")[0]
    if not written.startswith("more than"):
        assert (float(written) <= 100 * LOW_LINKAGE) == (grade_of(figure) == "good")
