"""Looking for people among all released records, in parts, wherever these are."""

from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw
import numpy as np
import polars as pl

from microveil.attacks.known import EVERYTHING, KnownAs
from microveil.compare.examined import Examined
from microveil.engines.dtypes import category_values, column_of, comparable, numbers, stored
from microveil.engines.memory import open_table
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.types import Reals, UserTable


class RowSearch(Protocol):
    """A search that sees rows part by part."""

    def start(self) -> Any:  # noqa: ANN401 - what a search keeps is its own
        """Return what was seen before any row."""

    def see(self, state: Any, part: Reals, first: int) -> Any:  # noqa: ANN401
        """Look at some rows, numbered from `first` on."""

    def merge(self, one: Any, other: Any) -> Any:  # noqa: ANN401
        """Put together what was seen in different rows."""


@dataclass(frozen=True, eq=False)
class Victims:
    """People who are looked for: what is known of them, what they own, and of what kinds it is."""

    kinds: dict[str, KnownAs]
    people: Reals
    own: Reals
    known: int
    gaps: bool

    @property
    def given(self) -> dict[str, Any]:
        """Return what searches take of columns: which are nominal, exact, or may be missing."""
        places = list(enumerate(self.kinds.values()))
        return {
            "nominal": [number for number, kind in places if kind == "nominal"],
            "exact": [number for number, kind in places if kind == "exact"],
            "gaps": np.full(len(self.kinds), self.gaps),
        }


def victims_of(seen: Examined, scenario: Scenario = EVERYTHING, most: int | None = None) -> Victims:
    """Choose whom to look for among those drawn, and code what is known of them."""
    plan = seen.planned
    names = seen.pair.attributes if scenario.known is None else scenario.known
    kinds = {name: kind_known(plan, name) for name in names}
    number = seen.drawn if most is None else min(most, seen.drawn)
    few = np.linspace(0, seen.drawn, number, endpoint=False).astype(int)
    people, own = (
        coded(table[few, list(names)], kinds, plan) for table in (seen.people, seen.rows)
    )
    known = max(number, round(scenario.people * seen.records))
    return Victims(kinds, people, own, known, plan.missing == "keep")


def searched(seen: Examined, victims: Victims, search: RowSearch) -> Any:  # noqa: ANN401
    """Look through all released records; return what the search has seen at the end."""
    names = tuple(victims.kinds)
    return seen.beside.fold(_Coded(names, victims.kinds, seen.planned, search))


@dataclass(frozen=True, eq=False)
class _Coded:
    """A search that sees released records as what attacks compare."""

    names: tuple[str, ...]
    kinds: dict[str, KnownAs]
    plan: Plan
    search: RowSearch

    def start(self) -> Any:  # noqa: ANN401 - that of the search
        return self.search.start()

    def see(self, state: Any, part: UserTable, first: int) -> Any:  # noqa: ANN401
        return self.search.see(state, coded(open_table(part), self.kinds, self.plan), first)

    def merge(self, one: Any, other: Any) -> Any:  # noqa: ANN401
        return self.search.merge(one, other)


def kind_known(plan: Plan, name: str) -> KnownAs:
    """Return as what an attribute is compared."""
    if name in plan.confidential:
        attribute = plan.confidential[name]
        if not attribute.is_category:
            return "number"
        return "ordinal" if attribute.kind == "ordinal" else "nominal"
    return "number" if name in plan.derived else "exact"


def coded(table: nw.DataFrame[Any], kinds: dict[str, KnownAs], plan: Plan) -> Reals:
    """Return what attacks compare: numbers, places in an order, or what tells values apart."""
    return np.column_stack([_codes(table, name, kind, plan) for name, kind in kinds.items()])


def _codes(table: nw.DataFrame[Any], name: str, kind: KnownAs, plan: Plan) -> Reals:
    column = column_of(table, name)
    codes = np.full(len(column), np.nan)
    present = ~column.is_null().to_numpy().astype(np.bool_)
    values = column.drop_nulls()
    if kind == "number":
        codes[present] = numbers(values)
        return codes
    comparable(values, name)
    declared = plan.confidential.get(name)
    text = _as_text(category_values(values)[0]).replace(declared.recoded if declared else {})
    if kind == "ordinal":
        order = pl.Series(plan.confidential[name].declared_categories).cast(pl.String)
        codes[present] = text.cast(pl.Enum(order)).to_physical().to_numpy()
    else:
        codes[present] = text.hash(seed=0).to_numpy() >> 11  # as many bits as a double holds
    return codes


def _as_text(values: pl.Series) -> pl.Series:
    """Write values as text; what Polars does not write so, such as lists, as numbers."""
    plain = stored(values)
    plain = plain.to_physical() if plain.dtype == pl.Duration else plain
    if plain.dtype.is_nested() or plain.dtype == pl.Binary:
        plain = plain.hash(seed=0)
    return plain.cast(pl.String)
