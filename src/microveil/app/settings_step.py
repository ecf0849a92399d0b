"""Step 3: the settings of the plan, with what it is expected to lose shown beside them."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.attributes import edited_plan, is_about_rows
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
from microveil.app.server import NAMED
from microveil.app.session_state import KEY, Chosen, Edited, remember
from microveil.errors import MicroveilError
from microveil.plan.plan import Plan
from microveil.plan.settings import MORE, RECOMMENDED, UNITS, Declared, Setting, declared_in
from microveil.show.charts.points import JOINED
from microveil.show.words.exploration_words import recommendation_text


def settings(chosen: Chosen, edited: Edited) -> Plan | None:
    """Step 3: the plan's settings, what it is expected to lose, and whether it fits."""
    st.header("3. Choose how much to protect", anchor=False)
    given = controls(chosen.proposed, chosen.identity, edited)
    place = st.container()
    try:
        plan = edited_plan(edited.rows, chosen.proposed, chosen.data.schema, **given)
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


def controls(proposed: Plan, identity: str, edited: Edited) -> dict[str, Any]:
    """Ask for every setting of the plan that has a label.

    Sliders are wide, others stand side by side; few plans need those in the expanders.
    """
    names = [row["attribute"] for row in edited.rows]
    given: dict[str, Any] = {}
    sections: dict[str, DeltaGenerator] = {}
    halves: Iterator[DeltaGenerator] | None = None
    for declared in declared_in(type(proposed)):
        name, setting = declared.name, declared.setting
        if not setting.label:
            continue
        if setting.section and setting.section not in sections:
            found = setting.section == UNITS and bool({"unit", "within"} & {*proposed.from_data})
            sections[setting.section] = st.expander(setting.section, expanded=found)
        if setting.section:
            place = sections[setting.section]
        elif setting.steps:
            place, halves = st.container(), None
        else:
            halves = halves or cycle(st.columns(2))
            place = next(halves)
        off = bool(setting.needs) and not given[setting.needs]
        value = getattr(proposed, name)
        value = RECOMMENDED.get(name) if value is None else value
        given[name] = control(place, declared, value, f"{name} {identity}", names, off=off)
    if "unit" in proposed.from_data:
        sections[UNITS].html(message("warning", _about_unit(proposed)))
    _one_of(sections[MORE], "Key file of pseudonyms", NAMED.keys, "--key-file", key=KEY)
    masked = [row["attribute"] for row in edited.rows if row["role"] == "confidential"]
    per_unit = sections[UNITS].multiselect(
        "One value in all records of a unit, masked once, such as a household's income",
        masked,
        [name for name in proposed.per_unit if name in masked],
        disabled=given["unit"] is None,
        key=f"per_unit {identity}",
    )
    return {**given, "per_unit": per_unit if given["unit"] else []}


def _about_unit(proposed: Plan) -> str:
    return (
        f"that {proposed.unit} says which records belong together was found in the data, and so "
        f"were units of up to {proposed.records_per_person:,} records; choose another column if "
        "that is not the key of a person or household, or none if no person has several records"
    )


def control(
    place: DeltaGenerator,
    declared: Declared,
    value: Any,  # noqa: ANN401 - of any setting
    key: str,
    names: list[str],
    *,
    off: bool,
) -> Any:  # noqa: ANN401
    """Ask for one setting of a plan, by the control that its declaration asks for.

    Parameters
    ----------
    place
        Where on the page.
    declared, value
        The setting, and what was proposed.
    key
        What Streamlit remembers it by.
    names
        The columns of the table.
    off
        Whether it has no effect, so that it cannot be changed.
    """
    type_, setting = declared.type, declared.setting
    common: dict[str, Any] = {"key": key, "disabled": off}
    if get_origin(type_) is Literal:
        words = list(setting.choices)
        label_of = setting.choices.__getitem__
        return place.selectbox(setting.label, words, words.index(value), label_of, **common)
    if setting.steps:
        return _slider(place, declared, value, common)
    if setting.columns and type_ is str:
        columns = [None, *names]
        at = columns.index(value)
        return place.selectbox(setting.label, columns, at, lambda name: name or "none", **common)
    if setting.columns:
        return tuple(place.multiselect(setting.label, names, list(value), **common))
    if type_ is bool:
        return place.checkbox(setting.label, value, **common)
    if type_ is int:
        return int(place.number_input(setting.label, min_value=1, value=value, **common))
    if type_ is str:
        return _one_of(place, setting.label, NAMED.ledgers, "--ledger", **common)
    lines = place.text_area(setting.label, "\n".join(value), **common).splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def _one_of(
    place: DeltaGenerator,
    label: str,
    files: tuple[str, ...],
    option: str,
    **common: Any,  # noqa: ANN401 - Streamlit's
) -> str | None:
    """Ask for one of the files that the owner named; a browser that sends another gets none."""
    said = f"none (name files with microveil app {option})"
    words: dict[str | None, str] = {None: "none" if files else said}
    words |= {file: Path(file).name for file in files}
    found = place.selectbox(label, [*words], 0, words.__getitem__, **common)
    return found if found in files else None


def _slider(
    place: DeltaGenerator,
    declared: Declared,
    value: Any,  # noqa: ANN401 - a number or a word
    common: dict[str, Any],
) -> Any:  # noqa: ANN401
    """Ask for a number; a word that may stand in its place has a checkbox."""
    setting = declared.setting
    steps = sorted({*setting.steps, value} if isinstance(value, int | float) else setting.steps)
    words = [word for part in get_args(declared.type) for word in get_args(part)]
    chosen = [
        word
        for word in words
        if place.checkbox(setting.choices[word], value == word, key=f"{word} {common['key']}")
    ]
    number = place.select_slider(
        setting.label,
        steps,
        value if value in steps else steps[0],
        format_func=lambda step: _step_in_words(step, setting),
        key=common["key"],
        disabled=common["disabled"] or bool(chosen),
    )
    return chosen[0] if chosen else number


def _step_in_words(step: float, setting: Setting) -> str:
    return setting.choices.get(str(step), f"{step:.0%}" if setting.percent else str(step))


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
