"""Step 2: how each attribute is treated, in a table that is edited in place."""

from typing import Any

import polars as pl
import streamlit as st

from microveil.app.attributes import COLUMNS, RowCells, rows_of
from microveil.app.markup import message
from microveil.app.session_state import Chosen, Edited
from microveil.core.methods import METHODS
from microveil.formats import TableMeta
from microveil.formats.metadata import ColumnMeta
from microveil.plan.roles import Confidential
from microveil.plan.settings import declared_in

_MOST_ROWS = 16  # further ones are scrolled to
_WIDEST_NAME, _MARGIN, _LETTER = 360, 40, 8  # in pixels
_SCHEMA = {name: pl.Float64 if name == "budget_share" else pl.String for name in COLUMNS}
_HELP = {declared.name: f"{declared.setting.help}." for declared in declared_in(Confidential)}
_CONFIG: Any = {
    "role": st.column_config.SelectboxColumn(
        "role",
        options=[
            "confidential",
            "identifier",
            "kept",
            "derived",
            "sampling_weight",
            "pseudonym",
            "shifted",
        ],
        required=True,
    ),
    "kind": st.column_config.SelectboxColumn(
        "kind", options=["integer", "real", "nominal", "ordinal"], help=_HELP["kind"]
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
    "expression": st.column_config.TextColumn(
        "expression", help="For derived attributes, e.g. wages + other."
    ),
    "from data": st.column_config.TextColumn(
        "taken from the data", help="Proposed by looking at the data; check it."
    ),
}


def attributes(chosen: Chosen) -> Edited:
    """Step 2: how each attribute is treated."""
    st.header("2. Choose how to treat each attribute", anchor=False)
    st.caption(
        "**Confidential** attributes are masked, **identifiers** are dropped, **derived** "
        "attributes are recomputed, and **kept** attributes are published unchanged, as is a "
        "sampling **weight**. **Pseudonyms** replace identifiers, and all **shifted** dates of a "
        "person move by the same number of days. Declare lower and upper, or all categories, from "
        "what you know without looking at the data. An attribute with a larger budget share gets "
        "more of ε."
    )
    rows = rows_of(chosen.proposed, chosen.data.schema)
    longest = max(len(row["attribute"]) for row in rows)
    name = st.column_config.TextColumn(
        "attribute", pinned=True, width=min(_WIDEST_NAME, _MARGIN + _LETTER * longest)
    )
    edited: Any = st.data_editor(
        _with_labels(pl.DataFrame(rows, schema=_SCHEMA), chosen.table.meta),
        key=f"attributes {chosen.identity}",
        hide_index=True,
        height=38 + 35 * min(len(rows), _MOST_ROWS),
        placeholder="",
        disabled=("attribute", "label", "holds", "from data"),
        column_config={"attribute": name, **_CONFIG},
        alt="How each attribute is treated",
    )
    place = st.container()
    marked = [row["attribute"] for row in edited.to_dicts() if row["from data"]]
    if marked:
        place.html(
            message(
                "warning",
                "settings in the last column were proposed by looking at the data, and the "
                f"certificate will say so unless you change them: {', '.join(marked)}",
            )
        )
    rows = edited.select(COLUMNS).to_dicts()
    return Edited([_without_blanks(row) for row in rows], place)


def _with_labels(rows: pl.DataFrame, meta: TableMeta) -> pl.DataFrame:
    """Put what the file says of its columns and values beside their names, if it says anything."""
    labels = [_label(meta.columns.get(name)) for name in rows["attribute"]]
    if not any(labels):
        return rows
    return rows.insert_column(1, pl.Series("label", labels, dtype=pl.String))


def _label(column: ColumnMeta | None) -> str | None:
    if column is None:
        return None
    values = ", ".join(f"{value:g} = {text}" if isinstance(value, float) else f"{value} = {text}"
                       for value, text in column.value_labels.items())  # fmt: skip
    return ": ".join(filter(None, (column.label, values))) or None


def _without_blanks(row: RowCells) -> RowCells:
    return {name: None if cell == "" else cell for name, cell in row.items()}
