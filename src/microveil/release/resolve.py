"""The plan meets the table: everything is checked here, before any work is done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from microveil.core.accounting import budget_shares
from microveil.core.attribute import (
    AttributeSettings,
    CategorySettings,
    CommonSettings,
    NumericSettings,
)
from microveil.core.linear_rules import Rule, System
from microveil.core.methods import METHODS
from microveil.core.pooling import Pool
from microveil.engines.base import Facts, OpenTable, Preparation
from microveil.errors import DataError, Problems, few
from microveil.plan.groups import Group
from microveil.plan.parts import did_you_mean
from microveil.plan.plan import Plan
from microveil.plan.rules import parse
from microveil.release.notes import Note, notes_of_plan, warn_of
from microveil.release.resolve_categories import resolve_categories
from microveil.release.resolve_numbers import (
    check_numeric,
    coding_for,
    converted_to,
    declared_domain,
    resolve_numbers,
)
from microveil.release.resolve_rules import resolve_rules, typed
from microveil.release.resolve_uses import check_uses_of
from microveil.release.resolve_weight import check_sampling_weight
from microveil.release.unit_checks import check_anonymity, check_clusters, check_table_units

_MOST_NAMES = 30


@dataclass(frozen=True)
class ResolvedPlan:
    """A plan that fits its table, and what becomes of the table before it is masked."""

    plan: Plan
    attributes: tuple[AttributeSettings, ...]
    columns: tuple[str, ...]
    notes: tuple[Note, ...]
    preparation: Preparation
    rules: tuple[Rule, ...] = ()
    systems: tuple[System, ...] = ()

    @property
    def numeric(self) -> tuple[NumericSettings, ...]:
        """The attributes that hold numbers, dates or times."""
        return tuple(m for m in self.attributes if isinstance(m, NumericSettings))

    @property
    def categorical(self) -> tuple[CategorySettings, ...]:
        """The attributes that hold categories."""
        return tuple(m for m in self.attributes if isinstance(m, CategorySettings))

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        """The groups of attributes that are pooled."""
        by_name = {attribute.name: attribute for attribute in self.attributes}
        return tuple(_pool(self.plan, group, by_name) for group in self.plan.pooled_groups)


def resolve(plan: Plan, table: OpenTable) -> ResolvedPlan:
    """Check the plan against the table and decide what it leaves open; nothing is changed.

    Raises
    ------
    DataError
        With everything that does not fit and how to fix it; a PlanError if the plan is at fault.
    """
    problems = Problems()
    with problems:
        check_columns(plan, table)
    with problems:
        _check_records(table)
    if table.records < 2:
        problems.raise_found()
    coded, names = _coded(plan, table, problems)
    _check_people(plan, table, problems)
    with problems:
        check_sampling_weight(plan, table.prepared(coded))
    with problems:
        check_uses_of(plan.uses, table.columns, plan)
    preparation = _laid_out(plan, table, coded)
    table = table.prepared(preparation)
    if preparation.complete:
        _check_records(table, dropped=True)
    with problems:
        check_table_units(plan, table)
    shares = _shares(plan)
    facts = table.facts(_domains(plan, table, names))
    attributes = []
    for name in names:
        with problems:
            settings = _resolve_attribute(plan, name, shares[name], table, facts.get(name))
            check_clusters(plan, settings, table)
            attributes.append(settings)
    with problems:
        check_anonymity(plan, table)
    problems.raise_found()
    return _resolved(plan, tuple(attributes), table, preparation)


def _resolved(
    plan: Plan,
    attributes: tuple[AttributeSettings, ...],
    table: OpenTable,
    preparation: Preparation,
) -> ResolvedPlan:
    """Warn of what weakens the guarantee, and note it for the certificate."""
    numeric = [settings for settings in attributes if isinstance(settings, NumericSettings)]
    systems = resolve_rules(plan, numeric, table.columns)
    notes = notes_of_plan(plan, attributes, keeps_rules=bool(systems))
    warn_of(notes)
    released = tuple(n for n in table.columns if plan.attributes[n].role != "identifier")
    rules = tuple(typed(parse(text), table.columns) for text in plan.rules)
    return ResolvedPlan(plan, attributes, released, notes, preparation, rules, systems)


def _coded(plan: Plan, table: OpenTable, problems: Problems) -> tuple[Preparation, list[str]]:
    """Decide on conversions and codings; return also the attributes whose columns can be masked."""
    present = {n: a for n, a in plan.confidential.items() if n in table.columns}
    kinds = {name: kind for name, a in present.items() if (kind := converted_to(name, a, table))}
    groups = {name: a.recoded for name, a in present.items() if a.recoded}
    preparation = Preparation(kinds, groups)
    table = table.prepared(preparation)
    usable, codings = [], {}
    for name, attribute in present.items():
        with problems:
            if not attribute.is_category:
                check_numeric(name, attribute, table)
                coding = coding_for(name, attribute, table.columns[name])
                declared_domain(name, attribute, table.columns[name])
                if coding is not None:
                    codings[name] = coding
            usable.append(name)
    return replace(preparation, codings=codings), usable


def _laid_out(plan: Plan, table: OpenTable, coded: Preparation) -> Preparation:
    """Add which records are left out, and which are of one unit and of one stratum."""
    complete = tuple(name for name in plan.confidential if name in table.columns)
    prepared = replace(coded, complete=complete if plan.missing == "drop" else ())
    if not {*plan.within, *([plan.unit] if plan.unit else [])} <= set(table.columns):
        return prepared  # the missing columns were reported already
    return replace(
        prepared, unit=plan.unit, per_unit=tuple(plan.per_unit), strata=tuple(plan.within)
    )


def _check_people(plan: Plan, table: OpenTable, problems: Problems) -> None:
    """Refuse pseudonyms of what has no one way to be written, and to move what is no date."""
    for name in plan.shifted:
        column = table.columns.get(name)
        with problems:
            if column is not None and column.clock not in ("date", "datetime"):
                raise DataError(
                    f"only dates and times with a date can be shifted, found {column.type_name}; "
                    "convert the column, or give it another role",
                    attribute=name,
                    setting="role",
                )
    for name in plan.names("pseudonym"):
        column = table.columns.get(name)
        with problems:
            if (
                column is not None
                and (column.clock or column.kind is None)
                and not (column.type_name == "text")
            ):
                raise DataError(
                    f"pseudonyms replace text or whole numbers, found {column.type_name}; convert "
                    "the column to text first, the same way in all tables",
                    attribute=name,
                    setting="role",
                )


def _shares(plan: Plan) -> dict[str, float]:
    """Return each attribute's share of the budget."""
    weights = [attribute.budget_share for attribute in plan.confidential.values()]
    return dict(zip(plan.confidential, budget_shares(plan.epsilon, weights), strict=True))


def _pool(plan: Plan, group: Group, by_name: Mapping[str, AttributeSettings]) -> Pool:
    return Pool(
        attributes=tuple(by_name[name] for name in group.attributes),
        anonymity=group.anonymity or 0,
        pooling=group.pooling or plan.pooling,
        kept=tuple(name for name in plan.kept if name not in plan.within),
    )


def check_columns(plan: Plan, table: OpenTable) -> None:
    """Refuse a plan that does not name the columns of a table."""
    if not table.columns:
        raise DataError("the table has no columns")
    problems = Problems()
    for name in plan.attributes:
        with problems:
            _check_present(name, table)
    unlisted = [name for name in table.columns if name not in plan.attributes]
    with problems:
        if unlisted:
            raise DataError(
                f"every column needs a role, and the plan has none for {_named(unlisted)}"
                '; add it to the plan\'s attributes as "confidential", "identifier" (dropped) '
                'or "kept" (published as it is)',
                setting="attributes",
            )
    problems.raise_found()


def _check_present(name: str, table: OpenTable) -> None:
    if name not in table.columns:
        raise DataError(
            f"in the plan, but not in the data (columns: {_named(table.columns)})"
            f"{did_you_mean(name, table.columns)}; correct the name, or remove it from the plan",
            attribute=name,
        )


def _named(names: Iterable[str]) -> str:
    return few([repr(name) for name in names], _MOST_NAMES)


def _check_records(table: OpenTable, *, dropped: bool = False) -> None:
    when = " after records with missing values were dropped" if dropped else ""
    if table.records < 2:
        raise DataError(f"a table needs at least 2 records, found {table.records}{when}")


def _domains(plan: Plan, table: OpenTable, names: list[str]) -> dict[str, tuple[float, float]]:
    """Return the declared domain of every attribute of numbers, dates or times."""
    return {
        name: declared_domain(name, attribute, table.columns[name])
        for name, attribute in plan.confidential.items()
        if name in names and not attribute.is_category
    }


def _resolve_attribute(
    plan: Plan,
    name: str,
    share: float,
    table: OpenTable,
    facts: Facts | None,
) -> AttributeSettings:
    method, wanted = METHODS[plan.method_of(name)], plan.k_of(name)
    common: CommonSettings = {
        "name": name,
        "method": method,
        "guarantee": plan.guarantee,
        "partition": plan.partition_of(name),
        "k": method.least_k if wanted == "auto" else wanted,
        "k_chosen": wanted == "auto",
        "k_from_data": wanted == "auto" or "k" in plan.read_from_data(name),
        "epsilon": share,
        "epsilon_per_record": share / plan.persons_of(name),
        "persons": plan.persons_of(name),
        "per_unit": plan.confidential[name].per_unit,
        "by_unit": plan.is_by_unit(name),
        "exact_from": plan.exact_from_of(name),
    }
    if facts is None:
        return resolve_categories(plan, name, common, table)
    return resolve_numbers(plan, name, common, table, facts)
