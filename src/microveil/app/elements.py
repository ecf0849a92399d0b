"""Pieces that several steps show: warnings in one box, and how far something has come."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from microveil.app.markup import notes_box
from microveil.types import Progress


def show_notes(notes: Sequence[str], about: str = "") -> None:
    """Show warnings, if there are any."""
    if notes:
        st.html(notes_box(notes, about))


@contextmanager
def step_bar(what: str) -> Iterator[Progress]:
    """Show how far something has come that takes a while, and how long it has taken."""
    began = time.monotonic()
    bar = st.progress(0.0, text=f"{what} …")

    def show(part: str, done: int, total: int) -> None:
        seconds = time.monotonic() - began
        bar.progress(done / total, text=f"{what}: {part}, {done} of {total} ({seconds:.0f} s)")

    try:
        yield show
    finally:
        bar.empty()
