"""The map of attacks: the release's own plan among others, at the same ε."""

from typing import TYPE_CHECKING

import streamlit as st

from microveil.app.elements import step_bar
from microveil.app.markup import items, message
from microveil.app.session_state import Protected, remember
from microveil.attacks.attack_rows import INFORMED
from microveil.errors import MicroveilError
from microveil.lab.benchmark import QUICK_RECORDS, Benchmark, attack_beside_others
from microveil.types import Progress

if TYPE_CHECKING:
    import altair as alt

_ASKED = "attacks asked for"


def attacked(outcome: Protected) -> None:
    """Attack the plan and others once that is asked for, and draw what came of it."""
    st.caption(
        "Runs every attack of the benchmark on the masked attributes of your plan and of other "
        f"plans at the same ε. At most {QUICK_RECORDS} records are used; half of them are the "
        "control group."
    )
    if st.button("Attack this plan and others (takes a minute or two)"):
        st.session_state[_ASKED] = outcome
    if st.session_state.get(_ASKED) is not outcome:
        return
    try:
        with step_bar("Attacking plans") as progress:
            found = remember("attacked", outcome, lambda: _attack(outcome, progress))
    except MicroveilError as error:
        st.html(message("note", str(error)))
        return
    with st.container(key="map"):  # which scrolls by itself on a narrow screen
        st.altair_chart(map_of_attacks(found), width="content")
    st.html(items(f"{number}. {said}" for number, said in promises(found)))
    st.html(message("note", own_plan_in_words(found)))


def _attack(outcome: Protected, progress: Progress) -> Benchmark:
    return attack_beside_others(outcome.original.data, outcome.plan, progress)


def map_of_attacks(found: Benchmark) -> "alt.VConcatChart":
    """Draw the map in one column, with the plan marked."""
    from microveil.lab.benchmark.drawing import draw_narrow_map

    [name] = found.names
    return draw_narrow_map(name, found.points(name))


def promises(found: Benchmark) -> list[tuple[str, str]]:
    """Say what the numbers stand for."""
    from microveil.lab.benchmark.benchmark_words import map_legend

    [name] = found.names
    return map_legend(found.points(name))


def own_plan_in_words(found: Benchmark) -> str:
    """Say what became of the plan itself, which is the first."""
    [name] = found.names
    own = found.points(name).row(0, named=True)
    informed = (
        f" An attacker who knows every other record gains {own['informed']:.0%} ({INFORMED})."
        if own["informed_high"] is not None
        else ""
    )
    return (
        f"Your plan is ringed: the most successful attack is {own['attack']}, which gains "
        f"{own['risk']:.1%} over its control (upper 95% limit {own['high']:.1%}).{informed} Kept "
        "columns are not attacked. These figures are computed from the original data: keep them "
        "private."
    )
