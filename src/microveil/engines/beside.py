"""An original and its release side by side, wherever they are; neither need fit in memory."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from microveil.types import UserTable


class Fold(Protocol):
    """Something worked out by looking at all released records, some of them at a time.

    What was seen so far, a state, goes from part to part; two states can be put together.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The released columns that are looked at."""

    def start(self) -> Any:  # noqa: ANN401 - what a fold keeps is its own
        """Return the state before anything was seen."""

    def see(self, state: Any, part: UserTable, first: int) -> Any:  # noqa: ANN401
        """Look at some records, numbered from `first` on."""

    def merge(self, one: Any, other: Any) -> Any:  # noqa: ANN401
        """Put together what was seen in different records."""


class ClassSizes(NamedTuple):
    """How many records are alone in their class, how many the smallest class has, and all."""

    alone: int
    smallest: int
    records: int


class Indistinct(NamedTuple):
    """How many people, or units, there are, in how many classes, and how many the smallest has."""

    people: int
    classes: int
    smallest: int


class Beside(Protocol):
    """An original and its release, of which some records are drawn and all are looked at."""

    @property
    def originals(self) -> int:
        """Number of records in the original."""

    @property
    def records(self) -> int:
        """Number of released records."""

    @property
    def inferred(self) -> bool:
        """Whether the values decided on the types of the original's columns."""

    def draw(
        self, number: int, random: np.random.Generator, unit: str | None = None
    ) -> tuple[UserTable, UserTable]:
        """Draw released records at random: what they were, and what they are, in one order.

        If `unit` is a column of the original, whole units are drawn, of about so many records.
        """

    def fold(self, fold: Fold) -> Any:  # noqa: ANN401
        """Look at all released records, and return the state at the end."""

    def class_sizes(self, names: tuple[str, ...]) -> ClassSizes:
        """Count the released records that share these columns."""

    def indistinct(
        self, joint: Mapping[str, Any], kept: Sequence[str], unit: str | None
    ) -> Indistinct | None:
        """Count the classes of people whom the draws alone tell apart; None if not known.

        They are in the same joint clusters, which are given as the private detail has them, and
        have the same kept columns and missing codes there, record by record of those that have the
        same `unit`. A unit that is no column of the original is left aside.
        """

    def clusters(self) -> pl.DataFrame | None:
        """Return the clusters, those of about the same width put together; None if not known."""
