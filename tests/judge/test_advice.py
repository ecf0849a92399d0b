"""Advice can be followed, and names what is to blame."""

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, check, protect, verdict
from microveil.judge.change import Change

RANDOM = np.random.default_rng(0)


def table(records: int, **more: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {"age": RANDOM.normal(50, 9, records).round(1), "pay": RANDOM.normal(0, 1, records), **more}
    )


def advice(people: pl.DataFrame, **settings: object) -> Change | None:
    masked = {"age": "confidential", "pay": "confidential"}
    others = dict.fromkeys([n for n in people.columns if n not in masked], "kept")
    plan = Plan(**{"epsilon": 5.0, "attributes": {**masked, **others}, **settings})  # type: ignore[arg-type]
    return verdict(people, protect(people, plan, seed=1), seed=1).change


def test_a_constant_column_is_not_to_blame() -> None:
    """Two columns point to everybody each, so that dropping one of them alone changes nothing."""
    keys = {name: [f"{name}{i}" for i in range(300)] for name in "uw"}
    found = advice(table(300, country=["CH"] * 300, **keys))
    assert found is not None
    assert (found.kind, found.names) != ("drop", ("country",))


@pytest.mark.parametrize("strata", [["a"] * 54 + ["b"] * 6, ["a"] * 60])
def test_advice_can_be_followed(strata: list[str]) -> None:
    """Of six records no joint cluster of ten can be made, and so none is proposed."""
    people = table(60, s=strata)
    found = advice(people, k=3, anonymity=0, exact_from=0, within=["s"], partition="fixed")
    assert found is None or found.plan is None or check(people, found.plan) == ()
    assert (found is not None and found.kind == "pool") == (len(set(strata)) == 1)


def test_explore_is_not_proposed_for_categories_which_it_refuses() -> None:
    people = pl.DataFrame({"a": ["a"] * 293 + list("bcdefgh")})
    letters = Confidential(kind="nominal", categories=list("abcdefgh"))
    plan = Plan.published(epsilon=1e-4, method="DP", attributes={"a": letters},
                          uses=["share a"])  # fmt: skip
    found = verdict(people, protect(people, plan, seed=1), seed=1)
    assert found.usefulness.grade == "poor"
    assert found.change is None or found.change.kind != "explore"
