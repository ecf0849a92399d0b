import copy
import errno
import math
import os
import pickle
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Confidential, DataError, Derived, FileError, Kept, Plan, PlanError
from microveil.plan.flags import override, plan_for_columns, settings_from_file
from microveil.plan.propose.proposal import propose_plan
from microveil.plan.sample import people

AGE = {"age": "confidential"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attributes": AGE}, "plan: epsilon is missing"),
        ({"epsilon": 0}, "plan: epsilon must be a finite number above 0, got 0.0"),
        ({"epsilon": -1.0}, "above 0, got -1.0"),
        ({"epsilon": math.nan}, "finite number above 0, got nan"),
        ({"epsilon": math.inf}, "finite number above 0, got inf"),
        ({"epsilon": "1"}, "plan: epsilon must be a valid number, got '1'"),
        ({"epsilom": 1}, "plan: unknown key 'epsilom'; did you mean 'epsilon'?"),
        ({"k": 0}, "plan: k must be 1 or more, got 0"),
        ({"k": 2}, "attribute 'age': k must be 3 or more for iDP-CBLS, got 2"),
        ({"k": 2.5}, "plan: k must be a valid integer, got 2.5"),
        ({"method": "idp"}, "plan: method must be 'DP', 'DP-UM', 'iDP-LS' or 'iDP-CBLS'"),
        ({"method": "DP"}, "attribute 'age': DP needs a declared domain"),
        ({"method": "DP-UM"}, "attribute 'age': DP-UM needs a declared domain"),
        ({"missing": "skip"}, "plan: missing must be 'error', 'keep' or 'drop', got 'skip'"),
        ({"records_per_person": 0}, "plan: records_per_person must be 1 or more, got 0"),
        ({"attributes": {}}, "at least one with role confidential"),
        ({"attributes": {"age": "kept"}}, "at least one with role confidential"),
        ({"attributes": {"age": "secret"}}, "attribute 'age': role must be confidential, ident"),
        ({"attributes": {"age": {"lower": 1}}}, "attribute 'age': role must be confidential"),
    ],
)
def test_a_wrong_plan_is_one_clear_message(settings: dict[str, Any], message: str) -> None:
    base: dict[str, Any] = {"epsilon": 1.0, "attributes": AGE}
    if "epsilom" in settings or settings == {"attributes": AGE}:
        del base["epsilon"]
    with pytest.raises(PlanError) as error:
        Plan.published(**{**base, **settings})
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lower": 5, "upper": 5}, "lower must be below upper"),
        ({"lower": math.nan}, "lower must be a finite number"),
        ({"upper": math.inf}, "upper must be a finite number"),
        ({"budget_share": 0}, "budget_share must be above 0"),
        ({"resolution": -1.0}, "resolution must be above 0"),
        ({"decimals": 16}, "decimals must be from 0 to 15"),
        ({"decimals": 2, "kind": "integer"}, "decimals are for kind"),
        ({"decimals": 2, "resolution": 0.5}, "resolution and decimals exclude each other"),
        ({"resolution": 0.5, "lower": 0, "upper": 1}, "resolution has no effect with lower"),
        ({"method": "DP", "k": 5, "lower": 0, "upper": 1}, "method DP forms no clusters; remove k"),
        ({"trim": 0.5}, "trim must be 0 or more and below 0.5"),
        ({"trim": float("nan")}, "trim must be 0 or more and below 0.5"),
        ({"trim": 0.1, "kind": "nominal"}, "trim is for numbers, but kind is nominal; remove it"),
        ({"uper": 5}, "unknown key 'uper'; did you mean 'upper'?"),
    ],
)
def test_a_wrong_attribute_says_so_alone_and_in_a_plan(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match="^" + message[:10]):
        Confidential(**settings)
    with pytest.raises(PlanError) as error:
        Plan.published(epsilon=1.0, attributes={"age": {"role": "confidential", **settings}})
    assert str(error.value).startswith("attribute 'age': " + message[:10])
    assert message in str(error.value)


ATTRIBUTES = {"age": "confidential", "name": "identifier"}


@pytest.mark.parametrize(
    ("settings", "attribute", "setting"),
    [
        ({"epsilon": -1.0}, None, "epsilon"),
        ({"epsilon": "1"}, None, "epsilon"),
        ({"epsilom": 1.0}, None, "epsilom"),
        ({"attributes": {"age": "kept"}}, None, "attributes"),
        ({"attributes": {"age": "secret"}}, "age", "role"),
        ({"attributes": {"age": 5}}, "age", "role"),
        ({"attributes": {"age": {"role": "confidential", "uper": 1}}}, "age", "uper"),
        (
            {"attributes": {"age": {"role": "confidential", "budget_share": 0}}},
            "age",
            "budget_share",
        ),
        ({"attributes": {**AGE, "x": {"role": "derived", "expression": "y"}}}, "x", "expression"),
        ({"attributes": {**AGE, "x": {"role": "derived"}}}, "x", "expression"),
        ({"k": 2}, "age", "k"),
        ({"k": "auto", "guarantee": "re-clustered"}, "age", "k"),
        ({"k": "auto", "method": "DP-UM", "domain_from_data": True}, "age", "k"),
        ({"trim": -0.1}, None, "trim"),
        ({"trim": 0.5}, None, "trim"),
        ({"trim": float("nan")}, None, "trim"),
        (
            {"attributes": {"age": {"role": "confidential", "trim": 0.1}}, "method": "iDP-LS"},
            "age",
            "trim",
        ),
        ({"partition": "least-squares", "guarantee": "re-clustered"}, "age", "partition"),
        ({"partition": "joint"}, None, "partition"),
        ({"anonymity": 1}, None, "anonymity"),
        ({"groups": [["age"]]}, None, "anonymity"),
        ({"anonymity": 3, "together": [["age", "age"]]}, None, "together"),
        ({"records_per_person": 2, "guarantee": "re-clustered"}, "age", "records_per_person"),
        ({"method": "DP"}, "age", "lower"),
        ({"anonymity": 5, "groups": [["name"]]}, "name", "groups"),
        ({"anonymity": 5, "groups": [["nobody"]]}, None, "groups"),
        ({"groups": [{"attribute": ["age"]}]}, None, "groups"),
        ({"groups": [{"attributes": ["age"], "k": 3}]}, None, "groups"),
        ({"scenarios": [{"known": []}]}, None, "scenarios"),
        ({"scenarios": [{"known": ["nobody"]}]}, None, "scenarios"),
        ({"scenarios": [{"known": ["name"]}]}, "name", "scenarios"),
        ({"scenarios": [{"people": 0.0}]}, None, "scenarios"),
        ({"scenarios": [{"people": 1.5}]}, None, "scenarios"),
        ({"scenarios": [{"know": ["age"]}]}, None, "scenarios"),
        ({"scenarios": [{"known": ["age"]}, {"known": ["age"]}]}, None, "scenarios"),
    ],
)
def test_an_error_says_which_attribute_and_which_setting(
    settings: dict[str, Any], attribute: str | None, setting: str
) -> None:
    with pytest.raises(PlanError) as error:
        Plan.published(**{"epsilon": 1.0, "attributes": ATTRIBUTES, **settings})
    assert (error.value.attribute, error.value.setting) == (attribute, setting)
    assert str(error.value).startswith(f"attribute {attribute!r}: " if attribute else "plan: ")
    again = pickle.loads(pickle.dumps(error.value))  # noqa: S301
    assert (str(again), vars(again)) == (str(error.value), vars(error.value))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("age +", "not an SQL expression Polars"),
        ("__import__('os').system('true')", "not an SQL expression Polars"),
        ("1", "must name at least one attribute"),
        ("age + wages", "the expression names 'wages', which is not in the plan"),
        ("age + name", "the expression names 'name', an identifier"),
        ("age + twice", "in a circle"),
    ],
)
def test_a_wrong_expression_is_refused(expression: str, message: str) -> None:
    attributes = {
        "age": "confidential",
        "name": "identifier",
        "twice": {"role": "derived", "expression": expression},
    }
    with pytest.raises(PlanError, match=r"attribute 'twice'") as error:
        Plan.published(epsilon=1.0, attributes=attributes)
    assert message in str(error.value)


def test_derived_attributes_are_ordered_by_what_they_need() -> None:
    plan = Plan.published(
        epsilon=1,
        attributes={
            "all": Derived(expression='"both of them" * 2'),
            "both of them": Derived(expression="a + b"),
            "a": "confidential",
            "b": "kept",
        },
    )
    assert plan.derivation_order == ("both of them", "all")


def test_a_plan_is_frozen_and_can_be_copied() -> None:
    plan = Plan.published(epsilon=np.float64(0.5), k=np.int64(4), attributes=AGE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="frozen"):
        plan.k = 5
    with pytest.raises(TypeError):
        plan.attributes["age"] = Kept()  # type: ignore[index]
    assert copy.deepcopy(plan) == pickle.loads(pickle.dumps(plan)) == plan  # noqa: S301


def test_settings_of_an_attribute_go_before_those_of_the_plan() -> None:
    own = Confidential(method="iDP-LS", k=7, lower=0, upper=1)
    plan = Plan.published(
        epsilon=1,
        attributes={
            "own": own,
            "general": "confidential",
            "alone": Confidential(method="DP", lower=0, upper=1),
        },
    )
    assert [(plan.method_of(n), plan.k_of(n)) for n in plan.confidential] == [
        ("iDP-LS", 7),
        ("iDP-CBLS", 10),
        ("DP", 1),
    ]


names = st.text(min_size=1, max_size=6)
reals = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)


@given(
    name=names,
    epsilon=st.floats(min_value=1e-6, max_value=1e3),
    lower=reals,
    share=st.floats(min_value=1e-3, max_value=1e3),
    decimals=st.none() | st.integers(0, 15),
)
def test_toml_keeps_a_plan_as_it_is(
    name: str, epsilon: float, lower: float, share: float, decimals: int | None
) -> None:
    attribute = Confidential(lower=lower, upper=lower + 1000, budget_share=share, decimals=decimals)
    plan = Plan.published(
        epsilon=epsilon, missing="drop", records_per_person=2, attributes={name: attribute}
    )
    assert Plan.from_toml(plan.to_toml()) == plan


def test_toml_keeps_scenarios() -> None:
    text = """
epsilon = 1.0
groups = [["age"]]
anonymity = 5

[[scenarios]]
name = "neighbours"
known = ["age", "region"]

[[scenarios]]
people = 0.5

[attributes]
age.role = "confidential"
region.role = "kept"
"""
    plan = Plan.from_toml(text)
    assert [x.label for x in plan.scenarios] == [
        "neighbours",
        "knows all masked attributes of 50% of the people",
    ]
    assert plan.scenarios[0].known == ("age", "region")
    assert Plan.from_toml(plan.to_toml()) == plan


@given(
    groups=st.lists(
        st.sampled_from(
            [
                ["a"],
                {"attributes": ["b"]},
                {"attributes": ["c", "d"], "anonymity": 5},
                {"attributes": ["e"], "pooling": "average"},
            ]
        ),
        unique_by=str,
        max_size=3,
    ),
    from_data=st.lists(names, max_size=3),
    categories=st.lists(names, min_size=2, max_size=4, unique=True),
    trees=st.permutations([("x", ["p"]), ("y z", {"u": ["q"], "v": {"w": []}}), ('"', ["r", "s"])]),
)
def test_toml_keeps_groups_categories_and_the_order_of_taxonomies(
    groups: list[Any], from_data: list[str], categories: list[str], trees: list[Any]
) -> None:
    attributes = {
        "a": Confidential(kind="nominal", taxonomy=dict(trees)),
        "b": Confidential(kind="ordinal", categories=categories),
        "c": Confidential(lower=date(2000, 1, 1), upper=datetime(2025, 1, 1, 12)),
        "d": Confidential(kind="nominal", categories=[False, True]),
        "e": Confidential(lower=time(1, 2, 3, 4)),
    }
    plan = Plan.published(
        epsilon=1, anonymity=4, groups=groups, from_data=from_data, attributes=attributes
    )
    again = Plan.from_toml(plan.to_toml())
    assert again == plan
    assert list(again.attributes) == list(plan.attributes)
    for name, attribute in plan.confidential.items():
        found = again.confidential[name].declared_categories
        assert found == attribute.declared_categories


def test_a_plan_is_written_and_read_again(tmp_path: Path) -> None:
    plan, path = (
        Plan.published(epsilon=1, attributes={**AGE, "é\n": "kept"}),
        tmp_path / "plan.toml",
    )
    plan.write(path)
    assert Plan.read(path) == plan
    with pytest.raises(
        FileError, match=r"plan\.toml: the file exists; choose another path, or give"
    ):
        plan.replace(epsilon=2.0).write(path)
    assert Plan.read(path) == plan
    plan.replace(epsilon=2.0).write(str(path), overwrite=True)
    assert Plan.read(path).epsilon == 2.0
    assert list(tmp_path.iterdir()) == [path]


def test_a_plan_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan.published(epsilon=1, attributes=AGE)
    with pytest.raises(FileError, match=r"cannot be written: No such file or directory"):
        plan.write(tmp_path / "none" / "plan.toml")
    full = OSError(errno.ENOSPC, "No space left on device")

    def half(self: Path, text: str, **_: object) -> None:
        self.write_bytes(text.encode()[:10])
        raise full

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        plan.write(tmp_path / "plan.toml")
    assert not list(tmp_path.iterdir())


def test_toml_that_is_not_toml() -> None:
    with pytest.raises(PlanError, match="plan: not valid TOML"):
        Plan.from_toml("epsilon = ")


def test_a_plan_file_that_is_not_there(tmp_path: object) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        Plan.read(f"{tmp_path}/none.toml")


def test_flags_make_and_change_roles() -> None:
    plan = plan_for_columns(
        ["name", "region", "income"],
        drop=["name"],
        keep=["region"],
        domains={"income": (0, 500_000)},
        epsilon=1.0,
    )
    assert plan.names("identifier") == ("name",)
    assert plan.names("kept") == ("region",)
    assert plan.confidential == {"income": Confidential(lower=0, upper=500_000)}
    columns = ["name", "region", "income"]
    with pytest.raises(PlanError, match="drop 'incom': no such attribute; did you mean 'income'"):
        plan_for_columns(columns, drop=["incom"], epsilon=1.0)
    with pytest.raises(PlanError, match="domain 'name': only a confidential"):
        override({"name": "identifier"}, domains={"name": (0, 1)})


@pytest.mark.parametrize("income", ['"confidential"', '{role = "confidential", resolution = 2.5}'])
def test_flags_change_a_plan_in_a_file(tmp_path: Path, income: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f'k = 4\n[attributes]\nname = "kept"\nincome = {income}\nage = "kept"\n')
    settings = settings_from_file(
        path, drop=["name"], nominal=["age"], domains={"income": (0, 5)}, epsilon=2.0
    )
    assert Plan.published(**settings) == Plan.published(
        epsilon=2.0,
        k=4,
        attributes={
            "name": "identifier",
            "income": Confidential(lower=0, upper=5),
            "age": Confidential(kind="nominal"),
        },
    )
    for name, why in (("name", "only a confidential"), ("shoe", "no such attribute")):
        with pytest.raises(PlanError, match=f"domain '{name}': {why}"):
            settings_from_file(path, domains={name: (0, 5)})


@pytest.mark.parametrize("attributes", ["", "attributes = 3", "attributes = ['income']"])
def test_flags_do_not_hide_that_a_plan_has_no_attributes(tmp_path: Path, attributes: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"epsilon = 1\n{attributes}\n")
    with pytest.raises(PlanError, match="plan: attributes"):
        Plan.published(**settings_from_file(path, drop=["name"]))


def test_an_attributes_own_trim_goes_before_the_plans() -> None:
    wide: dict[str, Any] = {"lower": 0, "upper": 1}
    plan = Plan.published(
        epsilon=1.0, trim=0.2,
        attributes={
            "a": "confidential", "b": Confidential(trim=0.1), "c": Confidential(trim=0),
            "d": Confidential(method="iDP-LS", trim=0.0, **wide),
            "e": Confidential(method="DP", **wide),
            "f": Confidential(kind="nominal", categories=["x", "y"]),
        },
    )  # fmt: skip
    assert [plan.trim_of(name) for name in "abcde"] == [0.2, 0.1, 0, 0, 0]
    assert Plan.from_toml(plan.to_toml()) == plan
    assert "trim = 0.2" in plan.to_toml()
    assert Plan.published(epsilon=1.0, attributes=AGE).trim == 0
    assert Plan.published(epsilon=1.0, attributes=AGE).trim == 0


def test_a_plan_that_was_proposed_is_written_and_read_back(tmp_path: Path) -> None:
    plan = Plan.propose(people())
    assert plan == Plan.propose(people().to_arrow())
    assert plan == Plan.from_toml(propose_plan(people(), "people.csv"))
    assert plan.attributes.keys() == Plan.propose(people().to_pandas()).attributes.keys()
    assert plan.names("identifier") == ("person",)
    path = tmp_path / "plan.toml"
    plan.write(path)
    assert Plan.read(path) == plan
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileError, match="the file exists"):
        plan.write(path)
    plan.write(path, overwrite=True)
    with pytest.raises(DataError, match=r"found str; for a file, read it first, or run microveil"):
        Plan.propose("people.csv")


def test_what_is_different_in_another_plan() -> None:
    job = Confidential(kind="nominal", categories=["nurse", "smith"])
    plan = Plan.published(
        epsilon=1.0, attributes={"age": "confidential", "job": job, "name": "kept"}
    )
    other = plan.replace(
        k=5,
        domain_from_data=True,
        from_data=["k"],
        attributes={
            "age": Confidential(lower=0, budget_share=2),
            "job": Confidential(kind="nominal", categories=["clerk", "nurse", "smith"]),
            "total": Derived(expression="age + 1"),
        },
    )
    assert plan.diff(other).splitlines() == [
        "k: 10 → 5",
        "domain_from_data: false → true",
        "from_data: 1 added, 0 removed",
        "age.lower: not set → 0",
        "age.budget_share: not set → 2",
        "job.categories: 1 added, 0 removed",
        "name: kept → not there",
        "total: not there → derived",
        'total.expression: not set → "age + 1"',
    ]
    assert plan.diff(plan) == "no differences"
    assert "age.lower: 0 → not set" in other.diff(plan)


def test_problems_that_bring_each_other_back_come_to_an_end() -> None:
    text = """
epsilon = 1e-09
method = "DP"
k = 5
anonymity = 3
groups = [["b", "a"]]
missing = "keep"
attributes.a = {role = "confidential", categories = [1, 2]}
attributes.b = {role = "confidential", lower = -1e+300, upper = 2e+300}
attributes.c = {role = "identifier"}
attributes.derived = {role = "derived", expression = "a + b"}
"""
    with pytest.raises(PlanError, match="attribute 'a': categories needs kind"):
        Plan.from_toml(text)
