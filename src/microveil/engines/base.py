"""What an engine knows: tables. What it does not know: mathematics.

An open table is a value: it is looked at, and prepared, and never changes. Its engine masks an
attribute: it ranks the records into clusters, hands their summaries to `core.mask`, and spreads one
value per cluster back over the records. Every formula sees summaries only, so that every engine
gives the same answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import polars as pl

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    NumericKind,
    NumericSettings,
)
from microveil.core.coding import Coding
from microveil.core.grid import Grid
from microveil.core.linear_rules import KeptRule, Rule, System
from microveil.core.pooling import Pool
from microveil.core.random_words import WordSource
from microveil.core.threads import Cluster
from microveil.engines.beside import Beside
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
class Preparation:
    """What is done to a table before it is masked, as `resolve` decides.

    Attributes
    ----------
    kinds
        Columns of whole numbers that become real, and of real numbers that become whole.
    groups
        For columns of categories, the groups, as text, that take the place of some of them.
    codings
        How the numbers of columns are coded before anything else sees them.
    complete
        Attributes that must not be missing; records that lack one are dropped.
    unit, per_unit
        The column that says which records are of one unit, and the attributes that have one value
        for each unit.
    strata
        The columns whose combinations of values are the strata.
    """

    kinds: Mapping[str, NumericKind] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    codings: Mapping[str, Coding] = field(default_factory=dict)
    complete: tuple[str, ...] = ()
    unit: str | None = None
    per_unit: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()


@dataclass(frozen=True)
class Facts:
    """What checking a plan needs to know about a numeric column.

    `counted` is the number of records, or of units if the attribute has one value for each of them.
    `not_numbers` counts the texts that cannot be read as numbers.
    """

    counted: int
    nulls: int
    not_numbers: int
    not_finite: int
    fractional: int
    smallest: float
    largest: float
    outside: int


Holds = Literal["text", "whole numbers", "true/false values", "other values"]


@dataclass(frozen=True)
class CategoryFacts:
    """What checking a plan needs to know about a column of categories.

    `counted` is as in `Facts`. `outside` counts records whose value is none of the categories,
    `unknown` the categories that the column's own type has no place for. `seen` lists the values
    there are, in order.
    """

    counted: int
    nulls: int
    holds: Holds
    outside: int = 0
    unknown: int = 0
    seen: tuple[Category, ...] = ()


@dataclass(frozen=True)
class UnitFacts:
    """What checking a plan needs to know about units.

    `missing` counts records of no unit, `largest` the records of the largest one. `differing`
    counts the units whose records differ in what should be the same in all of them.
    """

    missing: int = 0
    largest: int = 1
    differing: Mapping[str, int] = field(default_factory=dict)


class OpenTable(Protocol):
    """A table that plans can be checked against; looking at it changes nothing."""

    @property
    def records(self) -> int:
        """Number of records."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns in table order."""

    def prepared(self, preparation: Preparation) -> "OpenTable":
        """Return a prepared view of this table."""

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at columns as numbers; `outside` counts values outside their domain."""

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only filled in where none are declared."""

    def unit_facts(self, same: Sequence[str]) -> UnitFacts:
        """Look at units; attributes that are the `same` should have one value in each."""

    def stratum_sizes(self, attribute: str | None = None, *, units: bool = False) -> Integers:
        """Count the values of an attribute in each stratum, or the `units` that have one.

        Without an attribute, what is pooled there: units, or records where there are none.
        """

    def observed_grid(self, attribute: str) -> Grid:
        """Return the grid of the last decimal seen in a numeric column."""

    def expected_errors(self, attribute: NumericSettings, ks: Sequence[int]) -> Reals:
        """Return the expected squared error of an attribute with clusters of each k."""

    def engine(self) -> "MaskingEngine":
        """Return a new engine for this table, which has masked nothing yet."""

    def discard(self) -> None:
        """Remove temporary files after a failure."""


AnyTable = TypeVar("AnyTable")


class Views(Generic[AnyTable]):
    """The prepared views of a table, each made once."""

    def __init__(self) -> None:
        self._known: list[tuple[Preparation, AnyTable]] = []

    def of(self, preparation: Preparation, prepare: Callable[[], AnyTable]) -> AnyTable:
        """Return the view for a preparation, made when it is first needed."""
        for known, table in self._known:
            if known == preparation:
                return table
        table = prepare()
        self._known.append((preparation, table))
        return table


@dataclass(frozen=True, eq=False)
class Pooled:
    """What came of a pool.

    `parts` counts the parts of the table, made by median splits, that MDAV ran over one by one.
    `smallest_class` counts the records of the rarest combination of averaged values. `joint` has
    the joint cluster of each record, in record order, by the names of the attributes, and `unit`
    the unit of each, if there are units here. `related` says whether exchange went by models of
    relations, where there is enough to fit them to.
    """

    parts: int
    smallest_class: int | None
    joint: Mapping[str, Any]
    related: bool = False
    unit: Integers | None = None


class Shift(NamedTuple):
    """Which column names the person whose dates are shifted, and by how many days."""

    person: str
    days: Callable[[str], int]


Assign = Callable[[Sequence[str], Integers, Reals, Cluster, WordSource], Integers]
"""Assigns persons, who look as numbered and lie at these places, to joint clusters."""


class Lasting(NamedTuple):
    """Whose joint clusters last: the column that names persons, what checks and assigns them."""

    person: str
    check: Callable[[Sequence[str]], None]
    assign: Assign


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
    def missing_codes(self) -> Mapping[str, pl.Series]:
        """Their declared missing codes by column, in the order of the table that came in.

        A code goes where the missing value goes that it stands for.
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


class MaskingEngine(Protocol):
    """Masks the attributes of a table one at a time."""

    @property
    def threads(self) -> int:
        """How many attributes may be masked at once."""

    def last(self, lasting: Lasting, pool: Pool) -> None:
        """Give persons joint clusters that last; refuse those who would be told from all others."""

    def hide(
        self, pseudonyms: Mapping[str, Callable[[str], str]], shifts: Mapping[str, Shift]
    ) -> dict[str, int]:
        """Replace values by pseudonyms, and shift the dates of each person.

        Missing values stay missing. Returns for each pseudonym the most records that one value has.
        """

    def mask(self, attribute: AttributeSettings, seed: int | None) -> pl.DataFrame:
        """Mask an attribute; return its row of the table of losses.

        Records of equal value are put into clusters at random. Otherwise neighbours in the table
        would end up in one cluster wherever many values are equal, and the release would tell who
        stood beside whom, however its rows are shuffled.
        """

    def pool(self, pool: Pool, seed: int | None) -> Pooled:
        """Pool the masked values of attributes in joint clusters, and check that it came out right.

        Missing values are pooled as well.
        """

    def keep_rules(
        self, rules: Sequence[Rule], systems: Sequence[System]
    ) -> tuple[list[int | None], list[KeptRule]]:
        """Change masked values so that the rules of all systems are kept.

        Returns how many original records break each of `rules`, None where that is not known, and
        what it took to keep those of the systems, as far as it is known.
        """

    def finish(self, attributes: Sequence[str], derived: Mapping[str, Derived]) -> Released:
        """Recompute derived attributes, in this order; return the masked table with these columns.

        The result of a record may not depend on where it stands in the table, and must be finite.
        """

    def clusters(self, attributes: Sequence[str]) -> UserTable:
        """Return the private description of the clusters of attributes that were masked."""
