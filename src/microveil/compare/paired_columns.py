"""What is compared of each column of two tables: numbers, times as numbers, or categories."""

from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
import polars as pl

from microveil.compare.estimates import LARGEST
from microveil.compare.figures import NotComputed
from microveil.core.attribute import CategoryKind
from microveil.engines.dtypes import category_values, column_of, describe, numbers, polars_of
from microveil.errors import DataError
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.types import Integers, Reals

MOST_CATEGORIES = 100
"""Without a plan, a column with more values than this is not taken for categories."""

MISSING = -1
"""The code of a missing category."""

Compared = Literal["numbers", "categories"]

_LENGTHS = {"date": 86_400e6, "datetime": 1.0, "time": 1.0, "duration": 1.0, None: None}


@dataclass(frozen=True, eq=False)
class Categories:
    """An attribute of categories in an original and its release, as codes: places in a list.

    The list, `labels`, is the declared one, of an ordinal attribute from the lowest to the highest;
    values that are not declared come after. `paths` holds for every category the groups of the
    taxonomy it is in. Missing categories are `MISSING`.
    """

    name: str
    kind: CategoryKind
    labels: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    original: Integers
    released: Integers


@dataclass(frozen=True, eq=False)
class Numbers:
    """A numeric attribute in both tables, NaN where a value is missing.

    `length` is the length of 1 in microseconds, if these are times.
    """

    name: str
    length: float | None
    original: Reals
    released: Reals


def choose_columns(
    source: nw.DataFrame[Any],
    table: nw.DataFrame[Any],
    target: str | None,
) -> tuple[list[str], list[NotComputed]]:
    """Choose what to compare without a plan: all numbers, times and categories but the target."""
    chosen, left_out = [], []
    for name in (name for name in table.columns if name != target):
        original, released = column_of(source, name), column_of(table, name)
        kinds = {kind_of(original), kind_of(released)}
        absent = None if "numbers" in kinds else _not_categories(name, original, kinds)
        if absent is None:
            chosen.append(name)
        else:
            left_out.append(absent)
    return chosen, left_out


def compare_columns(
    name: str, source: nw.DataFrame[Any], table: nw.DataFrame[Any], plan: Plan | None
) -> Numbers | Categories:
    """Bring a column of both tables to numbers or codes."""
    for frame, where in ((source, "original"), (table, "release")):
        if name not in frame.columns:
            raise DataError(
                f"attribute {name!r} is not in the {where} (columns: {', '.join(frame.columns)})"
            )
    declared = plan.confidential.get(name) if plan else None
    original, released = column_of(source, name), column_of(table, name)
    is_category = kind_of(original) == kind_of(released) == "categories"
    if is_category if declared is None else declared.is_category:
        return compare_categories(name, original, released, declared)
    return compare_numbers(name, original, released)


def kind_of(column: nw.Series[Any]) -> Compared | None:
    """Say what a column is compared as without a plan; None if it cannot be."""
    if describe(column.dtype).kind is not None:
        return "numbers"
    return None if category_values(column)[1] == "other values" else "categories"


def _not_categories(
    name: str, column: nw.Series[Any], kinds: set[Compared | None]
) -> NotComputed | None:
    """Return why a column of the original is not compared as categories, if it is not."""
    if None in kinds:
        return NotComputed((), "neither_numbers_nor_categories", name)
    values = column.drop_nulls()
    found = values.n_unique() if len(values) else 0
    if found > MOST_CATEGORIES:
        facts = {"found": found, "most": MOST_CATEGORIES}
        return NotComputed((), "too_many_values", name, facts)
    return NotComputed((), "all_different", name) if 1 < found == len(values) else None


def compare_numbers(name: str, original: nw.Series[Any], released: nw.Series[Any]) -> Numbers:
    """Bring a column of both tables to numbers."""
    original, released = _as_times(original, released), _as_times(released, original)
    for column, where in ((original, "original"), (released, "release")):
        if kind_of(column) != "numbers":
            raise DataError(
                f"attribute {name!r}: expected numbers in original and release, found "
                f"{column.dtype} in the {where}; correct it or leave it out of attributes"
            )
    clocks = [describe(column.dtype).clock for column in (original, released)]
    if clocks[0] != clocks[1]:
        raise DataError(
            f"attribute {name!r}: expected the same in original and release, found "
            f"{original.dtype} and {released.dtype}; convert one of them"
        )
    return Numbers(
        name,
        _LENGTHS[clocks[0]],
        _values(name, original, "original"),
        _values(name, released, "release"),
    )


def _as_times(column: nw.Series[Any], like: nw.Series[Any]) -> nw.Series[Any]:
    """Read text, or dates, as the times that the other table has: a CSV file may hold them so."""
    wanted = describe(like.dtype)
    if column.dtype == nw.Date and wanted.clock == "datetime" and wanted.zone is None:
        return column.cast(nw.Datetime("us"))
    if column.dtype != nw.String or wanted.clock is None:
        return column
    text, dtype = polars_of(column), polars_of(like).dtype
    try:
        times = text.str.strptime(dtype)  # type: ignore[arg-type]
    except pl.exceptions.PolarsError:
        return column
    return nw.from_native(times, series_only=True)


def _values(name: str, column: nw.Series[Any], where: str) -> Reals:
    values = np.full(len(column), np.nan)
    present = ~column.is_null().to_numpy().astype(np.bool_)
    values[present] = numbers(column.drop_nulls())
    too_large = int(np.count_nonzero(np.abs(values) > LARGEST))
    if too_large:
        raise DataError(
            f"attribute {name!r}: values must lie within ±{LARGEST:g}, found {too_large:,} "
            f"beyond in the {where}; correct them or make them missing"
        )
    return values


def compare_categories(
    name: str, original: nw.Series[Any], released: nw.Series[Any], declared: Confidential | None
) -> Categories:
    """Bring a column of both tables to codes."""
    declared = declared or Confidential(kind="nominal")
    columns = _labels(name, original, released)
    columns[0] = columns[0].replace(declared.recoded)
    known = pl.Series(declared.declared_categories).cast(pl.String)
    seen = pl.concat(columns).drop_nulls().unique().sort()
    labels = pl.concat([known, seen.filter(~seen.is_in(known.to_list()))])
    codes = [
        column.cast(pl.Enum(labels)).to_physical().cast(pl.Int64).fill_null(MISSING).to_numpy()
        for column in columns
    ]
    paths = declared.category_paths
    return Categories(
        name=name,
        kind="ordinal" if declared.kind == "ordinal" else "nominal",
        labels=tuple(labels),
        paths=paths + ((),) * (len(labels) - len(paths)),
        original=codes[0],
        released=codes[1],
    )


def _labels(name: str, original: nw.Series[Any], released: nw.Series[Any]) -> list[pl.Series]:
    """Return categories as text: a CSV file may not tell numbers or true/false values from it."""
    found = [category_values(column) for column in (original, released)]
    for (_, holds), column in zip(found, (original, released), strict=True):
        if holds == "other values":
            raise DataError(
                f"attribute {name!r}: expected categories (text, whole numbers or Boolean), "
                f"found {column.dtype}; convert it or leave it out of attributes"
            )
    labels = [values.cast(pl.String) for values, _ in found]
    if any(holds == "true/false values" for _, holds in found):
        return [column.str.to_lowercase() for column in labels]
    return labels
