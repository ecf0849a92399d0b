"""Three questions before a plan is written: whose rows, what is known, what the table is for."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import typer

from microveil.errors import MicroveilError, PlanError
from microveil.formats import LoadedTable, Source
from microveil.plan.parts import did_you_mean
from microveil.plan.plan import Plan
from microveil.plan.propose.proposal import Proposed, propose
from microveil.plan.uses import Use

Answer = TypeVar("Answer")
Tell = Callable[[str], None]

_NONE = "none"


def on_terminal() -> bool:
    """Whether a person is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@dataclass(frozen=True)
class Asking:
    """Asks about a table and proposes a plan by the answers.

    Parameters
    ----------
    data, table
        What is asked about.
    tell
        Shows a line.
    said
        What was answered so far, as `propose` takes it.
    """

    data: Source
    table: LoadedTable
    tell: Tell
    said: dict[str, Any]

    def proposed(self) -> Proposed:
        """Propose a plan by what was answered."""
        described, data = self.table.meta.described, self.data
        return propose(
            self.table.data, data.name, described, na=data.na, dates=data.dates, **self.said
        )

    def ask(self) -> Proposed:
        """Ask the three questions, each with what is proposed, which Enter takes."""
        proposed = self.proposed()
        unit = self._answer(
            "1. Are these rows of one person or household?",
            _whose(proposed),
            "another column",
            lambda text: self._with(unit=text or None).proposed(),
            proposed,
        )
        asking = self if unit is proposed else self._with(unit=unit.key and unit.key.name)
        plan = Plan.from_toml(unit.toml)
        known = next((scenario.known or () for scenario in plan.scenarios), ())
        answer = asking._answer(
            "2. What could an attacker know about a person?",
            ", ".join(known) or _NONE,
            "other columns, with commas",
            lambda text: _released(text, plan),
            known,
        )
        uses = plan.uses
        if "uses" not in self.said:
            uses = asking._answer(
                "3. What will the table be used for?",
                "; ".join(map(str, uses)) or _NONE,
                "other uses, with semicolons, such as mean income by region; predict died",
                lambda text: _uses(text, plan),
                uses,
            )
        return asking._with(known=answer, uses=uses).proposed()

    def _with(self, **said: Any) -> "Asking":  # noqa: ANN401 - as propose takes it
        return replace(self, said={**self.said, **said})

    def _answer(
        self, question: str, found: str, instead: str, read: Callable[[str], Answer], agreed: Answer
    ) -> Answer:
        """Ask until the answer can be read; nothing agrees, and `none` stands for nothing."""
        self.tell(f"\n{question}\n   {found}")
        while True:
            try:
                text = input(f"   Enter to agree, {instead}, or none: ").strip()
            except EOFError:
                raise typer.Abort from None
            if not text:
                return agreed
            try:
                return read("" if text == _NONE else text)
            except MicroveilError as error:
                self.tell(f"   {error}")


def _whose(proposed: Proposed) -> str:
    key = proposed.key
    if key is None:
        return "No column says so: every row is of a person of its own."
    return f"{key.name} says so: {key.units:,} persons or households of up to {key.most:,} rows."


def _released(text: str, plan: Plan) -> tuple[str, ...]:
    """Read names of columns that are released."""
    names = [text] if text in plan.attributes else [name.strip() for name in text.split(",")]
    for name in (name for name in names if name):
        if name not in plan.attributes:
            raise PlanError(f"no column {name!r}{did_you_mean(name, plan.attributes)}")
        if plan.attributes[name].role in ("identifier", "pseudonym"):
            raise PlanError(f"{name!r} is not released as it is; name columns that are")
    return tuple(dict.fromkeys(name for name in names if name))


def _uses(text: str, plan: Plan) -> tuple[Use, ...]:
    """Read uses that fit the plan."""
    return plan.replace(uses=[part for part in text.split(";") if part.strip()]).uses
