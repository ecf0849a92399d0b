"""What a plan is expected to lose, before anything is masked, and what other plans would."""

import math
from typing import Any, NamedTuple

import polars as pl
import streamlit as st

from microveil.app.charts import map_chart
from microveil.app.elements import step_bar
from microveil.app.markup import message
from microveil.app.session_state import Draft, remember
from microveil.errors import MicroveilError, noted
from microveil.judge.explore import Exploration, explore
from microveil.measures.expected_error import ExpectedError, expected_error
from microveil.plan.plan import Plan
from microveil.show.charts.points import JOINED
from microveil.show.words.exploration_words import recommendation_text
from microveil.types import Progress

_RECORDS = 20_000
_CELLS = 200_000


class Outlook(NamedTuple):
    """What was predicted on how many records.

    `error` is the root mean square of the attributes' errors, in their standard deviations;
    `attributes` has a row for each that holds numbers, dates or times.
    """

    error: float
    attributes: pl.DataFrame
    records: int


def expected(draft: Draft, plan: Plan) -> None:
    """Show what the plan is expected to lose, and offer to compare others."""
    if all(attribute.is_category for attribute in plan.confidential.values()):
        st.caption("Only categories are masked; errors are predicted for numbers and dates only.")
        return
    try:
        _expected_error(draft, plan)
        _others(draft, plan)
    except MicroveilError as error:  # some records may be too few where all are enough
        st.html(message("note", f"nothing could be predicted: {error}"))


def _expected_error(draft: Draft, plan: Plan) -> None:
    identity, data = draft.chosen.identity, draft.chosen.data
    records = remember("records", identity, lambda: some_records(data))
    found = remember("outlook", (identity, plan), lambda: outlook(records, plan))
    st.metric("Expected error of a masked value, in standard deviations", f"{found.error:.3g}")
    if found.records < data.height:
        st.caption(
            f"Predicted on {found.records:,} of {data.height:,} records, chosen at random. "
            "Clusters of the whole table are narrower, so its error is usually smaller."
        )
    st.dataframe(
        found.attributes.select("attribute", "k", "within", "noise", "pooled"),
        hide_index=True,
        column_config=_EXPECTED,
        alt="Expected error by attribute",
    )
    st.caption("What is lost is a share of the attribute's variance.")


_EXPECTED: Any = {
    "within": st.column_config.NumberColumn("lost to clusters", format="percent"),
    "noise": st.column_config.NumberColumn("lost to noise", format="percent"),
    "pooled": st.column_config.NumberColumn("lost to pooling", format="percent"),
}


def _others(draft: Draft, plan: Plan) -> None:
    """Show what other plans would lose and risk, once that is asked for."""
    asked_for = draft.chosen.identity, plan
    if st.button("Compare other plans (takes a while)"):
        st.session_state["others asked for"] = asked_for
    if st.session_state.get("others asked for") != asked_for:
        return
    records = some_records(draft.chosen.data)
    with step_bar("Running and attacking other plans") as progress:
        found = remember("others", asked_for, lambda: others(records, plan, progress))
    st.altair_chart(map_chart(found))
    st.caption(f"{JOINED} These figures depend on the data: keep them private.")
    if records.height < draft.chosen.data.height:
        st.caption(
            f"Of {records.height:,} of {draft.chosen.data.height:,} records, chosen at random."
        )
    st.html(message("note", recommendation_text(found)))
    if found.plan is not None:
        st.button("Take the recommended plan", type="primary", on_click=draft.take,
                  args=(found.plan,))  # fmt: skip


def some_records(table: pl.DataFrame) -> pl.DataFrame:
    """Take as many records as can be predicted while a slider moves.

    The same ones every time, so that what is shown changes only with the plan.
    """
    most = max(1_000, min(_RECORDS, _CELLS // max(1, table.width)))
    return table if table.height <= most else table.sample(most, seed=0)


def outlook(records: pl.DataFrame, plan: Plan) -> Outlook:
    """Predict the error of a plan on some records.

    Examples
    --------
    >>> table = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan.published(epsilon=10.0, k=3, attributes={"age": "confidential"})
    >>> found = outlook(table, plan)
    >>> round(found.error, 2)
    0.25
    """
    with noted():
        found = expected_error(records, plan, clamped=True)
    return Outlook(_typical(found), found.attributes, records.height)


def others(records: pl.DataFrame, plan: Plan, progress: Progress | None = None) -> Exploration:
    """Compare other plans at the same ε on some records, by running and attacking the best."""
    with noted():
        return explore(records, plan, epsilons=[plan.epsilon], runs=1, progress=progress)


def _typical(found: ExpectedError) -> float:
    shares = found.attributes.select(pl.sum_horizontal("within", "noise", "pooled")).to_series()
    return math.sqrt(shares.sum() / len(shares))
