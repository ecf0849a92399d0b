"""Everything that is wrong with a plan is said at once, with its lines."""

import math
import pickle
from datetime import date, datetime, time
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest

from microveil import Confidential, DataError, Plan, PlanError, check, protect
from microveil.errors import MicroveilError, Problems
from microveil.plan.problems import plan_and_problems

PEOPLE = pl.DataFrame(
    {
        "age": range(20, 80),
        "wages": [100.0 * x for x in range(60)],
        "born": [date(1950 + x // 2, 1, 1) for x in range(60)],
        "job": ["nurse", "smith"] * 30,
        "score": [1, 2, 3] * 20,
    }
)
WRONG = """\
epsilon = -1
metod = "DP"
anonymity = 100

[attributes]
score = {role = "confidential", k = 70}

[attributes.age]
role = "confidential"
lowr = 0
upper = 50

[attributes.wages]  # [attributes.job]
role = "confidential"
lower = "abc"
k = 2.5

[attributes.born]
role = "confidential"
lower = "1990-01-01"
upper = 1980-12-31
budget_share = 0

[attributes.job]
role = "confidential"

[attributes."shoe size"]
role = "confidental"
"""


def places(problems: tuple[MicroveilError, ...]) -> list[tuple[int | None, str | None, str | None]]:
    return [(problem.line, problem.attribute, problem.setting) for problem in problems]


ALL = [
    (1, None, "epsilon"),
    (2, None, "metod"),
    (3, None, "anonymity"),
    (6, "score", "k"),
    (10, "age", "lowr"),
    (11, "age", "upper"),
    (15, "wages", "lower"),
    (16, "wages", "k"),
    (20, "born", "lower"),
    (22, "born", "budget_share"),
    (24, "job", "kind"),
    (27, "shoe size", None),
    (28, "shoe size", "role"),
]


def test_every_error_of_a_plan_in_one_go_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(WRONG)
    found = check(PEOPLE, path)
    assert set(ALL) <= set(places(found))
    assert [problem.line for problem in found] == sorted(problem.line or 0 for problem in found)
    told = {(problem.line, problem.setting): str(problem) for problem in found}
    assert told[2, "metod"] == "line 2: plan: unknown key 'metod'; did you mean 'method'?"
    assert told[10, "lowr"].startswith("line 10: attribute 'age': unknown key 'lowr'; did you mean")


def test_without_data_everything_that_is_wrong_in_itself() -> None:
    with pytest.raises(PlanError) as error:
        Plan.from_toml(WRONG)
    in_itself = [place for place in ALL if place[0] in (1, 2, 10, 15, 16, 20, 22, 28)]
    assert places(error.value.problems) == in_itself
    text = str(error.value)
    assert text.startswith("8 problems:\n  line 1: plan: epsilon")
    assert text.count("\n") == 8


def test_protect_says_everything_that_does_not_fit() -> None:
    plan = Plan.published(
        epsilon=1.0,
        k=70,
        attributes={
            "age": Confidential(upper=50),
            "Wages": "confidential",
            "born": Confidential(lower=0),
            "job": "confidential",
            "score": Confidential(kind="nominal", categories=[1, 2]),
        },
    )
    with pytest.raises(DataError) as error:
        protect(PEOPLE, plan)
    assert [(p.attribute, p.setting) for p in error.value.problems] == [
        ("Wages", None),
        (None, "attributes"),
        ("born", "lower"),
        ("job", "kind"),
        ("age", "upper"),
        ("age", "k"),
        ("score", "categories"),
        ("score", "k"),
    ]
    assert "did you mean 'wages'?" in str(error.value)
    assert list(map(str, check(PEOPLE, plan))) == list(map(str, error.value.problems))


def test_a_plan_that_fits_has_no_problems(tmp_path: Path) -> None:
    plan = Plan.published(
        epsilon=1.0,
        k=3,
        attributes=dict.fromkeys(["age", "wages", "born"], "confidential")
        | {"job": "kept", "score": "identifier"},
    )
    plan.write(tmp_path / "plan.toml")
    assert check(PEOPLE, plan) == check(PEOPLE, tmp_path / "plan.toml") == ()


def test_what_is_wrong_with_many_attributes_alike_is_said_once() -> None:
    names = [f"a{i}" for i in range(20)]
    with pytest.raises(PlanError) as error:
        Plan.published(epsilon=1.0, k=2, attributes=dict.fromkeys(names, "confidential"))
    assert str(error.value).startswith("attributes 'a0', 'a1', ")
    assert str(error.value).endswith("'a7' and 12 more: k must be 3 or more for iDP-CBLS, got 2")
    assert len(error.value.problems) == 20


def test_what_merely_follows_from_a_mistake_is_not_said() -> None:
    wage = {"role": "confidential", "lower": 0, "upper": 1}
    job = {"role": "confidential", "kinds": "nominal"}
    attributes = {"job": job, "age": "confidential", "wage": wage}
    settings = {"epsilon": 1.0, "method": "DP", "attributes": attributes}
    plan, found = plan_and_problems(Plan, settings)
    assert [(p.attribute, p.setting) for p in found] == [
        ("job", "kinds"),
        ("age", "lower"),
    ]
    assert plan is not None
    assert plan.names("confidential") == ("wage",)


@pytest.mark.parametrize(
    "attributes", [3, {}, {"age": 5}, {"age": {}}, {"age": {"role": 1}}, None, {"a": "kept"}]
)
def test_settings_that_are_no_plan_at_all(attributes: object) -> None:
    _, found = plan_and_problems(Plan, {"attributes": attributes})
    assert {(None, "epsilon")} <= {(p.attribute, p.setting) for p in found}
    assert len(found) >= 2


def test_a_taxonomy_that_cannot_be_read_is_one_problem_of_several(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    job = '{role = "confidential", kind = "nominal", taxonomy = "none.csv"}'
    path.write_text(f"epsilon = 0\n[attributes]\njob = {job}\nage = 'confidential'\n")
    with pytest.raises(PlanError) as error:
        Plan.read(path)
    assert places(error.value.problems) == [(1, None, "epsilon"), (3, "job", "taxonomy")]
    (tmp_path / "none.csv").write_text("parent,child\n,crafts\ncrafts,smith\ncrafts,mason\n")
    path.write_text(path.read_text().replace("epsilon = 0", "epsilon = 1"))
    assert Plan.read(path).confidential["job"].declared_categories == ("smith", "mason")


def test_an_error_of_several_problems_survives_pickling() -> None:
    problems = Problems()
    for name in "ab":
        with problems:
            raise PlanError(f"{name} is wrong", attribute=name, setting="k")
    with pytest.raises(PlanError) as error:
        problems.raise_found()
    copy = pickle.loads(pickle.dumps(error.value))  # noqa: S301
    assert str(copy) == str(error.value)
    assert [problem.attribute for problem in copy.problems] == ["a", "b"]
    assert (copy.attribute, copy.setting) == ("a", "k")


def test_problems_let_defects_through() -> None:
    with pytest.raises(ZeroDivisionError), Problems():
        1 / 0  # noqa: B018


def test_ends_of_a_domain_as_text() -> None:
    text: Any = "1992-12-31"
    assert Confidential(upper=text).upper == date(1992, 12, 31)
    plan = Plan.from_toml(
        "epsilon = 1\n[attributes]\n"
        'a = {role = "confidential", lower = "1990-01-01 10:30:00", upper = 1992-12-31}\n'
        'b = {role = "confidential", lower = "08:00", upper = "17:30:00"}\n'
    )
    assert plan.confidential["a"].lower == datetime(1990, 1, 1, 10, 30)
    assert plan.confidential["b"].upper == time(17, 30)
    assert Plan.from_toml(plan.to_toml()) == plan
    with pytest.raises(PlanError, match="upper must be a number, or a date or time"):
        Confidential(upper=text.replace("-", ""))


def test_decimals_of_whole_numbers() -> None:
    plan = Plan.published(epsilon=1.0, k=3, attributes={"age": Confidential(decimals=0)})
    assert protect(PEOPLE.select("age"), plan, keep_order=True).data["age"].dtype == pl.Int64
    assert Confidential(kind="integer", decimals=0).decimals == 0
    (problem,) = check(
        PEOPLE.select("age"),
        Plan.published(epsilon=1.0, attributes={"age": Confidential(decimals=1)}),
    )
    assert problem.setting == "decimals"


CONFIDENTIAL, PLAN = list(Confidential.model_fields), list(Plan.model_fields)
JUNK: list[Any] = [0, -1, 2.5, "x", "1990-01-01", None, True, [], ["a", "b"], {"a": 1}, math.nan,
                   10**30, "DP", "auto", "nominal", "ordinal"]  # fmt: skip


def test_whatever_a_plan_holds_all_of_it_is_looked_at_in_the_end() -> None:
    random = Random(1)

    def some(names: list[str]) -> dict[str, Any]:
        return {random.choice(names): random.choice(JUNK) for _ in range(random.randint(0, 4))}

    for _ in range(400):
        attributes = {
            name: random.choice(["confidential", "kept", "bad", 3])
            if random.random() < 0.4
            else {"role": random.choice(["confidential", "derived"]), **some([*CONFIDENTIAL, "x"])}
            for name in random.sample("abcd", random.randint(0, 4))
        }
        settings = {"epsilon": 1.0, "attributes": attributes, **some([*PLAN, "kk"])}
        plan, found = plan_and_problems(Plan, settings)
        assert plan is not None or found
        problems = Problems()
        with problems:
            assert Plan(**settings) == plan
        assert bool(found) == bool(problems.found)


def test_a_partition_of_the_plan_is_to_blame_and_not_the_domains_that_are_declared() -> None:
    text = """\
epsilon = 1.0
method = "DP-UM"
partition = "noise-optimal"

[attributes]
age = {role = "confidential", lower = 0, upper = 100}
pay = {role = "confidential", lower = 0, upper = 100}
job = {role = "confidential", kind = "nominal"}
"""
    with pytest.raises(PlanError) as raised:
        Plan.from_toml(text)
    found = [(p.attribute, p.setting, p.line) for p in raised.value.problems]
    assert found == [("age", "partition", 3), ("pay", "partition", 3), ("job", "categories", 8)]
    assert "  line 3: attributes 'age', 'pay': partition = " in str(raised.value)
