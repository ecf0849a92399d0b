"""Heavy tails: what a few extreme values do to a table without declared domains."""

import pytest

from bench.tails import firms, moved
from microveil import Plan

RUNS = 6


def plan(**settings: float) -> Plan:
    attributes = dict.fromkeys(firms().columns, "confidential")
    return Plan(**{"epsilon": 1.0, "attributes": attributes, **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "table", [("lognormal", 1.0), ("lognormal", 2.5), ("pareto", 1.5), ("signed", 1.5)]
)
def test_the_recommended_plan_moves_no_mean_by_a_quarter_of_a_standard_deviation(
    table: tuple[str, float],
) -> None:
    data = firms(*table)
    shifts, _ = moved(data, plan(), RUNS)
    assert shifts.max(axis=1).mean() < 0.25  # the attribute that moves most in each run
    assert shifts.mean(axis=0).max() < 0.2
    untrimmed, _ = moved(data, plan(trim=0.0), RUNS)
    assert untrimmed.max(axis=1).mean() > 0.4
