"""The plan's attributes as a table that people edit, and the plan of an edited table."""

import csv
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import polars as pl

from microveil.core.attribute import Category
from microveil.errors import MicroveilError, PlanError, all_of
from microveil.plan.fields import AttributeRole
from microveil.plan.groups import Group
from microveil.plan.plan import Plan
from microveil.plan.roles import (
    Bound,
    Confidential,
    Derived,
    Identifier,
    Kept,
    Pseudonym,
    SamplingWeight,
    Shifted,
)
from microveil.show.words.column_words import contents_of

RowCells = dict[str, Any]
"""RowCells by the names of `COLUMNS`; None where a cell is empty."""

COLUMNS = (
    "attribute", "holds", "role", "kind", "lower", "upper", "bottom", "top", "round_to",
    "categories", "budget_share", "method", "k", "group", "per_unit", "expression", "from data",
)  # fmt: skip

_PLAIN: dict[str, type[Identifier | Kept | SamplingWeight | Pseudonym | Shifted]] = {
    "identifier": Identifier, "kept": Kept, "sampling_weight": SamplingWeight,
    "pseudonym": Pseudonym, "shifted": Shifted,
}  # fmt: skip
"""Roles that have no cells of their own."""

_ENDS = (("bottom", "lower"), ("top", "upper"))
_OF_NUMBERS_ONLY = ("decimals", "resolution", "time_step", "trim")


def rows_of(plan: Plan, schema: Mapping[str, pl.DataType]) -> list[RowCells]:
    """Lay out a plan's attributes, one row each, in the order of the table's columns.

    Examples
    --------
    >>> plan = Plan(epsilon=1.0, attributes={"age": Confidential(lower=0, upper=120)})
    >>> row = rows_of(plan, {"age": pl.Int64()})[0]
    >>> row["role"], row["lower"], row["upper"], row["budget_share"]
    ('confidential', '0', '120', 1.0)
    """
    return [_row(name, plan, schema[name]) for name in schema]


def _row(name: str, plan: Plan, dtype: pl.DataType) -> RowCells:
    attribute = plan.attributes[name]
    row: RowCells = dict.fromkeys(COLUMNS)
    row |= {
        "attribute": name,
        "holds": contents_of(dtype),
        "role": attribute.role,
        "budget_share": 1.0,
    }
    row["from data"] = ", ".join(s for n, s in map(_mark, plan.from_data) if n == name) or None
    if isinstance(attribute, Derived):
        row["expression"] = attribute.expression
    if isinstance(attribute, Confidential):
        row |= {
            "kind": attribute.kind,
            "lower": None if attribute.bottom is not None else _written(attribute.lower),
            "upper": None if attribute.top is not None else _written(attribute.upper),
            "bottom": _written(attribute.bottom),
            "top": _written(attribute.top),
            "round_to": _written(attribute.round_to),
            "categories": _listed(attribute.declared_categories),
            "budget_share": attribute.budget_share,
            "method": attribute.method,
            "k": None if attribute.k is None else str(attribute.k),
            "per_unit": attribute.per_unit,
            "group": _number_of(name, [group.attributes for group in plan.groups]),
        }
    return row


def _number_of(name: str, lists: Sequence[Sequence[str]]) -> str | None:
    """Return the number of the list that has a name, from 1; None if none has."""
    return next((str(number) for number, names in enumerate(lists, 1) if name in names), None)


def edited_plan(
    rows: Sequence[RowCells],
    proposed: Plan,
    schema: Mapping[str, pl.DataType],
    **settings: Any,  # noqa: ANN401 - any setting of a plan
) -> Plan:
    """Make the plan of an edited table, and of settings that concern all attributes.

    What was not edited stays as it was proposed, and only that is still said to come from the data.
    """
    attributes = {}
    for row, before in zip(rows, rows_of(proposed, schema), strict=True):
        name = row["attribute"]
        attribute = proposed.attributes[name]
        if row != before:
            attribute = _edited(row, before, attribute, schema[name])
        attributes[name] = attribute
    pooled = settings.get("anonymity", proposed.anonymity)
    changes: dict[str, Any] = {
        **settings,
        "attributes": attributes,
        "groups": _groups(rows, proposed) if pooled else (),
    }
    plan = proposed.replace(**changes)
    marks = [mark for mark in proposed.from_data if _stands(mark, plan, proposed)]
    return plan.replace(from_data=tuple(marks))


def _groups(rows: Sequence[RowCells], proposed: Plan) -> list[Group]:
    """Make a group of every word in the column of groups; numbered ones stay as proposed."""
    before = {str(number): group for number, group in enumerate(proposed.groups, 1)}
    return [
        Group(
            attributes=names,
            anonymity=before[word].anonymity if word in before else None,
            pooling=before[word].pooling if word in before else None,
        )
        for word, names in _alike(rows, "group").items()
    ]


def _alike(rows: Sequence[RowCells], column: str) -> dict[str, tuple[str, ...]]:
    """Return the confidential attributes that have the same word in a column, by that word."""
    found: dict[str, tuple[str, ...]] = {}
    for row in rows:
        word = (row[column] or "").strip()
        if word and row["role"] == "confidential":
            found[word] = (*found.get(word, ()), row["attribute"])
    return found


def is_about_rows(
    error: MicroveilError, rows: Sequence[RowCells], settings: Collection[str]
) -> bool:
    """Whether an error is fixed in the rows, rather than by one of the settings of the plan.

    A setting that the attribute has of its own, such as k, is fixed in its row.

    Examples
    --------
    >>> rows = [{"attribute": "age", "k": "2"}, {"attribute": "wages", "k": None}]
    >>> [is_about_rows(PlanError("", attribute=row["attribute"], setting="k"), rows, ["k"])
    ...  for row in rows]
    [True, False]
    """
    if error.attribute is None:
        return error.setting == "attributes"
    own = any(row["attribute"] == error.attribute and row.get(str(error.setting)) for row in rows)
    return own or error.setting not in settings


def _edited(row: RowCells, before: RowCells, proposed: object, dtype: pl.DataType) -> AttributeRole:
    name, role = row["attribute"], row["role"]
    if role in _PLAIN:
        same: AttributeRole = proposed if isinstance(proposed, _PLAIN[role]) else _PLAIN[role]()
        return same
    try:
        if role == "derived":
            return Derived(expression=row["expression"] or "")
        was = proposed.model_dump() if isinstance(proposed, Confidential) else {}
        return Confidential(**_settings(row, before, was, dtype))
    except PlanError as error:
        own = [PlanError(p.message, attribute=name, setting=p.setting) for p in error.problems]
        raise all_of(own) from None


def _settings(row: RowCells, before: RowCells, was: RowCells, dtype: pl.DataType) -> RowCells:
    read: dict[str, Callable[[str], object]] = {
        "lower": lambda text: _bound("lower", text, dtype),
        "upper": lambda text: _bound("upper", text, dtype),
        "bottom": lambda text: _bound("bottom", text, dtype),
        "top": lambda text: _bound("top", text, dtype),
        "round_to": lambda text: _bound("round_to", text, pl.Float64()),
        "categories": lambda text: _categories(text, dtype),
        "k": _whole_or_auto,
    }
    settings = dict(was)
    for name in (
        "kind", "lower", "upper", "bottom", "top", "round_to", "categories", "budget_share",
        "method", "k", "per_unit",
    ):  # fmt: skip
        cell = row[name]
        if cell != before[name] or not was:
            settings[name] = read[name](cell) if cell and name in read else cell
    for coded, end in _ENDS:  # which are the ends of the domain
        if row[end] is None and (settings[coded] is not None or before[coded]):
            settings[end] = settings[coded]
    if row["categories"] != before["categories"]:
        settings["taxonomy"] = None
    if settings["kind"] in ("nominal", "ordinal"):
        settings |= dict.fromkeys(_OF_NUMBERS_ONLY)
    if settings["lower"] is not None and settings["upper"] is not None:
        settings["resolution"] = None  # was proposed for want of a domain
    settings["budget_share"] = 0.0 if settings["budget_share"] is None else settings["budget_share"]
    settings["per_unit"] = bool(settings["per_unit"])
    return settings


def _bound(name: str, text: str, dtype: pl.DataType) -> Bound:
    readers: dict[type, tuple[str, Callable[[str], Bound]]] = {
        pl.Date: ("a date such as 2025-01-31", date.fromisoformat),
        pl.Datetime: ("a time such as 2025-01-31 12:00:00", datetime.fromisoformat),
        pl.Time: ("a time such as 12:00:00", time.fromisoformat),
    }
    expected, read = readers.get(type(dtype), ("a number", float))
    try:
        return read(text.strip())
    except ValueError:
        raise PlanError(f"{name} must be {expected}, got {text!r}", setting=name) from None


def _categories(text: str, dtype: pl.DataType) -> tuple[Category, ...]:
    words = next(csv.reader([text], skipinitialspace=True), [])
    try:
        if dtype.is_integer():
            return tuple(int(word) for word in words)
        if dtype == pl.Boolean:
            return tuple({"false": False, "true": True}[word.lower()] for word in words)
    except (ValueError, KeyError):
        expected = "true and false" if dtype == pl.Boolean else "whole numbers"
        raise PlanError(
            f"categories must be {expected}, as the column is", setting="categories"
        ) from None
    return tuple(words)


def _whole_or_auto(text: str) -> int | str:
    if text.strip() == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise PlanError(
            f'its own k must be a whole number or "auto", got {text!r}', setting="k"
        ) from None


def _written(bound: Bound | None) -> str | None:
    if bound is None:
        return None
    return f"{bound:.15g}" if isinstance(bound, int | float) else str(bound)


def _listed(categories: Iterable[Category]) -> str | None:
    return ", ".join(map(_quoted, categories)) or None


def _quoted(category: Category) -> str:
    text = str(category).lower() if isinstance(category, bool) else str(category)
    plain = text == text.strip() and text and not set(text) & set(',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _mark(mark: str) -> tuple[str, str]:
    name, _, setting = mark.rpartition(": ")
    return name, setting


def _stands(mark: str, plan: Plan, proposed: Plan) -> bool:
    """Whether what was taken from the data is still in the plan as it was."""
    name, setting = _mark(mark)
    one, other = (p.attributes[name] if name else p for p in (plan, proposed))
    value = getattr(one, setting, None)
    return value is not None and value == getattr(other, setting)
