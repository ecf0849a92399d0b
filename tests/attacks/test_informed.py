"""The informed attacker, in closed form and by exact enumeration of a tiny mechanism."""

from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, Verdict, evaluate, protect, verdict
from microveil.compare.figures import Figure
from microveil.engines.layout import classes_of_units

Row = tuple[Any, ...]


def best_guess(values: list[Row], kept: list[Any], target: int) -> Fraction:
    """Return the chance of picking a person's row after exchange, by enumerating all draws.

    All people are one joint cluster; attributes are exchanged independently, the kept column stays
    in its row, and rows come in random order. The attacker knows everything but the draws, so for
    every table that can come out he names the row that is most often the target's.
    """
    people = range(len(values))
    columns = [list(permutations(people)) for _ in values[0]]
    seen: dict[tuple[Row, ...], dict[Row, Fraction]] = {}
    weight = Fraction(1, int(np.prod([len(each) for each in columns])))
    for draw in product(*columns):
        rows = [(*(values[draw[a][i]][a] for a in range(len(values[0]))), kept[i]) for i in people]
        table = tuple(sorted(rows))
        mine = seen.setdefault(table, {})
        mine[rows[target]] = mine.get(rows[target], Fraction(0)) + weight
    chance = Fraction(0)
    for table, mine in seen.items():
        chance += max(share / table.count(row) for row, share in mine.items())
    return chance


@pytest.mark.parametrize("kept", ["aaaa", "aaab", "aabb", "abcd"])
def test_the_chance_is_one_in_the_size_of_the_class(kept: str) -> None:
    """With equality, since rows show their joint cluster here: it is the only one."""
    values = [(1, 5), (2, 5), (3, 7), (4, 9)]
    for target, own in enumerate(kept):
        assert best_guess(values, list(kept), target) == Fraction(1, kept.count(own))


def survey(records: int = 2_000) -> pl.DataFrame:
    random = np.random.default_rng(3)
    common = random.normal(size=records)
    return pl.DataFrame(
        {
            "income": (1_000 * (common + random.normal(size=records))).round(),
            "age": (40 + 10 * (common + random.normal(size=records))).round(),
            "sex": random.choice(["f", "m"], records),
            "region": random.choice(["north", "south"], records),
        }
    )


def judged(table: pl.DataFrame, *kept: str, **settings: Any) -> Verdict:  # noqa: ANN401
    numbers = {"income": Confidential(), "age": Confidential()}
    others = {name: "kept" if name in kept else "identifier" for name in ("sex", "region")}
    plan = Plan.published(
        epsilon=1.0, k=5, anonymity=25, attributes={**numbers, **others}, **settings
    )
    return verdict(table, protect(table, plan, seed=1, keep_order=True), seed=1)


def informed(found: Verdict) -> Figure:
    (figure,) = [f for f in found.figures if f.measure == "linkage.informed"]
    return figure


def test_kept_columns_part_the_classes() -> None:
    """Two values part a joint cluster of 25 into two: about one in 12, and then one in six."""
    assert informed(judged(survey())).value == pytest.approx(0.04, abs=0.002)
    alone = judged(survey(), "sex")
    assert informed(alone).value == pytest.approx(0.08, abs=0.004)
    assert not alone.passed
    both = judged(survey(), "sex", "region")

    assert 0.15 < informed(both).value < 0.18
    assert informed(both).facts["smallest"] == 1


def test_several_groups_intersect() -> None:
    numbers = {name: Confidential() for name in ("income", "age")}
    roles = {**numbers, "sex": "identifier", "region": "identifier"}
    table = survey()
    plan = Plan.published(
        epsilon=1.0, k=5, anonymity=10, groups=[["income"], ["age"]], attributes=roles
    )  # fmt: skip
    release = protect(table, plan, seed=1)
    labels = pl.DataFrame(dict(release.detail.joint))
    expected = labels.unique().height / labels.height
    found = evaluate(table, release, linkage_sample=100)
    assert found.value("linkage.informed") == pytest.approx(expected)
    assert expected > 0.5


def test_units_are_told_by_how_many_records_they_have() -> None:
    record = np.array([7, 7, 7, 7, 8, 7, 8])
    unit = np.array([0, 0, 1, 2, 2, 3, 3])
    classes = classes_of_units(record, unit)
    assert len(set(classes.tolist())) == 3
    assert classes[2] == classes[3]


def test_of_more_records_than_are_looked_at_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("microveil.judge.verdict.LOOKED_AT", 500)
    assert informed(judged(survey(), "sex")).facts["units"] == 2_000
