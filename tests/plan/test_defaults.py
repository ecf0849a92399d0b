"""What a plan does where it says nothing: what is recommended, as far as it fits."""

from itertools import product
from typing import Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Confidential, Plan, PlanError, protect
from microveil.core.choices import GuaranteeName, MethodName, Partition
from microveil.plan.settings import RECOMMENDED

NUMBER = Confidential(lower=0, upper=100)
CATEGORY = Confidential(kind="nominal", categories=["a", "b"])
ROLES: dict[str, Any] = {"x": NUMBER, "c": CATEGORY, "y": NUMBER}


def clusters_of(plan: Plan, name: str = "x") -> tuple[object, object]:
    return plan.partition_of(name), plan.k_of(name)


def test_the_recommended_plan_is_what_is_made_of_a_budget_and_attributes() -> None:
    plan = Plan(epsilon=1.0, attributes=ROLES)
    said = Plan(epsilon=1.0, attributes=ROLES, **RECOMMENDED)
    assert clusters_of(plan) == ("noise-optimal", 3)
    assert clusters_of(plan, "c") == clusters_of(said, "c") == ("fixed", 3)
    assert (plan.trim_of("x"), plan.post) == (0.1, "penalised-isotonic")
    assert (plan.anonymity, plan.pooling) == (25, "exchange")
    table = pl.DataFrame({"x": range(100), "c": ["a", "b"] * 50, "y": range(100)})
    one, other = (protect(table, each, seed=3, keep_order=True).data for each in (plan, said))
    assert one.equals(other)


def test_the_papers_plan_says_everything() -> None:
    plan = Plan.published(epsilon=1.0, attributes=ROLES)
    assert (plan.partition, plan.k, plan.trim, plan.post) == ("fixed", 10, 0.0, "none")
    assert plan.anonymity == 0
    for setting in ('partition = "fixed"', "k = 10", "trim = 0.0", "anonymity = 0"):
        assert setting in plan.to_toml()


@pytest.mark.parametrize("method", get_args(MethodName))
@pytest.mark.parametrize("guarantee", get_args(GuaranteeName))
@pytest.mark.parametrize("own", [None, *get_args(MethodName)])
def test_what_does_not_fit_gives_way(
    method: MethodName, guarantee: GuaranteeName, own: MethodName | None
) -> None:
    attributes = {**ROLES, "y": Confidential(lower=0, upper=100, method=own)}
    plan = Plan(epsilon=1.0, method=method, guarantee=guarantee, attributes=attributes)
    for name, its in (("x", method), ("y", own or method)):
        follows = its.startswith("iDP") and guarantee == "fixed-clusters"
        fixed = ("fixed", 1 if its == "DP" else 10)
        assert clusters_of(plan, name) == (("noise-optimal", 3) if follows else fixed)
        assert plan.trim_of(name) == (0.1 if its == "iDP-CBLS" else 0)
    assert plan.replace(method="DP", guarantee="re-clustered").k_of("x") == 1
    assert plan.anonymity == 25
    table = pl.DataFrame({"x": range(100), "c": ["a", "b"] * 50, "y": range(100)})
    assert protect(table, plan, seed=1, keep_order=True).data.height == 100


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"k": "auto"}, ("fixed", "auto")),
        ({"k": 7}, ("noise-optimal", 7)),
        ({"partition": "fixed"}, ("fixed", 10)),
        ({"partition": "least-squares"}, ("least-squares", 10)),
        ({"partition": "noise-optimal"}, ("noise-optimal", 3)),
        ({"k": 300}, ("fixed", 300)),
        ({"k": 300, "cap": 599}, ("noise-optimal", 300)),
        ({"cap": 4}, ("fixed", 10)),
    ],
)
def test_a_default_goes_by_what_is_said(settings: dict[str, Any], expected: object) -> None:
    plan = Plan(epsilon=1.0, attributes={"x": NUMBER}, **settings)
    assert clusters_of(plan) == expected
    own = {n: value for n, value in settings.items() if n == "k"}
    rest = {n: value for n, value in settings.items() if n != "k"}
    of_attribute = Confidential(lower=0, upper=100, **own)
    assert clusters_of(Plan(epsilon=1.0, attributes={"x": of_attribute}, **rest)) == expected


def test_what_is_said_is_refused_where_it_does_not_fit() -> None:
    for settings in ({"method": "DP-UM"}, {"guarantee": "re-clustered"}):
        with pytest.raises(PlanError, match='partition = "noise-optimal" looks at the data'):
            Plan(epsilon=1.0, attributes={"x": NUMBER}, partition="noise-optimal", **settings)  # type: ignore[arg-type]


def test_tables_with_fewer_records_than_a_crowd_are_refused() -> None:
    with pytest.raises(Exception, match="anonymity"):
        protect(pl.DataFrame({"x": range(9)}), Plan(epsilon=1.0, attributes={"x": NUMBER}))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "partition": st.sampled_from(get_args(Partition)),
            "k": st.sampled_from([3, 10, "auto"]),
            "trim": st.sampled_from([0.0, 0.1]),
            "post": st.sampled_from(["none", "penalised-isotonic"]),
            "anonymity": st.sampled_from([0, 10, 20]),
            "method": st.sampled_from(get_args(MethodName)),
        },
    )
)
def test_toml_leaves_out_what_is_as_by_default_and_reads_it_back(settings: dict[str, Any]) -> None:
    try:
        plan = Plan(epsilon=1.0, attributes=ROLES, **settings)
    except PlanError:
        return
    text = plan.to_toml()
    assert Plan.from_toml(text) == plan
    for name, value in RECOMMENDED.items():
        left_out = settings.get(name) is None or (
            name not in ("partition", "k") and settings[name] == value
        )
        assert (f"\n{name} =" in text) != left_out


def test_replacing_the_method_replaces_what_follows_from_it() -> None:
    plan = Plan(epsilon=1.0, attributes=ROLES)
    for one, other in product(get_args(MethodName), repeat=2):
        both = plan.replace(method=one).replace(method=other)
        assert both == plan.replace(method=other)
