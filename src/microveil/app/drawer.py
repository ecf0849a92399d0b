"""The drawer of expert settings: every setting that no question and no dial asks for."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.edit import attribute_settings
from microveil.app.markup import message
from microveil.app.page_words import in_page_words
from microveil.app.server import NAMED
from microveil.app.session_state import Draft
from microveil.plan.settings import MORE, Declared, Setting, declared_in

_ASKED_ELSEWHERE = ("unit", "records_per_person")


def expert_settings(draft: Draft) -> None:
    """Ask for every setting of the plan that has a label, and for those of attributes."""
    draft.opened = draft.opened or bool(draft.checked().problems)
    with st.expander("Expert settings", expanded=draft.opened):
        places = controls(draft)
        st.subheader("Attributes", anchor=False)
        st.caption(
            "Declare lower and upper, or all categories, from what you know without looking at the "
            "data. An attribute with a larger budget share gets more of ε."
        )
        attribute_settings(draft)
    for problem in draft.checked().problems:
        if not draft.is_about_rows(problem):
            place = places.get(str(problem.setting), places[""])
            place.html(message("error", in_page_words(str(problem)), problem.setting))


def controls(draft: Draft) -> dict[str, DeltaGenerator]:
    """Show the controls; return by setting where to say what is wrong with it.

    Sliders are wide, others stand side by side; few plans need those in sections.
    """
    names = [row["attribute"] for row in draft.rows]
    places = {"": st.container()}
    sections: dict[str, DeltaGenerator] = {}
    halves: Iterator[DeltaGenerator] | None = None
    for declared in declared_in(type(draft.base)):
        name, setting = declared.name, declared.setting
        if not setting.label or name in _ASKED_ELSEWHERE:
            continue
        if setting.section:
            if setting.section not in sections:
                sections[setting.section] = st.container()
                sections[setting.section].markdown(f"**{setting.section}**")
            place = sections[setting.section].container()
        elif setting.steps:
            place, halves = st.container(), None
        else:
            halves = halves or cycle(st.columns(2))
            place = next(halves).container()
        off = bool(setting.needs) and not draft.given[setting.needs]
        key = f"{name} {draft.version}"
        draft.given[name] = control(place, declared, draft.began[name], key, names, off=off)
        places[name] = place
    draft.key = _one_of(
        sections[MORE],
        "Key file of pseudonyms",
        NAMED.keys,
        "--key-file",
        draft.key,
        key="key file",
    )
    return places


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
        return _one_of(place, setting.label, NAMED.ledgers, "--ledger", value, **common)
    lines = place.text_area(setting.label, "\n".join(value), **common).splitlines()
    return tuple(line.strip() for line in lines if line.strip())


def _one_of(
    place: DeltaGenerator,
    label: str,
    files: tuple[str, ...],
    option: str,
    value: str | None,
    **common: Any,  # noqa: ANN401 - Streamlit's
) -> str | None:
    """Ask for one of the files that the owner named; a browser that sends another gets none."""
    said = f"none (name files with microveil app {option})"
    words: dict[str | None, str] = {None: "none" if files else said}
    words |= {file: Path(file).name for file in files}
    at = [*words].index(value) if value in words else 0
    found = place.selectbox(label, [*words], at, words.__getitem__, **common)
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
