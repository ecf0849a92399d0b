"""The second step: three questions, each with what was found and one click to agree."""

from collections.abc import Callable
from typing import NamedTuple

import polars as pl
import streamlit as st

from microveil.app.before import risk_before
from microveil.app.markup import items, message
from microveil.app.page_words import in_page_words
from microveil.app.session_state import Draft, go_to, remember
from microveil.errors import MicroveilError
from microveil.plan.plan import Plan
from microveil.plan.propose.answers import with_known, with_unit
from microveil.plan.propose.purposes import proposed_known, proposed_uses
from microveil.plan.settings import declared_in
from microveil.show.words.numbers import percent

_MOST = next(each for each in declared_in(Plan) if each.name == "records_per_person")


class PageQuestion(NamedTuple):
    """A question, what asks it, and what was answered in a few words.

    `ask` shows what was found with controls to correct it, and returns what makes the plan of the
    answer.
    """

    text: str
    ask: Callable[[Draft, Plan], Callable[[], Plan]]
    answer: Callable[[Plan], str]


def questions_step(draft: Draft) -> None:
    """Ask one question after the other; those that were answered can be asked again."""
    plan, _, problems = draft.checked()
    if plan is None:
        st.html(items(in_page_words(str(problem)) for problem in problems))
        st.button("Back to the table", on_click=go_to, args=("Table",))
        return
    open_ = next((q for q in ASKED if q.text not in draft.answered), None)
    for question in ASKED:
        with st.container(border=True):
            st.subheader(question.text, anchor=False)
            if question is open_:
                _ask(draft, plan, question)
            elif question.text in draft.answered:
                _answered(draft, plan, question)
    if open_ is None:
        st.button("Next: protect", type="primary", on_click=go_to, args=("Protect",))


def _ask(draft: Draft, plan: Plan, question: PageQuestion) -> None:
    answered = question.ask(draft, plan)
    if draft.refused is not None:
        st.html(message("error", in_page_words(draft.refused)))
        draft.refused = None
    st.button(
        "Agree",
        type="primary",
        key=f"agree {question.text}",
        on_click=_agree,
        args=(draft, question.text, answered),
    )


def _agree(draft: Draft, text: str, answered: Callable[[], Plan]) -> None:
    """Take an answer, and go on with the next question or the next step."""
    try:
        draft.take(answered())
    except MicroveilError as error:
        draft.refused = str(error)
        return
    draft.answered.add(text)
    if all(each.text in draft.answered for each in ASKED):
        go_to("Protect")


def _answered(draft: Draft, plan: Plan, question: PageQuestion) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.text(question.answer(plan))
    right.button(
        "Change",
        key=f"again {question.text}",
        on_click=draft.answered.discard,
        args=(question.text,),
    )


def _whose(draft: Draft, plan: Plan) -> Callable[[], Plan]:
    """Ask which records belong to one person."""
    table = draft.chosen.data
    place = st.container()
    columns = [None, *table.columns]
    unit = st.selectbox(
        "Column that says whose records they are",
        columns,
        columns.index(plan.unit),
        lambda name: name or "none: every record is of a person of its own",
        key=f"unit {draft.version}",
    )
    if unit is None:
        place.text(f"{table.height:,} records, each of a person of its own.")
        return lambda: with_unit(plan, table, None)
    of_unit = plan if unit == plan.unit else with_unit(plan, table, unit)
    units = table[unit].n_unique()
    place.text(
        f"{table.height:,} records are of {units:,} persons or households by {unit}, of up to "
        f"{of_unit.records_per_person:,} records each. All that one has is protected together."
    )
    if of_unit.per_unit:
        place.text(f"The same in all records of one: {', '.join(of_unit.per_unit)}.")
    most = st.number_input(
        _MOST.setting.label,
        min_value=1,
        value=of_unit.records_per_person,
        key=f"most {unit} {draft.version}",
    )
    return lambda: of_unit.replace(records_per_person=int(most))


def _whose_answer(plan: Plan) -> str:
    if plan.unit is None:
        return "Every record is of a person of its own."
    return f"{plan.unit} says whose records they are, up to {plan.records_per_person:,} each."


def _known(draft: Draft, plan: Plan) -> Callable[[], Plan]:
    """Ask what an attacker may know."""
    table = draft.chosen.data
    place = st.container()
    released = [*plan.names("confidential"), *plan.names("kept")]
    names = st.multiselect(
        "Columns that an attacker may know of a person",
        [name for name in table.columns if name in released],
        proposed_known(plan),
        key=f"known {draft.version}",
    )
    people = st.slider(
        "Of how many of the people (%)", 5, 100, 100, step=5, key=f"people {draft.version}"
    )
    asked = (draft.chosen.identity, tuple(names))
    place.text(remember("alone", asked, lambda: _alone(table, names)))
    place.caption(
        "The release will be tested against an attacker who knows these, and one who knows "
        "every masked column."
    )
    risk_before(draft.chosen, plan, names)
    return lambda: with_known(plan, names, people / 100)


def _alone(table: pl.DataFrame, names: list[str]) -> str:
    """Say how many records are the only ones of their kind in the original."""
    if not names:
        return "Nothing is chosen: only an attacker who knows every masked column is tested."
    alone = int(pl.DataFrame([table[name] for name in names]).is_unique().sum())
    return (
        f"By {', '.join(names)}, {alone:,} of {table.height:,} records of the original "
        f"({percent(alone / table.height)}) are the only one of their kind."
    )


def _known_answer(plan: Plan) -> str:
    if not plan.scenarios:
        return "Nothing but what an attacker knows who knows every masked column."
    return (
        f"{plan.scenarios[0].knowledge}; and an attacker who knows every masked column is tested."
    )


def _uses(draft: Draft, plan: Plan) -> Callable[[], Plan]:
    """Ask what the release will be used for."""
    proposed = proposed_uses(plan, draft.chosen.data)
    st.caption(
        "One use a line. Original and release are compared in these, and usefulness is graded by "
        "them; they change nothing in the release. For example: mean income by region · total "
        "wages · share sex = female by ward · median income · table region, age(10), in bands of "
        "10 · wage ~ age + education · predict died."
    )
    text = st.text_area(
        "Uses of the release",
        "\n".join(map(str, proposed)),
        height=38 + 24 * max(4, len(proposed)),
        key=f"uses {draft.version}",
    )
    return lambda: plan.replace(uses=[line for line in text.splitlines() if line.strip()])


def _uses_answer(plan: Plan) -> str:
    return "; ".join(map(str, plan.uses)) or "Nothing in particular."


ASKED = (
    PageQuestion("Are these rows of one person or household?", _whose, _whose_answer),
    PageQuestion("What could an attacker know about a person?", _known, _known_answer),
    PageQuestion("What will the table be used for?", _uses, _uses_answer),
)
