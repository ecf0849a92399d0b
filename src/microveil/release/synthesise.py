"""Synthetic releases: the plan alone decides what is counted, and noisy counts what is released."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from microveil.core.budget import PrivacyBudget
from microveil.core.linear_rules import Movable, System
from microveil.core.random_words import open_words
from microveil.core.synthesis.coded_records import RecordSums
from microveil.core.synthesis.mechanism import LearntTable, TableLearner
from microveil.core.synthesis.tilted_copula import SUPPORT
from microveil.engines.base import Column, OpenTable
from microveil.engines.coded_local import NotHeld
from microveil.engines.counted import CountedAttribute
from microveil.engines.drawn import RowsToDraw, SyntheticRows, computed
from microveil.errors import DataError, FileWarning, PlanError, Problems, few, warn
from microveil.plan.plan import Plan
from microveil.release.detail import Detail
from microveil.release.histories import ShownClasses
from microveil.release.notes import Note, warn_of
from microveil.release.release import Release
from microveil.release.resolve import check_columns
from microveil.release.resolve_rules import systems_of
from microveil.release.store import Store
from microveil.release.synthetic_facts import certify_synthetic
from microveil.types import Progress

_CLEAR = 2.0
_DAY = 86_400e6


@dataclass(frozen=True)
class SyntheticPlan:
    """A plan of a synthetic release, and what follows from it."""

    plan: Plan
    attributes: tuple[CountedAttribute, ...]
    systems: tuple[System, ...]
    columns: tuple[str, ...]

    @property
    def predicted(self) -> int | None:
        """The number of the attribute that the release is to predict."""
        names = [one.name for one in self.attributes]
        return None if self.plan.predicts is None else names.index(self.plan.predicts)

    def mechanism(
        self, budget: PrivacyBudget, seed: int | None, support: int = SUPPORT
    ) -> TableLearner:
        """Return what learns a model of the table."""
        return TableLearner(
            [one.cells for one in self.attributes],
            budget,
            most=self.plan.records_per_person,
            predicted=self.predicted,
            source=open_words(seed, "synthetic model"),
            support=support,
        )

    def rows(self, learnt: LearntTable, seed: int | None) -> RowsToDraw:
        """Return what draws the rows."""
        derived = {name: self.plan.derived[name] for name in self.plan.derivation_order}
        entropy = tuple(open_words(seed, "synthetic rows").words(4).tolist())
        return RowsToDraw(learnt, self.attributes, self.systems, derived, self.columns, entropy)


def resolve_synthetic(plan: Plan, table: OpenTable) -> SyntheticPlan:
    """Check a plan of a synthetic release against the names and types of a table's columns.

    No value of the table is looked at.

    Raises
    ------
    PlanError, DataError
        With everything that does not fit.
    """
    problems, attributes = Problems(), []
    with problems:
        check_columns(plan, table)
    for name, settings in plan.confidential.items():
        attribute = CountedAttribute(name, settings, plan.missing == "keep", plan.dates)
        with problems:
            _ = attribute.cells
            _check_type(attribute, table.columns.get(name))
            attributes.append(attribute)
    problems.raise_found()
    columns = {one.name: one.column for one in attributes}
    with problems:
        _check_derived(plan, attributes)
    columns |= {name: Column("real", "numbers") for name in plan.derived}
    movable = {one.name: _movable(one) for one in attributes if not one.settings.is_category}
    with problems:
        systems = systems_of(plan, movable, columns)
    problems.raise_found()
    released = tuple(name for name in plan.attributes if name in columns)
    resolved = SyntheticPlan(plan, tuple(attributes), systems, released)
    _check_size(resolved)
    return resolved


def _check_type(attribute: CountedAttribute, column: Column | None) -> None:
    """Refuse a column whose type, as a schema declares it, can hold nothing of an attribute."""
    if column is None or column.inferred or column.type_name == "text":
        return
    clocks = {"date": ("date", "datetime"), "datetime": ("date", "datetime"), "time": ("time",)}
    expected = "categories" if attribute.settings.is_category else attribute.clock or "numbers"
    if attribute.clock is not None:
        fits = column.clock in clocks[attribute.clock]
    else:
        fits = column.clock is None
    if not fits:
        raise DataError(
            f"the plan declares {expected}, but the column holds {column.type_name}; change kind, "
            "lower and upper, or convert the column",
            attribute=attribute.name,
            setting="kind",
        )


def _check_derived(plan: Plan, attributes: Sequence[CountedAttribute]) -> None:
    """Compute derived attributes of a row that has no values, which finds what is wrong."""
    row = pl.DataFrame({one.name: pl.Series([None], dtype=one.dtype) for one in attributes})
    for name in plan.derivation_order:
        row = row.with_columns(computed(name, plan.derived[name], row))


def _movable(attribute: CountedAttribute) -> Movable:
    decimals = None if attribute.whole else attribute.decimals
    return Movable(
        attribute.name,
        attribute.lower,
        attribute.upper,
        quantum=attribute.step if attribute.whole else 0.0,
        decimals=decimals,
        step=attribute.step,
        unit=_DAY if attribute.clock in ("datetime", "time") else 1.0,
    )


def _check_size(resolved: SyntheticPlan) -> None:
    """Refuse an ε that is too small for the plan, by what is known without the data."""
    plan = resolved.plan
    budget = PrivacyBudget(plan.epsilon, plan.delta, open_words(0, "none"))
    mechanism = resolved.mechanism(budget, 0)
    if not mechanism.affordable:
        raise PlanError(
            f"epsilon = {plan.epsilon:g} is too small for a synthetic release of "
            f"{len(resolved.attributes)} attributes; choose a larger one, or drop attributes",
            setting="epsilon",
        )
    expected = plan.expected_records
    if expected is None:
        return
    if expected < _CLEAR * mechanism.noise:
        raise PlanError(
            f"{expected:,} records are too few for epsilon = {plan.epsilon:g}: noise of about "
            f"{mechanism.noise:,.0f} records is added to each count; choose a larger epsilon, or "
            'drop attributes, or pool masked values instead (release = "masked")',
            setting="epsilon",
        )
    if plan.delta * 10 * expected > 1:
        warn_of([Note(kind="delta-too-large")])


def synthesise(
    plan: Plan,
    table: OpenTable,
    sums: Callable[[SyntheticPlan], tuple[RecordSums, Mapping[str, NotHeld]]],
    released: Callable[[RowsToDraw], SyntheticRows],
    store: Store,
    *,
    seed: int | None,
    progress: Progress | None,
) -> Release:
    """Learn a model of a table from noisy counts, and draw rows from it.

    Guarantee
    ---------
    What is released, and its certificate, is a function of noisy counts and of the plan, and so
    (ε, δ)-differentially private for adding or removing one person, or one unit.
    """
    resolved = resolve_synthetic(plan, table)
    records, not_held = sums(resolved)
    _tell(not_held)
    if progress:
        progress("learning from noisy counts", 0, 2)
    budget = PrivacyBudget(plan.epsilon, plan.delta, open_words(seed, "synthetic noise"))
    mechanism = resolved.mechanism(budget, seed)
    learnt = mechanism.learn(records)
    if progress:
        progress("drawing rows", 1, 2)
    notes = _notes(plan, learnt.records, mechanism.noise)
    warn_of([note for note in notes if note.kind == "too-few-records"])
    certificate = certify_synthetic(
        plan, resolved.attributes, budget, learnt.records, notes, seeded=seed is not None
    )
    return Release(
        rows=released(resolved.rows(learnt, seed)),
        certificate=certificate,
        detail=Detail(pl.DataFrame(), pl.DataFrame(), plan=plan),
        plan=plan,
        store=store,
        seed=seed,
        classes=ShownClasses.of_nobody,
    )


def _tell(not_held: Mapping[str, NotHeld]) -> None:
    """Warn the data holder, and nobody else, of values that the plan has no place for."""
    said = []
    for name, found in not_held.items():
        parts = [f"{found.unread:,} cannot be read"] if found.unread else []
        parts += [f"{found.outside:,} outside"] if found.outside else []
        said += [f"{name!r} ({', '.join(parts)})"] if parts else []
    if said:
        warn(
            f"private, do not publish this count: values that the plan has no place for: "
            f"{few(said, 8)}; numbers count as the nearest end of their domain, everything else as "
            "missing",
            FileWarning,
        )


def _notes(plan: Plan, records: int, noise: float) -> tuple[Note, ...]:
    """Note what weakens the release, by its number of rows, which is noisy."""
    notes = [Note(kind="delta-too-large")] if plan.delta * 10 * records > 1 else []
    notes += [Note(kind="too-few-records")] if records < _CLEAR * noise else []
    notes += [Note(kind="synthetic-rules")] if plan.rules else []
    return tuple(notes)
