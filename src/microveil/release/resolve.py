"""The plan meets the table: everything is checked here, before any work is done."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from microveil.core.accounting import budget_shares
from microveil.core.attribute import (
    AttributeSettings,
    CategorySettings,
    DomainSource,
    GridSource,
    NumericKind,
    NumericSettings,
)
from microveil.core.choices import Partition, Post
from microveil.core.grid import Grid, grid_of_decimals, grid_of_domain, power_of_two_below
from microveil.core.methods import METHODS, Method, methods_that
from microveil.engines.base import Column, Facts, Table
from microveil.errors import DataError, PlanError, PrivacyWarning
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.release.resolve_categories import all_missing, check_missing, resolve_categories
from microveil.release.temporal import number_of, quantum, unit_of


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan that fits its table."""

    plan: Plan
    attributes: tuple[AttributeSettings, ...]
    columns: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def numeric(self) -> tuple[NumericSettings, ...]:
        """The attributes that hold numbers, dates or times."""
        return tuple(m for m in self.attributes if isinstance(m, NumericSettings))

    @property
    def categorical(self) -> tuple[CategorySettings, ...]:
        """The attributes that hold categories."""
        return tuple(m for m in self.attributes if isinstance(m, CategorySettings))

    def group(self, number: int) -> tuple[AttributeSettings, ...]:
        """Return the attributes of a joint group."""
        return tuple(m for m in self.attributes if m.group == number)


def resolve(plan: Plan, engine: Table) -> ResolvedPlan:
    """Check the plan against the table and decide what it leaves open.

    Raises
    ------
    DataError
        With the first thing that does not fit and how to fix it.
    """
    _check_columns(plan, engine)
    _check_records(engine, "")
    names = list(plan.confidential)
    for name in names:
        _check_kind(name, plan.confidential[name], engine)
    if plan.missing == "drop":
        engine.drop_missing(names)
        _check_records(engine, " after dropping those with missing values")
    weights = [attribute.weight for attribute in plan.confidential.values()]
    shares = budget_shares(plan.epsilon, weights)
    notes: list[str] = []
    facts = engine.facts(_domains(plan, engine))
    attributes = tuple(
        _resolve_attribute(plan, name, share, engine, facts.get(name), notes)
        for name, share in zip(names, shares, strict=True)
    )
    notes += [*_notes_on_persons(plan, attributes), *_notes_on_agreement(attributes)]
    for note in notes:
        warnings.warn(note, PrivacyWarning, stacklevel=3)
    if plan.from_data:
        notes.append(f"taken from the data when the plan was made: {', '.join(plan.from_data)}")
    released = tuple(n for n in engine.columns if plan.attributes[n].role != "identifier")
    return ResolvedPlan(plan, attributes, released, tuple(notes))


def _check_columns(plan: Plan, engine: Table) -> None:
    if not engine.columns:
        raise DataError("the table has no columns")
    unknown = [name for name in plan.attributes if name not in engine.columns]
    if unknown:
        raise DataError(
            f"attribute {unknown[0]!r} of the plan is not in the data "
            f"(columns: {', '.join(map(repr, engine.columns))}); correct the name, or remove it "
            "from the plan"
        )
    unlisted = [name for name in engine.columns if name not in plan.attributes]
    if unlisted:
        raise DataError(
            f"every column needs a role, and the plan has none for {', '.join(map(repr, unlisted))}"
            '; add it to the plan\'s attributes as "confidential", "identifier" (dropped) '
            'or "kept" (published as it is)'
        )


def _check_records(engine: Table, when: str) -> None:
    if engine.records < 2:
        raise DataError(f"a table needs at least 2 records, found {engine.records}{when}")


def _check_kind(name: str, attribute: Confidential, engine: Table) -> None:
    if attribute.is_category:
        return
    column = engine.columns[name]
    if column.kind is None:
        text = engine.text_facts(name)
        if text.nulls == engine.records:
            raise all_missing(name)
        if not text.not_numbers:
            raise DataError(
                f"attribute {name!r}: a confidential attribute must be numeric, found numbers "
                f"stored as {column.type_name}; convert the column (in CSV, remove leading zeros), "
                'set kind = "nominal" for codes, or make its role identifier or kept'
            )
        count = f"{text.not_numbers:,} of {engine.records:,} records are not numbers"
        raise DataError(
            f"attribute {name!r}: a confidential attribute must be numeric, found "
            f'{column.type_name} ({count}); set kind = "nominal" or "ordinal" for categories, '
            "correct the data (leave missing values empty), or make its role identifier or kept"
        )
    if attribute.kind == "real" and column.kind == "integer":
        raise DataError(
            f"attribute {name!r}: kind is real but the column's type is integer, and a release "
            "keeps its types; remove kind from the plan or convert the column"
        )
    if attribute.decimals is not None and column.kind == "integer":
        raise DataError(
            f"attribute {name!r}: decimals are for real values, found an integer column"
        )


def _domains(plan: Plan, engine: Table) -> dict[str, tuple[float, float]]:
    """Return the declared domain of every attribute of numbers, dates or times."""
    return {
        name: _declared(name, attribute, engine.columns[name])
        for name, attribute in plan.confidential.items()
        if not attribute.is_category
    }


def _resolve_attribute(
    plan: Plan,
    name: str,
    share: float,
    engine: Table,
    facts: Facts | None,
    notes: list[str],
) -> AttributeSettings:
    method, wanted = METHODS[plan.method_of(name)], plan.k_of(name)
    common: dict[str, Any] = {
        "name": name,
        "method": method,
        "guarantee": plan.guarantee,
        "partition": plan.partition_of(name),
        "group": plan.group_of(name),
        "k": method.least_k if wanted == "auto" else wanted,
        "k_chosen": wanted == "auto",
        "epsilon": share,
        "epsilon_per_record": share / plan.records_per_person,
    }
    if facts is None:
        return resolve_categories(plan, name, common, engine, notes)
    return _resolve_numbers(plan, name, common, engine, facts, notes)


def _resolve_numbers(
    plan: Plan,
    name: str,
    common: dict[str, Any],
    engine: Table,
    facts: Facts,
    notes: list[str],
) -> NumericSettings:
    attribute, method, column = plan.confidential[name], common["method"], engine.columns[name]
    kind: NumericKind = attribute.kind or column.kind or "real"  # type: ignore[assignment]
    unit = unit_of(name, attribute.unit, column)
    lower, upper = declared = _declared(name, attribute, column)
    records = engine.records - facts.nulls
    _check_values(name, kind, facts, records)
    check_missing(plan, name, nulls=facts.nulls, records=engine.records, k=common["k"])
    domain_source: DomainSource = "declared" if attribute.has_domain else "none"
    if method.needs_domain and domain_source == "none":
        domain_source = "data"
        lower, upper = _domain_from_data(name, method, lower, upper, facts)
        notes.append(_note_on_domain(name, method))
    step = quantum(unit, column)
    grid, grid_source = _grid(name, attribute, kind, step, (lower, upper), engine)
    if domain_source == "data":
        grid_source = "data"
    elif grid_source == "data":
        notes.append(
            f"attribute {name!r}: its noise grid follows the last decimal seen in the data; "
            "declare decimals, resolution or a domain"
        )
    _check_grid(name, attribute, grid, facts)
    published = _published_range(name, kind, declared, column)
    return NumericSettings(
        **common, kind=kind, records=records, cap=plan.cap,
        post=_post(plan, method, partition=common["partition"], chosen=common["k_chosen"]),
        lower=lower, upper=upper, domain_source=domain_source,
        published_lower=published[0], published_upper=published[1], decimals=attribute.decimals,
        quantum=step, unit=unit, grid=grid, grid_source=grid_source,
    )  # fmt: skip


def _declared(name: str, attribute: Confidential, column: Column) -> tuple[float, float]:
    """Return the declared domain as numbers, infinite where it is not declared."""
    lower, upper = attribute.lower, attribute.upper
    return (
        -math.inf if lower is None else number_of(name, lower, column),
        math.inf if upper is None else number_of(name, upper, column),
    )


def _check_grid(name: str, attribute: Confidential, grid: Grid, facts: Facts) -> None:
    if not grid.holds(facts.smallest, facts.largest):
        raise DataError(
            f"attribute {name!r}: values too large for its noise grid, expected within 2^60 steps "
            f"of {grid.step:g}; declare lower and upper, or a larger resolution"
        )
    if attribute.resolution is not None and _collapses(grid, facts):
        raise DataError(
            f"attribute {name!r}: its resolution is so coarse that all values become the same; "
            "declare a smaller one"
        )


def _check_values(name: str, kind: NumericKind, facts: Facts, records: int) -> None:
    where = f"attribute {name!r}"
    if records == 0:
        raise all_missing(name)
    if facts.not_finite:
        raise DataError(
            f"{where}: values must be finite, found {facts.not_finite:,} that are infinite or NaN; "
            "correct them or make them missing"
        )
    if facts.outside:
        raise DataError(
            f"{where}: {facts.outside:,} of {records:,} values lie outside the declared domain; "
            "widen lower and upper, or correct the data"
        )
    if kind == "integer" and facts.fractional:
        raise DataError(
            f"{where}: kind is integer but {facts.fractional:,} of {records:,} values are not "
            'whole; set kind = "real" or correct the data'
        )


def _domain_from_data(
    name: str, method: Method, lower: float, upper: float, facts: Facts
) -> tuple[float, float]:
    lower = lower if math.isfinite(lower) else facts.smallest
    upper = upper if math.isfinite(upper) else facts.largest
    if lower >= upper:
        raise DataError(
            f"attribute {name!r}: every value is the same, so no domain can be read from the data, "
            f"and {method.name} needs one; declare lower and upper"
        )
    return lower, upper


def _note_on_domain(name: str, method: Method) -> str:
    return (
        f"attribute {name!r}: its domain was read from the data, {method.promise.if_domain_read}; "
        "declare lower and upper"
    )


def _notes_on_persons(plan: Plan, attributes: tuple[AttributeSettings, ...]) -> list[str]:
    if plan.records_per_person == 1:
        return []
    others = methods_that(lambda other: other.clustered and other.covers_shared_clusters)
    return [
        f"attribute {m.name!r}: {m.method.name} covers one record per cluster, so a person with "
        f"{plan.records_per_person} records is covered only while no two of them share a cluster; "
        f"use {others} where that cannot be ruled out"
        for m in attributes
        if isinstance(m, NumericSettings) and not m.method.covers_shared_clusters
    ]


def _notes_on_agreement(attributes: tuple[AttributeSettings, ...]) -> list[str]:
    names = [
        m.name
        for m in attributes
        if isinstance(m, CategorySettings)
        and m.method.promise.publishes_agreement
        and m.group is None
    ]
    if not names:
        return []
    others = methods_that(lambda other: not other.promise.publishes_agreement)
    return [
        f"{', '.join(names)}: iDP publishes the category of every cluster whose records clearly "
        f"agree, so most records keep their true category; where that must be hidden, use {others}"
        ", or cluster it jointly with other attributes"
    ]


def _grid(
    name: str,
    attribute: Confidential,
    kind: NumericKind,
    quantum: float,
    domain: tuple[float, float],
    engine: Table,
) -> tuple[Grid, GridSource]:
    lower, upper = domain
    if math.isfinite(lower) and math.isfinite(upper):
        if upper - lower == math.inf:
            raise PlanError(f"attribute {name!r}: the domain is too wide; narrow lower and upper")
        return grid_of_domain(lower, upper), "declared"
    if attribute.resolution is not None:
        return Grid(power_of_two_below(attribute.resolution)), "declared"
    if attribute.decimals is not None:
        return grid_of_decimals(attribute.decimals), "declared"
    if kind == "integer":
        return Grid(power_of_two_below(quantum * grid_of_decimals(0).step)), "default"
    return engine.observed_grid(name), "data"


def _post(plan: Plan, method: Method, *, partition: Partition, chosen: bool) -> Post:
    if not method.clustered or partition == "joint":  # joint clusters have no order
        return "none"
    if plan.post == "auto":
        chosen |= partition != "fixed"
        return method.post_if_chosen if chosen else "none"
    return plan.post


def _collapses(grid: Grid, facts: Facts) -> bool:
    ends = grid.to_units(np.array([facts.smallest, facts.largest]))
    return facts.smallest < facts.largest and bool(ends[0] == ends[1])


def _published_range(
    name: str, kind: NumericKind, declared: tuple[float, float], column: Column
) -> tuple[float, float]:
    """Return what masked values are clamped to: never an end that was read from the data."""
    least, most = max(declared[0], column.least), min(declared[1], column.most)
    if column.single_precision:
        least, most = _inner_single(least, up=True), _inner_single(most, up=False)
    if kind == "integer":
        least, most = math.ceil(least), math.floor(most)
        if least > most:
            raise PlanError(f"attribute {name!r}: no whole number lies between lower and upper")
    return least, most


def _inner_single(end: float, *, up: bool) -> float:
    """Return the single-precision number at an end of the domain, or the next one inside it."""
    single = np.float32(end)
    outside = float(single) < end if up else float(single) > end
    inner = np.nextafter(single, np.float32(np.inf if up else -np.inf)) if outside else single
    return float(inner)
