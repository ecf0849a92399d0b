"""What an engine knows: tables. What it does not know: mathematics.

An engine looks at columns, ranks an attribute into clusters and returns their summaries, and
spreads one value per cluster back over the records. Every formula sees summaries only, so that
every engine gives the same answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from microveil.clusters import ClusterSummary
from microveil.grid import Grid, Integers, Reals
from microveil.roles import Derived, Kind

Cut = Callable[[Integers], Integers]
"""Cuts ascending values into consecutive clusters and returns their sizes."""


@dataclass(frozen=True)
class Column:
    """A column as its schema describes it; `kind` is None where it does not hold numbers."""

    kind: Kind | None
    type_name: str
    least: float = 0.0
    most: float = 0.0
    single_precision: bool = False


@dataclass(frozen=True)
class Facts:
    """What checking a plan needs to know of the values in a numeric column."""

    nulls: int
    not_finite: int
    fractional: int
    smallest: float
    largest: float
    outside: int


@dataclass(frozen=True)
class TextFacts:
    """What is worth telling about a column that should hold numbers and does not."""

    nulls: int
    not_numbers: int


class Table(Protocol):
    """A table that a plan can be checked against."""

    @property
    def records(self) -> int:
        """Number of records."""

    @property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""

    def drop_missing(self, attributes: list[str]) -> None:
        """Leave out the records with a null in any of these attributes."""

    def facts(self, attribute: str, lower: float, upper: float) -> Facts:
        """Look at a numeric column once; `outside` counts values not in [lower, upper]."""

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""


class Engine(Table, Protocol):
    """A table that can be clustered one attribute at a time."""

    def break_ties_by(self, order: Integers) -> None:
        """Rank records of equal value in this order of records, instead of the table's.

        Otherwise neighbours in the table would end up in one cluster wherever many values are
        equal, and the release would tell who stood beside whom, however its rows are shuffled.
        """

    def ranked(self, attribute: str, grid: Grid) -> Integers:
        """Return the values of an attribute in grid units, ascending."""

    def summarise(self, attribute: str, grid: Grid, cut: Cut | None) -> ClusterSummary:
        """Rank an attribute and cut it into clusters; without a cut every record is a cluster."""

    def spread(self, attribute: str, masked: Reals) -> None:
        """Give every record of the clusters last summarised its cluster's masked value."""

    def derive(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute from masked ones; count records with no finite result.

        The result of a record may not depend on where it stands in the table.
        """

    def finish(self, attributes: list[str]) -> Any:  # noqa: ANN401 - a table of the user's kind
        """Return the masked table with these columns, of the kind and types that came in."""

    @property
    def positions(self) -> Integers:
        """Where each record stood in the table that came in."""
