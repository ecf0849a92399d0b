"""A table for many plans: every column is looked at and sorted once."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from microveil.core.attribute import AttributeSettings, Category, CategorySettings
from microveil.core.grid import Grid
from microveil.core.joint_units import JointLabels
from microveil.core.pooling import Pool
from microveil.engines.base import CategoryFacts, Facts, Preparation
from microveil.engines.column_source import ColumnSource
from microveil.engines.local import LocalTable
from microveil.engines.memory import FrameColumns
from microveil.engines.strata import Order
from microveil.types import Integers, UserTable

T = TypeVar("T")


class RepeatedTable(LocalTable):
    """A table on this machine that remembers what several plans ask of it."""

    def __init__(self, source: ColumnSource, preparation: Preparation | None = None) -> None:
        super().__init__(source, preparation)
        self._known: dict[Hashable, Any] = {}

    def look(self, attribute: str, lower: float, upper: float) -> Facts:
        """Look at numeric columns once each and for every domain."""
        look = super().look
        return self._once(("look", attribute, lower, upper), lambda: look(attribute, lower, upper))

    def observed_grid(self, attribute: str) -> Grid:
        """Return the grid of the last decimal seen in a numeric column."""
        look = super().observed_grid
        return self._once(("grid", attribute), lambda: look(attribute))

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories once for every list of them."""
        look = super().category_facts
        key = ("categories", attribute, categories)
        return self._once(key, lambda: look(attribute, categories))

    def rank(self, attribute: AttributeSettings) -> tuple[Order, Integers]:
        """Return the order of ascending steps, which the caller may change, and these steps."""
        sort = super().rank
        key = ("rank", attribute.name, _steps_of(attribute))
        order, ranked = self._once(key, lambda: sort(attribute))
        return order.copy(), ranked

    def cluster_jointly(self, pool: Pool, seed: int | None) -> tuple[JointLabels, int]:
        """Cluster records once on the original values of a group, for every seed."""
        cluster = super().cluster_jointly
        steps = tuple((a.name, _steps_of(a)) for a in pool.attributes)
        key = ("joint", steps, pool.anonymity, seed)
        return self._once(key, lambda: cluster(pool, seed))

    def _once(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = compute()
        value: T = self._known[key]
        return value


def repeated_table(data: UserTable, *, inferred: bool = False) -> RepeatedTable:
    """Open a table in memory for many plans."""
    return RepeatedTable(FrameColumns.open(data, inferred=inferred))


def _steps_of(attribute: AttributeSettings) -> Hashable:
    """Return what decides in which steps an attribute is."""
    return attribute.categories if isinstance(attribute, CategorySettings) else attribute.grid
