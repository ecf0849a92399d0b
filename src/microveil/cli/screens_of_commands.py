"""What people see in a terminal: records and columns before and after."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
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
from microveil.types import Integers

_LONGEST_NAME = 20
_BARS = " ▁▂▃▄▅▆▇█"


def show_verdict(verdict: Verdict | str) -> RenderableType:
    """Lay out a verdict, or the line that says why there is none."""
    return Text(f"Verdict: none. {verdict}") if isinstance(verdict, str) else verdict


def show_ledger(ledger: Ledger) -> RenderableType:
    """Lay out what was spent, by release and by attribute, and what is left."""
    grid = _compact("Releases of these people")
    for name in ("id", "began", "state", "epsilon", "file"):
        grid.add_column(name, justify="right" if name == "epsilon" else "left")
    for one in ledger.releases:
        files = escape(", ".join(file.name for file in one.files) or "none")
        grid.add_row(one.id, one.began, _state_of(one), exactly(one.epsilon), files)
    parts: list[RenderableType] = [grid, ""] if ledger.releases else []
    names = dict.fromkeys(name for one in ledger.counted for name in one.attributes)
    spent = ", ".join(f"{name} {rounded_up(ledger.spent_on(name))}" for name in names)
    levels = ", ".join(_level_of(ledger, number) for number in (1, 2, 3))
    summary = (
        f"Budget {exactly(ledger.budget)} of a person, declared {ledger.budgets[-1].declared}: "
        f"{exactly(ledger.spent)} spent, {exactly(ledger.left)} left."
    )
    parts.append(Text(summary))
    if ledger.counted:
        parts += [Text(f"By attribute: {spent}."), Text(f"All releases together: {levels}.")]
    return Group(*parts)


def _state_of(release: Spent) -> str:
    if release.state != "running":
        return release.state
    return f"running as process {release.process}, or killed"


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
        role, style = _ROLES[proposal.role]
        role = str(proposal.settings.get("kind", role))
        grid.add_row(
            Text(name),
            _holds(look.column.dtype),
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


_ROLES = {
    "confidential": ("masked", ""),
    "identifier": ("dropped", "bold red"),
    "kept": ("kept", "yellow"),
    "sampling_weight": ("sampling weight", "yellow"),
    "derived": ("derived", "cyan"),
}
"""What a role does to a column, and its style."""


def _holds(dtype: pl.DataType) -> str:
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "numbers"
    words: dict[type, str] = {
        pl.Date: "dates", pl.Datetime: "times", pl.Time: "times", pl.Duration: "lengths",
        pl.Boolean: "yes/no",
    }  # fmt: skip
    return words.get(type(dtype), "text")


def lost_of(proposed: Proposed) -> str:
    """Say in a line each which columns would be lost or published as they are; empty if none."""
    by_role: dict[str, list[str]] = {}
    for name, (_, proposal) in proposed.columns.items():
        by_role.setdefault(proposal.role, []).append(name)
    said = [
        f"{what}: {', '.join(by_role[role])}"
        for role, what in (
            ("identifier", "Dropped"),
            ("kept", "Published as they are"),
            ("sampling_weight", "Sampling weight, published as it is"),
        )
        if role in by_role
    ]
    return "\n".join(said)


@dataclass(frozen=True, eq=False)
class Rows:
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
            yield Text(f"and {', '.join(names[shown:])}\n", style="dim")

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


def show_before_and_after(before: pl.DataFrame, after: pl.DataFrame) -> Table:
    """Compare means, standard deviations and shapes of the columns that were masked."""
    grid = _compact("Before and after")
    grid.add_column("attribute")
    for name in ("mean", "after", "st. dev.", "after"):
        grid.add_column(name, justify="right")
    grid.add_column("before", no_wrap=True)
    grid.add_column("after", no_wrap=True)
    for name in after.columns:
        old, new = before[name], after[name]
        if old.dtype.is_numeric() or old.dtype.is_temporal():
            grid.add_row(escape(name), *_figures(old, new), *_shapes(old, new))
        elif not old.equals(new):
            grid.add_row(escape(name), *[f"{old.n_unique()} kinds", "", "", ""], *_bars(old, new))
    return grid


def _figures(old: pl.Series, new: pl.Series) -> list[str]:
    if old.dtype.is_temporal():
        means = [str(column.mean())[:10] for column in (old, new)]
        return [*means, *(f"{column.to_physical().std():,.4g}" for column in (old, new))]
    return [_short(float(x)) for x in (old.mean(), new.mean(), old.std(), new.std())]  # type: ignore[arg-type]


def _shapes(*columns: pl.Series) -> list[str]:
    numbers = [column.to_physical().cast(pl.Float64) for column in columns]
    edges = _edges(*numbers)
    return [_shape(column, edges) for column in numbers]


def _bars(*columns: pl.Series) -> list[str]:
    """Draw how frequent each category is, in alphabetical order."""
    kinds = pl.concat([column.cast(pl.String) for column in columns]).unique().drop_nulls().sort()
    counts = [[int((column.cast(pl.String) == kind).sum()) for kind in kinds] for column in columns]
    return [_drawn(np.array(count[:12])) for count in counts]


def _edges(*columns: pl.Series) -> list[float]:
    values = pl.concat(list(columns)).drop_nulls()
    low, high = values.quantile(0.01), values.quantile(0.99)
    return [] if low is None or high is None or low == high else list(np.linspace(low, high, 13))


def _shape(column: pl.Series, edges: list[float]) -> str:
    """Draw a histogram in twelve characters."""
    if not edges:
        return "constant"
    counts, _ = np.histogram(column.drop_nulls().to_numpy().clip(edges[0], edges[-1]), edges)
    return _drawn(counts)


def _drawn(counts: Integers) -> str:
    heights = np.ceil(counts / counts.max() * (len(_BARS) - 1)).astype(int)
    return "".join(_BARS[height] for height in heights)


def _short(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}"
