"""The third step: how much to protect, and the release."""

import streamlit as st

from microveil.app.dial import dial
from microveil.app.drawer import expert_settings
from microveil.app.elements import show_notes, step_bar
from microveil.app.markup import message
from microveil.app.outlook import expected
from microveil.app.page_words import in_page_words
from microveil.app.server import NAMED
from microveil.app.session_state import (
    Checked,
    Draft,
    Protected,
    go_to,
    keep_outcome,
)
from microveil.errors import MicroveilError, noted
from microveil.plan.plan import Plan
from microveil.plan.synthetic_checks import require_masked
from microveil.release.protect import protect


def protect_step(draft: Draft) -> None:
    """Choose how much to protect, and protect."""
    place = st.container()
    expert_settings(draft)
    checked = draft.checked()
    with place:
        if checked.plan is not None:
            dial(draft, checked.plan)
        _button(draft, checked)
    if checked.plan is not None:
        with st.expander("What the plan is expected to lose, and other plans"):
            expected(draft, checked.plan)


def _button(draft: Draft, checked: Checked) -> None:
    show_notes(list(map(in_page_words, checked.notes)), " about what the guarantee covers")
    pressed = st.button("Protect", type="primary", disabled=checked.plan is None)
    if checked.plan is None:
        st.html(message("error", "put right what is marked below, beside its control, first"))
    elif pressed:
        try:
            keep_outcome(_protected(draft, checked.plan))
        except MicroveilError as error:
            st.html(message("error", in_page_words(str(error))))
        else:
            go_to("Verdict")
            st.rerun()


def _protected(draft: Draft, plan: Plan) -> Protected:
    require_masked(plan, "the page, which looks for people in a release,")
    table = draft.chosen.as_planned(plan)
    with noted(), step_bar("Masking") as progress:  # notes were shown by the check
        key = draft.key if draft.key in NAMED.keys else None
        return Protected(table, protect(table, plan, key=key, progress=progress))
