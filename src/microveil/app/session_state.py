"""What the page holds between two runs of its script, until the browser leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.attributes import RowCells
from microveil.app.upload import Upload
from microveil.formats import LoadedTable
from microveil.plan.plan import Plan
from microveil.release.release import Release

Remembered = TypeVar("Remembered")

KEY = "key of pseudonyms"
"""Where the page remembers the path of the key, which is no part of a plan."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The table to protect, where it came from and the plan that was proposed for it."""

    identity: str
    name: str
    table: LoadedTable
    proposed: Plan
    upload: Upload | None = None

    @property
    def data(self) -> pl.DataFrame:
        """The table."""
        data: pl.DataFrame = self.table.data
        return data

    def as_planned(self, plan: Plan) -> LoadedTable:
        """Return the table read as the plan wants it: kept columns to the letter."""
        if self.upload is None or not plan.verbatim:
            return self.table
        return self.upload.read(plan.verbatim)[0]


@dataclass(frozen=True, eq=False)
class Edited:
    """The edited table of attributes, and where to say what is wrong with it."""

    rows: list[RowCells]
    place: DeltaGenerator


@dataclass(frozen=True, eq=False)
class Protected:
    """A release, and the table it is a release of as the plan had it read."""

    original: LoadedTable
    release: Release

    @property
    def plan(self) -> Plan:
        """What was done."""
        return self.release.plan


def remember(name: str, key: object, compute: Callable[[], Remembered]) -> Remembered:
    """Compute something anew only if what it was computed from has changed."""
    known = st.session_state.get(f"remembered {name}")
    if known is None or known[0] != key:
        known = (key, compute())
        st.session_state[f"remembered {name}"] = known
    value: Remembered = known[1]
    return value
