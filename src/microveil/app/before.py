"""Between steps 1 and 2, if one opens it: who stands out in the table as it is."""

import streamlit as st

from microveil.app.markup import figures, message
from microveil.app.session_state import Chosen, remember
from microveil.errors import MicroveilError
from microveil.measures.classical import risk
from microveil.show.risks import risk_notes, risk_rows, risk_sentence


def risk_before(source: Chosen) -> None:
    """Count who stands out by the chosen quasi-identifiers."""
    columns = source.data.columns
    with st.expander(
        "Measure the risk before protecting: who stands out by what an attacker may know"
    ):
        keys = st.multiselect("Quasi-identifiers: columns that an attacker may know", columns)
        sensitive = st.multiselect(
            "Sensitive columns: values that an attacker must not learn", columns
        )
        left, right = st.columns(2)
        proposed = next((columns.index(n) for n in source.proposed.sampling_weights), None)
        weight = left.selectbox("Sampling weight", columns, index=proposed, placeholder="none")
        household = right.selectbox("Household", columns, index=None, placeholder="none")
        if not keys:
            st.caption("Choose one or more quasi-identifiers, such as age, region and sex.")
            return

        def count() -> tuple[str, list[str], list[tuple[str, str]]]:
            named = tuple(name for name in (*keys, *sensitive, household) if name)
            table = source.upload.read(named)[0] if source.upload else source.table
            found = risk(table, keys=keys, weight=weight, household=household, sensitive=sensitive)
            return risk_sentence(found), risk_notes(found), list(risk_rows(found))

        chosen = (source.identity, *map(tuple, (keys, sensitive)), weight, household)
        try:
            sentence, notes, rows = remember("risk before", chosen, count)
        except MicroveilError as error:
            st.html(message("error", str(error)))
            return
        st.html(figures([sentence, *notes], rows))
        st.caption("These figures are computed from the original data: keep them private.")
