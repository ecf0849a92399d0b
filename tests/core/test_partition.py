"""Cuts chosen from the data, against exhaustive search over all partitions."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil import Confidential, Plan, PlanError, audit, protect
from microveil.core.attribute import NumericSettings
from microveil.core.clusters import summarise
from microveil.core.expected_squares import expected_squares
from microveil.core.grid import grid_of_observed
from microveil.core.isotonic import expected_squares_of_noise
from microveil.core.kernels.cuts import cheapest_cuts
from microveil.core.kernels.floors import noise_floors
from microveil.core.mask import calibrate
from microveil.core.partition import cut
from microveil.engines.memory import memory_table
from microveil.lab.paper.datasets import CENSUS, WINE, DataSet, load_data_set
from microveil.release.resolve import resolve
from microveil.types import Integers, Reals

DOMAIN = Confidential(lower=0, upper=100)
values = st.lists(st.integers(0, 100), min_size=3, max_size=13)


def settings_with(**changes: object) -> NumericSettings:
    table = pl.DataFrame({"x": [0, 50, 100] * 5})
    plan = Plan.published(epsilon=1.0, k=3, attributes={"x": DOMAIN})
    (found,) = resolve(plan, memory_table(table)).numeric
    return replace(found, **changes)  # type: ignore[arg-type]


def compositions(total: int, least: int, most: int) -> Iterator[list[int]]:
    """Yield all ways to cut so many records into clusters of these sizes."""
    if total == 0:
        yield []
    for first in range(least, min(most, total) + 1):
        for rest in compositions(total - first, least, most):
            yield [first, *rest]


def cost(ranked: Integers, sizes: list[int], case: NumericSettings, *, noise: bool) -> float:
    summary = summarise(ranked, np.array(sizes), case.trim)
    centroids = case.method.centroid(summary, 0) if noise else summary.mean()
    within = np.sum((ranked - np.repeat(centroids, sizes)).astype(float) ** 2)
    if not noise:
        return float(within)
    scales = calibrate(summary, case).astype(float)
    ceiling = (case.upper - case.lower) / 2 / case.grid.step
    counted = np.full(len(sizes), 1.0 if case.post == "none" else 0.3)
    counted[[0, -1]] = 1.0
    squares = expected_squares_of_noise(scales, ceiling)
    return float(within + np.sum(summary.size * counted * squares))


@pytest.mark.parametrize(
    ("method", "trim", "post"),
    [("iDP-LS", 0.0, "none"), ("iDP-CBLS", 0.0, "none"), ("iDP-CBLS", 0.2, "none"),
     ("iDP-CBLS", 0.4, "isotonic"), ("iDP-LS", 0.0, "penalised-isotonic")],
)  # fmt: skip
@given(data=values, epsilon=st.sampled_from([0.05, 0.5, 5.0, 100.0]))
@settings(max_examples=60)
def test_noise_optimal_is_the_cheapest_of_all_partitions(
    method: str, trim: float, post: str, data: list[int], epsilon: float
) -> None:
    from microveil.core.methods import METHODS

    case = settings_with(
        method=METHODS[method],  # type: ignore[index]
        partition="noise-optimal",
        epsilon_per_record=epsilon,
        cap=7,
        trim=trim,
        post=post,
        exact_from=0,
    )
    ranked = case.grid.to_steps(np.sort(np.array(data, dtype=float)))
    every = list(compositions(len(data), 3, 7))
    best = min(cost(ranked, sizes, case, noise=True) for sizes in every)
    ours = cut(ranked, case)
    assert ours.min() >= 3
    assert ours.max() <= 7
    assert cost(ranked, ours.tolist(), case, noise=True) <= best * (1 + 1e-9) + 1


@given(data=values, k=st.integers(2, 4))
def test_least_squares_is_optimal_microaggregation(data: list[int], k: int) -> None:
    case = settings_with(partition="least-squares", k=k)
    ranked = case.grid.to_steps(np.sort(np.array(data, dtype=float)))
    if len(data) < k:
        return
    every = list(compositions(len(data), k, 2 * k - 1))
    best = min(cost(ranked, sizes, case, noise=False) for sizes in every)
    ours = cut(ranked, case)
    assert k <= ours.min() <= ours.max() <= 2 * k - 1
    assert cost(ranked, ours.tolist(), case, noise=False) <= best * (1 + 1e-9) + 1


@numba.njit(nogil=True)
def one_by_one(  # noqa: C901
    ranked: Integers,
    k: int,
    cap: int,
    pulled_in: bool,
    trim: float,
    ends: Reals,
    floors: Integers,
    epsilon: float,
    ceiling: float,
    inner: float,
) -> Integers:
    """Try every size of every cluster, one after the other; of equal costs the smallest wins."""
    n = len(ranked)
    least, start = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    least[0] = 0.0
    for end in range(k, n + 1):
        x = ranked[:end] - ranked[end - 1]
        total = squares = 0.0
        totals = np.zeros(cap + 1)
        for first in range(end - 1, max(-1, end - cap - 1), -1):
            size, away = end - first, float(x[first])
            total, squares = total + away, squares + away * away
            totals[size], t = total, int(trim * size)
            if size < k:
                continue
            kept, reach = total, max(ends[1] - ranked[first], ranked[end - 1] - ends[0])
            if t:
                kept = totals[size - t] - totals[t]
                reach = float(max(x[end - t] - x[first + t], x[end - t - 1] - x[first + t - 1]))
            elif pulled_in:
                kept = total - away + x[first + 1] + x[end - 2]
                up = -x[first + 1] + (x[first + 2] - x[first + 1]) - x[end - 2]
                down = (x[end - 2] - away) + (x[end - 2] - x[end - 3]) + (x[first + 1] - away)
                reach = max(float(up), float(down))
            if reach == 0 and len(floors):
                reach = float(floors[first + size // 2]) * (size - 2 * t)
            centroid, scale = kept / (size - 2 * t), reach / (size - 2 * t) / epsilon
            cost = squares - 2 * centroid * total + size * centroid * centroid
            if scale > 0:
                ratio, noise = ceiling / scale, 2 * scale * scale
                if ratio < 40:
                    noise -= np.exp(-ratio) * (2 * scale * scale + 2 * scale * ceiling)
                cost += size * inner * noise
                cost += size * (1 - inner) * noise * (first == 0 or end == n)
            if least[first] + cost < least[end]:
                least[end], start[end] = least[first] + cost, first
    sizes, end = [], n
    while end > 0:
        sizes.append(end - start[end])
        end = start[end]
    return np.array(sizes[::-1])


def floors_of(ranked: Integers, enough: int, rounding: int) -> Integers:
    none = np.zeros(0, np.int64)
    return noise_floors(ranked, none, enough, rounding) if enough else none


@st.composite
def long_tables(draw: st.DrawFn) -> Integers:
    """Draw ascending values: few or many, tied, evenly spread, skewed, or with far outliers."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(3, 700))
    values = {
        "tied": random.integers(0, draw(st.sampled_from([1, 2, 9])), count) * 1000,
        "even": np.arange(count) * 10,
        "skewed": np.rint(random.lognormal(10, 2, count)).astype(np.int64),
        "outliers": random.integers(0, 50, count) + 2**50 * (random.random(count) < 0.02),
    }[draw(st.sampled_from(["tied", "even", "skewed", "outliers"]))]
    return np.sort(values)


@given(
    ranked=long_tables(),
    k=st.sampled_from([3, 4, 20, 70]),
    cap=st.sampled_from([7, 63, 64, 65, 150, 400]),
    pulled_in=st.booleans(),
    trim=st.sampled_from([0.0, 0.1, 0.25, 0.45]),
    epsilon=st.sampled_from([1e-4, 0.01, 0.1, 1.0, np.inf]),
    half_width=st.sampled_from([0.1, 1.0, np.inf]),
    inner=st.sampled_from([0.3, 1.0]),
    enough=st.sampled_from([0, 10, 70]),
)
@settings(max_examples=200)
def test_small_clusters_first_finds_what_trying_every_size_finds(
    ranked: Integers,
    k: int,
    cap: int,
    pulled_in: bool,
    trim: float,
    epsilon: float,
    half_width: float,
    inner: float,
    enough: int,
) -> None:
    if len(ranked) < k:
        return
    ends = np.array([ranked[0], ranked[-1]], dtype=np.float64)
    ceiling = half_width * max(1.0, ends[1] - ends[0])
    few = floors_of(ranked, enough, 3)
    case = k, max(cap, 2 * k - 1), pulled_in, trim * pulled_in, ends, few, epsilon, ceiling, inner
    np.testing.assert_array_equal(cheapest_cuts(ranked, *case), one_by_one(ranked, *case))


@pytest.mark.parametrize("dataset", [CENSUS, WINE])
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_every_attribute_of_real_tables_is_cut_as_by_trying_every_size(
    dataset: DataSet, epsilon: float, paper_data: Path
) -> None:
    for values in load_data_set(dataset, paper_data).attributes.to_numpy().T:
        ranked = np.sort(grid_of_observed(values).to_steps(values))
        ends = np.array([ranked[0], ranked[-1]], dtype=np.float64)
        for pulled_in, trim, ceiling, inner in (
            (True, 0.0, np.inf, 1.0),
            (True, 0.0, ends[1] / 2, 1.0),
            (True, 0.1, np.inf, 0.3),
            (False, 0.0, ends[1] / 2, 0.3),
        ):
            few = floors_of(ranked, 10, 2**20)
            case = 3, 400, pulled_in, trim, ends, few, epsilon, ceiling, inner
            np.testing.assert_array_equal(cheapest_cuts(ranked, *case), one_by_one(ranked, *case))


def test_large_values_with_small_spacing_lose_no_digits() -> None:
    # Near 10^9, six groups of five values one apart: squares of the values themselves have 18
    # digits, and their differences would drown in rounding.
    groups = [10**9 + 1000 * g + i for g in range(6) for i in range(5)]
    case = settings_with(partition="least-squares", k=5, upper=2e9)
    assert cut(np.array(groups), case).tolist() == [5] * 6
    wide = np.array([*groups, *[2**59 + i for i in range(5)]])
    assert cut(wide, case).tolist() == [5] * 7


def test_sizes_may_go_up_to_the_cap() -> None:
    case = settings_with(partition="noise-optimal", cap=40, epsilon_per_record=1e-3)
    sizes = cut(np.arange(100) * 1000, case)
    assert sizes.sum() == 100
    assert sizes.max() <= 40


def plan(**changes: Any) -> Plan:  # noqa: ANN401
    base: dict[str, Any] = {"epsilon": 1.0, "attributes": {"x": DOMAIN}}
    return Plan.published(**{**base, **changes})


@pytest.mark.parametrize("changes", [{"k": "auto"}, {"partition": "noise-optimal", "k": 3}])
def test_choices_from_the_data_are_refused_where_they_void_a_claim(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(PlanError, match="looks at the data, which voids the claim of DP-UM"):
        plan(method="DP-UM", **changes)
    with pytest.raises(PlanError, match='guarantee = "re-clustered" does not cover'):
        plan(guarantee="re-clustered", **changes)
    assert plan(method="DP", **changes).k_of("x") == 1


def test_contradictions() -> None:
    with pytest.raises(PlanError, match="chooses the sizes of clusters"):
        plan(partition="noise-optimal", k="auto")
    with pytest.raises(PlanError, match="cap must be 2k - 1 or more, got 4 for k = 3"):
        plan(partition="noise-optimal", k=3, cap=4)
    assert Plan.from_toml(plan(k="auto").to_toml()).k == "auto"


def test_the_certificate_says_that_the_data_decided() -> None:
    table = pl.DataFrame({"x": np.random.default_rng(1).integers(0, 100, 200)})
    for changes in ({"k": "auto"}, {"partition": "noise-optimal", "k": 3}):
        release = protect(table, plan(**changes, post="penalised-isotonic"))
        certificate = release.certificate
        assert certificate.levels[0].epsilon == 1
        assert certificate.levels[1].epsilon is None
        assert certificate.levels[1].about("clusters-from-data") == ("x",)
        assert [note.kind for note in certificate.notes] == ["clusters-from-data"]
        assert "the data decided where clusters begin and end" in certificate.reading["Notes"][0]
        assert certificate.attributes[0].post == "penalised-isotonic"
        assert release.detail.losses["re_clustered"].to_list() == [None]
        assert release.detail.losses["fixed_clusters"][0] <= 1
    assert certificate.attributes[0].partition == "noise-optimal"
    assert protect(table, plan()).certificate.attributes[0].post == "none"


def test_k_is_the_one_of_least_expected_error() -> None:
    table = pl.DataFrame({"x": np.random.default_rng(2).lognormal(3, 0.4, 500)})
    attributes = {"x": Confidential(decimals=3)}
    chosen = protect(table, plan(k="auto", attributes=attributes)).certificate.attributes[0]
    assert chosen.k_from_data
    opened = memory_table(table)
    (case,) = resolve(plan(k=3, attributes=attributes), opened).numeric
    ((ranked, _),) = opened.ranked(case)
    errors = {
        k: sum(expected_squares(ranked, replace(case, k=k), clamped=True)) for k in range(3, 251)
    }
    assert errors[chosen.k or 0] <= min(errors.values()) * 1.05


def test_audit_attacks_clusters_held_only() -> None:
    table = pl.DataFrame({"x": np.random.default_rng(1).integers(0, 100, 60)})
    outcome = audit(table, Plan(epsilon=1.0, attributes={"x": DOMAIN}), runs=500, seed=1)
    assert {finding.level for finding in outcome.findings} == {1}
    assert not outcome.broken


def test_presets() -> None:
    published = Plan.published(epsilon=1.0, k=5, attributes={"x": DOMAIN})
    assert (published.partition, published.post, published.method) == ("fixed", "none", "iDP-CBLS")
    best = Plan(epsilon=0.5, attributes={"x": DOMAIN})
    assert (best.partition_of("x"), best.k_of("x"), best.cap) == ("noise-optimal", 3, 400)
    assert best.post == "penalised-isotonic"
