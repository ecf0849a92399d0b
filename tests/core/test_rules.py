"""Rules between columns: what breaks them, and the least change that keeps them."""

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from microveil.core.linear_rules import Movable, Rule, Sign, System, keep, reference


def rule(sign: Sign, constant: float = 0.0, **factors: float) -> Rule:
    return Rule("rule", factors, constant, sign)


def columns(**values: Any) -> dict[str, Any]:  # noqa: ANN401
    return {name: np.array(each, dtype=float) for name, each in values.items()}


def whole(name: str, upper: float = 10) -> Movable:
    return Movable(name, 0, upper, quantum=1.0, step=1.0)


def real(name: str, lower: float = -100, upper: float = 100) -> Movable:
    return Movable(name, lower, upper, step=2.0**-20)


def test_what_breaks_a_rule() -> None:
    values = columns(a=[1, 2, 3, np.nan, 0.3], b=[2, 2, 2, 0, 0.2], c=[3, 4, 6, 1, 0.1])
    assert rule("<=", a=1, b=-1).broken(values).tolist() == [False, False, True, False, True]
    assert rule("<", a=1, b=-1).broken(values).tolist() == [False, True, True, False, True]
    sums = rule("==", a=1, b=1, c=-1).broken(values).tolist()
    assert sums == [False, False, True, False, True]
    parts = columns(a=[0.1], b=[0.2], c=[0.3])  # whose sum is not 0.3 in doubles
    assert not rule("==", a=1, b=1, c=-1).broken(parts).any()
    assert rule("==", -1e-9, a=1, b=1, c=-1).broken(parts).all()


def test_worked_by_hand() -> None:
    system = System((rule("<=", a=1, b=-1),), (real("a"), real("b")))
    kept = keep(system, columns(a=[1, 5, np.nan, 99], b=[2, 3, 1, 98]))
    assert kept["a"].tolist()[:2] == [1, 4]
    assert kept["b"].tolist()[:2] == [2, 4]
    assert np.isnan(kept["a"][2])
    assert kept["b"][2] == 1
    assert kept["a"][3] == kept["b"][3] == 98.5
    total = System((rule("==", a=1, b=1, t=-1),), (real("a"), real("b"), real("t")))
    kept = keep(total, columns(a=[1], b=[2], t=[6]))
    assert [float(kept[name][0]) for name in "abt"] == pytest.approx([2, 3, 5])
    beside = System((rule("<=", a=1, b=-1),), (real("a"),))  # b stays as it is
    assert keep(beside, columns(a=[5], b=[3]))["a"].tolist() == [3]
    at_the_end = System((rule("==", a=1, b=1, t=-1),), (real("a", 0, 1), real("b"), real("t")))
    kept = keep(at_the_end, columns(a=[1], b=[2], t=[6]))
    assert [float(kept[name][0]) for name in "abt"] == pytest.approx([1, 3.5, 4.5])


def test_strict_rules_decimals_and_single_precision() -> None:
    tenths = [Movable(name, 0, 9, decimals=1, step=0.1) for name in "ab"]
    system = System((rule("<", a=1, b=-1),), tuple(tenths))
    kept = keep(system, columns(a=[3.3, 5, 9], b=[3.3, 2, 9]))
    assert (kept["a"] < kept["b"]).all()
    assert all(np.array_equal(np.round(kept[name], 1), kept[name]) for name in "ab")
    single = (Movable("a", -9, 9, step=1e-6, single_precision=True), real("b"))
    system = System((rule("<=", a=1, b=-1),), single)
    kept = keep(system, columns(a=np.array([0.3, 0.7], dtype=np.float32), b=[0.1, 0.2]))
    assert (kept["a"].astype(np.float32) <= kept["b"]).all()


SYSTEMS = [
    ((rule("<=", a=1, b=-1), rule("==", a=1, b=1, c=-1)), 7),
    ((rule("<=", a=1, b=-1), rule("<=", b=1, c=-1)), 7),
    ((rule("<", a=1, b=-1), rule("<=", -6, a=1, b=1, c=1)), 7),
    ((rule("==", a=2, b=-1), rule("<=", b=1, c=-1)), 7),
    ((rule("==", a=1, b=1, c=-1), rule("<=", 4, c=-1), rule("<=", a=1, b=-2)), 7),
    ((rule("==", -1, a=3, b=-2),), 9),
]


@pytest.mark.parametrize(("rules", "upper"), SYSTEMS)
def test_every_record_of_small_systems_is_kept_with_about_the_least_change(
    rules: tuple[Rule, ...], upper: int
) -> None:
    names = [name for name in "abc" if any(name in each.factors for each in rules)]
    system = System(rules, tuple(whole(name, upper) for name in names))
    every = np.array(list(product(range(upper + 1), repeat=len(names))), dtype=float)
    values = dict(zip(names, every.T.copy(), strict=True))
    good = every[~system.broken(values)]
    instead = reference(system)
    assert instead is not None
    kept = keep(system, values)  # without what a record could take instead
    assert not system.broken(kept).any()
    found = np.column_stack([kept[name] for name in names])
    assert ((found >= 0) & (found <= upper) & (found == np.rint(found))).all()
    best = ((every[:, None] - good[None]) ** 2).sum(axis=2).min(axis=1)
    ours = ((every - found) ** 2).sum(axis=1)
    assert (ours >= best - 1e-9).all()
    assert ours.sum() <= 1.3 * best.sum()


@given(st.lists(st.floats(-90, 90), min_size=3, max_size=3), st.sampled_from([0, 1, 2]))
def test_real_records_are_changed_least(record: list[float], which: int) -> None:
    rules = [
        (rule("<=", a=1, b=-1), rule("<=", b=1, c=-1)),
        (rule("==", a=1, b=1, c=-1), rule("<=", -20, c=1)),
        (rule("<=", 5, a=1, b=-2), rule("==", a=1, c=-1)),
    ][which]
    system = System(rules, (real("a"), real("b"), real("c")))
    kept = keep(system, columns(a=record[:1], b=record[1:2], c=record[2:]))
    assert not system.broken(kept).any()
    found = np.array([kept[name][0] for name in "abc"])
    constraints = [
        {
            "type": "eq" if each.sign == "==" else "ineq",
            "fun": lambda x, each=each: -each.totals(dict(zip("abc", x, strict=True))),
        }
        for each in rules
    ]
    best = minimize(
        lambda x: np.sum((x - record) ** 2), found, bounds=[(-100, 100)] * 3,
        constraints=constraints, method="SLSQP", options={"ftol": 1e-10},
    )  # fmt: skip
    assert np.sum((found - record) ** 2) <= best.fun + 1e-3


def test_what_happens_to_a_record_follows_from_the_record_alone() -> None:
    random = np.random.default_rng(3)
    system = System(
        (rule("<=", a=1, b=-1), rule("==", a=1, b=1, c=-1)), (whole("a"), whole("b"), whole("c"))
    )
    values = {name: random.integers(0, 11, 200).astype(float) for name in "abc"}
    together = keep(system, values)
    for at in range(200):
        alone = keep(system, {name: column[at : at + 1] for name, column in values.items()})
        assert all(alone[name][0] == together[name][at] for name in "abc")


def test_columns_without_ends() -> None:
    most = np.finfo(np.float64).max
    endless = tuple(Movable(name, -most, most, step=2.0**-20) for name in "abt")
    for sign in get_args(Sign):
        system = System((rule(sign, a=1, b=1, t=-1),), endless)
        assert reference(system) is not None
        kept = keep(system, columns(a=[5, 1e9], b=[3, 0.1], t=[1, -1e9]))
        assert not system.broken(kept).any()


def test_a_rule_that_a_record_cannot_keep_does_not_spoil_the_others() -> None:
    random = np.random.default_rng(4)
    rules = (rule("<=", a=1, limit=-1), rule("==", a=1, b=1, c=-1))
    system = System(rules, (whole("a"), whole("b"), whole("c", 15)))
    values = {name: random.integers(0, 11, 400).astype(float) for name in "abc"}
    values["limit"] = np.where(np.arange(400) % 2, -1.0, 3.0)
    kept = keep(system, values)
    assert rules[0].broken(kept).tolist() == (values["limit"] < 0).tolist()
    assert not rules[1].broken(kept).any()
    assert kept["limit"].tolist() == values["limit"].tolist()


def test_rules_that_no_record_can_keep_are_seen() -> None:
    assert reference(System((rule("<=", 30, a=-1),), (whole("a"),))) is None
    apart = (rule("<", a=1, b=-1), rule("<", b=1, a=-1))
    assert reference(System(apart, (whole("a"), whole("b")))) is None
    beside_kept = System((rule("<=", a=1, b=-1),), (whole("a"),))
    assert reference(beside_kept) is not None
