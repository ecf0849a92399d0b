"""A quick look at a release and its original: some records, and all released ones part by part.

Nothing else need be in memory, so that a table of any size is looked at in seconds.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.grid import Integers, Reals
from microveil.core.tables import UserTable
from microveil.engines.dtypes import category_values, column_of, numbers, polars_of
from microveil.engines.layout import numbered
from microveil.engines.memory import open_table
from microveil.errors import DataError, MicroveilError, noted
from microveil.evaluation import linkage, risk
from microveil.evaluation.known import EVERYTHING, Kind
from microveil.evaluation.linkage import Linked
from microveil.evaluation.pairing import Pair, pair_up, without_constants
from microveil.formats import Table, TableMeta, load
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.release.detail import Detail
from microveil.release.protect import protect
from microveil.release.release import Release

RECORDS = 10_000
"""Records that are looked at one by one; of a larger table so many are drawn at random."""

PART = 1_000_000
"""Released records in memory at a time."""


@dataclass(frozen=True, eq=False)
class Glance:
    """A release beside its original; both may be lazy tables.

    Attributes
    ----------
    original, released
        The two tables.
    positions
        Where each released record stood in the original.
    plan
        What was done.
    chosen
        Which released records are looked at one by one.
    pair
        These, beside the original ones.
    inferred
        Whether the values decided on the types of the original's columns.
    """

    original: UserTable
    released: UserTable
    positions: Integers
    plan: Plan
    chosen: Integers
    pair: Pair
    inferred: bool = False

    @property
    def records(self) -> int:
        """Number of released records."""
        return len(self.positions)

    @property
    def is_whole(self) -> bool:
        """Whether all records are looked at."""
        return len(self.chosen) == self.records

    def nearest(self, scenario: Scenario = EVERYTHING) -> Linked:
        """Link those chosen to the nearest of all released records."""
        names = self.pair.attributes if scenario.known is None else scenario.known
        kinds = {name: _kind(self.plan, name) for name in names}

        def coded(table: UserTable) -> Reals:
            return _coded(open_table(table), kinds, self.plan)

        places = list(enumerate(kinds.values()))
        return linkage.nearest_in_parts(
            coded(_rows(self.original, self.positions[self.chosen], names)),
            coded(_rows(self.released, self.chosen, names)),
            map(coded, _parts(self.released, names)),
            nominal=[number for number, kind in places if kind == "nominal"],
            exact=[number for number, kind in places if kind == "exact"],
            known=max(len(self.chosen), round(scenario.people * self.records)),
            gaps=np.full(len(kinds), self.plan.missing == "keep"),
        )

    def unique(self, names: Sequence[str]) -> float:
        """Return the share of released records that share these columns with no other."""
        if not isinstance(self.released, pl.LazyFrame):
            return risk.quasi_identifier_classes(self.released, names).unique
        keys = _columns(self.released, names)
        sizes = keys.group_by(pl.all()).agg(pl.len().alias("records"))
        alone = sizes.select((pl.nth(len(names)) == 1).sum()).collect(engine="streaming").item()
        return int(alone) / self.records

    def trial(self, plan: Plan, records: int, random: np.random.Generator) -> Pair | None:
        """Protect some records by a plan; None if that cannot be done with so few."""
        number = min(records, len(self.chosen))
        rows = (
            np.sort(random.choice(self.chosen, number, replace=False))
            if plan.unit is None
            else self.whole_units(number, random)
        )
        table = _rows(self.original, self.positions[rows])
        whole = Table(table, TableMeta(inferred=self.inferred))
        seed = int(random.integers(2**32))
        for tried in (plan, plan.replace(within=())):  # of so few records strata may be too small
            with suppress(MicroveilError), noted():
                return _pair(table, protect(whole, tried, seed=seed))
        return None

    def whole_units(self, records: int, random: np.random.Generator) -> Integers:
        """Choose released records, about so many, of units that are there with all of theirs."""
        names = [self.plan.unit] if self.plan.unit else []
        column = open_table(_rows(self.original, self.positions, names))[names[0]]
        unit = numbered([polars_of(column)])
        order = random.permutation(int(unit.max()) + 1)
        before = np.cumsum(np.bincount(unit)[order]) - np.bincount(unit)[order]
        return np.flatnonzero(np.isin(unit, order[before < records]))

    def of_units(self, records: int, random: np.random.Generator) -> Pair:
        """Return all records beside the original ones, or about so many of whole units."""
        if self.is_whole:
            return self.pair
        rows = self.whole_units(records, random)
        few = Detail(self.pair.clusters, pl.DataFrame(), np.arange(len(rows)), self.plan)
        return _pair(_rows(self.original, self.positions[rows]), _rows(self.released, rows), few)


def glance(original: UserTable, release: Release, random: np.random.Generator) -> Glance:
    """Look at a release and its original, which may be a lazy table of Polars."""
    original, released, detail, inferred = _side_by_side(original, release)
    positions = detail.positions
    if positions is None:
        raise DataError(
            "on a cluster it is not known to this machine which record is whose, so nobody can be "
            "looked for; protect a sample of the table in memory by the same plan"
        )
    chosen = _choose(len(positions), random)
    few = replace(detail, positions=np.arange(len(chosen)))
    pair = _pair(_rows(original, positions[chosen]), _rows(released, chosen), few)
    return Glance(original, released, positions, release.plan, chosen, pair, inferred)


def _side_by_side(
    original: UserTable, release: Release
) -> tuple[UserTable, UserTable, Detail, bool]:
    """Return both tables as they can be read, the detail, and whether types were inferred."""
    beside = release.rows.beside_original()
    if beside is not None:
        counted = replace(
            release.detail, clusters=beside.clusters, positions=beside.positions, joint={}
        )
        return beside.original, beside.released, counted, False
    if isinstance(original, pl.LazyFrame) or release.detail.positions is None:
        return original, release.data, release.detail, False
    table = load(original, **release.plan.reading)
    return table.data, release.data, release.detail, table.meta.inferred


def glance_again(pair: Pair, random: np.random.Generator) -> Glance | None:
    """Look again at two tables that were compared; None if that is not known which is needed."""
    if pair.plan is None or pair.positions is None or pair.order is None:
        return None
    positions = np.empty(len(pair.order), dtype=np.int64)
    positions[pair.order] = pair.positions
    original, released = pair.source.to_native(), pair.table.to_native()
    chosen = _choose(len(positions), random)
    return Glance(original, released, positions, pair.plan, chosen, without_constants(pair)[0])


def _choose(records: int, random: np.random.Generator) -> Integers:
    if records <= RECORDS:
        return np.arange(records)
    return np.sort(random.choice(records, RECORDS, replace=False))


def _pair(original: UserTable, release: Release | UserTable, detail: Detail | None = None) -> Pair:
    given = pair_up(original, release, detail=detail, aligned=False, attributes=None, target=None)
    return without_constants(given)[0]


def _rows(table: UserTable, rows: Integers, names: Sequence[str] | None = None) -> UserTable:
    """Read some records; of a lazy table a column at a time."""
    if not isinstance(table, pl.LazyFrame):
        frame = open_table(table)
        return frame[rows, list(names or frame.columns)].to_native()
    names = names or table.collect_schema().names()
    columns = [_columns(table, [name]).select(pl.all().gather(rows)).collect() for name in names]
    return pl.concat(columns, how="horizontal")


def _columns(table: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Take columns by their places, since Polars takes names such as ``^x$`` for patterns."""
    everything = table.collect_schema().names()
    return table.select(pl.nth([everything.index(name) for name in names]))


def _parts(table: UserTable, names: Sequence[str]) -> Iterator[nw.DataFrame[Any]]:
    """Read all records, some at a time."""
    if isinstance(table, pl.LazyFrame):
        lazy = _columns(table, names)
        for first in range(0, int(lazy.select(pl.len()).collect().item()), PART):
            yield open_table(lazy.slice(first, PART).collect())
    else:
        frame = open_table(table)[list(names)]
        for first in range(0, len(frame), PART):
            yield frame[first : first + PART]


def _kind(plan: Plan, name: str) -> Kind:
    if name in plan.confidential:
        attribute = plan.confidential[name]
        if not attribute.is_category:
            return "number"
        return "ordinal" if attribute.kind == "ordinal" else "nominal"
    return "number" if name in plan.derived else "exact"


def _coded(table: nw.DataFrame[Any], kinds: dict[str, Kind], plan: Plan) -> Reals:
    """Return what attacks compare: numbers, places in an order, or what tells values apart."""
    return np.column_stack([_codes(table, name, kind, plan) for name, kind in kinds.items()])


def _codes(table: nw.DataFrame[Any], name: str, kind: Kind, plan: Plan) -> Reals:
    column = column_of(table, name)
    codes = np.full(len(column), np.nan)
    present = ~column.is_null().to_numpy().astype(np.bool_)
    values = column.drop_nulls()
    if kind == "number":
        codes[present] = numbers(values)
        return codes
    declared = plan.confidential.get(name)
    text = _as_text(category_values(values)[0]).replace(declared.recoded if declared else {})
    if kind == "ordinal":
        order = pl.Series(plan.confidential[name].declared_categories).cast(pl.String)
        codes[present] = text.cast(pl.Enum(order)).to_physical().to_numpy()
    else:
        codes[present] = text.hash(seed=0).to_numpy() >> 11  # as many bits as a double holds
    return codes


def _as_text(values: pl.Series) -> pl.Series:
    """Write values as text; spans of time, which Polars does not write so, as numbers."""
    return (values.to_physical() if values.dtype == pl.Duration else values).cast(pl.String)
