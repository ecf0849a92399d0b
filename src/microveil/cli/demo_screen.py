"""The demo's last screen: one person's row, its crowd, what stays, and the verdict on two dials."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from microveil.cli.screens_of_commands import FirstRecords
from microveil.judge.verdict import Verdict
from microveil.release.release import Release
from microveil.show.charts.dials import Dial, dials
from microveil.show.charts.text_charts import sparkline
from microveil.show.shapes import shapes_of_masked
from microveil.show.words.use_words import by_use, number

_PERSON = 0
_CROWD_SHOWN, _SHAPES_SHOWN, _USES_SHOWN = 3, 2, 4
_DIAL = 24


def demo_screen(before: pl.DataFrame, release: Release, found: Verdict) -> list[RenderableType]:
    """Say in a screenful what became of one person, of everybody, and what the verdict is.

    The rows of the release are in the order of the original.
    """
    return [
        *_person(before, release),
        _stays(before, release, found),
        "",
        *map(_dial, dials(found.figures)),
        Text(f"The release {'passes' if found.passed else 'does not pass'}."),
    ]


def _person(before: pl.DataFrame, release: Release) -> Iterator[RenderableType]:
    """Show a person's row, and the rows of those with whom its values changed places."""
    masked = [name for name in before.columns if name in release.plan.confidential]
    joint = next(iter(release.detail.joint.values()), np.arange(before.height))
    crowd = np.flatnonzero(joint == joint[_PERSON])
    chosen = np.random.default_rng(_PERSON).permutation(crowd)[:_CROWD_SHOWN]
    yield FirstRecords(before[[_PERSON]].select(masked), "One person's row, as collected")
    title = f"The crowd: {len(chosen)} of the {len(crowd)} rows that its values went into"
    yield FirstRecords(release.data[chosen].select(masked), title)


def _stays(before: pl.DataFrame, release: Release, found: Verdict) -> Table:
    """Compare distributions, and what the table is used for."""
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_row(
        Text("What stays (of each use what moves most)", "bold"),
        Text("before", "bold"),
        Text("after", "bold"),
    )
    shapes = [shape.shares for shape in shapes_of_masked(before, release)]
    numbers = [each for each in shapes if before[each.name].dtype.is_numeric()]
    for each in numbers[:_SHAPES_SHOWN]:
        grid.add_row(f"  {escape(each.name)}", sparkline(each.before), sparkline(each.after))
    for use, rows in list(by_use(found.figures))[:_USES_SHOWN]:
        row = max(rows, key=lambda row: row.moved)
        about = f"  {use}: {row.group}" if row.group else f"  {use}"
        after = "too few" if row.released is None else number(row.released)
        grid.add_row(escape(about), number(row.original), after)
    return grid


def _dial(dial: Dial) -> Text:
    """Draw a dial as a line with a mark."""
    line = ["─"] * _DIAL
    if dial.place is not None:
        line[min(_DIAL - 1, int(_DIAL * dial.place))] = "●"
    left, right = dial.ends
    return Text(f"{dial.title:<11}{left:>5} {''.join(line)} {right:<5} {dial.answer}")
