"""Step 1: a file of the user's, or the sample."""

import polars as pl
import streamlit as st

from microveil.app.markup import message
from microveil.app.session_state import Chosen, remember
from microveil.app.upload import Upload, possible_options
from microveil.errors import MicroveilError
from microveil.formats import LoadedTable
from microveil.plan.plan import Plan
from microveil.plan.propose.proposal import propose
from microveil.plan.sample import people, recommended_people_plan

LARGEST_UPLOAD = 4_000
"""In megabytes."""


def choose_table() -> Chosen | None:
    """Step 1: a file or the sample."""
    st.header("1. Choose a table", anchor=False)
    own, sample = "Your own file", "A sample of fictitious people"
    which = st.radio("Table", [own, sample], horizontal=True, label_visibility="collapsed")
    chosen = remember("sample", "sample", _sample) if which == sample else _uploaded()
    if chosen is not None:
        records, columns = chosen.data.shape
        st.write(f"{records:,} records, {columns:,} columns. The first records:")
        days = [name for name, dtype in chosen.data.schema.items() if dtype == pl.Date]
        st.dataframe(
            chosen.data.head(5),
            hide_index=True,
            column_config={name: st.column_config.DateColumn() for name in days},
            alt="The first records",
        )
    return chosen


def _sample() -> Chosen:
    return Chosen("sample", "people.csv", LoadedTable(people()), recommended_people_plan())


def _uploaded() -> Chosen | None:
    file = st.file_uploader(
        "Upload a CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS file. It stays in memory.",
        max_upload_size=LARGEST_UPLOAD,
    )
    if file is None:
        return None
    options = _options(possible_options(file.name))
    identity = f"{file.file_id} {options}"

    def read() -> tuple[Chosen, list[str]]:
        return _read(identity, Upload(file.name, file.getvalue(), options))

    place = st.container()
    try:
        chosen, notes = remember("chosen", identity, read)
    except MicroveilError as error:
        place.html(message("error", str(error)))
        return None
    for note in notes:
        place.html(message("warning", note))
    return chosen


def _options(possible: tuple[str, ...]) -> dict[str, str]:
    if not possible:
        return {}
    with st.expander("Change how the file is read (leave empty to detect)"):
        columns = st.columns(len(possible))
        given = {
            option: column.text_input(_LABELS.get(option, option.capitalize()))
            for option, column in zip(possible, columns, strict=True)
        }
    return {option: text for option, text in given.items() if text}


_LABELS = {
    "na": "Value that means missing",
    "dates": "Date order (day-first or month-first)",
    "skip_rows": "Rows above the column names",
}


def _read(identity: str, upload: Upload) -> tuple[Chosen, list[str]]:
    table, notes = upload.read()
    options = upload.options
    proposed = propose(
        table.data, upload.name, table.meta.described,
        na=options.get("na", ()), dates=options.get("dates"),
    )  # fmt: skip
    return Chosen(identity, upload.name, table, Plan.from_toml(proposed.toml), upload), notes
