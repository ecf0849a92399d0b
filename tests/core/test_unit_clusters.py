"""Clusters of units with several records: exact bounds, over all values that a unit could have."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil import Confidential, Plan
from microveil.core.attribute import CategorySettings
from microveil.core.categories import (
    category_losses,
    log_choice_probabilities,
    released_as_is,
    summarise_categories,
    values_of_one,
)
from microveil.core.clusters import summarise
from microveil.core.kernels.floors import noise_floors
from microveil.core.kernels.unit_passes import cheapest_unit_cuts, cut_by_units
from microveil.core.sensitivity import DomainSteps, cluster_reaches
from microveil.core.unit_clusters import UnitSummary, members_of, summarise_units
from microveil.engines.memory import memory_table
from microveil.errors import noted
from microveil.release.resolve import resolve

EPSILON = 0.75

clusters = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=3, max_size=7),
    min_size=1, max_size=3,
)  # fmt: skip


def bounds_of(values: Sequence[int], units: Sequence[int], t: int = 1) -> tuple[int, int]:
    """Return the (t + 1)-th smallest of units' minima and largest of their maxima."""
    own = [[v for v, u in zip(values, units, strict=True) if u == unit] for unit in set(units)]
    return sorted(min(v) for v in own)[t], sorted(max(v) for v in own)[-1 - t]


def centroid_of(values: Sequence[int], units: Sequence[int], t: int = 1) -> Fraction:
    """Take the mean of clamped values, as the definition has it."""
    low, high = bounds_of(values, units, t)
    return Fraction(sum(min(max(v, low), high) for v in values), len(values))


def neighbours(values: Sequence[int], units: Sequence[int], *who: int) -> Iterator[list[int]]:
    """Give the records of some units all values that there are, and some beyond."""
    places = [i for i, unit in enumerate(units) if unit in who]
    for new in product(range(-1, 9), repeat=len(places)):
        changed = list(values)
        for place, value in zip(places, new, strict=True):
            changed[place] = value
        yield changed


def few_records(cluster: list[tuple[int, int]], most: int = 3) -> tuple[list[int], list[int]]:
    """Sort a cluster and leave out records beyond so many of one unit, for enumeration."""
    values, units = list[int](), list[int]()
    for value, unit in sorted(cluster):
        if units.count(unit) < most:
            values.append(value)
            units.append(unit)
    return values, units


def summary_of_clusters(cases: Sequence[tuple[list[int], list[int]]]) -> UnitSummary:
    return summarise_units(
        np.array([v for values, _ in cases for v in values]),
        np.array([len(values) for values, _ in cases]),
        np.array([u for _, units in cases for u in units]),
    )


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=5, max_size=9))
@settings(max_examples=60, deadline=None)
def test_no_values_of_a_unit_move_a_centroid_further_and_some_move_it_as_far(
    cluster: list[tuple[int, int]],
) -> None:
    values, units = few_records(cluster)
    if len(set(units)) < 3:
        return
    summary = summary_of_clusters([(values, units)])
    here = centroid_of(values, units)
    assert Fraction(int(summary.clamped_total[0]), len(values)) == here
    for row, unit in enumerate(summary.members.unit.tolist()):
        moved = [centroid_of(new, units) - here for new in neighbours(values, units, unit)]
        assert max(moved) == Fraction(int(summary.up[row]), len(values))
        assert -min(moved) == Fraction(int(summary.down[row]), len(values))


@pytest.mark.parametrize("seed", range(6))
def test_two_units_clamped_at_each_end(seed: int) -> None:
    random = np.random.default_rng(seed)
    units = np.concatenate([np.arange(5), random.integers(0, 5, 3)])
    values = np.sort(random.integers(0, 7, len(units)))
    units = random.permutation(units)
    summary = summarise_units(values, np.array([len(values)]), units, trim=0.4)
    assert summary.left_out.tolist() == [2]
    here = centroid_of(values.tolist(), units.tolist(), 2)
    for row, unit in enumerate(summary.members.unit.tolist()):
        every = neighbours(values.tolist(), units.tolist(), unit)
        moved = [centroid_of(new, units.tolist(), 2) - here for new in every]
        assert max(moved) == Fraction(int(summary.up[row]), len(values))
        assert -min(moved) == Fraction(int(summary.down[row]), len(values))


def test_two_units_at_once_are_not_covered() -> None:
    """A control: what is claimed of one unit does not hold of two."""
    values, units = [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 0, 1]
    summary = summary_of_clusters([(values, units)])
    here = centroid_of(values, units)
    both = max(centroid_of(new, units) - here for new in neighbours(values, units, 0, 1))
    rows = np.isin(summary.members.unit, [0, 1])
    assert both > Fraction(int(summary.up[rows].sum()), len(values))


@given(clusters)
@settings(max_examples=60, deadline=None)
def test_no_unit_loses_more_than_epsilon_over_all_its_records(
    cases: list[list[tuple[int, int]]],
) -> None:
    """Brute force in exact fractions over every value that all records of a unit could have."""
    few = [few_records(case) for case in cases]
    few = [case for case in few if len(set(case[1])) >= 3]
    if not few:
        return
    summary = summary_of_clusters(few)
    scales = summary.scales(EPSILON).tolist()
    exact = [Fraction(0)] * 5
    for (values, units), scale in zip(few, scales, strict=True):
        here = _rounded(centroid_of(values, units))
        for unit in set(units):
            every = neighbours(values, units, unit)
            furthest = max(abs(_rounded(centroid_of(new, units)) - here) for new in every)
            assert scale > 0 or furthest == 0
            exact[unit] += Fraction(furthest, scale) if scale else 0
    assert max(exact) <= Fraction(EPSILON)
    reported = summary.losses(summary.scales(EPSILON))
    assert reported.tolist() == pytest.approx([float(x) for x in exact[: len(reported)]])


def _rounded(mean: Fraction) -> int:
    return math.floor(mean + Fraction(1, 2))


def test_the_grid_is_part_of_what_a_unit_loses() -> None:
    """One record in each of 12 clusters that move by less than a grid step: each counts as one."""
    values = np.array([0, 0, 0, 0, 1, 1, 1] * 12) + np.repeat(10 * np.arange(12), 7)
    unit = np.concatenate([[0, *range(6 * j + 1, 6 * j + 7)] for j in range(12)])
    summary = summarise_units(values, np.full(12, 7), unit)
    assert np.all(summary.reach < 7)  # less than one step of the mean
    scales = summary.scales(1.0)
    assert 12 / scales.max() <= 1
    assert summary.losses(scales).max() <= 1


def test_a_unit_spends_its_budget_where_it_moves_something() -> None:
    """Records in clusters that agree cost nothing, and extreme ones get most of the budget."""
    random = np.random.default_rng(1)
    records = random.integers(1, 13, 2_000)
    unit = random.permutation(np.repeat(np.arange(2_000), records))
    values = np.sort(np.rint(1_000 * random.lognormal(3, 1, len(unit))).astype(np.int64))
    sizes = cut_by_units(unit, 10)
    summary = summarise_units(values, sizes, unit)
    ours = summary.scales(1.0)
    members = summary.members
    shift = -(-summary.reach // sizes[members.cluster])
    by_records = shift * (records[members.unit] / members.own)
    in_proportion = members.largest(by_records, len(sizes))
    assert np.sum(sizes * ours**2.0) < 0.1 * np.sum(sizes * in_proportion**2)
    assert summary.losses(ours).max() == pytest.approx(1.0, abs=0.01)


def test_units_of_one_record_have_the_scales_of_records() -> None:
    values, sizes = np.array([1, 4, 6, 9, 20, 22, 29, 40]), np.array([4, 4])
    summary = summarise_units(values, sizes, np.arange(8))
    plain = summarise(values, sizes)
    assert summary.winsorised_mean().tolist() == plain.winsorised_mean().tolist()
    reach = cluster_reaches(plain, DomainSteps(0, 0)).largest
    assert summary.members.largest(summary.reach, 2).tolist() == reach.tolist()
    steps = summary.scales(1.0) - -(-reach // 4)
    assert np.all((steps >= 0) & (steps <= 1))  # one more for what floating point may lose


@given(st.lists(st.integers(0, 5), min_size=4, max_size=40), st.integers(3, 6))
@settings(deadline=None)
def test_clusters_end_as_soon_as_enough_units_are_together(units: list[int], least: int) -> None:
    unit = np.array(units)
    sizes = cut_by_units(unit, least)
    assert sizes.sum() == len(units)
    if len(set(units)) < least:
        assert len(sizes) == 1
        return
    parts = np.split(unit, np.cumsum(sizes)[:-1])
    assert all(len(set(part.tolist())) >= least for part in parts)
    assert all(len(set(part[:-1].tolist())) < least for part in parts[:-1])


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), min_size=4, max_size=25),
    st.sampled_from([0.3, 3.0, np.inf]),
)
@settings(deadline=None)
def test_chosen_clusters_have_enough_units(cases: list[tuple[int, int]], epsilon: float) -> None:
    values = np.array([value for value, _ in sorted(cases)])
    unit = np.array([unit for _, unit in sorted(cases)])
    sizes = cheapest_unit_cuts(
        values, unit, 3, 5, 0.1, noise_floors(values, unit, 4, 2), epsilon, np.inf, 0.3
    )
    assert sizes.sum() == len(unit)
    if len(sizes) > 1:
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        assert all(3 <= len(set(part.tolist())) <= 5 for part in parts)


def category_settings() -> CategorySettings:
    table = pl.DataFrame({"unit": list("abc"), "x": list("abc")})
    plan = Plan.published(
        epsilon=EPSILON, k=3, unit="unit",
        attributes={"unit": "identifier", "x": Confidential(kind="nominal", categories=[*"abc"])},
    )  # fmt: skip
    with noted():
        (case,) = resolve(plan, memory_table(table)).categorical
    assert case.by_unit
    return case


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=6, max_size=12))
@settings(max_examples=60, deadline=None)
def test_categories_of_a_unit_lose_epsilon_at_most(cases: list[tuple[int, int]]) -> None:
    """Brute force over all categories of all records of a unit, in two clusters."""
    codes = np.array([code for code, _ in sorted(cases)])
    unit = np.array([unit for _, unit in sorted(cases)])
    sizes = np.array([len(codes) // 2, len(codes) - len(codes) // 2])
    here = summarise_categories(codes, sizes, 3, unit)
    case = category_settings()
    as_is = released_as_is(here, case)
    rates = [case.rate_for(max(1, most)) for most in values_of_one(here, as_is, case).tolist()]
    claimed = category_losses(here, as_is, case)
    for who in set(unit.tolist()):
        places = np.flatnonzero(unit == who)
        if len(places) > 5:
            continue
        most = np.zeros(2)
        for new in product(range(3), repeat=len(places)):
            changed = codes.copy()
            changed[places] = new
            there = summarise_categories(changed, sizes, 3, unit)
            for cluster, rate in enumerate(rates):
                one, other = (s.scores("nominal")[[cluster]] for s in (here, there))
                if as_is[cluster]:
                    assert one.argmax() == other.argmax()
                    continue
                pair = [log_choice_probabilities(s, float(rate)) for s in (one, other)]
                most[cluster] = max(most[cluster], np.abs(pair[0] - pair[1]).max())
        assert most.sum() <= claimed[who] + 1e-9
    assert claimed.max() <= EPSILON + 1e-12


def test_whose_values_a_cluster_has() -> None:
    members = members_of(np.array([2, 2]), np.array([1, 1, 1, 0]))
    assert members.own.tolist() == [2, 1, 1]
    assert members.added_up(members.own).tolist() == [1, 3]
