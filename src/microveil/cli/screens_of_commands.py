"""What people see in a terminal: records and columns before and after."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from microveil.judge.verdict import Verdict
from microveil.plan.propose.columns import Proposal
from microveil.plan.propose.proposal import Proposed
from microveil.release.guarantees import exactly, rounded_up
from microveil.release.ledger import Ledger, Spent
from microveil.release.persistent import LastingClusters
from microveil.show.words.column_words import ROLE_WORDS, contents_of

_LONGEST_NAME = 20


def show_verdict(verdict: Verdict | str) -> RenderableType:
    """Lay out a verdict, or say why there is none."""
    return Text(f"No verdict: {verdict}") if isinstance(verdict, str) else verdict


def show_ledger(ledger: Ledger) -> RenderableType:
    """Lay out what was spent, by release and by attribute, and what is left."""
    grid = _compact("Releases of these people")
    for name in ("id", "began", "state", "epsilon", "chance", "mean", "file"):
        numeric = name in ("epsilon", "chance", "mean")
        grid.add_column(name, justify="right" if numeric else "left")
    for one in ledger.releases:
        files = escape(", ".join(file.name for file in one.files) or "none")
        chances = map(_chance, (one.chance, one.mean_chance))
        grid.add_row(one.id, one.began, _state_of(one), exactly(one.epsilon), *chances, files)
    parts: list[RenderableType] = [grid, ""] if ledger.releases else []
    names = dict.fromkeys(name for one in ledger.counted for name in one.attributes)
    spent = ", ".join(f"{name} {rounded_up(ledger.spent_on(name))}" for name in names)
    levels = ", ".join(_level_of(ledger, number) for number in (1, 2, 3))
    summary = (
        f"Budget {exactly(ledger.budget)} per person, declared {ledger.budgets[-1].declared}: "
        f"{exactly(ledger.spent)} spent, {exactly(ledger.left)} left."
        f"{f' Their delta add up to {ledger.delta:g}.' if ledger.delta else ''}"
    )
    parts.append(Text(summary))
    if ledger.counted:
        parts += [Text(f"By attribute: {spent}."), Text(f"All releases together: {levels}.")]
        limit = "" if ledger.limit is None else f"; the limit is {_chance(ledger.limit)}"
        said = (
            "Chance of picking a person, for an attacker who knows everything but the random "
            f"draws, by all releases together: {_chance(ledger.chance)} at most{limit}."
        )
        parts.append(Text(said))
    return Group(*parts)


def show_joint(known: LastingClusters) -> RenderableType:
    """Lay out who kept a pseudonym in each release, and how many share a history now."""
    grid = _compact("Releases with these joint clusters")
    counts = ("persons", "kept", "another", "new", "absent")
    for name in ("id", "made", *counts):
        grid.add_column(name, justify="right" if name in counts else "left")
    for one in known.releases:
        numbers = (one.people, one.kept, one.cut, one.new, one.absent)
        grid.add_row(one.id, one.made, *(f"{number:,}" for number in numbers))
    turnover = f"Expected turnover {exactly(known.turnover)}."
    if not known.releases:
        return Text(f"{turnover} No release yet.")
    shared = (
        f"{len(known.threads):,} pseudonyms so far; each shares its history in all releases with "
        f"{known.classes.min() - 1:,} others or more."
    )
    return Group(grid, "", Text(f"{turnover} {shared}"))


def _chance(chance: float | None) -> str:
    return "unknown" if chance is None else f"{chance:.1%}"


def _state_of(release: Spent) -> str:
    if release.state != "running":
        return release.state
    return f"running (process {release.process}) or killed"


def _level_of(ledger: Ledger, number: int) -> str:
    bound = ledger.level(number)
    return f"level {number} {'no bound' if bound is None else f'epsilon {rounded_up(bound)}'}"


def show_proposed(proposed: Proposed) -> Table:
    """Lay out what was proposed for every column, a line each; what would be lost stands out."""
    grid = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("column", overflow="fold", max_width=_LONGEST_NAME)
    grid.add_column("holds", no_wrap=True)
    grid.add_column("values", justify="right", no_wrap=True)
    grid.add_column("missing", justify="right", no_wrap=True)
    grid.add_column("role", no_wrap=True)
    grid.add_column("why", ratio=1, overflow="fold")
    for name, (look, proposal) in proposed.columns.items():
        style = _STYLES[proposal.role]
        role = str(proposal.settings.get("kind", ROLE_WORDS[proposal.role]))
        grid.add_row(
            Text(name),
            contents_of(look.column.dtype),
            f"{look.distinct:,}",
            f"{look.missing:,}" if look.missing else "",
            Text(role, style),
            Text("\n".join(_reasons(proposal)), style),
        )
    return grid


def _reasons(proposal: Proposal) -> Iterator[str]:
    """Say why; of a column that is dropped also what else there is to do with it."""
    yield proposal.why
    if proposal.role == "identifier" and proposal.remark:
        yield proposal.remark
    if proposal.instead:
        yield f"or {proposal.instead}"


_STYLES = {
    "confidential": "",
    "identifier": "bold red",
    "kept": "yellow",
    "sampling_weight": "yellow",
    "derived": "cyan",
}


def lost_of(proposed: Proposed) -> str:
    """Say in a line each what is lost, what is published, the unit and rules; empty if none."""
    by_role: dict[str, list[str]] = {}
    for name, (_, proposal) in proposed.columns.items():
        by_role.setdefault(proposal.role, []).append(name)
    said = [
        f"{what}: {', '.join(by_role[role])}"
        for role, what in (
            ("identifier", "Dropped"),
            ("kept", "Published unchanged"),
            ("sampling_weight", "Sampling weight, published unchanged"),
        )
        if role in by_role
    ]
    if proposed.key is not None:
        units = f"{proposed.key.units:,} units of up to {proposed.key.most:,} records"
        said.append(f"Unit, found in the data: {proposed.key.name} ({units})")
    if proposed.rules:
        said.append(f"Rules that hold in every record: {', '.join(proposed.rules)}")
    return "\n".join(said)


@dataclass(frozen=True, eq=False)
class FirstRecords:
    """A few records, with as many whole columns as there is room for."""

    table: pl.DataFrame
    title: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = self.table.columns
        shown = len(names)
        while shown > 1 and _width(console, options, self._grid(shown)) > options.max_width:
            shown -= 1
        yield self._grid(shown)
        if shown < len(names):
            yield Text(f"and {', '.join(names[shown:])}", style="dim")
        yield Text("")

    def _grid(self, shown: int) -> Table:
        grid = _compact(self.title)
        cells = self.table[:, :shown]
        for name, dtype in cells.schema.items():
            justify: JustifyMethod = "right" if dtype.is_numeric() else "left"
            grid.add_column(escape(name), justify=justify, no_wrap=True)
        for row in cells.iter_rows():
            grid.add_row(*("–" if value is None else escape(str(value)) for value in row))
        return grid


def _width(console: Console, options: ConsoleOptions, grid: Table) -> int:
    """Return how wide a table would like to be."""
    return grid.__rich_measure__(console, options.update(width=10_000)).maximum


def _compact(title: str) -> Table:
    """Begin a table with little between its columns."""
    return Table(
        title=f"{title}\n", title_justify="left", header_style="bold",
        box=None, pad_edge=False, padding=(0, 2, 0, 0),
    )  # fmt: skip
