"""What an evaluation found: figures, each with a reading in plain words."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from microveil.charts.summary import Summarised, Summary
from microveil.errors import DataError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from microveil.evaluation.next_step import Change
    from microveil.evaluation.pairing import Pair
    from microveil.plan.scenarios import Scenario

Part = Literal["utility", "risk", "learning"]
About = Literal["table", "attribute", "pair", "columns", "class", "scenario", "rule"]

ABOUT: dict[About, str] = {
    "table": "the whole table",
    "attribute": "an attribute",
    "pair": 'two attributes, given as "a × b"',
    "columns": 'columns, given as "a, b"',
    "class": 'a class, given as "target = class"',
    "scenario": "the whole table, or a scenario, given by its name",
    "rule": "a rule, as the plan has it",
}
"""What figures are about, and how that is given to `Evaluation.value`."""


@dataclass(frozen=True)
class Measure:
    """A measure.

    Attributes
    ----------
    id
        What it is called in code, JSON and tables; it does not change.
    label
        What people read.
    part
        Where it is shown.
    about
        What each of its figures is about: the `attribute` to give to `Evaluation.value`.
    badness
        Tells which of its figures a steward should see first.
    two_sided
        Also the last: what is good for utility is a risk.
    """

    id: str
    label: str
    part: Part
    about: About
    badness: Callable[[float], float]
    two_sided: bool = False


def _high(value: float) -> float:
    return value


def _low(value: float) -> float:
    return -value


MEASURES = {
    row.id: row
    for row in (
        Measure("utility.mean_sse", "mean SSE", "utility", "table", _high),
        Measure("utility.sse_sst", "SSE/SST", "utility", "attribute", _high),
        Measure("utility.il1s", "IL1s per cell", "utility", "table", _high),
        Measure("utility.means", "difference in means", "utility", "attribute", abs),
        Measure("utility.totals", "difference in totals", "utility", "attribute", abs),
        Measure("utility.variances", "difference in variances", "utility", "attribute", abs),
        Measure("utility.quantiles", "difference in quantiles", "utility", "attribute", abs),
        Measure("utility.interval_overlap", "overlap of confidence intervals", "utility",
                "attribute", _low),
        Measure("utility.pearson", "difference in Pearson correlations", "utility", "pair", abs),
        Measure("utility.spearman", "difference in Spearman correlations", "utility", "pair", abs),
        Measure("utility.unchanged", "share unchanged", "utility", "attribute", _low,
                two_sided=True),
        Measure("utility.total_variation", "total variation distance", "utility", "attribute",
                _high),
        Measure("utility.cramers_v", "difference in Cramér's V", "utility", "pair", abs),
        Measure("utility.unit_consistency", "units with equal values in all records", "utility",
                "table", _low),
        Measure("utility.stratum_totals", "error of totals by stratum", "utility", "attribute",
                _high),
        Measure("utility.pmse", "pMSE", "utility", "table", _high),
        Measure("utility.pmse_ratio", "pMSE ratio", "utility", "table", _high),
        Measure("utility.rule_broken", "records that break a rule", "utility", "rule", _high),
        Measure("utility.rule_changed", "records changed to keep a rule", "utility", "rule", _high),
        Measure("linkage.nearest", "linkage by nearest record", "risk", "scenario", _high),
        Measure("linkage.one_to_one", "linkage one to one", "risk", "scenario", _high),
        Measure("linkage.structure", "linkage by shared values", "risk", "scenario", _high),
        Measure("risk.unique_combinations", "unique combinations", "risk", "table", _high),
        Measure("risk.rank_disclosure", "rank interval disclosure", "risk", "attribute", _high),
        Measure("risk.value_disclosure", "value interval disclosure", "risk", "attribute", _high),
        Measure("risk.unique_records", "unique records", "risk", "columns", _high),
        Measure("risk.unique_kept", "unique combinations of kept columns", "risk", "columns",
                _high),
        Measure("risk.linkage_with_kept", "linkage with kept columns known", "risk", "columns",
                _high),
        Measure("risk.linkage_of_units", "linkage of whole units", "risk", "table", _high),
        Measure("risk.smallest_class", "smallest class", "risk", "columns", _low),
        Measure("risk.smallest_joint_class", "smallest joint class", "risk", "columns", _low),
        Measure("risk.joint_distinct_least", "fewest values in a joint cluster", "risk",
                "attribute", _low),
        Measure("risk.joint_distinct_median", "values in the median joint cluster", "risk",
                "attribute", _low),
        Measure("risk.joint_distance_largest", "largest distance of a joint cluster", "risk",
                "attribute", _high),
        Measure("risk.joint_distance_median", "median distance of joint clusters", "risk",
                "attribute", _high),
        Measure("risk.width_median", "median cluster width", "risk", "attribute", _low),
        Measure("risk.width_90", "ninth decile of cluster widths", "risk", "attribute", _low),
        Measure("risk.width_largest", "largest cluster width", "risk", "attribute", _low),
        Measure("risk.narrow_clusters", "records in narrow clusters", "risk", "attribute", _high),
        Measure("risk.clusters_without_noise", "records in clusters without noise", "risk",
                "attribute", _high),
        Measure("learning.f_measure", "F-measure, trained on the release", "learning", "class",
                _low),
        Measure("learning.f_measure_original", "F-measure, trained on the original", "learning",
                "class", _low),
    )
}  # fmt: skip
"""Every measure by its id, in the order in which they are shown."""

LINKAGE = tuple(id_ for id_ in MEASURES if id_.startswith("linkage."))
"""The attacks that link records."""


def check_measure(measure: str) -> None:
    """Refuse an id that no measure has."""
    if measure in MEASURES:
        return
    names = {name: row.id for row in MEASURES.values() for name in (row.label.lower(), row.id)}
    close = get_close_matches(measure.lower(), names, n=1)
    meant = f"; did you mean {names[close[0]]!r}?" if close else ""
    raise DataError(f"no measure has the id {measure!r}{meant} (ids: {', '.join(MEASURES)})")


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    measure
        The id of its measure, a key of `MEASURES`.
    attribute
        What it is about: an attribute, a pair of them, quasi-identifiers or a class; None where it
        is about the whole table.
    value
        A finite number.
    reading
        One line in plain words.
    high
        How high the value is to be taken where that is not the value itself: the upper end of the
        95% interval of a sample, or what is proved.
    weighted
        Whether it compares estimates by the plan's sampling weight.
    """

    measure: str
    attribute: str | None
    value: float
    reading: str
    high: float | None = None
    weighted: bool = False

    @property
    def at_most(self) -> float:
        """How high the value is to be taken."""
        return self.value if self.high is None else self.high

    @property
    def label(self) -> str:
        """What people read of its measure."""
        weighted = ", weighted" if self.weighted else ""
        return f"{MEASURES[self.measure].label}{weighted}"


@dataclass(frozen=True)
class NotComputed:
    """Measures without a figure, and why.

    Attributes
    ----------
    measures
        Their ids; empty where no measure could be computed.
    reason
        One line in plain words.
    attribute
        What there is no figure of, as in `Figure`; None where there is none at all.
    """

    measures: tuple[str, ...]
    reason: str
    attribute: str | None = None

    @property
    def label(self) -> str:
        """What people read of it: what was not computed."""
        *before, last = [MEASURES[measure].label for measure in self.measures] or ["every measure"]
        names = f"{', '.join(before)} and {last}" if before else last
        return names if self.attribute is None else f"{names} of {self.attribute!r}"

    def explains(self, measure: str, attribute: str | None) -> bool:
        """Whether it says why there is no such figure."""
        return (not self.measures or measure in self.measures) and (
            self.attribute in (None, attribute)
        )


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


@dataclass(frozen=True, repr=False)
class Evaluation(Summarised):
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
    pair
        The two tables as they were compared, from which a report draws without reading them again.
    scenarios
        Intruders that were tried besides one who knows all masked attributes of everybody.
    drawn
        How many records were drawn from tables too large to be looked at as a whole; else None.
    change
        Where records were drawn, the one change that would help most.
    """

    records: int
    released: int
    attributes: tuple[str, ...]
    figures: tuple[Figure, ...]
    not_computed: tuple[NotComputed, ...]
    notes: tuple[str, ...]
    pair: "Pair" = field(repr=False, compare=False)
    scenarios: "tuple[Scenario, ...]" = ()
    drawn: int | None = None
    change: "Change | None" = field(default=None, repr=False, compare=False)

    def value(self, measure: str, attribute: str | None = None) -> float:
        """Return one figure's value.

        Parameters
        ----------
        measure
            The id of a measure, such as ``"utility.mean_sse"``.
        attribute
            What the figure is about, where that is not the whole table: an attribute, two as
            ``"a × b"``, columns as ``"a, b"``, a class as ``"target = class"``.
        """
        check_measure(measure)
        for figure in self.figures:
            if (figure.measure, figure.attribute) == (measure, attribute):
                return figure.value
        given = "the whole table" if attribute is None else repr(attribute)
        reasons = (x.reason for x in self.not_computed if x.explains(measure, attribute))
        reason = next(reasons, f"its figures are about {ABOUT[MEASURES[measure].about]}")
        raise DataError(f"no figure of {measure!r} was computed for {given}: {reason}")

    def _summary(self) -> Summary:
        from microveil.evaluation.shown import summary

        return summary(self)

    @property
    def unscored(self) -> str | None:
        """Why attacks could not be scored, if so."""
        return next((x.reason for x in self.not_computed if x.measures == LINKAGE), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; measures by their ids."""
        return {
            "records": self.records,
            "released": self.released,
            "drawn": self.drawn,
            "attributes": list(self.attributes),
            "figures": [asdict(figure) for figure in self.figures],
            "not_computed": [asdict(missing) for missing in self.not_computed],
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as a table: measure (its id), attribute, value, reading, and so on."""
        schema = {
            "measure": pl.String, "attribute": pl.String, "value": pl.Float64,
            "reading": pl.String, "high": pl.Float64, "weighted": pl.Boolean,
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
        scenarios = side_by_side(self.figures)
        if scenarios:
            shown.append(_scenarios(scenarios))
        if self.unscored:
            shown.append(Text(f"{self.unscored[:1].upper()}{self.unscored[1:]}.\n", style="bold"))
        lines = [f"{x.label}: {x.reason}" for x in self.not_computed if x.measures != LINKAGE]
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
        name = Text.assemble(figure.label, (about, "dim"))
        table.add_row(name, f"{figure.value:.3g}", Text(figure.reading))
    return table


def side_by_side(figures: Iterable[Figure]) -> list[tuple[str, dict[str, Figure]]]:
    """Return what each attack found by scenario, the worst first; nothing if there is only one."""
    found: dict[str | None, dict[str, Figure]] = {}
    for figure in figures:
        if figure.measure in LINKAGE:
            found.setdefault(figure.attribute, {})[figure.measure] = figure
    rows = [(label or "knows all masked attributes", each) for label, each in found.items()]
    rows.sort(key=lambda row: max(figure.at_most for figure in row[1].values()), reverse=True)
    return rows if len(rows) > 1 else []


def _scenarios(rows: list[tuple[str, dict[str, Figure]]]) -> "Table":
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="Scenarios", title_justify="left", header_style="bold", box=SIMPLE)
    table.add_column("someone who ...")
    for measure in LINKAGE:
        table.add_column(MEASURES[measure].label, justify="right")
    for label, found in rows:
        table.add_row(escape(label), *(percent(found[measure].value) for measure in LINKAGE))
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
