"""A quick look at a release and its original: some records, and all released ones part by part.

Nothing else need be in memory, so that a table of any size is looked at in seconds.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.attacks.known import EVERYTHING, Kind
from microveil.attacks.linkage import CandidateSearch, Linked, NearestSearch
from microveil.compare.pairing import Pair, pair_up, without_constants
from microveil.engines.beside import Beside
from microveil.engines.beside_here import BesideHere, rows_of_units
from microveil.engines.dtypes import category_values, column_of, numbers
from microveil.engines.memory import open_table
from microveil.errors import DataError, MicroveilError, noted
from microveil.formats import Table, TableMeta, load
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.release.detail import Detail
from microveil.release.protect import protect
from microveil.release.release import Release
from microveil.types import Reals, UserTable

RECORDS = 10_000
"""Records that are looked at one by one; of a larger table so many are drawn at random."""

ONE_TO_ONE = 2_000
"""People who are given released records of their own, of those that were drawn."""


@dataclass(frozen=True, eq=False)
class Glance:
    """A release beside its original, and some records of both, drawn at random.

    Attributes
    ----------
    beside
        The two tables.
    plan
        What was done.
    original, released
        What the drawn records were, and what they are.
    pair
        The same, compared.
    """

    beside: Beside
    plan: Plan
    original: UserTable
    released: UserTable
    pair: Pair

    @property
    def records(self) -> int:
        """Number of released records."""
        return self.beside.records

    @property
    def looked_at(self) -> int:
        """Number of records that were drawn."""
        return len(open_table(self.original))

    @property
    def is_whole(self) -> bool:
        """Whether all records are looked at."""
        return self.looked_at == self.records

    def nearest(self, scenario: Scenario = EVERYTHING, most: int = RECORDS) -> Linked:
        """Link those drawn, or some of them, to the nearest of all released records."""
        victims = self._victims(scenario, most)
        search = NearestSearch.of(victims.people, victims.own, **victims.given)
        seen = self.beside.fold(_Coded(victims.names, victims.kinds, self.plan, search))
        return search.linked(seen, victims.known)

    def one_to_one(self, scenario: Scenario = EVERYTHING, most: int = ONE_TO_ONE) -> Linked:
        """Give some of those drawn a released record of their own, out of all there are.

        The others whom an intruder knows do not take part, so that it may find a little more or
        less than an intruder who assigns everybody at once.
        """
        victims = self._victims(scenario, most)
        search = CandidateSearch.of(victims.people, victims.own, **victims.given)
        near = self.beside.fold(_Coded(victims.names, victims.kinds, self.plan, search))
        return search.linked(near, victims.own, victims.known)

    def _victims(self, scenario: Scenario, most: int) -> "_Victims":
        names = self.pair.attributes if scenario.known is None else scenario.known
        kinds = {name: _kind(self.plan, name) for name in names}
        few = np.linspace(0, self.looked_at, min(most, self.looked_at), endpoint=False).astype(int)
        people, own = (
            _coded(open_table(table)[few, list(names)], kinds, self.plan)
            for table in (self.original, self.released)
        )
        places = list(enumerate(kinds.values()))
        given = {
            "nominal": [number for number, kind in places if kind == "nominal"],
            "exact": [number for number, kind in places if kind == "exact"],
            "gaps": np.full(len(kinds), self.plan.missing == "keep"),
        }
        known = max(len(few), round(scenario.people * self.records))
        return _Victims(tuple(names), kinds, people, own, given, known)

    def unique(self, names: Sequence[str]) -> float:
        """Return the share of released records that share these columns with no other."""
        return self.beside.class_sizes(tuple(names)).alone / self.records

    def trial_for_structure(self, records: int, random: np.random.Generator) -> "Anew | None":
        """Protect some records anew, with the noise of the release, to see who shares values.

        Clusters of fewer records are wider, and so is their noise. Epsilon is multiplied by as much
        as there are fewer records, so that noise is about that of the release or less: otherwise
        the trial would find fewer people than there are to be found. It rather finds more, as the
        tests show, but that is no proof.
        """
        number = min(records, self.looked_at)
        times = self.records / number
        pair = self.trial(self.plan.replace(epsilon=self.plan.epsilon * times), number, random)
        return None if pair is None else Anew(pair, times)

    def trial(self, plan: Plan, records: int, random: np.random.Generator) -> Pair | None:
        """Protect some records by a plan; None if that cannot be done with so few."""
        number = min(records, self.looked_at)
        frame = open_table(self.original)
        rows = (
            np.sort(random.choice(self.looked_at, number, replace=False))
            if plan.unit is None
            else rows_of_units(column_of(frame, plan.unit), number, random)
        )
        table = frame[rows, :].to_native()
        whole = Table(table, TableMeta(inferred=self.beside.inferred))
        seed = int(random.integers(2**32))
        for tried in (plan, plan.replace(within=())):  # of so few records strata may be too small
            with suppress(MicroveilError), noted():
                return _pair(table, protect(whole, tried, seed=seed))
        return None

    def of_units(self, records: int, random: np.random.Generator) -> Pair:
        """Return all records beside the original ones, or about so many of whole units."""
        if self.is_whole:
            return self.pair
        original, released = self.beside.draw(records, random, self.plan.unit)
        drawn = len(open_table(released))
        few = Detail(self.pair.clusters, pl.DataFrame(), np.arange(drawn), self.plan)
        return _pair(original, released, few)


@dataclass(frozen=True, eq=False)
class Anew:
    """Some records that were protected anew, with so many times the epsilon."""

    pair: Pair
    times: float


@dataclass(frozen=True, eq=False)
class _Victims:
    """People who are looked for: what is known of them, what they own, and of what kinds it is."""

    names: tuple[str, ...]
    kinds: dict[str, Kind]
    people: Reals
    own: Reals
    given: dict[str, Any]
    known: int


@dataclass(frozen=True, eq=False)
class _Coded:
    """A search that sees released records as what attacks compare."""

    names: tuple[str, ...]
    kinds: dict[str, Kind]
    plan: Plan
    search: NearestSearch | CandidateSearch

    def start(self) -> Any:  # noqa: ANN401 - that of the search
        return self.search.start()

    def see(self, state: Any, part: UserTable, first: int) -> Any:  # noqa: ANN401
        return self.search.see(state, _coded(open_table(part), self.kinds, self.plan), first)

    def merge(self, one: Any, other: Any) -> Any:  # noqa: ANN401
        return self.search.merge(one, other)


def glance(original: UserTable, release: Release, random: np.random.Generator) -> Glance:
    """Look at a release and its original, which may be a lazy table of Polars."""
    beside = beside_of(original, release)
    return look_at(beside, RECORDS, random, release.plan, release.detail)


def look_at(
    beside: Beside, number: int, random: np.random.Generator, plan: Plan, detail: Detail
) -> Glance:
    """Draw so many records and compare them."""
    original, released = beside.draw(number, random, plan.unit)
    few = of_drawn(detail, beside, len(open_table(released)))
    return Glance(beside, plan, original, released, _pair(original, released, few))


def of_drawn(detail: Detail, beside: Beside, drawn: int) -> Detail:
    """Return the private detail as it is of records that were drawn."""
    known = beside.clusters()
    return replace(
        detail,
        clusters=detail.clusters if known is None else known,
        positions=np.arange(drawn),
        joint={},
        protected_sha256=None,
    )


def beside_of(original: UserTable, release: Release) -> Beside:
    """Put a release beside its original, wherever its engine keeps them."""
    beside = release.rows.beside_original()
    if beside is not None:
        return beside
    inferred = False
    if not isinstance(original, pl.LazyFrame):
        table = load(original, **release.plan.reading)
        original, inferred = table.data, table.meta.inferred
    clusters, positions = release.detail.clusters, release.detail.positions
    if positions is None:
        raise DataError(
            "it is not known which record is whose, so nobody can be looked for; give the release "
            "that protect returned"
        )
    return BesideHere(original, release.data, positions, clusters, inferred)


def glance_again(pair: Pair, random: np.random.Generator) -> Glance | None:
    """Look again at two tables that were compared; None if that is not known which is needed."""
    if pair.plan is None or pair.positions is None or pair.order is None:
        return None
    positions = np.empty(len(pair.order), dtype=np.int64)
    positions[pair.order] = pair.positions
    beside = BesideHere(pair.source.to_native(), pair.table.to_native(), positions)
    original, released = beside.draw(RECORDS, random, pair.plan.unit)
    return Glance(beside, pair.plan, original, released, without_constants(pair)[0])


def _pair(original: UserTable, release: Release | UserTable, detail: Detail | None = None) -> Pair:
    given = pair_up(original, release, detail=detail, aligned=False, attributes=None, target=None)
    return without_constants(given)[0]


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
