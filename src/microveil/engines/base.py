"""What an engine knows: tables. What it does not know: mathematics.

An engine looks at columns and masks an attribute: it ranks the records into clusters, hands their
summaries to `core.mask`, and spreads one value per cluster back over the records. Every formula
sees summaries only, so that every engine gives the same answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import polars as pl

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    NumericKind,
    NumericSettings,
)
from microveil.core.coding import Coding
from microveil.core.grid import Grid
from microveil.core.linear_rules import Kept, Rule, System
from microveil.core.pooling import Pool
from microveil.engines.beside import Beside
from microveil.plan.plan import Plan
from microveil.plan.roles import Derived
from microveil.types import Integers, Reals, UserTable


@dataclass(frozen=True)
class Column:
    """A column as its schema describes it; `kind` is None where it does not hold numbers.

    Dates are whole numbers of days, times whole numbers of microseconds, from 1970 or midnight;
    `clock` says which, and `zone` names the time zone of those that have one. `inferred` says that
    the values decided on the type, as they do in CSV files. `decimals` are those of a decimal type.
    """

    kind: NumericKind | None
    type_name: str
    least: float = 0.0
    most: float = 0.0
    single_precision: bool = False
    clock: Literal["date", "datetime", "time", "duration"] | None = None
    zone: str | None = None
    inferred: bool = False
    decimals: int | None = None


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


@dataclass(frozen=True)
class Pooled:
    """What came of a pool.

    `parts` counts the parts of the table, made by median splits, that MDAV ran over one by one.
    `smallest_class` counts the records of the rarest combination of averaged values.
    """

    parts: int
    smallest_class: int | None


Holds = Literal["text", "whole numbers", "true/false values", "other values"]


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


@dataclass(frozen=True)
class UnitFacts:
    """What checking a plan needs to know of units.

    `missing` counts records of no unit, `largest` the records of the largest one. `differing`
    counts the units whose records differ in what should be the same in all of them.
    """

    missing: int = 0
    largest: int = 1
    differing: Mapping[str, int] = field(default_factory=dict)


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

    def convert(self, kinds: Mapping[str, NumericKind]) -> None:
        """Make whole numbers real where the plan says so, and inferred real numbers whole.

        Real numbers that are not whole stay as they are.
        """

    def code(self, codings: Mapping[str, Coding]) -> None:
        """Code the numbers of these columns, and of no others, whenever they are looked at."""

    def recode(self, attribute: str, groups: Mapping[str, str]) -> None:
        """Put groups, as text, in the place of categories; what is in none stays as it is."""

    def drop_missing(self, attributes: Sequence[str]) -> None:
        """Leave out the records with a null in any of these attributes."""

    def arrange(self, plan: Plan) -> UnitFacts:
        """Look at which records are of one unit and of one stratum, if the plan names them.

        From then on an attribute that has one value for each unit counts once for each.
        """

    def counted(self, attribute: str) -> int:
        """Count the records, or the units if the attribute has one value for each of them."""

    def stratum_sizes(self, attribute: str) -> Integers:
        """Count the values of an attribute in each stratum."""

    @property
    def pooled_sizes(self) -> Integers:
        """Count what is pooled in each stratum: units, or records where there are none."""

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at numeric columns once each; `outside` counts values not in their domain."""

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only asked for where none are declared."""

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""


class Released(Protocol):
    """A released table, where its engine keeps it."""

    @property
    def data(self) -> UserTable:
        """The table, of the kind and types that came in."""

    @property
    def positions(self) -> Integers | UserTable:
        """Where each of its records stood in the table that came in.

        On Spark a table of records with fingerprints, `original` and `released`, of what they were
        and what they are.
        """

    @property
    def row_order(self) -> Literal["random", "as in the original"]:
        """In which order its records are."""

    def shuffled(self, seed: int | None) -> "Released":
        """Return it with its records in random order."""

    def arranged(
        self, *, keep_order: bool, seed: int | None
    ) -> tuple[UserTable, Integers | UserTable]:
        """Return the table in its original or in random order, and where each record stood."""

    def beside_original(self) -> Beside | None:
        """Return both tables, if the engine has kept the original."""


class Engine(Table, Protocol):
    """A table whose attributes can be masked one at a time."""

    @property
    def threads(self) -> int:
        """How many attributes may be masked at once."""

    def expected_errors(self, attribute: NumericSettings, ks: Sequence[int]) -> Reals:
        """Return the expected squared error of an attribute with clusters of each k."""

    def mask(self, attribute: AttributeSettings, seed: int | None) -> pl.DataFrame:
        """Mask an attribute; return its row of the table of losses.

        Records of equal value are put into clusters at random. Otherwise neighbours in the table
        would end up in one cluster wherever many values are equal, and the release would tell who
        stood beside whom, however its rows are shuffled.
        """

    def pseudonymise(self, attribute: str, pseudonym: Callable[[str], str]) -> int:
        """Replace every value, as text, by its pseudonym; return the most records of one value.

        Missing ones stay missing, and are nobody's.
        """

    def shift(self, attribute: str, person: str, days: Callable[[str], int]) -> None:
        """Move dates or times by as many days as there are for the person of each record."""

    def clusters(self, attributes: Sequence[str]) -> UserTable:
        """Return the private description of the clusters of attributes that were masked."""

    def pool(self, pool: Pool, seed: int | None) -> Pooled:
        """Pool the masked values of attributes in joint clusters, and check that it came out right.

        Missing values are pooled as well.
        """

    @property
    def joint_clusters(self) -> Mapping[str, Any]:
        """The joint cluster of each record, in record order, for every pool by its attributes."""

    def count_broken(self, rules: Sequence[Rule]) -> list[int | None]:
        """Count the original records that break each rule; None where that is not known."""

    def keep_rules(self, system: System) -> list[Kept] | None:
        """Change masked values so that rules are kept; say what that took, if it is known."""

    def derive(self, derived: Mapping[str, Derived]) -> None:
        """Recompute attributes, in this order, from masked ones.

        The result of a record may not depend on where it stands in the table, and must be finite.
        """

    def finish(self, attributes: Sequence[str]) -> Released:
        """Return the masked table with these columns."""

    def discard(self) -> None:
        """Remove whatever was stored on the way, because no release came of it."""
