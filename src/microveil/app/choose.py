"""The first step: a file of the user's or the sample, and what becomes of its columns."""

from collections.abc import Mapping, Sequence

import polars as pl
import streamlit as st

from microveil.app.edit import roles
from microveil.app.elements import show_notes
from microveil.app.markup import message
from microveil.app.session_state import Chosen, Draft, begin, current_draft, go_to, remember
from microveil.app.upload import Upload, possible_options
from microveil.errors import MicroveilError
from microveil.formats import LoadedTable
from microveil.plan.plan import Plan
from microveil.plan.propose.proposal import propose
from microveil.plan.sample import people

LARGEST_UPLOAD = 4_000
"""In megabytes."""

_OWN, _SAMPLE = "Your own file", "A sample of fictitious people"


def table_step() -> None:
    """Choose a table, and look at what becomes of each column."""
    draft = current_draft()
    is_sample = draft is not None and draft.chosen.upload is None
    which = st.radio(
        "Table", [_OWN, _SAMPLE], int(is_sample), horizontal=True, label_visibility="collapsed"
    )
    chosen = _sample() if which == _SAMPLE else _uploaded(draft)
    if chosen is None:
        return
    if draft is None or draft.chosen is not chosen:
        begin(chosen)
        st.rerun()
    _first_records(chosen)
    st.subheader("What becomes of each column", anchor=False)
    st.caption(
        "Change a role by a double click. **Masked** columns are clustered and get noise, "
        "**dropped** ones are not released, **derived** ones are computed anew from masked ones, "
        "and **kept** ones are published as they are, as is a **sampling weight**. **Pseudonyms** "
        "take the place of identifiers, and all **shifted** dates of a person move by the same "
        "number of days."
    )
    roles(draft)
    st.button("Next: three questions", type="primary", on_click=go_to, args=("Questions",))


def _first_records(chosen: Chosen) -> None:
    records, columns = chosen.data.shape
    show_notes(chosen.notes)
    st.write(f"{records:,} records, {columns:,} columns. The first records:")
    days = [name for name, dtype in chosen.data.schema.items() if dtype == pl.Date]
    st.dataframe(
        chosen.data.head(5),
        hide_index=True,
        column_config={name: st.column_config.DateColumn() for name in days},
        alt="The first records",
    )


def _sample() -> Chosen:
    return remember(
        "sample", "sample", lambda: _proposed_for("people.csv", LoadedTable(people()), ("sample",))
    )


def _uploaded(draft: Draft | None) -> Chosen | None:
    """Read the file that was sent, or the one before, if it is to be read in another way."""
    known = draft.chosen if draft is not None else None
    file = st.file_uploader(
        "Upload a CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS file. It stays in memory.",
        max_upload_size=LARGEST_UPLOAD,
    )
    if file is not None:
        name, sent, content = file.name, file.file_id, file.getvalue
    elif known is not None and known.upload is not None:
        upload = known.upload
        name, sent, content = upload.name, str(known.identity[0]), lambda: upload.content
    else:
        return None
    before = known.upload.options if known is not None and known.upload is not None else {}
    options = _options(possible_options(name), before)
    asked = (sent, *options.items())
    if known is not None and known.identity == asked:
        return known
    try:
        return remember("chosen", asked, lambda: _read(asked, Upload(name, content(), options)))
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return None


def _options(possible: tuple[str, ...], before: Mapping[str, str]) -> dict[str, str]:
    if not possible:
        return {}
    with st.expander("Change how the file is read (leave empty to detect)"):
        columns = st.columns(len(possible))
        given = {
            option: column.text_input(
                _LABELS.get(option, option.capitalize()), before.get(option, "")
            )
            for option, column in zip(possible, columns, strict=True)
        }
    return {option: text for option, text in given.items() if text}


_LABELS = {
    "na": "Value that means missing",
    "dates": "Date order (day-first or month-first)",
    "skip_rows": "Rows above the column names",
}


def _read(identity: tuple[object, ...], upload: Upload) -> Chosen:
    table, notes = upload.read()
    return _proposed_for(upload.name, table, identity, upload, notes)


def _proposed_for(
    name: str,
    table: LoadedTable,
    identity: tuple[object, ...],
    upload: Upload | None = None,
    notes: Sequence[str] = (),
) -> Chosen:
    """Propose a plan for a table, read as the upload says."""
    options = {} if upload is None else upload.options
    proposed = propose(
        table.data, name, table.meta.described,
        na=options.get("na", ()), dates=options.get("dates"),
    )  # fmt: skip
    plan = Plan.from_toml(proposed.toml)
    return Chosen(identity, name, table, plan, proposed.columns, upload, notes)
