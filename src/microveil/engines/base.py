"""What an engine knows: tables. What it does not know: mathematics.

An engine looks at columns, ranks an attribute into clusters and returns their summaries, and
spreads one value per cluster back over the records. Every formula sees summaries only, so that
every engine gives the same answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from microveil.categories import CategorySummary
from microveil.clusters import ClusterSummary
from microveil.grid import Grid, Integers, Reals
from microveil.noise import WordSource
from microveil.roles import Derived, NumericKind
from microveil.taxonomy import Category

Cut = Callable[[Integers], Integers]
"""Cuts ascending values into consecutive clusters and returns their sizes."""


@dataclass(frozen=True)
class Column:
    """A column as its schema describes it; `kind` is None where it does not hold numbers.

    Dates are whole numbers of days, times whole numbers of microseconds, from 1970 or midnight;
    `clock` says which, and `zone` names the time zone of those that have one.
    """

    kind: NumericKind | None
    type_name: str
    least: float = 0.0
    most: float = 0.0
    single_precision: bool = False
    clock: Literal["date", "datetime", "time"] | None = None
    zone: str | None = None


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


Holds = Literal["text", "whole numbers", "truth values", "other values"]


@dataclass(frozen=True)
class CategoryFacts:
    """What checking a plan needs to know of a column of categories.

    `outside` counts records whose value is none of the categories, `unknown` the categories that
    the column's own type has no place for. `seen` lists the values there are, in order.
    """

    nulls: int
    holds: Holds
    outside: int
    unknown: int
    seen: tuple[Category, ...]


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

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only asked for where none are declared."""

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""


class Engine(Table, Protocol):
    """A table that can be clustered one attribute at a time."""

    @property
    def threads(self) -> int:
        """How many attributes may be worked on at once."""

    def units(self, attribute: str, grid: Grid) -> Integers:
        """Return the values in grid units, in record order, without missing ones."""

    def ranked(self, attribute: str, grid: Grid) -> Integers:
        """Return the values of an attribute in grid units, ascending."""

    def summarise(
        self, attribute: str, grid: Grid, cut: Cut | None, ties: WordSource
    ) -> ClusterSummary:
        """Rank an attribute and cut it into clusters; without a cut every record is a cluster.

        Records of equal value are put into clusters at random. Otherwise neighbours in the table
        would end up in one cluster wherever many values are equal, and the release would tell who
        stood beside whom, however its rows are shuffled.
        """

    def codes(self, attribute: str, categories: tuple[Category, ...]) -> Integers:
        """Return the number of each record's category, in record order, without missing ones."""

    def summarise_categories(
        self, attribute: str, categories: tuple[Category, ...], cut: Cut, ties: WordSource
    ) -> CategorySummary:
        """Rank an attribute by its categories' numbers and cut it into clusters, as above."""

    def join(self, attributes: tuple[str, ...], clusters: Integers) -> None:
        """Hold these clusters, one number for each record, for attributes clustered jointly.

        Summaries of these attributes then have the clusters in the order of their numbers.
        """

    def spread(self, attribute: str, masked: Reals) -> None:
        """Give every record of the clusters last summarised its cluster's masked value."""

    def spread_categories(
        self, attribute: str, masked: Integers, categories: tuple[Category, ...]
    ) -> None:
        """Do the same with numbers of categories; one for each record if none were summarised."""

    def smallest_class(self, attributes: tuple[str, ...]) -> int:
        """Count the records of the rarest combination of masked values."""

    def derive(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute from masked ones; count records with no finite result.

        The result of a record may not depend on where it stands in the table.
        """

    def finish(self, attributes: list[str]) -> Any:  # noqa: ANN401 - a table of the user's kind
        """Return the masked table with these columns, of the kind and types that came in."""

    @property
    def positions(self) -> Integers:
        """Where each record stood in the table that came in."""
