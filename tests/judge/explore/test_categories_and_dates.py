"""Exploring tables that mix numbers, categories, dates and times."""

from collections.abc import Callable
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from microveil import (
    Confidential,
    DataError,
    Exploration,
    Plan,
    evaluate,
    expected_error,
    explore,
    protect,
)
from microveil.show.words.exploration_words import recommendation_headline, recommendation_text

RECORDS = 120
_RANDOM = np.random.default_rng(2)
_AGE = _RANDOM.integers(18, 80, RECORDS)
TABLE = pl.DataFrame(
    {
        "name": [f"n{i}" for i in range(RECORDS)],
        "age": _AGE,
        "wages": _AGE * 700 + _RANDOM.integers(0, 20_000, RECORDS),
        "born": [date(2020, 1, 1) - timedelta(days=int(a) * 365) for a in _AGE],
        "school": _RANDOM.choice(["basic", "upper", "degree"], RECORDS),
        "job": _RANDOM.choice(["nurse", "smith", "clerk", "farmer"], RECORDS),
        "old": np.where(_AGE > 50, "yes", "no"),
    }
)
SCHOOL = Confidential(kind="ordinal", categories=["basic", "upper", "degree"])
JOB = Confidential(kind="nominal", categories=["nurse", "smith", "clerk", "farmer"])
PLAN = Plan.published(
    epsilon=1.0,
    attributes={
        "name": "identifier",
        "age": Confidential(lower=0, upper=120, k=20),
        "wages": Confidential(lower=0, upper=200_000),
        "born": Confidential(lower=date(1930, 1, 1), upper=date(2020, 1, 1)),
        "school": SCHOOL,
        "job": JOB,
        "old": "kept",
    },
)

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(TABLE, PLAN, epsilons=[1.0], target="old", runs=1, seed=3)


def test_expected_error_is_that_of_numbers_at_their_share_of_the_budget(
    found: Exploration,
) -> None:
    frame = found.to_frame()
    assert set(frame["method"]) == {"iDP-CBLS", "iDP-LS", "DP-UM", "DP"}
    assert set(frame["k"].drop_nulls()) == {3, 5, 10, 25, 50}
    numbers = TABLE.select("age", "wages", "born")
    attributes = {n: PLAN.confidential[n].model_copy(update={"k": None}) for n in numbers.columns}
    alone = Plan.published(
        epsilon=0.6, k=25, attributes=attributes
    )  # three of five shares of ε = 1
    (row,) = frame.filter(method="iDP-CBLS", k=25, anonymity=0).iter_rows(named=True)
    assert row["expected"] == pytest.approx(expected_error(numbers, alone, clamped=True).mean_sse)


def test_what_is_measured_is_what_evaluate_measures(found: Exploration) -> None:
    row = found.to_frame().filter(anonymity=10, pooling="exchange").row(0, named=True)
    attributes = {**PLAN.attributes, "age": Confidential(lower=0, upper=120)}
    plan = Plan(
        epsilon=1.0, attributes=attributes, trim=row["trim"], exact_from=PLAN.exact_from,
        anonymity=10,
    )  # fmt: skip
    assert plan.k_of("job") == 3  # the smallest that iDP-CBLS allows
    measured = evaluate(TABLE, protect(TABLE, plan, seed=3), target="old", seed=3)
    shares = [measured.value("utility.unchanged", name) for name in ("school", "job")]
    assert row["unchanged"] == pytest.approx(np.mean(shares))
    assert row["measured"] == pytest.approx(measured.value("utility.mean_sse"))
    attacks = ("linkage.nearest", "linkage.one_to_one")  # pooling bounds the third, and all
    assert row["linkage"] == min(0.1, max(measured.value(attack) for attack in attacks))
    scores = [measured.value("learning.f_measure", f"old = {label}") for label in ("no", "yes")]
    assert row["f_measure"] == pytest.approx(np.mean(scores))


def test_categories_are_clustered_with_the_k_that_is_tried(found: Exploration) -> None:
    for point in found.points:
        if point.k is not None:
            assert point.plan.k_of("job") == point.plan.k_of("school") == point.k


def test_a_method_and_k_of_a_category_s_own_stay() -> None:
    own = {
        "school": SCHOOL.model_copy(update={"method": "DP-UM", "k": 50}),
        "job": Confidential(kind="nominal", k=2, categories=["nurse", "smith", "clerk", "farmer"]),
    }
    given = Plan.published(
        epsilon=1.0, method="DP-UM", attributes={**PLAN.attributes, **own}
    )  # fmt: skip
    found = explore(TABLE, given, epsilons=[1.0], runs=1)
    for point in found.points:
        assert point.plan.method_of("school") == "DP-UM"
        assert point.plan.k_of("school") == 50
        if point.plan.method != "DP":
            assert point.plan.k_of("job") == 3  # 2 is too few for iDP-CBLS
    assert found.plan is not None
    release = protect(TABLE, Plan.from_toml(found.plan.to_toml()), seed=1)
    masked = {a.name: a for a in release.certificate.attributes}
    assert (masked["school"].method, masked["school"].k) == ("DP-UM", 50)


@pytest.mark.parametrize(
    "settings", [{"k": "auto"}, {"partition": "noise-optimal", "k": 3}, {"anonymity": 20}]
)
def test_plans_of_every_partition_are_varied(settings: dict[str, Any]) -> None:
    own = {"k": 5} if settings.get("k") == "auto" else {}
    attributes = {
        "age": "confidential",
        "job": JOB.model_copy(update=own),
        **dict.fromkeys(("name", "wages", "born", "school", "old"), "identifier"),
    }
    plan = Plan.published(epsilon=1.0, attributes=attributes, **settings)
    found = explore(TABLE, plan, epsilons=[1.0], runs=1)
    assert found.to_frame()["unchanged"].drop_nulls().is_between(0, 1).all()
    tried = {0, 10, 25, 50, settings.get("anonymity", 0)}
    assert set(found.to_frame()["anonymity"]) == tried


def test_truth_values_without_categories_leave_only_cbls() -> None:
    table = TABLE.select("age", smokes=pl.col("old") == "yes")
    attributes = {"age": Confidential(lower=0, upper=120), "smokes": Confidential(kind="nominal")}
    found = explore(
        table, Plan.published(epsilon=1.0, attributes=attributes), epsilons=[1.0], runs=1
    )
    assert set(found.to_frame()["method"]) == {"iDP-CBLS"}


def test_without_a_plan_categories_are_proposed_and_measured() -> None:
    found = explore(TABLE, epsilons=[1.0], runs=1)
    assert found.plan is not None
    proposed = {"age", "wages", "born", "school", "job", "old"}
    assert set(found.plan.names("confidential")) == proposed
    measured = found.to_frame().drop_nulls("measured")
    assert measured["unchanged"].null_count() == 0


def test_categories_alone_have_no_error_to_explore() -> None:
    plan = Plan.published(epsilon=1.0, attributes={"school": SCHOOL, "job": JOB})
    with pytest.raises(DataError, match="squared errors, which categories have none of"):
        explore(TABLE.select("school", "job"), plan)


def test_a_class_must_not_be_a_confidential_category() -> None:
    with pytest.raises(DataError, match="target 'school': a class must not be one of the confid"):
        explore(TABLE, PLAN, target="school", runs=1)


def test_words_and_table_tell_of_categories(found: Exploration) -> None:
    assert "of categories unchanged, " in recommendation_headline(found)
    assert "An attacker who takes a released category for" in recommendation_text(found)
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(found)
    lines = str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    (first, *_) = (i for i, line in enumerate(lines) if "expected" in line and "linked" in line)
    assert lines[first].split()[-3:] == ["linked", "unchanged", "F-measure"]
    rows = [line.split() for line in lines[first + 2 :]]
    assert rows[0] == ["ε", "=", "1"]
    assert rows.index([]) == 1 + 6 + 2 * 3  # so that no cell is broken into lines
    assert max(map(len, lines)) <= 80
    ElementTree.fromstring(found.to_svg())  # noqa: S314 - our own


def test_the_command(run: Callable[[str], tuple[int, str, str]]) -> None:
    TABLE.write_csv("in.csv")
    Path("plan.toml").write_text(PLAN.to_toml(), encoding="utf-8")
    code, out, err = run("explore in.csv --plan plan.toml --epsilon 1 --runs 1 -o best.toml")
    assert (code, err) == (0, "")
    assert "of categories unchanged" in " ".join(out.split())
    assert Plan.read("best.toml").confidential["job"] == JOB
