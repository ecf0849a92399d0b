"""Resolve an attribute of numbers, dates or times."""

import math
from typing import Any

import numpy as np

from microveil.core.attribute import (
    CommonSettings,
    DomainSource,
    GridSource,
    NumericKind,
    NumericSettings,
)
from microveil.core.coding import Coding
from microveil.core.grid import (
    MOST_DECIMALS,
    Grid,
    grid_of_decimals,
    grid_of_domain,
    power_of_two_below,
)
from microveil.core.methods import Method
from microveil.engines.base import Column, Facts, OpenTable
from microveil.errors import DataError, PlanError, Problems
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.release.missing import all_missing, check_missing
from microveil.release.temporal import number_of, quantum, time_step_of

_FEWEST_STEPS = 4_096
"""What the default grid must leave of the range of values, so that rounding to it does no harm."""

_NARROWEST_DOMAIN = 1e-290
"""Steps of a narrower one would be smaller than the smallest numbers there are."""


def converted_to(name: str, attribute: Confidential, table: OpenTable) -> NumericKind | None:
    """Return what a column must be converted to so that it is as the plan says; None if it is.

    Whole numbers become real, and real numbers whole if all are and values decided on their type.
    """
    kind, column = attribute.numeric_kind, table.columns[name]
    if (kind, column.kind, column.clock) == ("real", "integer", None):
        return "real"
    if (kind, column.kind) == ("integer", "real") and column.inferred:
        facts = table.facts({name: (-math.inf, math.inf)})[name]
        return None if facts.fractional or facts.not_finite else "integer"
    return None


def check_numeric(name: str, attribute: Confidential, table: OpenTable) -> None:
    """Refuse a column whose type does not hold the numbers, dates or times it should."""
    column = table.columns[name]
    if column.kind is None:
        text = table.facts({name: (-math.inf, math.inf)})[name]
        if text.nulls == text.counted:
            raise all_missing(name)
        if not text.not_numbers:
            raise DataError(
                "a confidential attribute must be numeric, found numbers stored as "
                f"{column.type_name}; convert the column (in CSV, remove leading zeros), set "
                'kind = "nominal" for codes, or make its role identifier or kept',
                attribute=name,
                setting="kind",
            )
        count = f"{text.not_numbers:,} of {table.records:,} records are not numbers"
        raise DataError(
            f"a confidential attribute must be numeric, found {column.type_name} ({count}); set "
            'kind = "nominal" or "ordinal" for categories, correct the data (leave missing values '
            "empty), or make its role identifier or kept",
            attribute=name,
            setting="kind",
        )
    if column.clock is not None and attribute.decimals is not None:
        raise DataError(
            f"decimals are for numbers, found {column.type_name}; remove decimals",
            attribute=name,
            setting="decimals",
        )
    if attribute.round_to is not None and column.clock is not None:
        raise DataError(
            f"round_to is for numbers, found {column.type_name}; use time_step",
            attribute=name,
            setting="round_to",
        )
    if attribute.round_to and attribute.round_to % 1 and column.kind == "integer":
        raise DataError(
            f"whole numbers are rounded to whole numbers, got round_to = {attribute.round_to:g}",
            attribute=name,
            setting="round_to",
        )
    if attribute.decimals and column.kind == "integer":
        raise DataError(
            "decimals are for real values, found an integer column; remove decimals",
            attribute=name,
            setting="decimals",
        )


def resolve_numbers(
    plan: Plan,
    name: str,
    common: CommonSettings,
    table: OpenTable,
    facts: Facts,
) -> NumericSettings:
    """Check the values against the plan, and decide on domain, noise grid and published range."""
    attribute, method, column = plan.confidential[name], common["method"], table.columns[name]
    kind: NumericKind = attribute.kind or column.kind or "real"  # type: ignore[assignment]
    time_step = time_step_of(name, attribute.time_step, column)
    if attribute.decimals is None and attribute.resolution is None and column.decimals is not None:
        attribute = attribute.model_copy(update={"decimals": min(column.decimals, MOST_DECIMALS)})
    marks = plan.read_from_data(name)
    lower, upper = declared_domain(name, attribute, column)
    known_domain = attribute.has_domain and not marks & {"lower", "upper"}
    records = facts.counted - facts.nulls
    if records == 0:
        raise all_missing(name)
    problems = Problems()
    with problems:
        _check_values(name, attribute, kind, facts, records)
    with problems:
        check_missing(plan, name, nulls=facts.nulls, records=facts.counted, k=common["k"])
    with problems:
        _check_varies(plan, name, method, facts, table)
    problems.raise_found()
    domain_source: DomainSource = "declared" if known_domain else "none"
    if method.needs_domain and domain_source == "none":
        domain_source = "data"
        lower, upper = _domain_from_data(name, method, lower, upper, facts)
    step = quantum(time_step, column)
    grid, grid_source = _grid(name, attribute, step, (lower, upper), table)
    marked = marks & {"decimals", "resolution", "lower", "upper"}
    if domain_source == "data" or (marked and not known_domain):
        grid_source = "data"
    _check_grid(name, attribute, grid, grid_source, facts)
    inferred = column.inferred and column.clock is None
    type_from_data = (inferred and attribute.kind is None) or bool(marks & {"kind", "decimals"})
    ends = [
        None if end in marks or bound is None else number_of(name, bound, column)
        for end, bound in (("lower", attribute.lower), ("upper", attribute.upper))
    ]
    if attribute.sampling_weight and ends[0] is None:
        ends[0] = _smallest_weight(kind, attribute.decimals, grid)
    published = _published_range(name, kind, ends[0], ends[1], column)
    return NumericSettings(
        **common, kind=kind, records=records, cap=plan.cap, trim=plan.trim_of(name),
        post=plan.post if method.clustered else "none",
        lower=lower, upper=upper, domain_source=domain_source,
        published_lower=published[0], published_upper=published[1], decimals=attribute.decimals,
        quantum=step, time_step=time_step, grid=grid, grid_source=grid_source,
        type_from_data=type_from_data,
    )  # fmt: skip


def declared_domain(name: str, attribute: Confidential, column: Column) -> tuple[float, float]:
    """Return the declared domain as numbers, infinite where it is not declared."""
    lower, upper = attribute.lower, attribute.upper
    return (
        -math.inf if lower is None else float(number_of(name, lower, column)),
        math.inf if upper is None else float(number_of(name, upper, column)),
    )


def coding_for(name: str, attribute: Confidential, column: Column) -> Coding | None:
    """Return what becomes of numbers before they are masked; None if they stay as they are."""
    if attribute.top is None and attribute.bottom is None and attribute.round_to is None:
        return None
    lower, upper = declared_domain(name, attribute, column)
    return Coding(
        lower, upper, attribute.bottom is not None, attribute.top is not None,
        attribute.round_to or 0.0,
    )  # fmt: skip


def _smallest_weight(kind: NumericKind, decimals: int | None, grid: Grid) -> float:
    """Return the smallest number above 0 that a masked sampling weight can be."""
    if kind == "integer":
        return 1.0
    return grid.step if decimals is None else float(f"1e{-decimals}")


def _check_grid(
    name: str, attribute: Confidential, grid: Grid, source: GridSource, facts: Facts
) -> None:
    if not grid.holds(facts.smallest, facts.largest):
        raise DataError(
            f"values too large for its noise grid, expected within 2^60 steps of {grid.step:g}; "
            "declare lower and upper, or a larger resolution",
            attribute=name,
        )
    if facts.smallest == facts.largest:
        return
    ends = grid.to_steps(np.array([facts.smallest, facts.largest]))
    steps = int(ends[1] - ends[0])
    if source == "default" and steps < _FEWEST_STEPS:
        raise DataError(
            f"its values span fewer than {_FEWEST_STEPS:,} steps of the default noise grid "
            f"({grid.step:g}); declare lower and upper, decimals, or a smaller resolution "
            '(resolution = "data" takes it from the data)',
            attribute=name,
            setting="resolution",
        )
    if attribute.resolution is not None and steps == 0:
        raise DataError(
            "its resolution is so coarse that all values become the same; declare a smaller one",
            attribute=name,
            setting="resolution",
        )


def _check_values(
    name: str, attribute: Confidential, kind: NumericKind, facts: Facts, records: int
) -> None:
    if facts.not_finite:
        raise DataError(
            f"values must be finite, found {facts.not_finite:,} that are infinite or NaN; correct "
            "them or make them missing",
            attribute=name,
        )
    if facts.outside:
        raise DataError(
            f"{facts.outside:,} of {records:,} values lie outside the declared domain; widen lower "
            "and upper, or correct the data",
            attribute=name,
            setting="lower" if attribute.lower is not None else "upper",
        )
    if kind == "integer" and facts.fractional:
        raise DataError(
            f"kind is integer but {facts.fractional:,} of {records:,} values are not whole; set "
            'kind = "real" or correct the data',
            attribute=name,
            setting="kind",
        )


def _check_varies(plan: Plan, name: str, method: Method, facts: Facts, table: OpenTable) -> None:
    """Refuse a value that all share and few have: nothing says how far its noise must reach."""
    enough = plan.exact_from_of(name) * plan.persons_of(name)
    if facts.smallest < facts.largest or plan.guarantee not in method.without_noise or enough < 2:
        return
    persons = int(table.stratum_sizes(name, units=True).sum())
    if persons < enough:
        raise DataError(
            f"all of its values are the same, and {persons} have it, fewer than exact_from = "
            f"{enough}: no other value says how much noise it needs; make its role kept if it is "
            "no secret, or identifier to drop it",
            attribute=name,
            setting="role",
        )


def _domain_from_data(
    name: str, method: Method, lower: float, upper: float, facts: Facts
) -> tuple[float, float]:
    lower = lower if math.isfinite(lower) else facts.smallest
    upper = upper if math.isfinite(upper) else facts.largest
    if lower >= upper:
        raise DataError(
            "every value is the same, so no domain can be read from the data, and "
            f"{method.name} needs one; declare lower and upper",
            attribute=name,
            setting="lower",
        )
    return lower, upper


def _grid(
    name: str,
    attribute: Confidential,
    quantum: float,
    domain: tuple[float, float],
    table: OpenTable,
) -> tuple[Grid, GridSource]:
    lower, upper = domain
    if math.isfinite(lower) and math.isfinite(upper):
        if upper - lower < _NARROWEST_DOMAIN:
            raise DataError(
                f"its domain must be at least {_NARROWEST_DOMAIN:g} wide, found a narrower one; "
                "rescale its values",
                attribute=name,
                setting="lower",
            )
        if upper - lower == math.inf or upper - grid_of_domain(lower, upper).origin == math.inf:
            raise PlanError(
                "the domain is too wide; narrow lower and upper", attribute=name, setting="lower"
            )
        return grid_of_domain(lower, upper), "declared"
    if attribute.resolution == "data":
        return table.observed_grid(name), "data"
    if attribute.resolution is not None:
        return Grid(power_of_two_below(attribute.resolution)), "declared"
    if attribute.decimals is not None:
        return grid_of_decimals(attribute.decimals), "declared"
    step = quantum * grid_of_decimals(0).step
    return Grid(power_of_two_below(step)), "default"


def _published_range(
    name: str, kind: NumericKind, lower: float | None, upper: float | None, column: Column
) -> tuple[float, float]:
    """Return what masked values are clamped to: never an end that was read from the data."""
    least = column.least if lower is None else max(lower, column.least)
    most = column.most if upper is None else min(upper, column.most)
    if column.single_precision:
        least, most = _inner(least, np.float32, up=True), _inner(most, np.float32, up=False)
    if kind == "integer":
        least, most = math.ceil(least), math.floor(most)
        if least > most:
            raise PlanError(
                "no whole number lies between lower and upper; widen them",
                attribute=name,
                setting="lower",
            )
    return _inner(least, np.float64, up=True), _inner(most, np.float64, up=False)


def _inner(end: float, precision: type[np.floating[Any]], *, up: bool) -> float:
    """Return the floating-point number at an end of the domain, or the next one inside it."""
    nearest = precision(end)
    outside = float(nearest) < end if up else float(nearest) > end
    return (
        float(np.nextafter(nearest, precision(np.inf if up else -np.inf)))
        if outside
        else float(nearest)
    )
