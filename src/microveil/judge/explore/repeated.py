"""An engine for many plans of one table: every column is looked at and sorted once."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from microveil.core.attribute import AttributeSettings, Category, CategorySettings
from microveil.core.grid import Grid
from microveil.core.joint_units import JointLabels
from microveil.core.pooling import Pool
from microveil.engines.base import CategoryFacts, Facts
from microveil.engines.memory import MemoryEngine
from microveil.engines.strata import Order
from microveil.types import Integers, UserTable

T = TypeVar("T")


class RepeatedEngine(MemoryEngine):
    """A table in memory that remembers what several plans ask of it.

    The plans must mask the same attributes and treat missing values alike: records that one of
    them leaves out are gone for all.
    """

    def __init__(self, data: UserTable, *, inferred: bool = False) -> None:
        super().__init__(data, inferred=inferred)
        self._known: dict[Hashable, Any] = {}

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at numeric columns once each and for every domain."""
        return {
            name: self._once(("facts", name, ends), lambda n=name, e=ends: self._look(n, *e))  # type: ignore[misc]
            for name, ends in domains.items()
        }

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
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
        """Return the order of ascending units, which the caller may change, and these units."""
        sort = super().rank
        key = ("rank", attribute.name, _units_of(attribute))
        order, ranked = self._once(key, lambda: sort(attribute))
        return order.copy(), ranked

    def cluster_jointly(
        self, pool: Pool, seed: int | None, *, masked: bool
    ) -> tuple[JointLabels, int]:
        """Cluster records once on the original values of a group, for every seed."""
        cluster = super().cluster_jointly
        if masked:
            return cluster(pool, seed, masked=True)
        units = tuple((a.name, _units_of(a)) for a in pool.attributes)
        key = ("joint", units, pool.anonymity, seed)
        return self._once(key, lambda: cluster(pool, seed, masked=False))

    def _once(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = compute()
        value: T = self._known[key]
        return value


def _units_of(attribute: AttributeSettings) -> Hashable:
    """Return what decides in which units an attribute is."""
    return attribute.categories if isinstance(attribute, CategorySettings) else attribute.grid
