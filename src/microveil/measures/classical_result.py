"""What `risk` found, and one table of it with a sentence in plain words."""

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from microveil.shown import Shown

if TYPE_CHECKING:
    pass

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
class Risk(Shown):
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
