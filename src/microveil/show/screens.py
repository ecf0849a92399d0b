"""What people see of an object at a glance: a screen of text, or in a notebook a table and a chart.

Names go into HTML escaped, and into charts as data. Importing this does not import Altair.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType

from microveil.errors import FileError, visible

if TYPE_CHECKING:
    import altair as alt

WIDTH = 100
_LINES = 25
_MOST_LINES_OF_TEXT = 10
_WIDEST_CELL = 40
_MOST_ROWS = 15
SIDE_BY_SIDE = "display:flex;flex-wrap:wrap;gap:8px 24px;align-items:flex-start;margin-top:8px"
_TABLE = "border-collapse:collapse;font-size:inherit;margin:0"
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"
MOST_BARS = 12
"""Names that the chart of a screen has room for."""

_Row = tuple[str, ...]


@dataclass(frozen=True)
class ResultScreen:
    """What people see of a result: a title, sentences, a table and a chart.

    Attributes
    ----------
    title
        What it is.
    lines
        Sentences.
    head, rows
        A table; as many rows are shown as fit, and the others counted.
    drawn
        Draws a chart, or returns SVG; None if there is none.
    laid_out
        Lays out all of it, as the command line prints it; by default it prints the text.
    picture
        Draws the chart as a file of its own; by default as `drawn` does.
    sections
        All its sentences, by section, where it is written as a file.
    folded
        Lists that a notebook folds away behind a heading.
    unfolded
        The one that it does not.
    panels
        Makes further pieces of HTML for a notebook.
    """

    title: str
    lines: Sequence[str] = ()
    head: _Row = ()
    rows: Sequence[_Row] = ()
    drawn: "Callable[[], alt.LayerChart | str] | None" = None
    laid_out: Callable[[], RenderableType] | None = None
    picture: "Callable[[], alt.TopLevelMixin] | None" = None
    sections: dict[str, list[str]] = field(default_factory=dict)
    folded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unfolded: str = ""
    panels: Callable[[], Sequence[str]] | None = None

    @property
    def whole(self) -> RenderableType:
        """All of it, as the command line prints it."""
        return self.text if self.laid_out is None else self.laid_out()

    @property
    def printed(self) -> str:
        """The same as text, as wide as the terminal and without colours."""
        return printed(self.whole)

    @property
    def svg(self) -> str:
        """The chart."""
        from microveil.show.charts.render import to_svg

        draw = self.picture or self.drawn
        if draw is None:
            raise FileError(f"there is no chart of this: {self.title}")
        chart = draw()
        return chart if isinstance(chart, str) else to_svg(chart)

    @property
    def text(self) -> str:
        """A screen of text: 25 lines of 100 characters at most.

        Examples
        --------
        >>> print(ResultScreen("Two people", head=("name", "age"), rows=[("Ann", "31")]).text)
        Two people
          name  age
          Ann   31
        """
        told = [line for text in self.lines for line in textwrap.wrap(visible(text), WIDTH - 2)]
        if len(told) > _MOST_LINES_OF_TEXT:
            told = [*told[: _MOST_LINES_OF_TEXT - 1], "…"]
        title = textwrap.shorten(visible(self.title), WIDTH, placeholder=" …")
        lines = [_cut(line, WIDTH).rstrip() for line in (title, *(f"  {line}" for line in told))]
        return "\n".join([*lines, *self._table(len(lines))])

    def _table(self, used: int) -> list[str]:
        if not self.rows:
            return []
        room = _LINES - used - 2
        rows = self.rows if len(self.rows) <= room + 1 else self.rows[:room]
        shown = [tuple(visible(" ".join(cell.split("\n"))) for cell in row) for row in rows]
        columns = zip(self.head, *shown, strict=True)
        longest = [max(cell_len(cell) for cell in column) for column in columns]
        widths = [min(_WIDEST_CELL, length) for length in longest[:-1]]
        widths.append(max(1, min(longest[-1], WIDTH - sum(widths) - 2 * len(longest))))
        lines = [_line(row, widths) for row in (self.head, *shown)]
        more = len(self.rows) - len(shown)
        return [*lines, f"  … and {more:,} more"] if more else lines

    @property
    def html(self) -> str:
        """A piece of HTML for notebooks; without microveil[report] it has no chart.

        Examples
        --------
        >>> "&lt;b&gt;" in ResultScreen("Two people", head=("name",), rows=[("<b>",)]).html
        True
        """
        folded = [self._folded(heading, items) for heading, items in self.folded.items()]
        said = {line for items in self.folded.values() for line in items}
        told = "".join(f"<div>{escape(line)}</div>" for line in self.lines if line not in said)
        panels = list(self.panels()) if self.panels else []
        parts = [part for part in (self._html_table(), self._picture()) if part]
        beside = f'<div style="{SIDE_BY_SIDE}">{"".join(parts)}</div>' if parts else ""
        inside = "".join([*panels, told, *folded, beside])
        return visible(f'<div style="max-width:72em"><b>{escape(self.title)}</b>{inside}</div>')

    def _folded(self, heading: str, items: Sequence[str]) -> str:
        listed = "".join(f"<li>{escape(item)}</li>" for item in items)
        shown = " open" if heading == self.unfolded else ""
        about = f"{escape(heading)} ({len(items):,})"
        return f"<details{shown}><summary>{about}</summary><ul>{listed}</ul></details>"

    def _html_table(self) -> str:
        if not self.rows:
            return ""
        shown = [tuple(map(escape, row)) for row in self.rows[:_MOST_ROWS]]
        more = len(self.rows) - len(shown)
        rest = f"<div>… and {more:,} more</div>" if more else ""
        return f"<div>{html_table(tuple(map(escape, self.head)), shown)}{rest}</div>"

    def _picture(self) -> str:
        svg = self._svg().replace("<svg ", '<svg style="overflow:visible" ', 1)
        return f'<div style="background:#fff;padding:4px 12px">{svg}</div>' if svg else ""

    def _svg(self) -> str:
        if self.drawn is None:
            return ""
        try:
            from microveil.show.charts.render import to_svg

            chart = self.drawn()
            return chart if isinstance(chart, str) else to_svg(chart.properties(width=300))
        except FileError:  # what draws is not installed
            return ""


def printed(what: RenderableType) -> str:
    """Return what a command prints, as wide as the terminal and without colours."""
    text = StringIO()
    Console(file=text, highlight=False, markup=False, color_system=None, force_jupyter=False).print(
        what
    )
    return visible(text.getvalue().rstrip("\n"))


def _line(row: _Row, widths: Sequence[int]) -> str:
    cells = [_cut(cell, width) for cell, width in zip(row, widths, strict=True)]
    return _cut(f"  {'  '.join(cells)}", WIDTH).rstrip()


def _cut(text: str, width: int) -> str:
    """Bring text to a width, as terminals count it; what is longer ends in an ellipsis."""
    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return text + " " * (width - cell_len(text))


def html_table(head: _Row, rows: Sequence[_Row]) -> str:
    """Lay out a table of cells that are HTML already."""
    top = f"<thead><tr>{_cells('th', head)}</tr></thead>"
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    return f'<table style="{_TABLE}">{top}<tbody>{body}</tbody></table>'


def _cells(tag: str, row: _Row) -> str:
    return "".join(f'<{tag} style="{_CELL}">{cell}</{tag}>' for cell in row)
