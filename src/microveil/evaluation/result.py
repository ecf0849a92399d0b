"""What an evaluation found: figures, each with a reading in plain words."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from microveil.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

Part = Literal["utility", "risk", "learning"]


@dataclass(frozen=True)
class Measure:
    """A measure; `badness` tells which of its figures a steward should see first.

    With `two_sided` also the last: what is good for utility is a risk.
    """

    name: str
    part: Part
    badness: Callable[[float], float]
    two_sided: bool = False


def _high(value: float) -> float:
    return value


def _low(value: float) -> float:
    return -value


MEASURES = {
    row.name: row
    for row in (
        Measure("mean SSE", "utility", _high),
        Measure("SSE/SST", "utility", _high),
        Measure("IL1s per cell", "utility", _high),
        Measure("difference in means", "utility", abs),
        Measure("difference in variances", "utility", abs),
        Measure("difference in quantiles", "utility", abs),
        Measure("difference in Pearson correlations", "utility", abs),
        Measure("difference in Spearman correlations", "utility", abs),
        Measure("share unchanged", "utility", _low, two_sided=True),
        Measure("total variation distance", "utility", _high),
        Measure("difference in Cramér's V", "utility", abs),
        Measure("pMSE", "utility", _high),
        Measure("pMSE ratio", "utility", _high),
        Measure("record linkage", "risk", _high),
        Measure("rank interval disclosure", "risk", _high),
        Measure("value interval disclosure", "risk", _high),
        Measure("unique records", "risk", _high),
        Measure("smallest class", "risk", _low),
        Measure("smallest joint class", "risk", _low),
        Measure("cluster width, median", "risk", _low),
        Measure("cluster width, 90%", "risk", _low),
        Measure("cluster width, largest", "risk", _low),
        Measure("records in narrow clusters", "risk", _high),
        Measure("records in clusters without noise", "risk", _high),
        Measure("F-measure, trained on the release", "learning", _low),
        Measure("F-measure, trained on the original", "learning", _low),
    )
}


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    measure
        A key of `MEASURES`.
    attribute
        What it is about: an attribute, a pair of them, quasi-identifiers or a class; None where it
        is about the whole table.
    value
        A finite number.
    reading
        One line in plain words.
    """

    measure: str
    attribute: str | None
    value: float
    reading: str


@dataclass(frozen=True)
class NotComputed:
    """A measure without a figure, and why."""

    measure: str
    reason: str


Items = Iterator[Figure | NotComputed]


def in_order(figures: Iterable[Figure]) -> tuple[Figure, ...]:
    """Sort figures by measure, as `MEASURES` lists them."""
    places = list(MEASURES)
    return tuple(sorted(figures, key=lambda figure: places.index(figure.measure)))


def percent(share: float) -> str:
    """Write a share for people; what is not all is not called 100%."""
    if 0.9995 <= share < 1:
        return "more than 99.9%"
    if share >= 10:
        return f"{100 * share:,.0f}%"
    return f"{100 * share:.3g}%"


def moves(change: float, by: str) -> str:
    """Say in which direction something changes."""
    if not change:
        return "does not change"
    return f"{'rises' if change > 0 else 'falls'} by {by}"


def duration(microseconds: float) -> str:
    """Write a length of time in the largest unit of which it has one or more; else in seconds.

    Examples
    --------
    >>> duration(5_400e6), duration(20 * 86_400e6), duration(0)
    ('1.5 hours', '20 days', '0 seconds')
    """
    units = {"years": 365.25 * 86_400e6, "days": 86_400e6, "hours": 3_600e6, "minutes": 60e6}
    for unit, length in units.items():
        if abs(microseconds) >= length:
            return f"{microseconds / length:.3g} {unit}"
    return f"{microseconds / 1e6:.3g} seconds"


@dataclass(frozen=True)
class Evaluation:
    """Measures of a release against its original. They are functions of the data: keep them.

    Attributes
    ----------
    records, released
        Records in the original and in the release.
    attributes
        The attributes that were compared.
    figures
        What was computed.
    not_computed
        What was not, and why.
    notes
        What to know when reading the figures.
    """

    records: int
    released: int
    attributes: tuple[str, ...]
    figures: tuple[Figure, ...]
    not_computed: tuple[NotComputed, ...]
    notes: tuple[str, ...]

    def value(self, measure: str, attribute: str | None = None) -> float:
        """Return one figure's value."""
        for figure in self.figures:
            if (figure.measure, figure.attribute) == (measure, attribute):
                return figure.value
        about = "" if attribute is None else f" for {attribute!r}"
        raise DataError(f"no figure of the measure {measure!r}{about} was computed")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold."""
        return {
            "records": self.records,
            "released": self.released,
            "attributes": list(self.attributes),
            "figures": [asdict(figure) for figure in self.figures],
            "not_computed": [asdict(missing) for missing in self.not_computed],
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as a table: measure, attribute, value, reading."""
        schema = {
            "measure": pl.String, "attribute": pl.String, "value": pl.Float64,
            "reading": pl.String,
        }  # fmt: skip
        return pl.DataFrame([asdict(figure) for figure in self.figures], schema=schema)

    def __rich__(self) -> "RenderableType":
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        shown: list[RenderableType] = [
            _table(part, list(figures))
            for part, figures in groupby(self.figures, lambda f: MEASURES[f.measure].part)
        ]
        lines = [f"{missing.measure}: {missing.reason}" for missing in self.not_computed]
        for title, items in (("Not computed", lines), ("Notes", self.notes)):
            if items:
                shown.append(Text(title, style="bold"))
                shown += [Padding(Text(item), (0, 0, 0, 2)) for item in items]
        return Group(*shown)


def _table(part: Part, figures: list[Figure]) -> "Table":
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    table = Table(title=part.capitalize(), title_justify="left", header_style="bold", box=SIMPLE)
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("reading")
    for figure, chosen in figures_to_show(part, figures):
        about = f"\n{figure.attribute}" if figure.attribute else ""
        about += f" ({chosen})" if chosen else ""
        name = Text.assemble(figure.measure, (about, "dim"))
        table.add_row(name, f"{figure.value:.3g}", Text(figure.reading))
    return table


def figures_to_show(part: Part, figures: Iterable[Figure]) -> Iterator[tuple[Figure, str]]:
    """Choose the worst figure of each measure, and say of how many; of learning, show all."""
    for name, group in groupby(figures, lambda f: f.measure):
        measure, of_measure = MEASURES[name], list(group)
        if part == "learning" or len(of_measure) == 1:
            yield from ((figure, "") for figure in of_measure)
            continue
        ordered = sorted(of_measure, key=lambda f: -measure.badness(f.value))
        if measure.two_sided:
            yield ordered[0], f"lowest of {len(ordered)}"
            yield ordered[-1], f"highest of {len(ordered)}"
        else:
            yield ordered[0], f"worst of {len(ordered)}"
