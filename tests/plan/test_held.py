"""Sums and orders that hold in every record: what is proposed, and what is chance."""

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench.rules import hospital_visits
from microveil import Confidential, Derived, Plan, protect
from microveil.cli.commands import app
from microveil.plan.propose.held import Sum, find_orders, find_sums

VISITS = hospital_visits(1_500)


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_visits_end_after_they_begin_and_last_as_long_as_they_say(tmp_path: Path) -> None:
    VISITS.write_parquet(tmp_path / "visits.parquet")
    given = [str(tmp_path / "visits.parquet"), "-o", str(tmp_path / "plan.toml")]
    shown = CliRunner().invoke(app, ["plan", *given])
    assert "Rules that hold in every record: visit_date <= discharge_date" in shown.output
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan == Plan.propose(VISITS)
    assert plan.rules[0] == "visit_date <= discharge_date"
    assert plan.derived["discharge_date"].expression == '"visit_date" + "length_of_stay"'
    assert plan.derived["total_cost"].expression == '"fee" + "drugs"'
    assert {"rules", "discharge_date: expression"} <= set(plan.from_data)
    assert "# (from the data) These hold in every record" in (tmp_path / "plan.toml").read_text()
    release = protect(VISITS, plan, seed=1)
    assert release.data.schema == VISITS.drop("patient_id").schema
    stays = (release.data["discharge_date"] - release.data["visit_date"]).dt.total_days()
    assert stays.min() == 0
    assert stays.equals(release.data["length_of_stay"], check_names=False)
    assert stays.mean() == pytest.approx(VISITS["length_of_stay"].mean(), rel=0.1)
    assert all(one.original == one.released == 0 for one in release.rules)
    assert "rules" in " ".join(release.certificate.reading["Notes"])


def frame(**columns: object) -> pl.DataFrame:
    return pl.DataFrame(columns)


random = np.random.default_rng(4)
A, B, C = (random.integers(0, 50, 200) for _ in range(3))
DAYS = [date(2020, 1, 1) + timedelta(days=int(n)) for n in A]
LATER = [day + timedelta(days=int(n)) for day, n in zip(DAYS, B, strict=True)]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (frame(a=A, b=B, c=C, total=A + B + C), [("total", ("a", "b", "c"))]),
        (frame(net=A, gross=A + B, tax=B), [("gross", ("net", "tax"))]),
        (frame(profit=A - 100, sales=A, costs=[100 + n % 2 for n in range(200)]), []),
        (frame(a=A, loss=-A - B, b=B, even=-B), [("even", ()), ("loss", ())]),
        (frame(a=A, twin=A), [("twin", ("a",))]),
        (frame(a=A, more=A + 5), []),
        (frame(a=A, twice=2 * A), []),
        (frame(first=DAYS, last=LATER, days=B), [("last", ("first", "days"))]),
        (frame(first=DAYS, last=LATER, half=B / 2, rest=B - B / 2),
         [("rest", ("half",)), ("last", ())]),
        (frame(a=A, b=B, total=[*(A + B)[:199], -1]), []),
        (frame(a=A[:15], b=B[:15], total=(A + B)[:15]), []),
        (frame(a=A, rare=[0] * 195 + [1] * 5, c=[*A[:195], *(A[195:] + 1)]), []),
        (frame(a=A, word=["x"] * 200, time=[timedelta(1)] * 200), []),
    ],
)  # fmt: skip
def test_sums_by_hand(table: pl.DataFrame, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    found = {one.total: one.parts for one in find_sums(table, table.columns)}
    assert found == {total: parts for total, parts in expected if parts}


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_total_that_is_known_without_its_parts_is_a_rule_and_not_derived() -> None:
    table = frame(a=A * 7.5, b=[None, *B[1:]], total=A * 7.5 + B)
    assert find_sums(table, table.columns) == [Sum("total", ("a", "b"), missing_alike=False)]
    plan = Plan.propose(table)
    assert plan.names("derived") == ()
    assert "a + b == total" in plan.rules
    data = protect(table, plan, seed=1).data.drop_nulls()
    assert np.allclose(data["a"] + data["b"], data["total"])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (frame(low=A, high=A + B), [("low", "high")]),
        (frame(high=A + B, low=A, middle=A + B // 2), [("low", "middle"), ("middle", "high")]),
        (frame(low=A, high=A + 60), []),  # nothing else is possible
        (frame(low=A, high=[*(A + B)[:199], -1]), []),
        (frame(low=A, twin=A), []),
        (frame(hours=[0, 20] * 100, wages=[0, 900] * 100), []),  # ordered by their zeros alone
        (frame(low=A[:30], high=(A + 1)[:30]), []),  # too few records to exclude chance
        (frame(low=A, high=[None if n % 3 else n + 1 for n in A]), [("low", "high")]),
        (frame(day=DAYS, later=LATER, number=A), [("day", "later")]),
        (frame(day=DAYS, at=[datetime(d.year, d.month, d.day, 3) for d in LATER]), [("day", "at")]),
    ],
)
def test_orders_by_hand(table: pl.DataFrame, expected: list[tuple[str, str]]) -> None:
    assert find_orders(table, table.columns) == expected


def test_an_order_that_only_the_sample_keeps_is_not_proposed() -> None:
    low = random.integers(0, 50, 5_001)
    high = low + random.integers(0, 9, 5_001)
    assert find_orders(frame(low=low, high=high), ["low", "high"]) == [("low", "high")]
    high[1] = low[1] - 1  # not among every third record
    assert find_orders(frame(low=low, high=high), ["low", "high"]) == []
    total = low + high
    total[1] += 1
    assert find_sums(frame(low=low, high=high, total=total), ["low", "high", "total"]) == []


@given(st.integers(0, 10**6), st.integers(25, 120))
def test_independent_columns_have_no_rules(seed: int, records: int) -> None:
    """Chance has it less than once in 10^7: e^-20 for each of 30 pairs."""
    drawn = np.random.default_rng(seed)
    table = frame(**{f"c{n}": drawn.poisson(drawn.uniform(1, 30), records) for n in range(6)})
    assert find_orders(table, table.columns) == []


def test_attributes_of_patients_are_not_compared_with_those_of_visits() -> None:
    plan = Plan.propose(VISITS)
    assert plan.confidential["birth_date"].per_unit
    assert not any("birth_date" in rule for rule in plan.rules)


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow"])
def test_derived_dates_and_differences_count_days(kind: str) -> None:
    start = pl.Series([datetime(2020, 1, 1) + timedelta(hours=int(n)) for n in A])
    table = frame(day=DAYS, start=start, wait=B / 4, stay=B, until=start, shown=A * 0.5)
    data = {"polars": table, "pandas": table.to_pandas(), "arrow": table.to_arrow()}[kind]
    plan = Plan(epsilon=1.0, attributes={
        "day": Confidential(lower=date(2019, 1, 1), upper=date(2021, 1, 1)),
        "stay": Confidential(lower=0), "wait": Confidential(lower=0),
        "start": Confidential(lower=datetime(2019, 1, 1), upper=datetime(2021, 1, 1)),
        "until": Derived(expression="start + 2 * wait"),
        "shown": Derived(expression="until - day"),
    })  # fmt: skip
    out = pl.DataFrame(protect(data, plan, seed=2).data)
    later = (out["until"] - out["start"]).dt.total_microseconds() / 86_400e6
    assert np.allclose(later, 2 * out["wait"], atol=1e-9)
    days = (out["until"] - out["day"].cast(pl.Datetime("us"))).dt.total_microseconds() / 86_400e6
    assert np.allclose(days, out["shown"], atol=1e-9)
