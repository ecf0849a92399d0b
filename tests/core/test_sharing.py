"""Who shares a value, and the noise of what few persons share: by hand and by brute force."""

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Confidential, DataError, Group, Plan, protect
from microveil.core.attribute import NumericSettings
from microveil.core.categories import released_as_is, summarise_categories
from microveil.core.clusters import summarise
from microveil.core.kernels.floors import noise_floors
from microveil.core.mask import calibrate, least_scales
from microveil.core.sharing import sharing_of
from microveil.core.unit_clusters import summarise_units
from microveil.engines.memory import memory_table
from microveil.errors import noted
from microveil.release.resolve import resolve

few_values = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=25)


@given(few_values)
def test_sharing_is_counted_as_by_looking_at_everybody(cases: list[tuple[int, int]]) -> None:
    ranked, unit = (np.array(column) for column in zip(*sorted(cases), strict=True))
    values = np.arange(-1, 9)
    found = sharing_of(values, ranked, unit)
    for value, persons, nearest in zip(values, *found, strict=True):
        others = [abs(x - value) for x, _ in cases if x != value]
        assert persons == len({owner for x, owner in cases if x == value})
        assert nearest == min(others, default=0)
    assert sharing_of(values, ranked).persons.tolist() == [
        sum(x == value for x, _ in cases) for value in values
    ]


@given(few_values, st.integers(0, 6), st.integers(1, 3), st.booleans())
def test_floors_are_those_of_sharing(
    cases: list[tuple[int, int]], enough: int, rounding: int, units: bool
) -> None:
    ranked, unit = (np.array(column) for column in zip(*sorted(cases), strict=True))
    found = sharing_of(ranked, ranked, unit if units else None)
    floors = noise_floors(ranked, unit if units else np.zeros(0, np.int64), enough, rounding)
    expected = np.where(found.persons < enough, np.maximum(found.nearest, rounding), 0)
    assert floors.tolist() == expected.tolist()


def settings_with(**changes: object) -> NumericSettings:
    table = pl.DataFrame({"x": [0, 50, 100] * 5})
    plan = Plan.published(
        epsilon=1.0, k=3, exact_from=10, attributes={"x": Confidential(resolution=1.0)}
    )
    (found,) = resolve(plan, memory_table(table)).numeric
    return replace(found, **changes)  # type: ignore[arg-type]


def test_noise_reaches_the_nearest_other_value_undivided() -> None:
    """Three at 0, nine at 7, ten at 20: only ten are a crowd."""
    ranked = np.repeat([0, 7, 20], [3, 9, 10])
    summary = summarise(ranked, np.array([3, 9, 10]))
    assert calibrate(summary, settings_with(exact_from=0)).tolist() == [0, 0, 0]
    assert calibrate(summary, settings_with()).tolist() == [8, 8, 0]  # ⌈(7 + 1)/1⌉
    assert calibrate(summary, settings_with(epsilon_per_record=0.5)).tolist() == [16, 16, 0]
    assert calibrate(summary, settings_with(persons=2)).tolist() == [8, 8, 14]  # ten records: five


def test_noise_reaches_the_next_value_that_can_be_published() -> None:
    """Values 1 apart, published in steps of 5."""
    case = settings_with(quantum=5.0)
    agreeing = summarise(np.array([3, 3, 3, 4, 4, 4]), np.array([3, 3]))
    assert calibrate(agreeing, case).tolist() == [6, 6]


def test_a_crowd_of_records_of_one_unit_is_none() -> None:
    ranked = np.repeat([0, 5, 9], [12, 3, 12])
    unit = np.array([*[0] * 10, 1, 2, 0, 1, 2, *range(12)])
    summary = summarise_units(ranked, np.array([12, 3, 12]), unit)
    case = settings_with(by_unit=True)
    own = summary.scales(case.epsilon)
    assert own.tolist() == [0, 0, 0]
    assert least_scales(own, summary, case).tolist() == [6, 5, 0]


@given(few_values.filter(lambda cases: len({unit for _, unit in cases}) > 2))
def test_no_unit_loses_more_with_raised_scales(cases: list[tuple[int, int]]) -> None:
    ranked, unit = (np.array(column) for column in zip(*sorted(cases), strict=True))
    summary = summarise_units(ranked, np.array([len(ranked)]), unit)
    case = settings_with(by_unit=True, exact_from=4, epsilon=0.7, epsilon_per_record=0.7)
    scales = calibrate(summary, case)
    assert np.all(scales >= summary.scales(0.7))
    assert np.all(summary.losses(scales) <= 0.7)
    assert scales[0] > 0 or summary.persons[0] >= 4


@given(st.lists(st.integers(0, 2), min_size=3, max_size=30))
def test_categories_are_released_as_they_are_only_if_a_crowd_has_them(codes: list[int]) -> None:
    table = pl.DataFrame({"x": ["a", "b", "c"] * 5})
    attributes = {"x": Confidential(kind="nominal", categories=[*"abc"])}
    plan = Plan.published(epsilon=1.0, k=3, exact_from=8, attributes=attributes)
    with noted():
        (case,) = resolve(plan, memory_table(table)).categorical
    ranked = np.sort(codes)
    sizes = np.full(len(codes) // 3, 3)
    sizes[-1] += len(codes) % 3
    summary = summarise_categories(ranked, sizes, 3)
    before = released_as_is(summary, replace(case, exact_from=0))
    after = released_as_is(summary, case)
    for cluster, (once, now) in enumerate(zip(before, after, strict=True)):
        leader = int(np.argmax(summary.counts[cluster]))
        assert now == (once and codes.count(leader) >= 8)


@pytest.mark.parametrize("exact_from", [0, 1])
def test_a_plan_can_turn_it_off(exact_from: int) -> None:
    table = pl.DataFrame({"x": [1] * 3 + [5] * 3 + [9] * 3})
    attributes = {"x": Confidential()}
    plan = Plan.published(epsilon=1.0, k=3, attributes=attributes)
    assert plan.exact_from == 0
    off = protect(table, plan.replace(exact_from=exact_from), seed=1)
    assert off.detail.clusters["scale"].to_list() == [0, 0, 0]
    assert all(protect(table, plan.replace(exact_from=4), seed=1).detail.clusters["scale"])


def test_it_is_never_more_than_anonymity() -> None:
    attributes = dict.fromkeys("abc", "confidential")
    plan = Plan(
        epsilon=1.0, anonymity=5, attributes=attributes,
        groups=[Group(attributes=["b"], anonymity=0), Group(attributes=["c"], anonymity=20)],
    )  # fmt: skip
    assert [plan.exact_from_of(name) for name in "abc"] == [5, 10, 10]


def test_a_value_that_all_share_and_few_have_is_refused() -> None:
    plan = Plan.published(
        epsilon=1.0, k=3, exact_from=10, attributes={"x": "confidential", "y": "confidential"}
    )
    few = pl.DataFrame({"x": [7] * 9, "y": range(9)})
    with pytest.raises(DataError, match=r"fewer than exact_from = 10.*make its role kept"):
        protect(few, plan)
    enough = pl.DataFrame({"x": [7] * 10, "y": range(10)})
    assert protect(enough, plan).data["x"].to_list() == [7] * 10


def test_a_stratum_of_one_value_reaches_for_that_of_others() -> None:
    table = pl.DataFrame({"where": ["a"] * 4 + ["b"] * 12, "x": [0] * 4 + [3] * 6 + [8] * 6})
    attributes = {"where": "kept", "x": "confidential"}
    plan = Plan.published(epsilon=1.0, k=4, exact_from=10, within=["where"], attributes=attributes)
    scales = protect(table, plan, seed=1).detail.clusters["scale"].to_list()
    assert scales[0] == pytest.approx(3, rel=1e-4)
    assert scales[1] == scales[-1] == pytest.approx(5, rel=1e-4)


def test_nobody_can_set_less_than_nothing() -> None:
    with pytest.raises(ValueError, match="exact_from must be 0 or more, got -1"):
        Plan(epsilon=1.0, exact_from=-1, attributes={"x": "confidential"})


def test_losses_of_both_levels_only_fall() -> None:
    """All tables of six records of three values, in two clusters."""
    for values in product(range(3), repeat=6):
        ranked = np.sort(values) * 4
        summary = summarise(ranked, np.array([3, 3]))
        for guarantee in ("fixed-clusters", "re-clustered"):
            case = settings_with(guarantee=guarantee)
            off = calibrate(summary, replace(case, exact_from=0))
            on = calibrate(summary, case)
            assert np.all(on >= off)
            assert np.all(on > 0) or len(set(values)) == 1
