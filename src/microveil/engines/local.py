"""A table on this machine, in memory or in files, and the engine that masks it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Self, TypeVar

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    CategorySettings,
    NumericSettings,
)
from microveil.core.expected_squares import expected_errors, expected_squares
from microveil.core.grid import Grid, grid_of_observed
from microveil.core.joint import cluster_points, place_records
from microveil.core.joint_units import JointLabels, cluster_units
from microveil.core.linear_rules import KeptRule, Rule, System, how_kept, keep, reference
from microveil.core.mask import mask_singly
from microveil.core.pooling import (
    JointClusters,
    Pool,
    average,
    average_categories,
    collect_clusters,
    holds_the_same,
)
from microveil.core.random_words import SeededWords, WordSource, open_words, random_order
from microveil.core.related_exchange import ReadRows, RelatedExchange
from microveil.core.relation_model import RowValues, masked_in_rows
from microveil.engines.base import (
    CategoryFacts,
    Column,
    Facts,
    Lasting,
    Pooled,
    Preparation,
    Released,
    Shift,
    UnitFacts,
    Views,
)
from microveil.engines.column_source import ColumnSource
from microveil.engines.detail_rows import loss_row
from microveil.engines.dtypes import (
    category_values,
    column_like,
    comparable,
    each_text,
    is_present,
    listed_categories,
    numbers,
    numbers_with_gaps,
    own_categories,
    polars_of,
    shifted,
    text_column,
)
from microveil.engines.lasting_clusters import (
    PersonsPresent,
    kept_series,
    lasting_labels,
    look_at_persons,
)
from microveil.engines.layout import Layout, kept_values, numbered
from microveil.engines.refusals import (
    leaves_the_calendar,
    no_finite_result,
    no_person,
    no_pseudonym,
    pooled_wrongly,
)
from microveil.engines.strata import MaskedStrata, Order, mask_strata, shuffle_equal
from microveil.errors import DataError
from microveil.plan.roles import Derived
from microveil.plan.rules import linear
from microveil.types import Booleans, Integers, Reals, UserTable

Number = TypeVar("Number", np.int64, np.float64)
ReadValues = Callable[[AttributeSettings], tuple[NDArray[Any], Booleans]]
"""Reads the values of an attribute that are present, and says which records they are of."""

_NO_RESULT = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    ArithmeticError,
    TypeError,
    ValueError,
)
_MICROSECONDS_OF_A_DAY = 86_400e6
_PYTHON: dict[str, type] = {"text": str, "whole numbers": int, "true/false values": bool}


class LocalTable:
    """A table on this machine; it never changes."""

    def __init__(self, source: ColumnSource, preparation: Preparation | None = None) -> None:
        self.source, self._preparation = source, preparation or Preparation()
        self._views: Views[Self] = Views()

    @property
    def records(self) -> int:
        """Number of records."""
        return self.source.records

    @property
    def columns(self) -> Mapping[str, Column]:
        """Columns in table order."""
        return self.source.columns

    def prepared(self, preparation: Preparation) -> Self:
        """Return a prepared view of this table, the same one for equal preparations."""
        return self._views.of(
            preparation, lambda: type(self)(self.source.prepared(preparation), preparation)
        )

    def engine(self) -> "LocalEngine":
        """Return a new engine for this table, which has masked nothing yet."""
        return LocalEngine(self)

    def discard(self) -> None:
        """Nothing is stored."""

    @cached_property
    def layout(self) -> Layout:
        """Which records are of one unit and of one stratum."""
        prepared = self._preparation
        unit = [prepared.unit] if prepared.unit else []
        return Layout(
            frozenset(prepared.per_unit), self._numbered(unit), self._numbered(prepared.strata)
        )

    def _numbered(self, names: Sequence[str]) -> Integers | None:
        columns = (comparable(self.source.column(name), name) for name in names)
        return numbered(list(columns)) if names else None

    def unit_facts(self, same: Sequence[str]) -> UnitFacts:
        """Look at units; attributes that are the `same` should have one value in each."""
        unit = self._preparation.unit
        if unit is None:
            return UnitFacts()
        return UnitFacts(
            missing=self.source.column(unit).null_count(),
            largest=self.layout.largest_unit,
            differing={name: self._differing(name) for name in same},
        )

    def _differing(self, attribute: str) -> int:
        differs = self.layout.differs(polars_of(self.source.column(attribute)))
        codes = self.source.missing_codes.get(attribute)
        if codes is not None and attribute in self.layout.per_unit:
            differs |= self.layout.differs(codes)
        return int(np.count_nonzero(differs))

    def stratum_sizes(self, attribute: str | None = None, *, units: bool = False) -> Integers:
        """Count the values of an attribute in each stratum, or the `units` that have one.

        Without an attribute, what is pooled there: units, or records where there are none.
        """
        layout = self.layout
        if attribute is None:
            rows = np.arange(self.records) if layout.unit is None else layout.first
            stratum = layout.stratum
            return np.bincount(np.zeros_like(rows) if stratum is None else stratum[rows])
        present, strata = self.present(attribute), layout.strata_of(attribute)
        found = np.zeros(len(present), np.int64) if strata is None else strata
        found = found[present]
        if units and layout.unit is not None and attribute not in layout.per_unit:
            pairs = np.column_stack([found, layout.unit[present]])
            found = np.unique(pairs, axis=0)[:, 0]
        return np.bincount(found)

    def counted(self, attribute: str) -> int:
        """Count the records, or the units if the attribute has one value for each of them."""
        rows = self.layout.counting(attribute)
        return self.records if rows is None else len(rows)

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at columns as numbers; `outside` counts values outside their domain."""
        return {attribute: self.look(attribute, *ends) for attribute, ends in domains.items()}

    def look(self, attribute: str, lower: float, upper: float) -> Facts:
        """Look at one column as numbers."""
        from microveil.core.kernels import sorting as kernels

        column = self._counting(attribute)
        values, counted, nulls = self._values(attribute, column), len(column), column.null_count()
        not_finite, fractional, outside, smallest, largest = kernels.look_through(
            values, lower, upper
        )
        return Facts(
            counted=counted,
            nulls=nulls,
            not_numbers=counted - nulls - len(values),
            not_finite=not_finite,
            fractional=fractional,
            smallest=smallest,
            largest=largest,
            outside=outside,
        )

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only filled in where none are declared."""
        values, holds = category_values(self._counting(attribute))
        counted, values, nulls = len(values), values.drop_nulls(), values.null_count()
        if categories is None:
            seen = tuple(values.unique().sort().to_list()) if holds != "other values" else ()
            return CategoryFacts(counted, nulls, holds, seen=seen)
        outside = len(values)
        if type(categories[0]) is _PYTHON.get(holds):
            outside -= int(values.is_in(list(categories)).sum())
        listed = listed_categories(self.source.column(attribute))
        unknown = 0 if listed is None else len(set(categories) - listed)
        return CategoryFacts(counted, nulls, holds, outside, unknown)

    def observed_grid(self, attribute: str) -> Grid:
        """Return the grid of the last decimal seen in a numeric column."""
        single = self.columns[attribute].single_precision
        return grid_of_observed(self._values(attribute), single_precision=single)

    def expected_errors(self, attribute: NumericSettings, ks: Sequence[int]) -> Reals:
        """Return the expected squared error of an attribute with clusters of each k."""
        parts = [expected_errors(p, attribute, ks, unit) for p, unit in self.ranked(attribute)]
        errors: Reals = np.sum(parts, axis=0)
        return errors

    def expected_squares(self, attribute: NumericSettings, *, clamped: bool) -> tuple[float, float]:
        """Return the squares within clusters and the expected squares of noise, in grid steps."""
        parts = [
            expected_squares(part, attribute, unit, clamped=clamped)
            for part, unit in self.ranked(attribute)
        ]
        within, noise = zip(*parts, strict=True)
        return sum(within), sum(noise)

    def ranked(self, attribute: NumericSettings) -> list[tuple[Integers, Integers | None]]:
        """Return the values of an attribute in grid steps, ascending, stratum by stratum.

        Where it is masked by unit, with the unit of each; equal values are in some random order,
        the same every time.
        """
        (order, ranked), unit = self.rank(attribute), self.units_of(attribute)
        parts = self.parts_of(attribute)
        if unit is None:
            return [(ranked[part], None) for part in parts]
        for part in parts:
            shuffle_equal(order[part], ranked[part], SeededWords(0))
        return [(ranked[part], unit[order[part]]) for part in parts]

    def units_of(self, attribute: AttributeSettings) -> Integers | None:
        """Return the unit of each value of an attribute that is masked by unit; else None."""
        if not attribute.by_unit or self.layout.unit is None:
            return None
        return self.layout.unit[self.present(attribute.name)]

    def rank(self, attribute: AttributeSettings) -> tuple[Order, Integers]:
        """Return the order of ascending steps, which the caller may change, and these steps.

        Strata come one after the other.
        """
        order, ranked = _rank(self.steps(attribute))
        strata = self.layout.strata_of(attribute.name)
        if strata is None:
            return order, ranked
        by_stratum = np.argsort(strata[self.present(attribute.name)][order], kind="stable")
        return order[by_stratum], ranked[by_stratum]

    def parts_of(self, attribute: AttributeSettings) -> list[slice]:
        """Return where the values of each stratum lie in rank order; strata may have none."""
        ends = np.cumsum(self.stratum_sizes(attribute.name)).tolist()
        return [slice(a, b) for a, b in pairwise([0, *ends]) if a < b]

    def steps(self, attribute: AttributeSettings) -> Integers:
        """Return values in grid steps, or codes of categories, in record order.

        Missing ones are left out.
        """
        if isinstance(attribute, CategorySettings):
            return codes_of(self._counting(attribute.name), attribute.categories)
        from microveil.core.kernels import sorting as kernels

        grid = attribute.grid
        return kernels.to_steps(self._values(attribute.name), grid.step, grid.origin)

    def present(self, attribute: str) -> Booleans:
        """Which records have a value, or which units if the attribute has one for each."""
        return is_present(self._counting(attribute))

    def read(self, attribute: AttributeSettings) -> tuple[Integers, Booleans]:
        """Return the steps of an attribute, and which records or units have a value."""
        return self.steps(attribute), self.present(attribute.name)

    def cluster_jointly(self, pool: Pool, seed: int | None) -> tuple[JointLabels, int]:
        """Cluster records, or units, on original values; return labels and the number of parts."""
        return cluster_jointly(self, pool, seed, self.read)

    def _counting(self, attribute: str) -> nw.Series[Any]:
        return self.layout.values_counting(attribute, self.source.column(attribute))

    def _values(self, attribute: str, column: nw.Series[Any] | None = None) -> Reals:
        """Return the numbers of a column, or what text can be read as, coded as the plan says."""
        column = self._counting(attribute) if column is None else column
        if self.columns[attribute].kind is None:
            texts = pl.Series(map(str, column.drop_nulls().to_list()), dtype=pl.String)
            return texts.cast(pl.Float64, strict=False).drop_nulls().to_numpy()
        values = numbers(column.drop_nulls() if column.null_count() else column)
        coding = self._preparation.codings.get(attribute)
        return values if coding is None else coding.of(values)


def cluster_jointly(
    table: LocalTable, pool: Pool, seed: int | None, read: ReadValues
) -> tuple[JointLabels, int]:
    """Cluster records, or units, on the values that are read.

    Returns the labels and the number of parts.
    """
    ties = open_words(seed, f"joint {', '.join(pool.names)}")
    layout, k = table.layout, pool.anonymity
    own, members = place_all(table, pool, read)
    if layout.unit is None:
        label, parts = cluster_points(own, k, ties, strata=layout.stratum)
        return JointLabels(label), parts
    strata = None if layout.stratum is None else layout.stratum[layout.first]
    return cluster_units(own, members, layout.unit, k, ties, strata)


def place_all(table: LocalTable, pool: Pool, read: ReadValues) -> tuple[Reals, Reals]:
    """Place units, and their records, in spaces of their own; without units, all records."""
    layout = table.layout
    if layout.unit is None:
        return place_records(pool.attributes, table.records, read), np.empty((table.records, 0))
    units, records = ([a for a in pool.attributes if a.per_unit == x] for x in (True, False))
    own = place_records(units, len(layout.first), read)
    return own, place_records(records, table.records, read)


class LocalEngine:
    """Masks a table on this machine."""

    def __init__(self, table: LocalTable) -> None:
        self._table, self._shelf = table, table.source.shelf()
        self._declared: dict[str, tuple[Category, ...]] = {}
        self._lasting: tuple[Lasting, PersonsPresent] | None = None

    @property
    def threads(self) -> int:
        """How many attributes may be masked at once."""
        return self._table.source.threads

    def last(self, lasting: Lasting, pool: Pool) -> None:
        """Look at persons whose joint clusters last, before anything is masked."""
        table, codes = self._table, self._table.source.missing_codes
        kept = [
            series
            for name in pool.kept
            for series in kept_series(name, table.source.column(name), codes.get(name))
        ]
        named = self._texts(lasting.person).alias(lasting.person)
        present = look_at_persons(named, table.layout, kept, pool.anonymity)
        lasting.check(present.names)
        self._lasting = lasting, present

    def hide(
        self, pseudonyms: Mapping[str, Callable[[str], str]], shifts: Mapping[str, Shift]
    ) -> dict[str, int]:
        """Replace values by pseudonyms, and shift the dates of each person."""
        most = {name: self._pseudonymise(name, of) for name, of in pseudonyms.items()}
        for name, shift in shifts.items():
            self._shift(name, *shift)
        return most

    def _pseudonymise(self, attribute: str, pseudonym: Callable[[str], str]) -> int:
        texts = self._texts(attribute)
        hidden = each_text(texts, pseudonym, pl.String())
        self._shelf.put(attribute, text_column(hidden, self._table.source.like(attribute)))
        counts = texts.drop_nulls().value_counts()["count"]
        return int(counts.max()) if len(counts) else 0  # type: ignore[arg-type]

    def _shift(self, attribute: str, person: str, days: Callable[[str], int]) -> None:
        people, moments = self._texts(person), polars_of(self._table.source.column(attribute))
        unknown = int((people.is_null() & moments.is_not_null()).sum())
        if unknown:
            raise no_person(attribute, person, unknown)
        number = each_text(people, days, pl.Int64())
        moved, outside = shifted(moments, number, self._table.columns[attribute])
        if outside:
            raise leaves_the_calendar(attribute, outside)
        self._keep(attribute, moved)

    def _texts(self, attribute: str) -> pl.Series:
        """Return the values of a column of text or whole numbers as text."""
        values, holds = category_values(self._table.source.column(attribute))
        if holds not in ("text", "whole numbers"):
            raise no_pseudonym(attribute)
        return values.cast(pl.String)

    def mask(self, attribute: AttributeSettings, seed: int | None) -> pl.DataFrame:
        """Mask an attribute; return its row of the table of losses."""
        words = open_words(seed, f"attribute {attribute.name}")
        if attribute.method.clustered:
            ties = open_words(seed, f"ties {attribute.name}")
            values, masked = mask_strata(
                self._table.rank(attribute),
                self._table.parts_of(attribute),
                self._table.units_of(attribute),
                attribute,
                words,
                ties,
            )
        else:
            alone = mask_singly(self._table.steps(attribute), attribute, words)
            values, masked = alone.values, MaskedStrata.of(alone, attribute)
        self._mix_codes(attribute.name, seed)
        if isinstance(attribute, CategorySettings):
            if attribute.domain_source == "declared":
                self._declared[attribute.name] = attribute.categories
            self._keep_codes(attribute, self._for_everyone(attribute.name, values, -1))
        else:
            self._keep_numbers(attribute.name, self._for_everyone(attribute.name, values, np.nan))
        self._shelf.describe(attribute, masked.description)
        return loss_row(attribute, masked.fixed, masked.re_clustered)

    def _missing_codes(self, attribute: str) -> pl.Series | None:
        return self._table.source.missing_codes.get(attribute)

    def _mix_codes(self, attribute: str, seed: int | None) -> None:
        """Put the missing codes of an attribute in random order among those without a value."""
        codes = self._missing_codes(attribute)
        if codes is None:
            return
        missing = np.flatnonzero(~self._table.present(attribute))
        order = random_order(len(missing), open_words(seed, f"missing codes {attribute}"))
        giver = np.arange(self._table.counted(attribute))
        giver[missing] = missing[order]
        self._shelf.missing_codes[attribute] = codes.gather(
            self._giver_of_records(attribute, giver)
        )

    def _giver_of_records(self, attribute: str, giver: Integers) -> Integers:
        """Return the giver of every record, given that of every value that counts."""
        rows = self._table.layout.counting(attribute)
        return giver if rows is None else self._table.layout.spread(attribute, rows[giver])

    def _keep_codes(self, attribute: CategorySettings, codes: Integers) -> None:
        """Keep the categories of these codes, −1 where there is none."""
        self._keep(attribute.name, pl.Series([*attribute.categories, None]).gather(codes))

    def _keep_numbers(self, attribute: str, values: Reals) -> None:
        """Keep masked numbers, NaN where there is none."""
        self._keep(attribute, pl.Series(values, nan_to_null=True))

    def masked(self, attribute: AttributeSettings) -> Reals:
        """Return released numbers, or codes of categories, of all records; NaN where one lacks."""
        return _with_gaps(self._released(attribute.name), attribute)

    def take(self, attribute: AttributeSettings, values: Reals) -> None:
        """Keep masked values that came about elsewhere, as `masked` returns them."""
        if isinstance(attribute, CategorySettings):
            self._keep_codes(attribute, np.where(np.isnan(values), -1, values).astype(np.int64))
        else:
            self._keep_numbers(attribute.name, values)

    def _for_everyone(
        self, attribute: str, values: NDArray[Number], absent: float
    ) -> NDArray[Number]:
        """Return one value for every record, `absent` where it has none."""
        counted = self._table.counted(attribute)
        if len(values) < counted:
            given, values = values, np.full(counted, absent, dtype=values.dtype)
            values[self._table.present(attribute)] = given
        return self._table.layout.spread(attribute, values)

    def pool(self, pool: Pool, seed: int | None) -> Pooled:
        """Pool the masked values of attributes in joint clusters, and check that it came out right.

        Missing values are pooled as well.
        """
        table, joint, clusters = self._table, {}, {}
        if self._lasting is not None:
            labels, parts = self._lasting_clusters(*self._lasting, pool, seed), 1
        elif pool.follows_masked_values:
            labels, parts = cluster_jointly(table, pool, seed, self._read_masked)
        else:
            labels, parts = table.cluster_jointly(pool, seed)
        for level in pool.levels:
            label, names = labels.of(level[0]), ", ".join(a.name for a in level)
            joint[names] = table.layout.spread(level[0].name, label)
            clusters[level[0].per_unit] = found = collect_clusters(label)
            if found.smallest < pool.anonymity:
                raise pooled_wrongly(pool.names, f"a joint cluster has {found.smallest} records")
        words = open_words(seed, f"pooling {', '.join(pool.names)}")
        if pool.pooling == "average":
            smallest = self._average(pool, clusters, words)
            return Pooled(parts, smallest, joint, unit=table.layout.unit)
        related = self._exchange(pool, clusters, words)
        return Pooled(parts, None, joint, related=related, unit=table.layout.unit)

    def _lasting_clusters(
        self, lasting: Lasting, present: PersonsPresent, pool: Pool, seed: int | None
    ) -> JointLabels:
        read = self._read_masked if pool.follows_masked_values else self._table.read
        ties = open_words(seed, f"joint {', '.join(pool.names)}")
        own, members = place_all(self._table, pool, read)
        layout = self._table.layout
        return lasting_labels(present, layout, own, members, pool, lasting.assign, ties)

    def _read_masked(self, attribute: AttributeSettings) -> tuple[NDArray[Any], Booleans]:
        present = self._table.present(attribute.name)
        return self._masked_values(attribute)[present], present

    def _exchange(self, pool: Pool, clusters: dict[bool, JointClusters], words: WordSource) -> bool:
        """Exchange values of units, then those of records, by models fitted before either.

        Returns whether there are any models.
        """
        for attribute in pool.attributes:  # missing codes are exchanged with values, not mixed
            codes = self._missing_codes(attribute.name)
            if codes is not None:
                self._shelf.missing_codes[attribute.name] = codes
        fitted = [self._fitted(pool, level, clusters[level[0].per_unit], words)
                  for level in pool.levels]  # fmt: skip
        for level, related in zip(pool.levels, fitted, strict=True):
            kept, exchanged = self._readers(pool, level)
            for place, giver in related.draw(kept, exchanged, words):
                self._give(level[place].name, giver, related.clusters)
        return any(related.related for related in fitted)

    def _fitted(
        self, pool: Pool, level: Sequence[AttributeSettings], clusters: JointClusters,
        words: WordSource,
    ) -> RelatedExchange:  # fmt: skip
        layout, (kept, exchanged) = self._table.layout, self._readers(pool, level)
        persons = None if level[0].per_unit else layout.unit
        strata = layout.strata_of(level[0].name)
        return RelatedExchange.fit(
            clusters, kept, exchanged, pool.block, words, strata=strata, persons=persons
        )

    def _readers(
        self, pool: Pool, level: Sequence[AttributeSettings]
    ) -> tuple[list[ReadRows], list[ReadRows]]:
        """Return what reads the columns that stay in the rows of a level, and its attributes."""
        layout, kept = self._table.layout, list(pool.kept)
        rows = layout.counting(level[0].name)
        if rows is not None:  # a unit has a kept value if all of its records have it
            kept = [n for n in kept if not layout.differs(polars_of(self._released(n))).any()]
        columns = [partial(self._kept_values, name, rows) for name in kept]
        above = [a for a in pool.attributes if a.per_unit and not level[0].per_unit]
        values = [partial(self._row_values, a, None) for a in above]
        return [*columns, *values], [partial(self._row_values, a, rows) for a in level]

    def _row_values(self, attribute: AttributeSettings, rows: Integers | None) -> RowValues:
        """Return what an attribute has in all rows now, or in some."""
        column = self._released(attribute.name)
        column = column if rows is None else column[rows]
        return masked_in_rows(
            attribute, _with_gaps(column, attribute), self._why_missing(attribute, rows)
        )

    def _why_missing(self, attribute: AttributeSettings, rows: Integers | None) -> Integers | int:
        """Return numbers of the missing codes of all rows, or of some; 0 where there are none."""
        codes = self._shelf.missing_codes.get(attribute.name)
        if codes is None:
            return 0
        return numbered([codes if rows is None else codes.gather(rows)])

    def _kept_values(self, name: str, rows: Integers | None) -> RowValues:
        """Return what a kept column has in all rows, or in some."""
        column = self._released(name)
        column = column if rows is None else column[rows]
        return kept_values(column, name)

    def _give(self, attribute: str, giver: Integers, clusters: JointClusters) -> None:
        """Give every record, or unit, the value of another of its joint cluster."""
        before, codes = self._released_bits(attribute), self._shelf.missing_codes.get(attribute)
        giver = self._giver_of_records(attribute, giver)
        given = self._released(attribute)[giver]
        self._shelf.put(attribute, nw.maybe_reset_index(given))
        if codes is not None:
            self._shelf.missing_codes[attribute] = codes.gather(giver)
        if not holds_the_same(before, self._released_bits(attribute), clusters):
            raise pooled_wrongly([attribute], "a masked value left its joint cluster")

    def _average(self, pool: Pool, by_level: dict[bool, JointClusters], words: WordSource) -> int:
        for attribute in pool.attributes:
            clusters = by_level[attribute.per_unit]
            values, present = self._masked_values(attribute), self._table.present(attribute.name)
            averaged = clusters.spread(average(attribute, values, clusters, present, words))
            spread = self._table.layout.spread(attribute.name, averaged)
            if isinstance(attribute, CategorySettings):
                self._keep_codes(attribute, spread)
            else:
                self._keep_numbers(attribute.name, spread)
            self._choose_code(attribute.name, clusters, words)
        smallest = self._smallest_class(pool.names)
        if smallest < pool.anonymity:
            raise pooled_wrongly(pool.names, f"the release is {smallest}-anonymous")
        return smallest

    def _choose_code(self, attribute: str, clusters: JointClusters, words: WordSource) -> None:
        """Give those of a joint cluster that has no average its commonest missing code."""
        codes, rows = self._missing_codes(attribute), self._table.layout.counting(attribute)
        if codes is None:
            return
        number = numbered([codes if rows is None else codes.gather(rows)])
        missing = ~self._table.present(attribute)
        chosen = average_categories(number, clusters, missing, words, ordinal=False)
        first = np.unique(number, return_index=True)[1]
        giver = self._giver_of_records(attribute, first[clusters.spread(chosen)])
        averaged = pl.Series(is_present(self._released(attribute)))
        self._shelf.missing_codes[attribute] = codes.gather(giver).set(averaged, None)

    def _masked_values(self, attribute: AttributeSettings) -> NDArray[Any]:
        """Return masked numbers, or codes of masked categories, that count; 0 if missing."""
        present = self._table.present(attribute.name)
        released = self._released_counting(attribute.name)
        values: NDArray[Any] = (
            codes_of(released, attribute.categories)
            if isinstance(attribute, CategorySettings)
            else numbers(released.drop_nulls())
        )
        everyone = np.zeros(len(present), dtype=values.dtype)
        everyone[present] = values
        return everyone

    def _smallest_class(self, attributes: tuple[str, ...]) -> int:
        """Count the records of the rarest combination of masked values."""
        masked = [self._released(name).to_polars() for name in attributes]
        numbered = pl.DataFrame({str(place): column for place, column in enumerate(masked)})
        sizes = numbered.group_by(numbered.columns).len("records")["records"]
        return int(sizes.min())  # type: ignore[arg-type]

    def keep_rules(
        self, rules: Sequence[Rule], systems: Sequence[System]
    ) -> tuple[list[int | None], list[KeptRule]]:
        """Change masked values so that rules are kept; say what that took."""
        kept = [one for system in systems for one in self._keep_system(system)]
        return [self._count_broken(rule) for rule in rules], kept

    def _count_broken(self, rule: Rule) -> int:
        """Count the original records that break a rule."""
        column = self._table.source.column
        return int(
            rule.broken({name: numbers_with_gaps(column(name)) for name in rule.factors}).sum()
        )

    def _keep_system(self, system: System) -> list[KeptRule]:
        values = {name: numbers_with_gaps(self._released(name)) for name in system.names}
        kept = keep(system, values, None if system.fixed else reference(system))
        for column in system.movable:
            if not np.array_equal(values[column.name], kept[column.name], equal_nan=True):
                self._keep_numbers(column.name, kept[column.name])
        return how_kept(system, values, kept)

    def finish(self, attributes: Sequence[str], derived: Mapping[str, Derived]) -> Released:
        """Recompute derived attributes, in this order; return the masked table with these columns.

        It is of the kind and types that came in.
        """
        for attribute, recipe in derived.items():
            undefined = self.derive_one(attribute, recipe)
            if undefined:
                raise no_finite_result(attribute, undefined, self._table.records)
        return self._shelf.release(self._columns(attributes))

    def _columns(self, attributes: Sequence[str]) -> Iterator[tuple[str, nw.Series[Any]]]:
        for name in attributes:
            yield name, own_categories(self._released(name), self._declared.get(name, ()))

    def clusters(self, attributes: Sequence[str]) -> UserTable:
        """Return the private description of the clusters of attributes that were masked."""
        return self._shelf.clusters(attributes)

    def derive_one(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute, unless some records, which are counted, have no finite result."""
        inputs = pl.DataFrame({name: self._released(name).to_polars() for name in derived.inputs})
        inputs = inputs.with_columns(cs.numeric().cast(pl.Float64))  # which does not wrap around
        clock = self._table.columns[attribute].clock
        if clock in ("date", "datetime") and linear(derived.expression):
            inputs = _with_numbers_as_days(inputs)
        known = inputs.select(~pl.any_horizontal(pl.all().is_null())).to_series()
        try:
            result = _evaluate(derived, inputs)
            if not result.equals(_evaluate(derived, inputs.reverse()).reverse()):
                raise DataError(
                    "its expression depends on the order of records; compute it record by record",
                    attribute=attribute,
                    setting="expression",
                )
            if result.dtype == pl.Duration and clock is None:
                result = result.dt.total_microseconds() / _MICROSECONDS_OF_A_DAY
            valid = result.is_not_null()
            if result.dtype.is_numeric():
                valid &= result.is_finite().fill_null(value=False)
            undefined = int((known & ~valid).sum())
            if not undefined:
                self._keep(attribute, result)
        except DataError:
            raise
        except _NO_RESULT:
            raise DataError(
                "its expression cannot be computed from these column types, or does not give "
                f"{self._table.columns[attribute].type_name}; change it",
                attribute=attribute,
                setting="expression",
            ) from None
        return undefined

    def _keep(self, attribute: str, masked: pl.Series) -> None:
        self._shelf.put(attribute, column_like(self._table.source.like(attribute), masked))

    def _released(self, attribute: str) -> nw.Series[Any]:
        masked = self._shelf.get(attribute)
        return self._table.source.column(attribute) if masked is None else masked

    def _released_counting(self, attribute: str) -> nw.Series[Any]:
        return self._table.layout.values_counting(attribute, self._released(attribute))

    def _released_bits(self, attribute: str) -> Integers:
        """Return a number for every released value by which equal values can be told."""
        return polars_of(self._released_counting(attribute)).hash().to_numpy().view(np.int64)


def codes_of(column: nw.Series[Any], categories: tuple[Category, ...]) -> Integers:
    """Return the codes of the categories that are present."""
    values, _ = category_values(column)
    codes = list(range(len(categories)))
    coded = values.drop_nulls().replace_strict(list(categories), codes, return_dtype=pl.Int64)
    return coded.to_numpy()


def _with_gaps(column: nw.Series[Any], attribute: AttributeSettings) -> Reals:
    """Return numbers, or codes of categories; NaN where one is missing."""
    if not isinstance(attribute, CategorySettings):
        return numbers_with_gaps(column)
    codes = np.full(len(column), np.nan)
    codes[is_present(column)] = codes_of(column, attribute.categories)
    return codes


def _rank(values: Integers) -> tuple[Order, Integers]:
    """Return the order of ascending values, and the values in it."""
    from microveil.core.kernels import sorting as kernels

    small = np.uint32 if len(values) < 2**32 else np.int64
    order, spare = np.empty(len(values), small), np.empty(len(values), small)
    ranked = kernels.sort_steps(values, order, spare)
    return order, ranked


def _with_numbers_as_days(inputs: pl.DataFrame) -> pl.DataFrame:
    """Let numbers beside dates count days, as they do in rules."""
    if not inputs.select(cs.date() | cs.datetime()).width:
        return inputs
    microseconds = (cs.numeric() * _MICROSECONDS_OF_A_DAY).round().cast(pl.Int64)
    return inputs.with_columns(microseconds.cast(pl.Duration("us")))


def _evaluate(derived: Derived, inputs: pl.DataFrame) -> pl.Series:
    result = inputs.with_columns(derived.parsed.alias("result"))["result"]
    return result.cast(pl.Float64) if result.dtype.is_numeric() else result
