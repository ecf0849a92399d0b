"""Bring an original and its release together: the same attributes, and the same order if known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.compare.estimates import Weights, standard_deviations
from microveil.compare.figures import NotComputed
from microveil.compare.paired_columns import (
    MISSING,
    Categories,
    Numbers,
    choose_columns,
    compare_columns,
    compare_numbers,
)
from microveil.engines.dtypes import column_of
from microveil.engines.memory import open_table
from microveil.errors import DataError, FileError
from microveil.formats import sha256_of
from microveil.plan.plan import Plan
from microveil.release.detail import Detail
from microveil.release.release import certificate_beside
from microveil.types import Booleans, Integers, Reals, UserTable

NOT_PAIRED = "not_paired"
"""The reason why records are not compared one by one: which one is whose is not known."""


@dataclass(frozen=True, eq=False)
class Pair:
    """An original and its release, attribute by attribute.

    `original` and `released` are records × numeric attributes, NaN where a value is missing;
    `lengths` has for times the length of 1 in microseconds. Where the rows are aligned,
    `positions` says for each released record, in the order of the original, where it stands there,
    and `order` where it stands in `table`; otherwise both are None. `weights` are the sampling
    weights of `original` and `released`, if the plan has them.
    """

    source: nw.DataFrame[Any]
    table: nw.DataFrame[Any]
    attributes: tuple[str, ...]
    numeric: tuple[str, ...]
    original: Reals
    released: Reals
    lengths: Mapping[str, float]
    categorical: tuple[Categories, ...]
    positions: Integers | None
    order: Integers | None
    detail: Detail | None
    plan: Plan | None
    left_out: tuple[NotComputed, ...]
    weights: Weights | None = None

    @property
    def clusters(self) -> pl.DataFrame | None:
        """The private description of the clusters, if it is known."""
        return None if self.detail is None else self.detail.clusters

    @property
    def matched(self) -> Reals:
        """The original records that were released, in the order of `released`, if that is known."""
        return self.original if self.positions is None else self.original[self.positions]

    def columns(self) -> Iterator[tuple[str, Reals, Reals]]:
        """Each numeric attribute's original and masked values, of records that have both."""
        for name, values, masked in zip(self.numeric, self.matched.T, self.released.T, strict=True):
            both = ~np.isnan(values) & ~np.isnan(masked)
            yield name, values[both], masked[both]

    def codes(self) -> Iterator[tuple[Categories, Integers, Integers]]:
        """Each attribute of categories, of records that have both."""
        for attribute in self.categorical:
            codes, masked = attribute.original, attribute.released
            codes = codes if self.positions is None else codes[self.positions]
            both = (codes != MISSING) & (masked != MISSING)
            yield attribute, codes[both], masked[both]

    def complete_records(self) -> tuple[Reals, Reals]:
        """Numbers of original and masked records without missing ones in either."""
        matched = self.matched
        both = ~np.isnan(matched).any(axis=1) & ~np.isnan(self.released).any(axis=1)
        return matched[both], self.released[both]

    def some(self, rows: Integers) -> "Pair":
        """Take some records of two tables whose records are in one order, as of a sample."""
        in_order = None if self.positions is None else np.arange(len(rows))
        return replace(
            self,
            source=self.source[rows, :],
            table=self.table[rows, :],
            original=self.original[rows],
            released=self.released[rows],
            categorical=tuple(
                replace(c, original=c.original[rows], released=c.released[rows])
                for c in self.categorical
            ),
            positions=in_order,
            order=in_order,
            weights=self.weights and Weights(*(each[rows] for each in self.weights)),
        )

    def only(self, attributes: Sequence[str]) -> "Pair":
        """Leave out all other attributes."""
        kept = [a for a, name in enumerate(self.numeric) if name in attributes]
        return replace(
            self,
            attributes=tuple(attributes),
            numeric=tuple(self.numeric[a] for a in kept),
            original=self.original[:, kept],
            released=self.released[:, kept],
            categorical=tuple(c for c in self.categorical if c.name in attributes),
        )

    def weighing(self, original: Booleans, released: Booleans) -> Weights | None:
        """Return the sampling weights of some records of each table; None if there are none."""
        if self.weights is None:
            return None
        return Weights(self.weights.original[original], self.weights.released[released])

    def span(self, name: str, deviations: float, weights: Weights | None = None) -> float | None:
        """Return how long so many standard deviations are in microseconds; None if not a time."""
        if name not in self.lengths:
            return None
        values = present(self.original[:, self.numeric.index(name)])
        one = deviation(values, weights and weights.original) * self.lengths[name]
        return float(deviations * one)


def present(column: Reals) -> Reals:
    """Return the values of an attribute that are not missing."""
    return column[~np.isnan(column)]


def complete(table: Reals) -> Reals:
    """Return the records without missing values."""
    return table[is_complete(table)]


def is_complete(table: Reals) -> Booleans:
    """Return which records have no missing values."""
    return np.asarray(~np.isnan(table).any(axis=1))


def complete_in(pair: Pair) -> tuple[Booleans, Booleans]:
    """Return which records have a value in every attribute: of the original and of the release."""
    original = [c.original != MISSING for c in pair.categorical]
    released = [c.released != MISSING for c in pair.categorical]
    return (
        np.logical_and.reduce([~np.isnan(pair.original).any(axis=1), *original]),
        np.logical_and.reduce([~np.isnan(pair.released).any(axis=1), *released]),
    )


def deviation(values: Reals, weights: Reals | None = None) -> float:
    """Return the standard deviation of an attribute without missing values; 0 if it has none."""
    return float(standard_deviations(values[:, np.newaxis], weights)[0]) if len(values) else 0.0


def without_constants(pair: Pair) -> tuple[Pair, list[NotComputed]]:
    """Leave out what is wholly missing, and numbers that have no spread to measure anything in."""
    reasons = {c.name: _nothing(c.original != MISSING, c.released != MISSING)
               for c in pair.categorical}  # fmt: skip
    for name, values, masked in zip(pair.numeric, pair.original.T, pair.released.T, strict=True):
        reasons[name] = _nothing(~np.isnan(values), ~np.isnan(masked)) or _constant(
            present(values), present(masked)
        )
    kept = [name for name in pair.attributes if reasons[name] is None]
    left_out = [NotComputed((), reasons[name] or "", name)
                for name in pair.attributes if name not in kept]  # fmt: skip
    return pair.only(kept), left_out


def _nothing(values: Booleans, masked: Booleans) -> str | None:
    if values.any() and masked.any():
        return None
    return "all_missing_in_release" if values.any() else "all_missing_in_original"


def _constant(values: Reals, masked: Reals) -> str | None:
    if deviation(values):
        return None
    return "constant_unchanged" if np.all(masked == values[0]) else "constant_changed"


def pair_tables(
    original: UserTable,
    released: UserTable,
    detail: Detail | None = None,
    plan: Plan | None = None,
    *,
    positions: Integers | None = None,
    attributes: Sequence[str] | None = None,
    target: str | None = None,
) -> Pair:
    """Compare two tables in memory, attribute by attribute.

    Parameters
    ----------
    original, released
        The two tables.
    detail, plan
        What is known of how the release was made.
    positions
        Where each released record stood in the original; by default as the detail says.
    attributes, target
        As for `evaluate`.
    """
    if positions is None and detail is not None:
        positions = detail.positions
    source, table = open_table(original), open_table(released)
    unknown = [name for name in table.columns if name not in source.columns]
    if unknown:
        raise DataError(
            f"column {unknown[0]!r} of the release is not in the original; "
            "compare a release with the table it was made from"
        )
    names, left_out = _attributes(source, table, plan, attributes, target)
    order = None if positions is None else np.argsort(positions, kind="stable")
    rows = slice(None) if order is None else order
    compared = [compare_columns(name, source, table, plan) for name in names]
    numbers = [attribute for attribute in compared if isinstance(attribute, Numbers)]
    categorical = [attribute for attribute in compared if isinstance(attribute, Categories)]
    return Pair(
        source=source,
        table=table,
        attributes=names,
        numeric=tuple(attribute.name for attribute in numbers),
        original=_side_by_side([a.original for a in numbers], len(source)),
        released=_side_by_side([a.released for a in numbers], len(table))[rows],
        lengths={a.name: a.length for a in numbers if a.length is not None},
        categorical=tuple(replace(a, released=a.released[rows]) for a in categorical),
        positions=None if positions is None else positions[rows],
        order=order,
        detail=detail,
        plan=plan,
        left_out=tuple(left_out),
        weights=_weights(source, table, plan, rows),
    )


def _weights(
    source: nw.DataFrame[Any], table: nw.DataFrame[Any], plan: Plan | None, rows: slice | Integers
) -> Weights | None:
    """Return the sampling weights of both tables, if the plan has some that can be compared."""
    for name in plan.sampling_weights if plan else ():
        found = compare_numbers(name, column_of(source, name), column_of(table, name))
        weights = Weights(found.original, found.released[rows])
        wrong = sum(int(np.count_nonzero(~(each > 0))) for each in weights)
        if wrong:
            raise DataError(
                f"sampling weights must be above 0, found {wrong:,} in original and release that "
                "are not; correct them",
                attribute=name,
            )
        return weights
    return None


def _side_by_side(columns: list[Reals], records: int) -> Reals:
    return np.column_stack(columns) if columns else np.empty((records, 0))


def check_belongs(path: Path, detail: Detail | None) -> None:
    """Refuse a protected file beside the certificate, or with the detail, of another release."""
    certificate_beside(path)
    expected = None if detail is None else detail.protected_sha256
    if expected is not None and path.is_file() and sha256_of(path) != expected:
        raise FileError(
            f"{path}: not the file the detail was written with (its SHA-256 differs); "
            "use the detail and the protected file of the same release"
        )


def _attributes(
    source: nw.DataFrame[Any],
    table: nw.DataFrame[Any],
    plan: Plan | None,
    chosen: Sequence[str] | None,
    target: str | None,
) -> tuple[tuple[str, ...], list[NotComputed]]:
    """Choose what to compare: what was asked for, else what the plan masks, else all that can."""
    left_out: list[NotComputed] = []
    if chosen is None and plan is not None:
        chosen = list(plan.confidential)
    if chosen is None:
        chosen, left_out = choose_columns(source, table, target)
    if not chosen:
        raise DataError(
            "original and release have no column of numbers or categories in common to compare"
        )
    if target in chosen:
        raise DataError(
            f"target {target!r}: a class must not be one of the masked attributes that are "
            "compared; give the classes as a separate array, one for each original record"
        )
    return tuple(dict.fromkeys(chosen)), left_out


def positions_of(
    records: int,
    released: int,
    detail: Detail | None,
    plan: Plan | None,
    *,
    aligned: bool = False,
) -> Integers | None:
    """Return where each released record stood in the original; None if that is not known."""
    if detail is not None:
        return _checked_positions(records, released, detail, plan)
    if aligned and released != records:
        raise DataError(
            f"aligned tables must have the same number of rows, found {records:,} in the original "
            f"and {released:,} in the release"
        )
    if released > records:
        raise DataError(
            f"the release has {released:,} records, more than the {records:,} of the original; "
            "compare a release with the table it was made from"
        )
    return np.arange(records) if aligned else None


def _checked_positions(records: int, released: int, detail: Detail, plan: Plan | None) -> Integers:
    positions: Integers | None = detail.positions
    if positions is None:
        raise DataError(
            "the detail does not say where records stood; give one written on one machine"
        )
    if len(positions) != released:
        raise DataError(
            f"the detail describes {len(positions):,} records, the release has {released:,}; "
            "use the detail and the protected file of the same release"
        )
    may_drop = plan is None or plan.missing == "drop"
    beyond = int(positions.max()) >= records
    if beyond or (released < records and not may_drop):
        raise DataError(
            f"the original has {records:,} records, but the release was made from a table with "
            f"{'more' if beyond else f'{released:,}'}; compare it with the table it was made from"
        )
    return positions
