"""The page, a step at a time. Streamlit runs it again whenever something on it changes."""

import os

import streamlit as st
from polars.exceptions import PanicException
from streamlit.delta_generator import DeltaGenerator

from microveil.app.choose import table_step
from microveil.app.download_step import download_step
from microveil.app.markup import chips, message
from microveil.app.plan_state import plan_state
from microveil.app.protect_step import protect_step
from microveil.app.questions_step import questions_step
from microveil.app.session_state import STEPS, current_draft, go_to, outcome, step
from microveil.app.verdict_step import verdict_step
from microveil.errors import MicroveilError, defect

STYLE = """<style>
.stMainBlockContainer { max-width: 70rem; padding-top: 2.5rem; }
.stMainBlockContainer h1 { font-size: 1.6rem; padding: 0 0 0.6rem; }
.stMainBlockContainer h3 { font-size: 1.15rem; }
.st-key-map { overflow-x: auto; max-width: 100%; }
div:has(> .st-key-plan) { position: sticky; top: 0; z-index: 100;
  background: var(--st-background-color, canvas); }
.stHtml ul.microveil-plan { list-style: none; margin: 0; padding: 0.3rem 0; display: flex;
  flex-wrap: wrap; gap: 0.25rem 0.9rem; font-size: 0.85rem; overflow-wrap: anywhere;
  border-bottom: 1px solid rgba(128, 128, 128, 0.4); }
.stHtml ul.microveil-plan li { margin: 0; padding: 0; }
.microveil-about { opacity: 0.65; }
</style>"""


def show_steps() -> None:
    """Show where one is, the plan so far, and the step."""
    st.set_page_config(page_title="microveil", layout="centered")
    st.html(STYLE)
    st.title("Protect a table of people", anchor=False)
    _bar()
    with st.container(key="plan"):
        place = st.empty()
    _show_plan(place)
    _show_step()
    _show_plan(place)  # which the step may have changed
    st.caption(
        "Everything runs on this machine: your data stay in its memory, are not sent anywhere, and "
        "are gone when you close the page and stop microveil."
    )


def _bar() -> None:
    """Offer the steps that there is something to do in."""
    there = {"Table": True, "Questions": current_draft(), "Protect": current_draft(),
             "Verdict": outcome(), "Download": outcome()}  # fmt: skip
    with st.container(horizontal=True, gap="small", key="steps"):
        for number, name in enumerate(STEPS, 1):
            st.button(
                f"{number} {name}",
                type="primary" if name == step() else "secondary",
                disabled=not there[name],
                on_click=go_to,
                args=(name,),
                key=f"step {name}",
            )


def _show_plan(place: DeltaGenerator) -> None:
    draft = current_draft()
    if draft is not None:
        place.html(chips(plan_state(draft, outcome())))


def _show_step() -> None:
    draft, protected = current_draft(), outcome()
    if draft is None or step() == "Table":
        table_step()
    elif step() == "Questions":
        questions_step(draft)
    elif protected is None or step() == "Protect":
        protect_step(draft)
    elif step() == "Verdict":
        verdict_step(draft, protected)
    else:
        download_step(draft, protected)


def show_page() -> None:
    """Show the page, and what went wrong in place of what could not be shown."""
    try:
        show_steps()
    except MicroveilError as error:
        st.html(message("error", str(error)))
    except (Exception, PanicException) as error:
        if os.environ.get("MICROVEIL_DEBUG"):
            raise
        st.html(message("error", defect(error)))


if __name__ == "__main__":
    show_page()
