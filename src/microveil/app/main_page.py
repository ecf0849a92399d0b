"""The page, from top to bottom. Streamlit runs it again whenever something on it changes."""

import os

import streamlit as st
from polars.exceptions import PanicException

from microveil.app.before import risk_before
from microveil.app.choose import choose_table
from microveil.app.edit import attributes
from microveil.app.markup import message
from microveil.app.results import conclude, judge_step, offer_files, protect_step
from microveil.app.settings_step import settings
from microveil.errors import MicroveilError, defect

STYLE = """<style>
.stMainBlockContainer { max-width: 70rem; padding-top: 2.5rem; }
.stMainBlockContainer h1 { font-size: 2.2rem; }
.stMainBlockContainer h2 { font-size: 1.5rem; }
.stMainBlockContainer h3 { font-size: 1.15rem; }
</style>"""


def show_steps() -> None:
    """Show each step once the one before it is done."""
    st.set_page_config(page_title="microveil", layout="centered")
    st.html(STYLE)
    st.title("Protect a table of people")
    st.caption(
        "Everything runs on this machine: your data stay in its memory, are not sent anywhere, and "
        "are gone when you close the page and stop microveil."
    )
    source = choose_table()
    if source is None:
        return
    risk_before(source)
    table = attributes(source)
    plan = settings(source, table)
    outcome = protect_step(source, plan)
    if outcome is None:
        return
    place = st.container()
    offered = offer_files(source, outcome)  # first: figures of large tables take a while
    with place:
        evaluation = judge_step(outcome)
    conclude(outcome, evaluation, offered)


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
