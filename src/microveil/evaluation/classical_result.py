"""What `risk` found, and one table of it with a sentence in plain words."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from microveil.charts.summary import MOST_BARS, Summarised, Summary
from microveil.core.suda import MOST_SUBSETS
from microveil.evaluation.result import percent

if TYPE_CHECKING:
    import altair as alt
    from rich.console import RenderableType

LIMITS = (2, 3, 5)
"""The k of k-anonymity and the l of l-diversity for which violations are counted."""

DIS_EDGES = np.arange(8) / 10 + np.finfo(float).eps
DIS_INTERVALS = ("0", *(f"({i / 10:.1f}, {(i + 1) / 10:.1f}]" for i in range(7)), "> 0.7")
"""Intervals of DIS in which records are counted."""

ALARMING_DIS = 0.1


@dataclass(frozen=True)
class HouseholdRisk:
    """Risk that somebody of a household is found.

    Attributes
    ----------
    households
        How many there are.
    expected_reidentifications
        The sum of the risks of their households over all records.
    largest_risk
        Of one household.
    """

    households: int
    expected_reidentifications: float
    largest_risk: float


@dataclass(frozen=True)
class Suda:
    """What SUDA2 found.

    Attributes
    ----------
    records
        Those with a score: they are unique on some keys.
    largest_score, mean_score, largest_dis, mean_dis
        Of all records.
    dis_intervals
        How many records have a DIS in each interval.
    contributions
        For each key the share of all scores that sets with it have; they add up to more than 1.
    """

    records: int
    largest_score: float
    mean_score: float
    largest_dis: float
    mean_dis: float
    dis_intervals: dict[str, int]
    contributions: dict[str, float]


@dataclass(frozen=True)
class Diversity:
    """How different a sensitive column is among records that share their keys.

    Attributes
    ----------
    attribute
        The column.
    least_distinct, least_entropy, least_recursive
        Of the least diverse class: different values, exp of their entropy, and the largest l of
        recursive (2, l)-diversity.
    distinct_below, entropy_below
        For l = 2, 3 and 5 how many records are in less diverse classes.
    largest_distance, mean_distance
        How far values in a class are distributed from those of the table (t-closeness, by the
        earth mover's distance), in the farthest class and on average of records; None if every
        value is missing.
    """

    attribute: str
    least_distinct: int
    distinct_below: dict[int, int]
    least_entropy: float
    entropy_below: dict[int, int]
    least_recursive: int
    largest_distance: float | None
    mean_distance: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Risk(Summarised):
    """Classical disclosure risk of a table. It depends on the data: keep it private.

    Attributes
    ----------
    keys, weight
        The columns it is about.
    records, combinations
        How many records, and different combinations of keys, there are.
    incomplete
        Records that miss a key.
    smallest_class
        The fewest records that share their keys.
    violations
        For k = 2, 3 and 5 how many records share their keys with fewer, themselves counted.
    sample_uniques, population_uniques
        Records that are alone with their keys, and how many of them are expected to be so in the
        population.
    expected_reidentifications
        The sum of individual risks.
    largest_risk
        Of one record.
    conspicuous
        Records with a risk above 0.1 and far above that of most.
    max_global_risk, threshold
        Individual risk to which records must be brought down for this share of re-identifications;
        None if none must, 0 if all.
    household
        None without households.
    suda
        None where there are too many keys to search all subsets.
    sensitive
        One for each sensitive column.
    per_record
        A row for each record: fk, Fk, risk, suda_score, dis, household_risk, and for each sensitive
        column its distinct, entropy and recursive diversity and its distance.
    """

    keys: tuple[str, ...]
    weight: str | None
    records: int
    combinations: int
    incomplete: int
    smallest_class: int
    violations: dict[int, int]
    sample_uniques: int
    population_uniques: float
    expected_reidentifications: float
    largest_risk: float
    conspicuous: int
    max_global_risk: float
    threshold: float | None
    household: HouseholdRisk | None
    suda: Suda | None
    sensitive: tuple[Diversity, ...]
    per_record: pl.DataFrame

    @property
    def global_risk(self) -> float:
        """The share of records that are expected to be re-identified."""
        return self.expected_reidentifications / self.records

    def to_dict(self) -> dict[str, Any]:
        """Return every figure as plain values that JSON can hold; nothing of single records."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "per_record"}
        parts = {"household": self.household, "suda": self.suda}
        kept |= {name: part and asdict(part) for name, part in parts.items()}
        kept["sensitive"] = [asdict(each) for each in self.sensitive]
        return {**kept, "keys": list(self.keys), "global_risk": self.global_risk}

    @property
    def sentence(self) -> str:
        """The risk in plain words."""
        estimated = (
            "estimated by the weights"
            if self.weight
            else "if the table is the whole population, since no weight was given"
        )
        return (
            f"{self.sample_uniques:,} of {self.records:,} records "
            f"({percent(self.sample_uniques / self.records)}) are the only ones with their "
            f"{_joined(self.keys)}. Someone who knows these of everybody would find about "
            f"{_number(self.expected_reidentifications)} of the people in the table "
            f"({percent(self.global_risk)}), {estimated}."
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        """Give each figure that a steward looks at, with what it is."""
        yield "records alone with keys (2-anonymity)", self._share(self.violations[2])
        for k in LIMITS[1:]:
            yield (
                f"records in classes below {k} ({k}-anonymity)",
                self._share(self.violations[k]),
            )
        yield "alone in the population too, expected", self._share(self.population_uniques)
        yield "re-identifications, expected", self._share(self.expected_reidentifications)
        if self.household is not None:
            expected = self.household.expected_reidentifications
            yield "re-identifications with household, expected", self._share(expected)
        yield "largest risk of one record", percent(self.largest_risk)
        if self.suda is not None:
            yield from self._suda_rows(self.suda)
        for each in self.sensitive:
            yield from self._diversity_rows(each)

    def _suda_rows(self, suda: Suda) -> Iterator[tuple[str, str]]:
        alarming = int((self.per_record["dis"] > ALARMING_DIS).sum())
        yield "SUDA2: special uniques", self._share(suda.records)
        yield f"SUDA2: records with DIS above {ALARMING_DIS}", self._share(alarming)
        if suda.records:
            key = max(suda.contributions, key=lambda key: suda.contributions[key])
            yield "SUDA2: key that contributes most", key

    def _diversity_rows(self, each: Diversity) -> Iterator[tuple[str, str]]:
        name, alike = each.attribute, each.distinct_below[LIMITS[0]]
        yield f"{name}: records in classes of one value", self._share(alike)
        yield f"{name}: fewest values (l-diversity)", f"{each.least_distinct:,}"
        yield f"{name}: fewest values by entropy", f"{each.least_entropy:.3g}"
        if each.largest_distance is not None:
            yield f"{name}: largest distance (t-closeness)", f"{each.largest_distance:.3g}"

    def _share(self, count: float) -> str:
        return f"{_number(count)} ({percent(count / self.records)})"

    @property
    def notes(self) -> list[str]:
        """What to know when reading the figures."""
        notes = []
        if self.incomplete:
            notes.append(
                f"Records that miss a key, which stands for any value: {self.incomplete:,}."
            )
        if self.suda is None:
            notes.append(
                f"SUDA2 was not computed: {self.combinations:,} combinations of {len(self.keys)} "
                f"keys have too many subsets (more than {MOST_SUBSETS:,}); give fewer keys."
            )
        return notes

    def _summary(self) -> Summary:
        title = f"Risk of {self.records:,} records by keys; private: it depends on the data"
        drawn = self._draw if self.suda is not None and self.suda.records else None
        return Summary(
            title, [self.sentence, *self.notes], ("figure", "value"), [*self.rows()], drawn
        )

    def _draw(self) -> "alt.LayerChart":
        from microveil.charts.overviews import amounts

        parts = {} if self.suda is None else self.suda.contributions
        shown = sorted(parts, key=lambda key: -parts[key])[:MOST_BARS]
        title = "share of SUDA2 scores"
        values = [parts[key] for key in shown]
        return amounts(shown, values, title=title, description=f"{title} that each key has")

    def __rich__(self) -> "RenderableType":
        return side_by_side({"table": self})


def side_by_side(risks: dict[str, Risk]) -> "RenderableType":
    """Lay out the risk of one table, or of several with the same keys, each under its name."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=len(risks) > 1)
    found = [dict(each.rows()) for each in risks.values()]
    grid.add_column("")
    for name in risks:
        grid.add_column(name, justify="right")
    for label in dict.fromkeys(label for rows in found for label in rows):
        grid.add_row(Text(label), *(Text(rows.get(label, "–")) for rows in found))
    named = len(risks) > 1
    sentences = [f"{n}: {x.sentence}" if named else x.sentence for n, x in risks.items()]
    notes = dict.fromkeys(note for each in risks.values() for note in each.notes)
    return Group(grid, Text(""), *map(Text, sentences), *(Text(n, style="dim") for n in notes))


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) or count >= 100 else f"{count:,.3g}"


def _joined(names: tuple[str, ...]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
