"""What a recommended plan keeps to, and what is said where nothing does."""

import re
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from microveil import Exploration, Group, Plan, Scenario, explore, protect
from microveil.attacks.attack_rows import LOW_LINKAGE
from microveil.judge.explore.advice import advise
from microveil.judge.explore.exploration import Limits, Measured, Point
from microveil.show.words.exploration_words import recommendation_headline, recommendation_text

RECORDS = 150
_RANDOM = np.random.default_rng(7)
_SIZE = _RANDOM.normal(0, 1, RECORDS)
TABLE = pl.DataFrame(
    {
        "a": (100 + 20 * _SIZE + _RANDOM.normal(0, 5, RECORDS)).round(1),
        "b": (50 + 10 * _SIZE + _RANDOM.normal(0, 5, RECORDS)).round(1),
        "c": _RANDOM.normal(10, 3, RECORDS).round(1),
    }
)
ROLES: dict[str, Any] = dict.fromkeys(TABLE.columns, "confidential")
PLAN = Plan.published(epsilon=1.0, attributes=ROLES)


def explored(plan: Plan = PLAN, epsilons: Sequence[float] = (2.0,), **limits: Any) -> Exploration:  # noqa: ANN401
    return explore(TABLE, plan, epsilons=epsilons, runs=1, **limits)


def recommended(exploration: Exploration) -> tuple[Point, Measured]:
    point = exploration.recommended
    assert point is not None
    assert point.found is not None
    return point, point.found


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explored(epsilons=(0.1, 2.0, 20.0))


def test_by_default_a_twentieth_of_the_rows_is_linked_at_most_and_values_are_exchanged(
    found: Exploration,
) -> None:
    point, measured = recommended(found)
    assert measured.linkage <= 0.05
    assert found.plan is not None
    assert (found.plan.pooling, found.plan.epsilon) == ("exchange", 2.0)
    rivals = found.to_frame().filter(
        pl.col("linkage") <= 0.05, pl.col("pooling").is_null() | (pl.col("pooling") == "exchange")
    )
    assert measured.mean_sse == rivals.filter(epsilon=2.0)["measured"].min()
    alone = found.to_frame().filter(anonymity=0).group_by("epsilon").agg(pl.min("measured"))
    lost = {epsilon: 3 * error for epsilon, error in alone.iter_rows()}  # of three attributes
    assert lost[2.0] <= 0.1 < lost[0.1]
    assert f"probability at most 1/{point.anonymity} (level 3)" in recommendation_text(found)
    assert "leaving aside pooling by average, which the plan" in recommendation_text(found)


def test_averages_of_less_error_are_recommended_where_the_plan_averages() -> None:
    averaged = explored(PLAN.replace(anonymity=10, pooling="average"))
    assert averaged.plan is not None
    assert averaged.plan.pooling == "average"
    assert "leaving aside pooling by exchange" in recommendation_text(averaged)


def test_a_lower_limit_of_linkage_leads_to_a_larger_anonymity(found: Exploration) -> None:
    less = explored(max_linkage=0.013)
    assert set(less.to_frame()["anonymity"]) == {0, 10, 25, 50, 77}  # 1/77 is below 0.013
    assert recommended(less)[1].linkage <= 0.013
    assert recommended(less)[0].anonymity > recommended(found)[0].anonymity
    assert "the limit is 1.3%" in recommendation_text(less)


def test_a_least_anonymity_is_tried_and_kept_to() -> None:
    twenty = explored(min_anonymity=20)
    assert set(twenty.to_frame()["anonymity"]) == {0, 20, 25, 50}
    assert recommended(twenty)[0].anonymity == 20


def test_the_plan_s_own_anonymity_is_tried_too() -> None:
    assert set(explored(PLAN.replace(anonymity=7)).to_frame()["anonymity"]) == {0, 7, 10, 25, 50}


def test_without_limits_what_links_every_row_may_be_recommended(found: Exploration) -> None:
    free = advise(PLAN, found.points, Limits(max_linkage=1.0), "spread")
    assert recommended(free)[1].linkage > 0.5
    assert "not pooled" in recommendation_headline(free)
    assert "level 3" not in recommendation_text(free)


def test_where_nothing_keeps_to_the_limits_nothing_is_recommended() -> None:
    nothing = explored(max_error=1e-9)
    assert nothing.recommended is None
    assert nothing.plan is None
    pooled = [p for p in nothing.points if p.found and p.found.linkage <= 0.05]
    nearest = min(pooled, key=lambda p: p.found.mean_sse if p.found else 0.0)
    assert recommendation_headline(nothing) == "No measured plan keeps to the limits"
    assert f"The nearest is iDP-CBLS, noise-optimal, {nearest.pooled}, ε = 2: " in (
        recommendation_text(nothing)
    )
    assert nearest.found is not None
    error = f"max_error ({nearest.found.mean_sse:.2g}, limit 1e-09)"
    assert f"it breaks {error}. Loosen a limit" in recommendation_text(nothing)
    console = Console(file=StringIO(), width=80, color_system=None)
    console.print(nothing)
    printed = str(console.file.getvalue())  # type: ignore[attr-defined]
    assert "Nothing recommended\n" in printed
    assert not re.search(r"\[[●▲■]\]", printed)
    assert "No measured plan keeps to the limits" in nothing.to_svg()


def test_what_breaks_fewer_limits_by_less_is_nearest() -> None:
    def measured(error: float, linkage: float, anonymity: int) -> Point:
        plan = PLAN.replace(anonymity=anonymity)
        return Point(plan, error, Measured(3, error, linkage, None, None))

    points = [
        measured(0.02, 0.9, 0),  # breaks three
        measured(0.02, 0.055, 10),  # error by 2, linkage by 1.1
        measured(0.04, 0.03, 20),  # error by 4
        measured(0.03, 0.04, 15),  # error by 3
    ]
    limits = Limits(max_error=0.01, min_anonymity=5)
    said = recommendation_text(advise(PLAN, points, limits, "spread"))
    assert "exchange 15" in said
    assert "it breaks max_error (0.03, limit 0.01)." in said
    two = recommendation_text(advise(PLAN, points[:2], limits, "spread"))
    assert "it breaks max_linkage (5.5%, limit 5.0%) and max_error (0.02, limit 0.01)." in two
    three = recommendation_text(advise(PLAN, points[:1], limits, "spread"))
    assert "max_error (0.02, limit 0.01) and min_anonymity (0, limit 5)." in three


def test_more_anonymity_than_records_is_met_by_nothing() -> None:
    nothing = explored(min_anonymity=RECORDS + 1)
    assert nothing.plan is None
    assert f"min_anonymity (0, limit {RECORDS + 1})" in recommendation_text(nothing)


def test_the_groups_of_the_plan_stay() -> None:
    groups = (Group(attributes=("a", "b")), Group(attributes=("c",), anonymity=12))
    grouped = explored(PLAN.replace(anonymity=10, groups=groups), max_linkage=1.0,
                       min_anonymity=10)  # fmt: skip
    assert grouped.plan is not None
    assert grouped.plan.groups == groups
    assert recommended(grouped)[0].anonymity == 10
    labels = {point.pooled for point in grouped.points if point.pooled}
    assert labels == {
        f"{kind} {n}" for kind in ("exchange", "average") for n in ("10–12", "12–25", "12–50")
    }
    assert (
        "knows the attributes of one group picks a person's row with probability at most 1/10"
        in (recommendation_text(grouped))
    )
    release = protect(TABLE, Plan.from_toml(grouped.plan.to_toml()), seed=1)
    assert release.certificate.levels[2].has("groups-apart")


def test_groups_with_all_of_their_own_are_tried_once() -> None:
    groups = (
        Group(attributes=("a", "b"), anonymity=8, pooling="average"),
        Group(attributes=("c",), anonymity=8, pooling="exchange"),
    )
    grouped = explored(PLAN.replace(groups=groups))
    pooled = [point for point in grouped.points if point.pooled]
    assert [(p.pooled, p.anonymity, p.plan.anonymity) for p in pooled] == [("mixed 8", 8, 0)]


def test_attributes_without_pooling_are_no_anonymity() -> None:
    groups = (Group(attributes=("a", "b"), anonymity=0),)
    partly = explored(PLAN.replace(anonymity=10, groups=groups), max_linkage=1.0)
    assert {point.anonymity for point in partly.points} == {0}
    nothing = explored(PLAN.replace(anonymity=10, groups=groups), max_linkage=1.0, min_anonymity=5)
    assert nothing.plan is None


def test_heavy_tails_are_trimmed_also_where_clusters_must_not_follow_the_data() -> None:
    heavy = pl.DataFrame({"a": _RANDOM.lognormal(3, 2, RECORDS).round(2)})
    plan = Plan.published(epsilon=1.0, guarantee="re-clustered", attributes={"a": "confidential"})
    trimmed = explore(heavy, plan, epsilons=[1.0], runs=1, max_linkage=1.0)
    assert trimmed.plan is not None
    assert (trimmed.plan.trim, trimmed.plan.partition) == (0.1, "fixed")


def test_the_command_writes_no_plan_that_breaks_a_limit(
    run: Callable[[str], tuple[int, str, str]],
) -> None:
    TABLE.write_csv("in.csv")
    command = "explore in.csv --epsilon 2 --runs 1 --max-error 1e-9"
    code, out, err = run(f"{command} -o plan.toml --svg map.svg")
    assert code == 1
    assert err.startswith(
        "error: no measured plan keeps to the limits, so plan.toml was not written; loosen"
    )
    assert "The nearest is iDP-CBLS" in " ".join(out.split())
    assert sorted(path.name for path in Path().iterdir()) == ["in.csv"]
    assert run(f"{command} --quiet --svg map.svg")[0] == 0  # a map of what was tried is wanted
    assert Path("map.svg").exists()


def test_the_command_passes_limits_on(run: Callable[[str], tuple[int, str, str]]) -> None:
    TABLE.write_csv("in.csv")
    limits = "--max-linkage 0.5 --min-anonymity 60 --max-error 100"
    code, out, err = run(f"explore in.csv --epsilon 2 --runs 1 {limits} -o plan.toml")
    assert (code, err) == (0, "")
    assert "limit 50%" in out
    assert Plan.read("plan.toml").anonymity == 60
    code, _, err = run("explore in.csv --max-linkage 5")
    assert (code, err) == (1, "error: max_linkage must be a share above 0 and up to 1, got 5\n")


def test_with_uses_the_plan_is_recommended_that_is_best_for_them() -> None:
    """A mean is kept by averages as well, a regression and a quantile by exchange only."""
    table = TABLE.with_columns(d=pl.col("c") + 1)
    roles = {**ROLES, "d": {"role": "derived", "expression": "c + 1"}}
    plan = Plan.published(
        epsilon=1.0, attributes=roles, uses=["a ~ b", "quantile 0.9 a"], rules=["c <= a"],
        scenarios=[Scenario(known=["a"])], pooling="average",
    )  # fmt: skip
    found = explore(table, plan, epsilons=(1.0, 20.0), runs=1)
    point, measured = recommended(found)
    within = [
        p.found for p in found.points
        if p.found and p.found.linkage <= LOW_LINKAGE and p.epsilon == point.epsilon
        and (not p.pooled or p.pooling == "average")
    ]  # fmt: skip
    assert len(within) > 1
    assert measured.use_loss == min(each.use_loss or 0.0 for each in within)
    assert found.plan is not None
    assert (found.plan.uses, found.plan.rules, found.plan.scenarios) == (
        plan.uses, plan.rules, plan.scenarios,
    )  # fmt: skip
    assert found.rule == "uses"
    assert "of what is good" in recommendation_headline(found)
    assert "worst use" in recommendation_text(found)


@pytest.mark.parametrize(("losses", "epsilon"), [((0.8, 0.9), 1.0), ((3, 2), 2.0)])
def test_the_smallest_epsilon_that_is_good_for_all_uses(
    losses: tuple[float, float], epsilon: float
) -> None:
    points = [
        Point(PLAN.replace(epsilon=e), 1.0, Measured(3, e, 0.0, None, None, use_loss=loss))
        for e, loss in zip((1.0, 2.0), losses, strict=True)
    ]
    found = advise(PLAN, points, Limits(), "uses")
    assert found.best.epsilon == epsilon
    assert found.good_enough == (losses[0] <= 1)
