"""The dial of the third step: one setting between more private and more useful."""

from collections.abc import Mapping, Sequence

import streamlit as st

from microveil.app.elements import step_bar
from microveil.app.markup import table_of
from microveil.app.session_state import Draft, remember
from microveil.judge.frontier import (
    Stop,
    TriedStop,
    ladder,
    on_frontier,
    some_people,
    stop_of,
    try_plan,
)
from microveil.judge.grades import place_of
from microveil.plan.plan import Plan
from microveil.show.words.grading import risk_answer, usefulness_answer
from microveil.show.words.numbers import percent

_DIAL = "dial"
_ASKED = "dial asked for"


def dial(draft: Draft, plan: Plan) -> None:
    """Move crowd and budget together, along what was measured once that is asked for."""
    people = remember("people", (draft.chosen.identity, plan.unit),
                      lambda: some_people(draft.chosen.data, plan))  # fmt: skip
    persons = people.height if plan.unit is None else people[plan.unit].n_unique()
    own = stop_of(plan)
    named = (own, stop_of(draft.chosen.proposed))
    stops = [each for each in ladder(named) if each == own or 2 * each.anonymity <= persons]
    asked = (draft.chosen.identity, _otherwise(plan))
    tried: Sequence[TriedStop] = ()
    place, below = st.container(), st.container()
    with below:
        if st.button("Measure the stops on this table (takes a while)"):
            st.session_state[_ASKED] = asked
        if st.session_state.get(_ASKED) == asked:
            tried = _measured(draft, plan, stops)
            _say_what_was_measured(tried, own, people.height, draft.chosen.data.height)
    kept = {one.stop for one in on_frontier(tried)} if tried else {*stops}
    with place:
        _slider(draft, [each for each in stops if each in kept or each == own], own)
        if not tried:
            st.caption(
                "The crowd is among how many persons a row disappears; the budget ε bounds what "
                "masked values tell. What these stops do to this table is not measured yet."
            )


def _slider(draft: Draft, stops: list[Stop], own: Stop) -> None:
    if len(stops) < 2:
        st.caption("The table has too few persons for another crowd.")
        return
    named = {in_words(stop): stop for stop in stops}  # a pair would be taken for a range
    st.session_state[_DIAL] = in_words(own)
    st.select_slider(
        "More private — more useful", [*named], key=_DIAL, on_change=_moved, args=(draft, named)
    )


def _moved(draft: Draft, named: Mapping[str, Stop]) -> None:
    plan, (anonymity, epsilon) = draft.checked().plan, named[st.session_state[_DIAL]]
    if plan is not None:
        draft.take(plan.replace(anonymity=anonymity, epsilon=epsilon))


def in_words(stop: Stop) -> str:
    """Name a stop of the dial.

    Examples
    --------
    >>> in_words(Stop(25, 1.0))
    'crowd 25, ε 1'
    """
    crowd = f"crowd {stop.anonymity}" if stop.anonymity else "no crowd"
    return f"{crowd}, ε {stop.epsilon:g}"


def _otherwise(plan: Plan) -> Plan:
    """Return what a plan says besides crowd and budget."""
    return plan.replace(anonymity=2, epsilon=1.0, from_data=())


def _measured(draft: Draft, plan: Plan, stops: Sequence[Stop]) -> list[TriedStop]:
    """Try every stop, and remember each by itself, so that what was measured stays."""
    found = []
    people = some_people(draft.chosen.data, plan)
    with step_bar("Protecting and attacking") as progress:
        for done, stop in enumerate(stops):
            progress(in_words(stop), done, len(stops))
            at = plan.replace(anonymity=stop.anonymity, epsilon=stop.epsilon)
            asked = (draft.chosen.identity, _otherwise(plan))
            one = remember(f"tried {stop}", asked, lambda at=at: try_plan(people, at))  # type: ignore[misc]
            found += [] if one is None else [one]
    return found


def _say_what_was_measured(
    tried: Sequence[TriedStop], own: Stop, looked_at: int, records: int
) -> None:
    if not tried:
        st.caption("Nothing could be measured: the table has too few persons for these crowds.")
        return
    kept = on_frontier(tried)
    head = ["", "usefulness", "lost", "risk", "attacks", "on the dial"]
    rows = [
        [
            in_words(one.stop),
            usefulness_answer(one.usefulness),
            percent(place_of(one.usefulness) or 0.0),
            risk_answer(one.risk),
            "passes" if one.passed else "does not pass",
            "yes" if one in kept else "no: another promises more and loses no more",
        ]
        for one in tried
    ]
    at = next((place for place, one in enumerate(tried) if one.stop == own), None)
    st.html(table_of([head, *rows], marked=at))
    sample = "all" if looked_at == records else f"{looked_at:,} of {records:,}"
    st.caption(
        f"Measured on {sample} records: every stop protected three times, the middle one attacked "
        "by who is nearest and by singling out, linkability and inference. Lost is the place on "
        "the dial of usefulness, from 0% to 100%. The verdict makes more attacks. These figures "
        "are computed from the original data: keep them private."
    )
