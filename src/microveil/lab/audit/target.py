"""What can be attacked: one attribute, with fixed clusters or re-clustered."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings
from microveil.core.mask import summary_of
from microveil.core.partition import cut
from microveil.core.random_words import WordSource
from microveil.lab.audit.models import Model, Published
from microveil.types import Integers, Reals

SummaryT = TypeVar("SummaryT")


@dataclass(frozen=True, eq=False)
class AuditTarget(ABC, Generic[SummaryT]):
    """One attribute under attack.

    Attributes
    ----------
    values
        Grid units or numbers of categories, in record order, without missing ones.
    present
        Which records have a value.
    """

    settings: AttributeSettings
    values: Integers
    present: NDArray[np.bool_]

    @cached_property
    def order(self) -> Integers:
        """Positions of the values cluster by cluster, in rank order within each."""
        if not self.clustered:
            return np.arange(len(self.values))
        return np.argsort(self.values, kind="stable")

    @cached_property
    def sizes(self) -> Integers:
        """Sizes of the clusters; a method that forms none has one for every record."""
        if not self.clustered:
            return np.ones_like(self.values)
        return cut(self.values[self.order], self.settings)

    @cached_property
    def summary(self) -> SummaryT:
        """Summary of the table as it is."""
        return self.summarise(self.values[self.order])

    @property
    def clustered(self) -> bool:
        """Whether the method forms clusters."""
        return self.settings.method.clustered

    def position(self, record: int) -> int | None:
        """Where a record's value stands among those present; None where it is missing."""
        return int(np.count_nonzero(self.present[:record])) if self.present[record] else None

    def record(self, rank: int) -> int:
        """Return the record of a rank."""
        return int(np.flatnonzero(self.present)[self.order[rank]])

    def changed(self, record: int, value: int, *, fixed: bool) -> SummaryT:
        """Summarise the table with one value changed, with fixed clusters or re-clustered."""
        position = self.position(record)
        if position is None:
            return self.summary
        ranked = self.values[self.order]
        rank = int(np.flatnonzero(self.order == position)[0])
        if self.clustered and not fixed:
            others = np.delete(ranked, rank)
            return self.summarise(np.insert(others, np.searchsorted(others, value), value))
        ranked[rank] = value
        ends = np.cumsum(self.sizes)
        cluster = int(np.searchsorted(ends, rank, side="right"))
        members = slice(int(ends[cluster] - self.sizes[cluster]), int(ends[cluster]))
        ranked[members] = np.sort(ranked[members])
        return self.summarise(ranked)

    def with_value(self, record: int, value: int) -> Self:
        """Return the target with one value changed, and clusters as the data then decide."""
        values = self.values.copy()
        values[self.position(record)] = value
        return replace(self, values=values)

    def furthest(self, record: int, *, fixed: bool) -> tuple[SummaryT, SummaryT]:
        """Summarise the table with one value changed: where most is likelier here, or there."""
        most, furthest = [-1.0, -1.0], [self.summary, self.summary]
        for value in self.telling_values:
            there = self.changed(record, value, fixed=fixed)
            for way, loss in enumerate(self.losses(there)):
                if loss > most[way]:
                    most[way], furthest[way] = loss, there
        return furthest[0], furthest[1]

    def watching(self, there: SummaryT) -> tuple[Self, SummaryT]:
        """Leave out of this target and of a neighbour what cannot tell them apart."""
        return self, there

    def loss(self, there: SummaryT) -> float:
        """Loss between the table as it is and another one, exactly."""
        return max(self.losses(there))

    @property
    @abstractmethod
    def new_values(self) -> Sequence[tuple[int, Any]]:
        """Values for a changed record: in grid steps or as a code, and as they are in the table."""

    @abstractmethod
    def model(self, summary: SummaryT) -> Model:
        """Return what a table with these clusters should publish, calibrated by itself."""

    @cached_property
    def own_model(self) -> Model:
        """What the table as it is should publish."""
        return self.model(self.summary)

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many numbers the mechanism sees in one run."""

    @property
    @abstractmethod
    def telling_values(self) -> Iterable[int]:
        """The values to which a record's change can tell most."""

    def summarise(self, ranked: Integers) -> SummaryT:
        """Summarise the clusters of values that stand cluster by cluster."""
        return cast(SummaryT, summary_of(ranked, self.sizes, self.settings))

    @abstractmethod
    def losses(self, there: SummaryT) -> tuple[float, float]:
        """How much likelier anything can be here than there, and there than here: logarithms."""

    @abstractmethod
    def closed_form(self, *, fixed: bool) -> float | None:
        """Loss of this very table; None where there is no closed form."""

    @abstractmethod
    def telling_records(self, *, fixed: bool) -> Sequence[int]:
        """Return the records whose change can tell most about this target."""

    def suspects(self) -> Sequence[SummaryT]:
        """Further neighbours with fixed clusters, on which a broken mechanism betrays itself."""
        return ()

    @property
    def publishes_on_grid(self) -> bool:
        """Whether released values are multiples of the noise grid, or have none."""
        return True

    @abstractmethod
    def release(self, source: WordSource) -> Published:
        """Run the mechanism once, as it is released."""

    @abstractmethod
    def run(self, summary: SummaryT, runs: int, source: WordSource) -> Published:
        """Run the mechanism many times; one row of published values per run."""

    @abstractmethod
    def statistics(self, there: SummaryT, published: Published) -> Reals:
        """Compute four numbers per run, each large where this table is likelier than the other."""

    @abstractmethod
    def is_off_grid(self, published: Published) -> bool:
        """Whether published values have bits below the grid, which tell of floating-point noise."""
