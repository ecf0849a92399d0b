"""The measured frontier between more private and more useful."""

import polars as pl
import pytest

from microveil import Plan
from microveil.compare.figures import Figure
from microveil.judge.frontier import (
    LADDER,
    Stop,
    TriedStop,
    ladder,
    on_frontier,
    some_people,
    stop_of,
    try_plan,
)
from microveil.judge.grades import Graded, place_of
from microveil.plan.propose.answers import with_unit
from microveil.plan.sample import people
from tests.app.hospital import visits


def test_every_stop_promises_more_than_the_next() -> None:
    for own in (Stop(25, 1.0), Stop(30, 0.2), Stop(0, 3.0), *LADDER):
        stops = ladder([own])
        assert own in stops
        for place, stop in enumerate(stops):
            assert all(stop.protects_more_than(later) for later in stops[place + 1 :])
    assert not Stop(25, 1.0).protects_more_than(Stop(25, 1.0))
    assert not Stop(25, 2.0).protects_more_than(Stop(10, 1.0))


def tried(anonymity: int, epsilon: float, loss: float) -> TriedStop:
    """A stop that loses so much of the scale of the quantiles' grades."""
    figure = Figure("utility.quantiles", None, 0.25 * loss)
    useful = Graded("good", (figure,))
    assert place_of(useful) == pytest.approx(loss / 3)
    return TriedStop(Stop(anonymity, epsilon), useful, Graded("unknown", ()), passed=True)


def test_a_stop_that_gives_up_protection_for_nothing_is_left_out() -> None:
    private, middle, useful = tried(50, 0.5, 0.6), tried(25, 1.0, 0.7), tried(5, 5.0, 0.2)
    assert on_frontier([private, middle, useful]) == (private, useful)
    other = tried(100, 5.0, 0.2)  # more private in one respect only: it speaks for nothing
    assert on_frontier([private, middle, other]) == (private, other)
    assert on_frontier([middle, tried(25, 2.0, 0.7)]) == (middle,)


def test_a_larger_crowd_loses_more_and_is_less_risky() -> None:
    table = people(400).select("age", "education", "hours", "wages")
    plan = Plan.propose(table)
    private, useful = (
        try_plan(table, plan.replace(anonymity=a, epsilon=e)) for a, e in ((100, 0.1), (2, 10.0))
    )
    assert private is not None
    assert useful is not None
    assert (place_of(private.usefulness) or 0) > 2 * (place_of(useful.usefulness) or 0)
    assert (private.passed, useful.passed) == (True, False)
    assert private.stop == stop_of(plan.replace(anonymity=100, epsilon=0.1))
    assert try_plan(table.head(30), plan.replace(anonymity=200)) is None


def test_whole_units_are_drawn_and_always_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microveil.judge.frontier._RECORDS", 60)
    table = visits(100)
    plan = Plan.propose(table)
    drawn = some_people(table, plan)
    assert 60 <= drawn.height < 70
    everything = table.filter(pl.col("patient_id").is_in(drawn["patient_id"].unique().implode()))
    assert drawn.equals(everything)
    assert drawn.equals(some_people(table, plan))
    assert some_people(table, with_unit(plan, table, None)).height == 60
