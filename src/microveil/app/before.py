"""Beside the second question, if one opens it: who stands out in the table as it is."""

from collections.abc import Sequence

import streamlit as st

from microveil.app.markup import figures, message
from microveil.app.session_state import Chosen, remember
from microveil.errors import MicroveilError
from microveil.measures.classical import risk
from microveil.plan.plan import Plan
from microveil.show.risks import risk_notes, risk_rows, risk_sentence


def risk_before(chosen: Chosen, plan: Plan, keys: Sequence[str]) -> None:
    """Count who stands out by what may be known."""
    with st.expander("Measure the risk before protecting: who stands out by these columns"):
        sensitive = st.multiselect(
            "Sensitive columns: values that an attacker must not learn", chosen.data.columns
        )
        if not keys:
            st.caption("Choose one or more columns above, such as age, region and sex.")
            return
        if not st.button("Measure"):
            return
        weight = next(iter(plan.sampling_weights), None)

        def count() -> tuple[str, list[str], list[tuple[str, str]]]:
            named = tuple(name for name in (*keys, *sensitive, plan.unit) if name)
            table = chosen.upload.read(named)[0] if chosen.upload else chosen.table
            found = risk(table, keys=keys, weight=weight, household=plan.unit, sensitive=sensitive)
            return risk_sentence(found), risk_notes(found), list(risk_rows(found))

        asked = (chosen.identity, tuple(keys), tuple(sensitive), weight, plan.unit)
        try:
            sentence, notes, rows = remember("risk before", asked, count)
        except MicroveilError as error:
            st.html(message("error", str(error)))
            return
        st.html(figures([sentence, *notes], rows))
        st.caption("These figures are computed from the original data: keep them private.")
