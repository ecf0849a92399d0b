"""How each attribute is treated, in tables that are edited in place: roles, and settings."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from microveil.app.attributes import COLUMNS
from microveil.app.markup import message
from microveil.app.page_words import in_page_words
from microveil.app.session_state import Draft
from microveil.core.methods import METHODS
from microveil.errors import MicroveilError
from microveil.formats.metadata import ColumnMeta
from microveil.plan.roles import Confidential
from microveil.plan.settings import declared_in
from microveil.show.words.column_words import KIND_WORDS, ROLE_WORDS

_MOST_ROWS = 16  # further ones are scrolled to
_WIDEST_NAME, _MARGIN, _LETTER = 360, 40, 8  # in pixels
_TYPES = {"budget_share": pl.Float64, "per_unit": pl.Boolean}
_HELP = {declared.name: f"{declared.setting.help}." for declared in declared_in(Confidential)}
_ROLES = ("attribute", "label", "role", "kind", "why", "holds")
_SETTINGS = tuple(name for name in COLUMNS if name not in ("holds", "role", "kind"))
_FIXED = ("attribute", "label", "holds", "why", "from data")
_CONFIG: Any = {
    "label": st.column_config.TextColumn("label"),
    "holds": st.column_config.TextColumn("holds", width="small"),
    "why": st.column_config.TextColumn("why", width="large"),
    "role": st.column_config.SelectboxColumn(
        "role",
        options=list(ROLE_WORDS),
        format_func=lambda role: ROLE_WORDS[str(role)],
        required=True,
    ),
    "kind": st.column_config.SelectboxColumn(
        "as",
        options=list(KIND_WORDS),
        format_func=lambda kind: KIND_WORDS[str(kind)],
        help=_HELP["kind"],
    ),
    **{
        name: st.column_config.TextColumn(name.replace("_", " "), width="small", help=_HELP[name])
        for name in ("lower", "upper", "bottom", "top", "round_to", "k")
    },
    "categories": st.column_config.TextColumn(
        "categories", help=f"{_HELP['categories']} Separate them by commas."
    ),
    "budget_share": st.column_config.NumberColumn(
        "budget share", width="small", min_value=0.0, help=_HELP["budget_share"]
    ),
    "method": st.column_config.SelectboxColumn(
        "method", options=list(METHODS), help=_HELP["method"]
    ),
    "group": st.column_config.TextColumn(
        "group",
        width="small",
        help="Attributes with the same word are pooled in joint clusters of their own. Leave empty "
        "to pool with all others.",
    ),
    "per_unit": st.column_config.CheckboxColumn(
        "same for a person", width="small", help=_HELP["per_unit"]
    ),
    "expression": st.column_config.TextColumn(
        "expression", help="For derived attributes, e.g. wages + other."
    ),
    "from data": st.column_config.TextColumn(
        "taken from the data", help="Proposed by looking at the data; check it."
    ),
}


def roles(draft: Draft) -> None:
    """Edit what becomes of each column, with why that was proposed."""
    edited = _editor(draft, "roles", _ROLES)
    _say_what_is_wrong(draft, edited)


def attribute_settings(draft: Draft) -> None:
    """Edit the settings that an attribute has of its own."""
    edited = _editor(draft, "settings", _SETTINGS)
    _say_what_is_wrong(draft, edited)


def _editor(draft: Draft, key: str, columns: Sequence[str]) -> Sequence[str]:
    """Show some columns of the table of attributes, and keep what was entered."""
    table = _with_what_was_found(draft)
    shown = [name for name in columns if name in table.columns]
    longest = max(map(len, table["attribute"]))
    name = st.column_config.TextColumn(
        "attribute", pinned=True, width=min(_WIDEST_NAME, _MARGIN + _LETTER * longest)
    )
    edited: Any = st.data_editor(
        table.select(shown),
        key=f"{key} {draft.version}",
        hide_index=True,
        height=38 + 35 * min(table.height, _MOST_ROWS),
        placeholder="",
        disabled=_FIXED,
        column_config={"attribute": name, **_CONFIG},
        alt="How each attribute is treated",
    )
    own = [name for name in shown if name in COLUMNS and name not in _FIXED]
    for row, cells in zip(draft.rows, edited.select(own).to_dicts(), strict=True):
        row |= {name: None if cell == "" else cell for name, cell in cells.items()}
    return own


def _with_what_was_found(draft: Draft) -> pl.DataFrame:
    """Put labels that the file has beside names, and why each role was proposed."""
    schema = {name: _TYPES.get(name, pl.String) for name in COLUMNS}
    meta, looks = draft.chosen.table.meta, draft.chosen.looks
    rows = pl.DataFrame(draft.laid, schema=schema)
    labels = [_label(meta.columns.get(name)) for name in rows["attribute"]]
    whys = [looks[name][1].why for name in rows["attribute"]]
    found = rows.with_columns(pl.Series("why", whys, dtype=pl.String))
    return found.with_columns(pl.Series("label", labels, dtype=pl.String)) if any(labels) else found


def _say_what_is_wrong(draft: Draft, columns: Sequence[str]) -> None:
    """Say beside a table of attributes what is to be put right in it."""
    for problem in draft.checked().problems:
        if draft.is_about_rows(problem) and _column_of(problem) in (*columns, None):
            st.html(message("error", in_page_words(str(problem)), problem.attribute))


def _column_of(problem: MicroveilError) -> str | None:
    return problem.setting if problem.setting in COLUMNS else None


def _label(column: ColumnMeta | None) -> str | None:
    if column is None:
        return None
    values = ", ".join(f"{value:g} = {text}" if isinstance(value, float) else f"{value} = {text}"
                       for value, text in column.value_labels.items())  # fmt: skip
    return ": ".join(filter(None, (column.label, values))) or None
