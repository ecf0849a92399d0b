"""Bring an original and its release together: the same attributes, and the same order if known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.engines.memory import open_table
from microveil.errors import DataError, FileError
from microveil.evaluate.result import NotComputed
from microveil.evaluate.utility import LARGEST, standard_deviations
from microveil.formats import load, sha256_of, source_of
from microveil.grid import Integers, Reals
from microveil.plan import Plan
from microveil.release import Detail, Release

NOT_ALIGNED = (
    "the row order is not known, so records cannot be compared one by one; give the private "
    "detail of the release, or aligned=True if its rows are in the order of the original"
)


@dataclass(frozen=True, eq=False)
class Pair:
    """An original and its release, attribute by attribute.

    `original` and `released` are records × attributes, NaN where a value is missing. Where the
    rows are aligned, `positions` says for each released record, in the order of the original,
    where it stands there; otherwise it is None.
    """

    source: nw.DataFrame[Any]
    table: nw.DataFrame[Any]
    attributes: tuple[str, ...]
    original: Reals
    released: Reals
    positions: Integers | None
    clusters: pl.DataFrame | None

    @property
    def matched(self) -> Reals:
        """The original records that were released, in the order of `released`, if that is known."""
        return self.original if self.positions is None else self.original[self.positions]

    def columns(self) -> Iterator[tuple[str, Reals, Reals]]:
        """Each attribute's original and masked values, of records that have both."""
        for name, values, masked in zip(
            self.attributes, self.matched.T, self.released.T, strict=True
        ):
            both = ~np.isnan(values) & ~np.isnan(masked)
            yield name, values[both], masked[both]

    def complete_records(self) -> tuple[Reals, Reals]:
        """Original and masked records without missing values in either."""
        matched = self.matched
        both = ~np.isnan(matched).any(axis=1) & ~np.isnan(self.released).any(axis=1)
        return matched[both], self.released[both]

    def only(self, attributes: Sequence[str]) -> "Pair":
        """Leave out all other attributes."""
        kept = [self.attributes.index(name) for name in attributes]
        return replace(
            self,
            attributes=tuple(attributes),
            original=self.original[:, kept],
            released=self.released[:, kept],
        )


def present(column: Reals) -> Reals:
    """Return the values of an attribute that are not missing."""
    return column[~np.isnan(column)]


def complete(table: Reals) -> Reals:
    """Return the records without missing values."""
    return table[~np.isnan(table).any(axis=1)]


def deviation(values: Reals) -> float:
    """Return the standard deviation of an attribute without missing values; 0 if it has none."""
    return float(standard_deviations(values[:, np.newaxis])[0]) if len(values) else 0.0


def without_constants(pair: Pair) -> tuple[Pair, list[NotComputed]]:
    """Leave out the attributes that have no spread to measure anything in."""
    kept, reasons = [], []
    for a, name in enumerate(pair.attributes):
        values, masked = present(pair.original[:, a]), present(pair.released[:, a])
        if not len(values) or not len(masked):
            where = "release" if len(values) else "original"
            reason = f"every value is missing in the {where}"
        elif not deviation(values):
            changed = "unchanged" if np.all(masked == values[0]) else "changed"
            reason = f"constant in the original, so without a scale; {changed} in the release"
        else:
            kept.append(name)
            continue
        reasons.append(NotComputed(f"every measure of {name!r}", reason))
    return pair.only(kept), reasons


@dataclass(frozen=True, eq=False)
class _Opened:
    """A release as it was given."""

    table: nw.DataFrame[Any]
    detail: Detail | None
    plan: Plan | None


def pair_up(
    original: Any,  # noqa: ANN401 - a table of the user's kind
    release: Any,  # noqa: ANN401
    *,
    detail: Detail | str | Path | None,
    aligned: bool,
    attributes: Sequence[str] | None,
    target: str | None,
) -> Pair:
    """Open both, check that they belong together, and align them if that is possible."""
    source, opened = _open(original), _open_release(release, detail, aligned=aligned)
    table = opened.table
    unknown = [name for name in table.columns if name not in source.columns]
    if unknown:
        raise DataError(
            f"column {unknown[0]!r} of the release is not in the original; "
            "compare a release with the table it was made from"
        )
    names = _attributes(source, opened, attributes, target)
    positions = _positions(len(source), opened, aligned=aligned)
    released = _values(table, names, "release")
    if positions is not None:
        order = np.argsort(positions, kind="stable")
        released, positions = released[order], positions[order]
    return Pair(
        source=source,
        table=table,
        attributes=names,
        original=_values(source, names, "original"),
        released=released,
        positions=positions,
        clusters=opened.detail.clusters if opened.detail else None,
    )


def _open(data: Any) -> nw.DataFrame[Any]:  # noqa: ANN401 - a table of the user's kind
    return open_table(load(data).data)


def _open_release(
    release: Any,  # noqa: ANN401 - a table of the user's kind
    detail: Detail | str | Path | None,
    *,
    aligned: bool,
) -> _Opened:
    if isinstance(release, Release):
        if detail is not None or aligned:
            raise DataError("a Release knows its own row order; leave out detail and aligned")
        return _Opened(open_table(release.data), release.detail, release.plan)
    if isinstance(detail, str | Path):
        detail = Detail.read(detail)
    source = source_of(release)
    if detail is not None and source is not None and source.path is not None:
        _check_hash(source.path, detail)
    return _Opened(_open(release), detail, detail.plan if detail else None)


def _check_hash(path: Path, detail: Detail) -> None:
    expected = detail.protected_sha256
    if expected is not None and path.is_file() and sha256_of(path) != expected:
        raise FileError(
            f"{path}: not the file the detail was written with (its SHA-256 differs); "
            "use the detail and the protected file of the same release"
        )


def _attributes(
    source: nw.DataFrame[Any],
    opened: _Opened,
    chosen: Sequence[str] | None,
    target: str | None,
) -> tuple[str, ...]:
    """Choose what to compare: what was asked for, else what the plan masks, else all numbers."""
    table, plan = opened.table, opened.plan
    if chosen is None and plan is not None:
        chosen = list(plan.confidential)
    if chosen is None:
        both = [name for name in table.columns if name != target]
        chosen = [n for n in both if _is_numeric(table, n) or _is_numeric(source, n)]
    if not chosen:
        raise DataError("original and release have no numeric column in common to compare")
    for name in chosen:
        _check_attribute(name, source, table)
    if target in chosen:
        raise DataError(
            f"target {target!r}: a class must not be one of the masked attributes that are "
            "compared; give the classes as a separate array, one for each original record"
        )
    return tuple(dict.fromkeys(chosen))


def _check_attribute(name: str, source: nw.DataFrame[Any], table: nw.DataFrame[Any]) -> None:
    for frame, where in ((source, "original"), (table, "release")):
        if name not in frame.columns:
            raise DataError(
                f"attribute {name!r} is not in the {where} (columns: {', '.join(frame.columns)})"
            )
        if not _is_numeric(frame, name):
            raise DataError(
                f"attribute {name!r}: expected numbers in original and release, found "
                f"{frame.schema[name]} in the {where}; correct it or leave it out of attributes"
            )


def _is_numeric(frame: nw.DataFrame[Any], name: str) -> bool:
    dtype = frame.schema[name]
    return bool(dtype.is_integer() or dtype.is_float())


def _positions(records: int, opened: _Opened, *, aligned: bool) -> Integers | None:
    released = len(opened.table)
    if opened.detail is not None:
        return _checked_positions(records, released, opened.detail, opened.plan)
    if aligned and released != records:
        raise DataError(
            f"aligned rows must be as many in both, found {records:,} records in the original "
            f"and {released:,} in the release"
        )
    if released > records:
        raise DataError(
            f"the release has {released:,} records, more than the {records:,} of the original; "
            "compare a release with the table it was made from"
        )
    return np.arange(records) if aligned else None


def _checked_positions(records: int, released: int, detail: Detail, plan: Plan | None) -> Integers:
    positions = detail.positions
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


def _values(frame: nw.DataFrame[Any], names: Sequence[str], where: str) -> Reals:
    values = np.empty((len(frame), len(names)))
    for a, name in enumerate(names):
        values[:, a] = frame[name].cast(nw.Float64).fill_null(float("nan")).to_numpy()
        too_large = int(np.count_nonzero(np.abs(values[:, a]) > LARGEST))
        if too_large:
            raise DataError(
                f"attribute {name!r}: values must lie within ±{LARGEST:g}, found {too_large:,} "
                f"beyond in the {where}; correct them or make them missing"
            )
    return values
