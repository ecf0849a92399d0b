"""What an evaluation found: figures, each with a reading in plain words."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from microveil.errors import DataError

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
