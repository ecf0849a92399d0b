"""Step 2: what becomes of each attribute, in a table that is edited in place."""

from typing import Any

import polars as pl
import streamlit as st

from microveil.app.attributes import COLUMNS, RowCells, rows_of
from microveil.app.markup import message
from microveil.app.session_state import Chosen, Edited
from microveil.core.methods import METHODS
from microveil.formats import TableMeta
from microveil.formats.metadata import ColumnMeta

_MOST_ROWS = 16  # further ones are scrolled to
_WIDEST_NAME, _MARGIN, _LETTER = 360, 40, 8  # in pixels
_SCHEMA = {name: pl.Float64 if name == "budget_share" else pl.String for name in COLUMNS}
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
        "kind", options=["integer", "real", "nominal", "ordinal"], help="Empty: as the column is."
    ),
    "lower": st.column_config.TextColumn(
        "lower", width="small", help="The least that is possible."
    ),
    "upper": st.column_config.TextColumn("upper", width="small", help="The most that is possible."),
    "bottom": st.column_config.TextColumn(
        "bottom", width="small", help="Values below are moved to it first; instead of lower."
    ),
    "top": st.column_config.TextColumn(
        "top", width="small", help="Values above are moved to it first; instead of upper."
    ),
    "round_to": st.column_config.TextColumn(
        "round to", width="small", help="Numbers are rounded to its multiples first."
    ),
    "categories": st.column_config.TextColumn(
        "categories", help="All that are possible, with commas; of ordinal ones from the lowest."
    ),
    "budget_share": st.column_config.NumberColumn(
        "budget share",
        width="small",
        min_value=0.0,
        help="Share of ε, relative to the other attributes.",
    ),
    "method": st.column_config.SelectboxColumn(
        "method", options=list(METHODS), help="Empty: the one chosen below."
    ),
    "k": st.column_config.TextColumn("k", width="small", help="Empty: the one chosen below."),
    "group": st.column_config.TextColumn(
        "group",
        width="small",
        help="Any word: attributes with the same one are pooled in joint clusters of their own. "
        "Empty: with all others.",
    ),
    "together": st.column_config.TextColumn(
        "together",
        width="small",
        help="Any word: attributes with the same one are exchanged together, so that their "
        "combinations survive.",
    ),
    "expression": st.column_config.TextColumn(
        "expression", help="Of derived ones, e.g. wages + other."
    ),
    "from data": st.column_config.TextColumn(
        "taken from the data", help="Proposed by looking at the data; check it."
    ),
}


def attributes(chosen: Chosen) -> Edited:
    """Step 2: what becomes of each attribute."""
    st.header("2. Say what becomes of each attribute", anchor=False)
    st.caption(
        "**Confidential** attributes are masked, **identifiers** dropped, **derived** ones "
        "computed again, and **kept** ones published as they are, as is a sampling **weight**, by "
        "which estimates are weighted. **Pseudonyms** take the place of identifiers, and dates "
        "that are **shifted** move with their people. Declare lower and upper, or all "
        "categories, from what is known without the data. A larger share of ε goes to what has a "
        "larger weight in its column."
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
        alt="What becomes of each attribute",
    )
    place = st.container()
    marked = [row["attribute"] for row in edited.to_dicts() if row["from data"]]
    if marked:
        place.html(
            message(
                "warning",
                "what the last column lists was proposed by looking at the data, and the "
                f"certificate will say so unless you change it: {', '.join(marked)}",
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
