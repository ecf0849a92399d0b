"""Step 3: the settings of the plan, with what it is expected to lose shown beside them."""

from collections.abc import Callable
from typing import Any

import polars as pl
import streamlit as st

from microveil.app.attributes import is_about_rows, plan_of
from microveil.app.charts import map_chart, outlook_chart
from microveil.app.markup import message
from microveil.app.outlook import (
    COMPARED_EPSILONS,
    guarantee_notes,
    others,
    outlook,
    predicted_frontier,
    some_records,
    why_unpredicted,
)
from microveil.app.session_state import KEY, Chosen, Edited, remember
from microveil.core.methods import GUARANTEES, METHODS, methods_that
from microveil.errors import MicroveilError
from microveil.plan.plan import Plan
from microveil.show.charts.points import JOINED
from microveil.show.words.exploration_words import recommendation_text

_EPSILONS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0]
_KS = [1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000]
_TRIMS = [0.0, 0.1, 0.15, 0.2, 0.25]
_ANONYMITIES = [0, 2, 3, 5, 10, 15, 20, 25, 50, 100]
_METHODS = {name: f"{name}: {method.label}" for name, method in METHODS.items()}
_GUARANTEES = {name: guarantee.label for name, guarantee in GUARANTEES.items()}
_PARTITIONS = {
    "fixed": "fixed: k records each",
    "noise-optimal": "noise-optimal: k or more, least expected error",
    "least-squares": "least-squares: k to 2k − 1, most alike",
}
_POOLING = {
    "exchange": "exchange: change places at random",
    "average": "average: all alike",
}
_MISSING = {
    "error": "error: refuse them",
    "keep": "keep: they stay missing",
    "drop": "drop: leave their records out",
}


def settings(chosen: Chosen, edited: Edited) -> Plan | None:
    """Step 3: the plan's settings, what it is expected to lose, and whether it fits."""
    st.header("3. Choose how much to protect", anchor=False)
    given = _controls(chosen.proposed, chosen.identity, edited)
    place = st.container()
    try:
        plan = plan_of(edited.rows, chosen.proposed, chosen.data.schema, **given)
        notes = remember(
            "notes", (chosen.identity, plan), lambda: guarantee_notes(chosen.data, plan)
        )
    except MicroveilError as error:
        where = edited.place if is_about_rows(error, edited.rows, given) else place
        where.html(message("error", str(error)))
        return None
    for note in notes:
        edited.place.html(message("warning", note))
    try:
        _outlook(chosen, plan)
        _others(chosen, plan)
    except MicroveilError as error:  # some records may be too few where all are enough
        st.html(message("note", f"nothing could be predicted: {error}"))
    return plan


def _controls(proposed: Plan, identity: str, edited: Edited) -> dict[str, Any]:
    def key(name: str) -> str:
        return f"{name} {identity}"

    epsilon = st.select_slider(
        "ε, the privacy budget of a person: smaller protects more",
        _EPSILONS,
        value=proposed.epsilon,
        key=key("epsilon"),
    )
    left, right = st.columns(2)
    method = left.selectbox("Method", _METHODS, format_func=_METHODS.__getitem__, key=key("method"))
    guarantee = right.selectbox(
        "Guarantee", _GUARANTEES, format_func=_GUARANTEES.__getitem__, key=key("guarantee")
    )
    partition = left.selectbox(
        "Clusters",
        _PARTITIONS,
        index=list(_PARTITIONS).index(proposed.partition),
        format_func=_PARTITIONS.__getitem__,
        key=key("partition"),
    )
    missing = right.selectbox(
        "Missing values",
        _MISSING,
        index=list(_MISSING).index(proposed.missing),
        format_func=_MISSING.__getitem__,
        key=key("missing"),
    )
    ks = sorted({*_KS, proposed.k}) if isinstance(proposed.k, int) else _KS
    auto = st.checkbox("Let the data choose k, for the least expected error", key=key("auto"))
    k = st.select_slider(
        "k, records in a cluster: larger protects more",
        ks,
        value=proposed.k,
        disabled=auto,
        key=key("k"),
    )
    trim = st.select_slider(
        "Share of a cluster left out at each end, against extreme values "
        f"({methods_that(lambda method: method.pulls_in)} only)",
        sorted({*_TRIMS, proposed.trim}),
        value=proposed.trim,
        format_func="{:.0%}".format,
        key=key("trim"),
    )
    pooled = _pooling(proposed, key)
    persons = st.number_input(
        "Most records one person, or one unit, has",
        min_value=1,
        value=proposed.records_per_person,
        key=key("persons"),
    )
    read = st.checkbox(
        "Read domains that are not declared from the data (voids a claim of differential privacy)",
        key=key("domain"),
    )
    return {
        **_units(proposed, edited, key),
        **_more(proposed, key),
        "epsilon": epsilon,
        "method": method,
        "guarantee": guarantee,
        "partition": partition,
        "missing": missing,
        "k": "auto" if auto else k,
        "trim": trim,
        **pooled,
        "records_per_person": int(persons),
        "domain_from_data": read,
    }


def _units(proposed: Plan, edited: Edited, key: Callable[[str], str]) -> dict[str, Any]:
    """Ask which records belong together, what they have in common, and for strata."""
    names = [row["attribute"] for row in edited.rows]
    masked = [row["attribute"] for row in edited.rows if row["role"] == "confidential"]
    with st.expander("Households or patients, and strata"):
        unit = st.selectbox(
            "Unit, the column that says which records belong together: ε is then that of a unit",
            [None, *names],
            index=[None, *names].index(proposed.unit),
            format_func=lambda name: name or "none",
            key=key("unit"),
        )
        per_unit = st.multiselect(
            "One value in all records of a unit, masked once, such as a household's income",
            masked,
            [name for name in proposed.per_unit if name in masked],
            disabled=unit is None,
            key=key("per_unit"),
        )
        within = st.multiselect(
            "Strata: clusters never cross these columns, which are published as they are",
            names,
            list(proposed.within),
            key=key("within"),
        )
    return {"unit": unit, "per_unit": per_unit if unit else [], "within": tuple(within)}


def _more(proposed: Plan, key: Callable[[str], str]) -> dict[str, Any]:
    """Ask for what few plans have: rules, a ledger, and a key of pseudonyms."""
    with st.expander("Rules, ledger, and key of pseudonyms"):
        rules = st.text_area(
            "Rules that every released record keeps, one in a line, e.g. birth <= visit",
            "\n".join(proposed.rules),
            key=key("rules"),
        )
        ledger = st.text_input(
            "Ledger of these people, a file on this machine: every press of Protect is entered",
            proposed.ledger or "",
            key=key("ledger"),
        )
        st.text_input("Key of pseudonyms, a file on this machine", key=KEY)
    lines = [line.strip() for line in rules.splitlines()]
    return {"rules": [line for line in lines if line], "ledger": ledger.strip() or None}


def _pooling(proposed: Plan, key: Callable[[str], str]) -> dict[str, Any]:
    left, right = st.columns(2)
    anonymity = left.select_slider(
        "Anonymity, records in a joint cluster: larger hides a person's row among more",
        sorted({*_ANONYMITIES, proposed.anonymity}),
        value=proposed.anonymity,
        format_func=lambda number: str(number) if number else "off",
        key=key("anonymity"),
    )
    pooling = right.selectbox(
        "Pooling of masked values in joint clusters",
        _POOLING,
        index=list(_POOLING).index(proposed.pooling),
        format_func=_POOLING.__getitem__,
        disabled=not anonymity,
        key=key("pooling"),
    )
    return {"anonymity": anonymity, "pooling": pooling}


def _outlook(chosen: Chosen, plan: Plan) -> None:
    reason = why_unpredicted(plan)
    if reason:
        st.write(reason)
        return
    identity = chosen.identity
    records = remember("records", identity, lambda: some_records(chosen.data))
    found = remember("outlook", (identity, plan), lambda: outlook(records, plan))
    st.metric("Expected error of a masked value, in standard deviations", f"{found.error:.3g}")
    if found.records < chosen.data.height:
        st.caption(
            f"Predicted on {found.records:,} of {chosen.data.height:,} records, chosen at random. "
            "Clusters of the whole table are narrower, so its error is usually smaller."
        )
    with st.expander("By attribute, and for other k and ε", expanded=True):
        st.dataframe(
            found.attributes.select("attribute", "k", "within", "noise", "pooled"),
            hide_index=True,
            column_config=_EXPECTED,
            alt="Expected error by attribute",
        )
        st.caption("What is lost is a share of the attribute's variance.")
        _frontier(chosen, plan, records, found.error)


def _others(chosen: Chosen, plan: Plan) -> None:
    """Show what other plans would lose and risk, once that is asked for."""
    if why_unpredicted(plan):
        return
    asked_for = chosen.identity, plan
    if st.button("Compare other plans (takes a while)"):
        st.session_state["others asked for"] = asked_for
    if st.session_state.get("others asked for") != asked_for:
        return
    records = some_records(chosen.data)
    with st.spinner("Running and attacking other plans; a minute or two", show_time=True):
        found = remember("others", asked_for, lambda: others(records, plan))
    st.altair_chart(map_chart(found))
    st.caption(f"{JOINED} These figures depend on the data: keep them private.")
    if records.height < chosen.data.height:
        st.caption(f"Of {records.height:,} of {chosen.data.height:,} records, chosen at random.")
    st.html(message("note", recommendation_text(found)))


_EXPECTED: Any = {
    "within": st.column_config.NumberColumn("lost to clusters", format="percent"),
    "noise": st.column_config.NumberColumn("lost to noise", format="percent"),
    "pooled": st.column_config.NumberColumn("lost to pooling", format="percent"),
}


def _frontier(chosen: Chosen, plan: Plan, records: pl.DataFrame, error: float) -> None:
    budgets = sorted({*COMPARED_EPSILONS, plan.epsilon})
    settings = plan.model_dump(exclude={"epsilon", "k", "partition", "post"})
    parts = [
        remember(
            f"frontier {epsilon}",
            (chosen.identity, settings),
            lambda epsilon=epsilon: predicted_frontier(records, plan, epsilon),  # type: ignore[misc]
        )
        for epsilon in budgets
    ]
    points = pl.concat(parts)
    if points.is_empty():
        st.write("No curves: this method needs a declared domain for every attribute.")
        return
    k = plan.k if isinstance(plan.k, int) else None
    st.altair_chart(outlook_chart(points, plan.epsilon, k, error))
    st.caption("Curves are for clusters of k records each; the diamond is your plan.")
