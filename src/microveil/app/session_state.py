"""What the page holds between two runs of its script, until the browser leaves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import polars as pl
import streamlit as st

from microveil.app.attributes import RowCells, edited_plan, is_about_rows, rows_of
from microveil.app.upload import Upload
from microveil.engines.memory import memory_table
from microveil.errors import MicroveilError, noted
from microveil.formats import LoadedTable
from microveil.plan.plan import Plan
from microveil.plan.propose.columns import ColumnProfile, Proposal
from microveil.plan.settings import RECOMMENDED, declared_in
from microveil.release.release import Release
from microveil.release.resolve import resolve

Remembered = TypeVar("Remembered")
Looks = Mapping[str, tuple[ColumnProfile, Proposal]]

STEPS = ("Table", "Questions", "Protect", "Verdict", "Download")

_STEP, _DRAFT, _OUTCOME = "step", "draft", "outcome"


@dataclass(frozen=True, eq=False)
class Chosen:
    """The table to protect, where it came from and the plan that was proposed for it."""

    identity: tuple[object, ...]
    name: str
    table: LoadedTable
    proposed: Plan
    looks: Looks
    upload: Upload | None = None
    notes: Sequence[str] = ()

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
class Protected:
    """A release, and the table it is a release of as the plan had it read."""

    original: LoadedTable
    release: Release

    @property
    def plan(self) -> Plan:
        """What was done."""
        return self.release.plan


@dataclass(eq=False)
class Draft:
    """The plan as it is being made: a plan that holds, and what was changed of it since.

    Attributes
    ----------
    chosen
        The table it is for.
    base
        The last plan that was taken as a whole.
    laid, rows
        Its attributes as cells: as controls began with them, and as they were edited since.
    began, given
        Its settings: as controls began with them, and as they were edited since.
    answered
        The questions that were answered, by name.
    version
        Is another one whenever controls have to show what the draft says, instead of what was
        entered into them.
    key
        Path of the key file of pseudonyms, which is no part of a plan.
    opened
        Whether the drawer of expert settings was opened to show what is wrong.
    refused
        Why the last answer to a question was not taken, until that was said.
    """

    chosen: Chosen
    base: Plan
    laid: list[RowCells] = field(default_factory=list)
    rows: list[RowCells] = field(default_factory=list)
    began: dict[str, Any] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    version: int = 0
    key: str | None = None
    opened: bool = False
    refused: str | None = None

    def __post_init__(self) -> None:
        """Lay out the plan."""
        self.take(self.base)

    def take(self, plan: Plan) -> None:
        """Take a plan as a whole; controls are made anew to show it."""
        self.base, self.rows = plan, rows_of(plan, self.chosen.data.schema)
        self.given = {
            declared.name: _proposed(plan, declared.name)
            for declared in declared_in(type(plan))
            if declared.setting.label
        }
        self._lay_out()

    def begin_anew(self) -> None:
        """Let controls be made anew with what was entered so far."""
        plan = self.checked().plan
        if plan is not None:
            self.take(plan)
        else:
            self._lay_out()

    def _lay_out(self) -> None:
        self.laid, self.began = copied(self.rows), {**self.given}
        self.version += 1

    def checked(self) -> "Checked":
        """Check what was entered against the whole table."""
        asked = (self.chosen.identity, self.base, copied(self.rows), {**self.given})
        return remember("checked", asked, self._check)

    def is_about_rows(self, problem: MicroveilError) -> bool:
        """Whether a problem is put right among the attributes, not by a setting of the plan."""
        return is_about_rows(problem, self.rows, self.given)

    def _check(self) -> "Checked":
        try:
            plan = edited_plan(self.rows, self.base, self.chosen.data.schema, **self.given)
            return Checked(plan, guarantee_notes(self.chosen.data, plan))
        except MicroveilError as error:
            return Checked(problems=error.problems)


class Checked(NamedTuple):
    """A plan and what weakens its guarantee, or else what is wrong with it."""

    plan: Plan | None = None
    notes: Sequence[str] = ()
    problems: Sequence[MicroveilError] = ()


def copied(rows: Sequence[RowCells]) -> list[RowCells]:
    """Return rows that can be edited on their own."""
    return [{**row} for row in rows]


def guarantee_notes(table: pl.DataFrame, plan: Plan) -> list[str]:
    """Check the whole table against the plan; return what weakens the guarantee."""
    with noted() as notes:
        resolve(plan, memory_table(table))
    return notes


def _proposed(plan: Plan, name: str) -> Any:  # noqa: ANN401 - of any setting
    value = getattr(plan, name)
    return RECOMMENDED.get(name) if value is None else value


def step() -> str:
    """Return the step that is shown."""
    return str(st.session_state.get(_STEP, STEPS[0]))


def go_to(name: str) -> None:
    """Show another step, with controls that show the draft."""
    st.session_state[_STEP] = name
    draft = st.session_state.get(_DRAFT)
    if draft is not None:
        draft.begin_anew()


def begin(chosen: Chosen) -> None:
    """Begin with a table, and the plan that is proposed for it."""
    st.session_state[_DRAFT] = Draft(chosen, chosen.proposed)
    st.session_state.pop(_OUTCOME, None)


def current_draft() -> Draft | None:
    """Return the plan that is being made, if a table was chosen."""
    return st.session_state.get(_DRAFT)


def outcome() -> Protected | None:
    """Return the last release of the table."""
    return st.session_state.get(_OUTCOME)


def keep_outcome(protected: Protected) -> None:
    """Keep a release until there is another one."""
    st.session_state[_OUTCOME] = protected


def remember(name: str, key: object, compute: Callable[[], Remembered]) -> Remembered:
    """Compute something anew only if what it was computed from has changed."""
    known = st.session_state.get(f"remembered {name}")
    if known is None or known[0] != key:
        known = (key, compute())
        st.session_state[f"remembered {name}"] = known
    value: Remembered = known[1]
    return value


def verdict_known(protected: Protected) -> bool | None:
    """Return whether a release passes; None if that is not known."""
    key, found = st.session_state.get("remembered verdict", (None, None))
    return getattr(found, "passed", None) if key is protected else None
