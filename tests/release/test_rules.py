"""Rules of a plan: how they are written, and that every released record keeps them."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from microveil import (
    Confidential,
    DataError,
    Derived,
    Detail,
    Plan,
    PlanError,
    check,
    evaluate,
    protect,
    protect_file,
    verdict,
)
from microveil.cli.commands import app
from microveil.plan.rules import parse
from microveil.show.verdicts import verdict_lines
from microveil.show.words.rule_words import rule_statement

random = np.random.default_rng(11)
BORN = Confidential(lower=date(1920, 1, 1), upper=date(2020, 12, 31))
SEEN = Confidential(lower=date(1920, 1, 1), upper=date(2024, 12, 31))
AMOUNT = Confidential(lower=0, upper=10_000, kind="integer")


def people(records: int = 300) -> pl.DataFrame:
    born = [date(2010, 1, 1) + timedelta(days=int(d)) for d in random.integers(0, 3_000, records)]
    part, other = random.integers(0, 1_000, (2, records))
    return pl.DataFrame(
        {
            "born": born,
            "seen": [b + timedelta(days=int(random.integers(0, 90))) for b in born],
            "part": part,
            "other": other,
            "total": part + other,
        }
    )  # fmt: skip


RULES = ("born <= seen", "part + other == total", "part <= total")


def plan(**changes: Any) -> Plan:  # noqa: ANN401
    roles = {"born": BORN, "seen": SEEN, "part": AMOUNT, "other": AMOUNT, "total": AMOUNT}
    given = {"epsilon": 0.5, "k": 5, "rules": RULES, "attributes": roles, **changes}
    return Plan.published(**given)


def breaks(data: pl.DataFrame) -> list[int]:
    rules = (
        pl.col("born") > pl.col("seen"),
        pl.col("part") + pl.col("other") != pl.col("total"),
        pl.col("part") > pl.col("total"),
    )
    return [data.filter(rule).height for rule in rules]


@pytest.mark.parametrize(
    ("text", "factors", "number", "sign"),
    [
        ("a <= b", {"a": 1, "b": -1}, 0, "<="),
        ("a >= b", {"a": -1, "b": 1}, 0, "<="),
        ('2*"a b" - 3 < -(c/4)', {"a b": 2, "c": 0.25}, -3, "<"),
        ('"say ""a""" == .5 * (é + 1e2)', {'say "a"': 1, "é": -0.5}, -50, "=="),
        ("a + b - a > 0", {"b": -1}, 0, "<"),
    ],
)
def test_how_rules_are_read(text: str, factors: dict[str, float], number: float, sign: str) -> None:
    rule = parse(text)
    assert (dict(rule.difference.factors), rule.difference.number, rule.sign) == (
        factors, number, sign,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["a", "a <= b <= c", "a = b", "a != b", "a * b <= 1", "a <=", "<= a", "(a <= b", "a b <= c",
     "a <= 'soon'", "1/a <= 2", "a / 0 <= 1", "__import__('os') <= 1", "a <= b;", "", "(" * 150,
     "a" + " + a" * 300 + " <= 1", "f(a) <= 1", "a.b <= 1"],
)  # fmt: skip
def test_rules_that_cannot_be_read(text: str) -> None:
    with pytest.raises(PlanError, match="write a rule as") as caught:
        parse(text)
    assert caught.value.setting == "rules"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rules": ["brn <= seen"]}, "no attribute 'brn'; did you mean 'born'"),
        ({"rules": ["1 <= 2"]}, "names no column"),
        ({"rules": ["a <= part"], "more": {"a": "identifier"}}, "'a' is an identifier"),
        ({"rules": ["a <= part"], "more": {"a": Confidential(kind="nominal")}}, "holds categories"),
        ({"rules": ["a <= b"], "more": {"a": "kept", "b": "kept"}}, "none of its columns is"),
        ({"rules": ["a <= part"], "more": {"a": Derived(expression="ABS(part)")}}, "not a sum of"),
        ({"rules": ["part <= a"], "more": {"a": "kept"}, "anonymity": 5, "pooling": "average"},
         "would make them differ again"),
        ({"rules": ["part <= other"], "groups": [["part"], ["other"]], "anonymity": 5,
          "pooling": "average"}, "put all of them into one group"),
    ],
)  # fmt: skip
def test_rules_that_a_plan_cannot_have(changes: dict[str, Any], problem: str) -> None:
    more = changes.pop("more", {})
    with pytest.raises(PlanError, match=problem):
        plan(attributes={**plan(rules=()).attributes, **more}, **changes)


@pytest.mark.parametrize(
    ("rule", "attributes", "problem"),
    [
        ("born <= part", {}, "compares dates or times with numbers"),
        ("born + seen <= 3", {}, "compares dates or times with numbers"),
        ("part >= 20000", {}, "no values were found within the domains"),
        ("seen - born < -366 * 110", {}, "no values were found within the domains"),
    ],
)
def test_rules_that_do_not_fit_the_table_are_refused_before_any_work(
    rule: str, attributes: dict[str, Any], problem: str
) -> None:
    (found,) = check(people(), plan(rules=[rule], **attributes))
    assert problem in found.message
    assert found.setting == "rules"
    assert isinstance(found, PlanError | DataError)


def test_rules_survive_toml_and_are_compared() -> None:
    assert Plan.from_toml(plan().to_toml()) == plan()
    assert plan().diff(plan(rules=RULES[:2])) == "rules: 0 added, 1 removed"
    assert "3 rules" in str(plan())


@pytest.mark.parametrize(
    "pooling",
    [{}, {"anonymity": 10, "pooling": "exchange"}, {"anonymity": 10, "pooling": "average"}],
)
def test_every_released_record_keeps_the_rules(pooling: dict[str, Any]) -> None:
    table = people().with_columns(
        seen=pl.when(pl.int_range(300) < 7).then(pl.lit(date(2009, 1, 1))).otherwise("seen")
    )
    free = protect(table, plan(rules=(), **pooling), seed=3, keep_order=True)
    assert sum(breaks(free.data)) > 20  # without rules
    release = protect(table, plan(**pooling), seed=3, keep_order=True)
    assert breaks(release.data) == [0, 0, 0]
    assert release.data.schema == table.schema
    assert release.data["part"].is_between(0, 10_000).all()
    outcomes = {outcome.rule: outcome for outcome in release.rules}
    assert outcomes["born <= seen"].original == 7
    assert outcomes["born <= seen"].released == 0
    assert outcomes["part + other == total"].original == 0
    assert outcomes["part + other == total"].masked
    if pooling.get("pooling") == "average":
        sizes = release.data.group_by(pl.all()).len("n")["n"]
        assert sizes.min() >= 10
    said = rule_statement(outcomes["born <= seen"])
    assert said.startswith("Rule born <= seen: 7 records broke it in the original")
    assert said.endswith("none breaks it now.")
    assert release.certificate.rules == RULES
    notes = release.certificate.reading["Notes"]
    assert not any("7" in note for note in notes)
    assert any("post-processing" in note for note in notes)


def test_derived_attributes_keep_rules_by_construction() -> None:
    roles = {**plan().attributes, "total": Derived(expression="part + other")}
    derived = plan(attributes=roles, rules=["part + other == total", "total <= 900"])
    table = people().filter(pl.col("total") <= 900)
    release = protect(table, derived, seed=1, keep_order=True)
    assert (release.data["part"] + release.data["other"] == release.data["total"]).all()
    assert (release.data["total"] <= 900).all()
    assert release.rules[0].masked == 0


def test_kept_columns_of_files_are_compared_as_numbers(tmp_path: Path) -> None:
    people().with_columns(limit=500).write_csv(tmp_path / "people.csv")
    roles = {**plan().attributes, "limit": "kept"}
    release = protect(
        tmp_path / "people.csv",
        plan(attributes=roles, rules=["part <= limit"]),
        seed=1,
        keep_order=True,
    )
    assert (release.data["part"] <= 500).all()


def test_kept_columns_stay_and_what_cannot_be_kept_is_counted() -> None:
    table = people().with_columns(limit=pl.when(pl.int_range(300) < 4).then(-1).otherwise(400))
    roles = {**plan().attributes, "limit": "kept"}
    release = protect(
        table, plan(attributes=roles, rules=["part <= limit"]), seed=1, keep_order=True
    )
    assert release.data["limit"].equals(table["limit"])
    broken = release.data.filter(pl.col("part") > pl.col("limit"))
    assert broken.height == 4
    (outcome,) = release.rules
    assert outcome.released == 4
    assert "4 could not be changed to keep it" in rule_statement(outcome)
    assert any(about == "Rules" for about, _ in verdict_lines(verdict(table, release)))
    found = evaluate(table, release)
    assert found.value("utility.rule_broken", "part <= limit") == pytest.approx(4 / 300)
    assert found.value("utility.rule_changed", "part <= limit") == (outcome.masked or 0) / 300


def test_missing_values_and_times_and_other_libraries() -> None:
    start = [datetime(2020, 1, 1) + timedelta(hours=int(h)) for h in random.integers(0, 900, 80)]
    table = pl.DataFrame(
        {
            "start": [None, *start[1:]],
            "end": [s + timedelta(minutes=30) for s in start],
            "days": random.uniform(0, 2, 80),
            "day": [s.date() for s in start],
        }
    )
    timed = Plan.published(
        epsilon=0.5, k=4, missing="keep", anonymity=4,
        rules=["start < end", "end - start <= days", "day <= start"],
        attributes={
            "start": Confidential(lower=datetime(2019, 1, 1), upper=datetime(2021, 1, 1)),
            "end": Confidential(lower=datetime(2019, 1, 1), upper=datetime(2021, 1, 1)),
            "days": Confidential(lower=0, upper=9, decimals=3), "day": "kept",
        },
    )  # fmt: skip
    for data in (table, table.to_pandas(), table.to_arrow()):
        release = protect(data, timed, seed=5, keep_order=True).data
        whole = pl.DataFrame(release).drop_nulls()
        assert whole.height == 79
        assert (whole["start"] < whole["end"]).all()
        length = (whole["end"] - whole["start"]).dt.total_microseconds() / 86_400e6
        assert (length <= whole["days"] + 1e-9).all()
        assert (whole["day"].cast(pl.Datetime("us")) <= whole["start"]).all()


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([3, 40]), st.sampled_from(["exchange", "average"]))
def test_no_record_breaks_a_rule_that_can_be_kept(seed: int, upper: int, pooling: Any) -> None:  # noqa: ANN401
    drawn = np.random.default_rng(seed)
    table = pl.DataFrame({name: drawn.integers(0, upper + 1, 24) for name in "abc"})
    small = Confidential(lower=0, upper=upper)
    chosen = Plan.published(
        epsilon=1.0, k=3, anonymity=3, pooling=pooling, rules=["a <= b", "a + b == c"],
        attributes=dict.fromkeys("abc", small),
    )  # fmt: skip
    data = protect(table, chosen, seed=seed, keep_order=True).data
    assert (data["a"] <= data["b"]).all()
    assert (data["a"] + data["b"] == data["c"]).all()
    assert all(data[name].is_between(0, upper).all() for name in "abc")


def test_files_a_column_at_a_time_and_the_command(tmp_path: Path) -> None:
    table, out = people(), tmp_path / "out.parquet"
    table.write_csv(tmp_path / "people.csv")
    written = protect_file(tmp_path / "people.csv", plan(anonymity=10), out, detail=True, seed=1)
    assert breaks(pl.read_parquet(out)) == [0, 0, 0]
    in_memory = protect(tmp_path / "people.csv", plan(anonymity=10), seed=1)
    assert written.rules == in_memory.rules
    detail = Detail.read(str(written.detail))
    assert detail.rules is not None
    assert detail.rules["rule"].to_list() == list(RULES)
    found = evaluate(tmp_path / "people.csv", out, detail=detail)
    assert all(found.value("utility.rule_broken", rule) == 0 for rule in RULES)
    plan().write(tmp_path / "plan.toml")
    options = ["--plan", str(tmp_path / "plan.toml"), "-o", str(tmp_path / "x.csv"), "--no-verdict"]
    shown = CliRunner().invoke(app, ["protect", str(tmp_path / "people.csv"), *options])
    assert shown.exit_code == 0
    assert [line for line in shown.output.splitlines() if line.startswith("Rule born <= seen: no ")]
