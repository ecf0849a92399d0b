"""Synthetic releases: what comes out follows from noisy counts and the plan alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from microveil import (
    Confidential,
    Derived,
    Plan,
    audit,
    benchmark,
    check,
    evaluate,
    explore,
    protect,
    protect_file,
    verdict,
)
from microveil.cli.commands import app
from microveil.core.budget import Sensitivity
from microveil.core.random_words import SeededWords
from microveil.core.synthesis.mechanism import TableLearner
from microveil.engines.coded_local import coded_records, some_of_each
from microveil.engines.counted import CountedAttribute
from microveil.engines.memory import memory_table
from microveil.errors import DataError, FileWarning, PlanError
from microveil.formats import load_table
from microveil.judge.verdict import ReleaseBound
from microveil.lab.audit.replayed import replay
from microveil.release.certificate import Certificate
from microveil.release.ledger import Ledger, declare
from microveil.show.report import report
from microveil.show.words.certificate_words import certificate_sections

AREAS = ["north", "south", "west"]
ATTRIBUTES: dict[str, Any] = {
    "name": "identifier",
    "area": Confidential(kind="nominal", categories=AREAS),
    "works": Confidential(kind="nominal", categories=[False, True]),
    "level": Confidential(kind="ordinal", categories=[1, 2, 3]),
    "age": Confidential(kind="integer", lower=0, upper=99),
    "wage": Confidential(kind="real", lower=0, upper=5000, decimals=2, atoms=[0], log_scale=True),
    "born": Confidential(lower=date(1920, 1, 1), upper=date(2020, 12, 31)),
    "twice": Derived(expression="age * 2"),
}
PLAN = Plan(
    epsilon=2.0, release="synthetic", missing="keep", attributes=ATTRIBUTES, rules=["age <= wage"]
)


def table(n: int = 600) -> pl.DataFrame:
    random = np.random.default_rng(5)
    age = random.integers(18, 90, n)
    works = random.random(n) < np.where(age < 66, 0.8, 0.1)
    return pl.DataFrame({
        "name": [f"person {i}" for i in range(n)],
        "area": random.choice(AREAS, n),
        "works": works,
        "level": random.integers(1, 4, n),
        "age": age,
        "wage": np.where(works, random.lognormal(7, 0.4, n).round(2), 0.0),
        "born": [date(2010 - int(a), 1, 1) for a in age],
        "twice": age * 2,
    })  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, its plan, and a release made on the command line."""
    folder = tmp_path_factory.mktemp("synthetic")
    table().write_csv(folder / "people.csv")
    PLAN.write(folder / "plan.toml")
    arguments = ["people.csv", "--plan", "plan.toml", "-o", "out.csv", "--seed", "3", "--quiet"]
    arguments = [str(folder / a) if "." in a else a for a in arguments]
    outcome = CliRunner().invoke(app, ["protect", *arguments])
    assert outcome.exit_code == 0, outcome.output
    return folder


def test_release_has_the_types_the_domains_and_the_rules_of_the_plan(written: Path) -> None:
    rows = pl.read_csv(written / "out.csv", try_parse_dates=True)
    assert rows.columns == ["area", "works", "level", "age", "wage", "born", "twice"]
    dtypes = [pl.String, pl.Boolean, pl.Int64, pl.Int64, pl.Float64, pl.Date, pl.Int64]
    assert rows.dtypes == dtypes
    assert set(rows["area"].drop_nulls()) <= set(AREAS)
    assert rows["age"].is_between(0, 99).drop_nulls().all()
    assert (rows["wage"].drop_nulls() * 100 % 1).is_between(1e-6, 1 - 1e-6).sum() == 0
    assert rows["born"].is_between(date(1920, 1, 1), date(2020, 12, 31)).drop_nulls().all()
    both = rows.drop_nulls(["age", "wage"])
    assert (both["age"] <= both["wage"]).all()
    assert (both["twice"] == both["age"] * 2).all()
    assert abs(rows.height - 600) < 200


def test_certificate_says_what_holds_and_what_it_cost(written: Path) -> None:
    certificate = Certificate.read(written / "out.certificate.json")
    assert certificate.synthetic is not None
    assert [(level.epsilon, level.delta) for level in certificate.levels] == [(2.0, 1e-5)] * 3
    assert sum(part.share for part in certificate.synthetic.spent) == pytest.approx(1, abs=1e-5)
    assert not certificate.not_protected
    assert certificate.records == pl.read_csv(written / "out.csv").height
    said = json.dumps(certificate_sections(certificate))
    assert "NOT FOR PUBLICATION" in said  # since it was seeded
    assert "anonymous" not in said
    assert "no risk" not in said


def test_files_larger_than_memory_give_the_same_release(written: Path) -> None:
    out = written / "columnwise.csv"
    protect_file(written / "people.csv", PLAN, out, seed=3)
    assert out.read_bytes() == (written / "out.csv").read_bytes()


def test_release_is_of_the_kind_that_came_in() -> None:
    plan = Plan(
        epsilon=1.0, release="synthetic", missing="drop", delta=0,
        attributes={name: ATTRIBUTES[name] for name in ("area", "age", "works")},
    )  # fmt: skip
    few = table(20).select("area", "age", "works")
    with pytest.warns(match="so few records"):
        release = protect(few.to_pandas(), plan, seed=1)
    assert isinstance(release.data, pd.DataFrame)
    assert [str(t) for t in release.data.dtypes] == ["object", "Int64", "boolean"]
    with pytest.warns(match="so few records"):
        assert isinstance(protect(few.to_arrow(), plan, seed=1).data, pa.Table)
    judged = verdict(few.to_pandas(), release)
    assert judged.passed
    assert judged.bound is not None
    assert judged.bound.guessed == pytest.approx(np.e / (1 + np.e))  # since delta is 0
    assert "at most 73.2% of the time (epsilon 1)" in str(judged)
    assert "Usefulness" in str(judged)
    pytest.importorskip("altair")
    page = report(few.to_pandas(), release)
    assert "so that there is nobody to look for" in page
    assert repr(plan).startswith("Plan: 3 of 3 attributes are drawn anew at ε = 1 per person")
    assert not replace(judged, bound=ReleaseBound(4.0, 1e-5)).passed
    evaluation = evaluate(few.to_pandas(), release)
    assert evaluation.figures
    assert any(item.reason == "not_paired" for item in evaluation.not_computed)
    with pytest.raises(PlanError, match="use audit"):
        replay(few, plan.replace(release="masked"))
    with pytest.raises(PlanError, match="no order to keep"):
        protect(few, plan, keep_order=True)
    with pytest.raises(PlanError, match="no private detail"):
        release.write("out.parquet", detail=True)


STRANGE = [
    "name,area,works,level,age,wage,born,twice\n",
    'x,"a; b;c",maybe,9,1e400,NaN,31.12.1899,\n',
    ",,,,,,,\n",
    'x,north,1,2.0,"12,5",-1e9,2000-13-01,abc\n',
]


@pytest.mark.parametrize("line", range(1, 4))
def test_a_record_changes_nothing_but_its_own_codes(tmp_path: Path, line: int) -> None:
    """Attack: a record that no type fits changes how others are read, and so every count."""
    lines = table(30).write_csv().splitlines(keepends=True)
    (tmp_path / "without.csv").write_text("".join(lines))
    (tmp_path / "with.csv").write_text("".join([*lines, STRANGE[line]]))
    attributes = [CountedAttribute(n, a, True) for n, a in PLAN.confidential.items()]
    found = []
    for name in ("without.csv", "with.csv"):
        read = load_table(tmp_path / name, **PLAN.reading)
        source = memory_table(read.data, inferred=True).source
        found.append([a.encode(source.column(a.name)).codes for a in attributes])
    for before, after in zip(*found, strict=True):
        assert len(after) == 31
        assert (after[:30] == before).all()


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([1, None, 250, -3]),
        pl.Series([1.0, None, float("inf"), float("-inf")]),
        pl.Series(["1", "", "1e300", "-8"]),
        pl.Series([True, None, True, False]).cast(pl.Int8) * pl.Series([1, 1, 120, 0]),
        pl.Series(["1", "x", "100,5", "-1"], dtype=pl.Categorical),
    ],
)
def test_numbers_of_any_type_are_moved_to_the_ends_of_their_domain(column: pl.Series) -> None:
    age = CountedAttribute("age", ATTRIBUTES["age"], missing=True)
    import narwhals as nw

    coded = age.encode(nw.from_native(column, series_only=True))
    assert coded.codes.tolist() == [1, 256, 99, 0]
    assert coded.missing.tolist() == [False, True, False, False]


def test_units_are_bounded_by_chance() -> None:
    units = pl.Series([1, 1, 1, 2, None, 3, 3])
    chosen = [
        some_of_each(units, np.arange(7), 2, SeededWords(seed)).tolist() for seed in range(20)
    ]
    assert all({3, 5, 6} <= set(rows) and len(rows) == 5 and 4 not in rows for rows in chosen)
    assert len({tuple(rows) for rows in chosen}) == 3
    source = memory_table(pl.DataFrame({"home": [1, 1, 2], "age": [10, 20, None]})).source
    age = CountedAttribute("age", ATTRIBUTES["age"], missing=False)
    records, _ = coded_records(
        source, [age], drop_missing=True, bounded=("home", 1, SeededWords(1))
    )
    assert records.count() == 1


def test_everything_that_is_not_declared_is_listed_with_lines_to_paste() -> None:
    attributes = {"age": "confidential", "area": Confidential(kind="nominal"), "home town": "kept"}
    with pytest.raises(PlanError) as raised:
        Plan(epsilon=1.0, release="synthetic", attributes=attributes)
    said = str(raised.value)
    for line in ('missing = "keep"', "[attributes.age]", "lower = …", "upper = …",
                 "[attributes.area]", "categories = [", "'home town' (kept)"):  # fmt: skip
        assert line in said


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"delta": 1.0}, "delta must be"),
        ({"predicts": "age"}, "2 to 20 declared categories"),
        ({"predicts": "aera"}, "did you mean 'area'"),
        ({"from_data": ["area: categories"]}, "nothing that was read from the data"),
        ({"within": ["area"]}, "no clusters"),
        ({"expected_records": 0}, "1 or more"),
        ({"expected_records": 10**400}, "1 or more"),
        ({"epsilon": 5e-324}, "an epsilon from 1e-09 to 1,000,000, got 4.94066e-324"),
        ({"epsilon": 1e300}, "an epsilon from"),
    ],
)
def test_refuses_what_it_could_not_keep(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(PlanError, match=expected):
        PLAN.replace(**changes)


@pytest.mark.parametrize(
    ("kind", "lower", "upper", "expected"),
    [
        ("real", -1e308, 1e308, r"numbers from −1e\+300 to 1e\+300"),
        ("real", 0, 5e-324, "one value only"),
        ("integer", -(2**70), 0, r"numbers from −9.01e\+15 to 9.01e\+15"),
        (None, date(2020, 1, 1), datetime(2020, 6, 1), "must both be dates"),
    ],
)
def test_refuses_domains_that_nothing_can_be_drawn_from(
    kind: Literal["real", "integer"] | None,
    lower: float | date,
    upper: float | date,
    expected: str,
) -> None:
    age = Confidential(kind=kind, lower=lower, upper=upper)
    with pytest.raises(PlanError, match=expected) as raised:
        protect(table(20), PLAN.replace(attributes={**ATTRIBUTES, "age": age}))
    assert raised.value.attribute == "age"


def test_refuses_too_many_categories() -> None:
    many = Confidential(kind="nominal", categories=[f"c{i}" for i in range(5000)])
    with pytest.raises(PlanError, match="at most 4,096 categories"):
        Plan(epsilon=1.0, release="synthetic", missing="keep", attributes={"town": many})


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (PLAN.replace(epsilon=1e-7), "is too small for a synthetic release"),
        (PLAN.replace(expected_records=20), "20 records are too few for epsilon = 2"),
        (
            PLAN.replace(attributes={**ATTRIBUTES, "twice": Derived(expression="SUM(age)")}),
            "depends on other records",
        ),
        (
            PLAN.replace(attributes={**ATTRIBUTES, "born": ATTRIBUTES["age"]}),
            "the plan declares numbers, but the column holds",
        ),
    ],
)
def test_says_what_is_wrong_before_any_budget_is_spent(plan: Plan, expected: str) -> None:
    assert expected in " ".join(map(str, check(table(20), plan)))
    with pytest.raises((PlanError, DataError), match=expected):
        protect(table(20), plan)


def test_tells_the_data_holder_alone_what_the_plan_does_not_hold() -> None:
    plan = Plan(
        epsilon=5.0, release="synthetic", missing="keep",
        attributes={"age": Confidential(kind="integer", lower=0, upper=40)},
    )  # fmt: skip
    ages = table(2000).select("age")
    outside = int((ages["age"] > 40).sum())
    with pytest.warns(FileWarning, match=f"'age' \\({outside:,} outside\\)"):
        release = protect(ages, plan)
    assert f"{outside:,}" not in release.certificate.to_json()
    assert release.data["age"].max() == 40


def test_ledger_adds_up_epsilon_and_delta(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger.json"
    declare(path, 5.0)
    attributes = {"age": ATTRIBUTES["age"]}
    plan = Plan(epsilon=2.0, release="synthetic", missing="keep", attributes=attributes)
    ages = table(2000).select("age")
    protect(ages, plan, ledger=path)
    second = protect(ages, plan.replace(delta=1e-6), ledger=path)
    ledger = Ledger.read(path)
    assert (ledger.spent, ledger.delta, ledger.level(3)) == (4.0, 1.1e-05, 4.0)
    assert ledger.spent_on("age") == 4.0
    assert second.certificate.ledger is not None
    assert second.certificate.ledger.delta_after == 1.1e-05
    assert "it is 4 and delta 1.1e-05" in json.dumps(certificate_sections(second.certificate))
    with pytest.raises(PlanError, match="what is left"):
        protect(ages, plan, ledger=path)


def test_audit_replays_the_users_own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    attributes = {name: ATTRIBUTES[name] for name in ("area", "age", "works")}
    plan = Plan(
        epsilon=3.0, delta=0, release="synthetic", missing="keep", records_per_person=2,
        attributes=attributes,
    )  # fmt: skip
    few = table(300).select(*attributes)
    found = replay(few, plan, runs=20, seed=1)
    assert not found.broken
    assert 0.5 < found.largest <= 3
    assert "No loss is larger than it may be." in str(found)
    monkeypatch.setattr(TableLearner, "_moves", lambda _, sums, length=1: Sensitivity(
        sums * length, sums * length**2
    ))  # fmt: skip
    found = replay(few, plan, runs=20, seed=1)  # which forgets that a person has two records
    assert found.broken
    assert "BROKEN" in str(found)


@pytest.mark.parametrize(
    "refused", [lambda: explore(table(20), PLAN), lambda: benchmark(table(300), PLAN),
                lambda: audit(table(20), PLAN)],
)  # fmt: skip
def test_what_looks_at_records_one_by_one_refuses_with_a_reason(
    refused: Callable[[], object],
) -> None:
    with pytest.raises(PlanError, match="rows that belong to nobody"):
        refused()
