"""The engine for tables in memory: Polars, pandas or PyArrow, through narwhals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeVar

import narwhals as nw
import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import NDArray

from microveil.core.attribute import (
    AttributeSettings,
    Category,
    CategorySettings,
    NumericKind,
    NumericSettings,
)
from microveil.core.coding import Coding
from microveil.core.expected_squares import expected_errors, expected_squares
from microveil.core.grid import Grid, grid_of_observed
from microveil.core.joint import cluster_points, points_of
from microveil.core.joint_units import JointLabels, cluster_units
from microveil.core.linear_rules import Kept, Rule, System, how_kept, keep, reference
from microveil.core.mask import Description, mask_singly, publish
from microveil.core.noise import WordSource, open_words, random_order
from microveil.core.pooling import (
    JointClusters,
    Pool,
    average_categories,
    average_numbers,
    clusters_of,
    exchange,
    holds_the_same,
)
from microveil.engines.base import (
    CategoryFacts,
    Column,
    Facts,
    Pooled,
    Released,
    TextFacts,
    UnitFacts,
)
from microveil.engines.detail_rows import cluster_rows, losses_of
from microveil.engines.dtypes import (
    as_objects,
    category_values,
    column_like,
    column_of,
    describe,
    grouped,
    listed_categories,
    numbers,
    own_categories,
    polars_of,
    shifted,
    with_decimals,
    with_gaps,
)
from microveil.engines.layout import Layout, numbered
from microveil.engines.strata import MaskedStrata, Order, mask_strata
from microveil.errors import DataError
from microveil.machine import available_cores
from microveil.plan.plan import Plan
from microveil.plan.roles import Derived
from microveil.types import Integers, Reals, UserTable

Number = TypeVar("Number", np.int64, np.float64)
_MOST_THREADS = 8  # each holds a few columns of temporary values
_NO_RESULT = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    ArithmeticError,
    TypeError,
    ValueError,
)
_PYTHON: dict[str, type] = {"text": str, "whole numbers": int, "true/false values": bool}


class MemoryEngine:
    """A table in memory."""

    def __init__(self, data: UserTable, *, inferred: bool = False) -> None:
        self._frame = open_table(data)
        self._objects = _decimal_objects(data, self._frame)
        self._inferred = inferred
        self._positions: Integers = np.arange(len(self._frame))
        self._joint: dict[str, Integers] = {}
        self._described: dict[str, tuple[AttributeSettings, Description]] = {}
        self._plain: dict[str, nw.Series[Any]] = {}
        self._masked: dict[str, nw.Series[Any]] = {}
        self._declared: dict[str, tuple[Category, ...]] = {}
        self._coding: dict[str, Coding] = {}
        self._layout = Layout()

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self._frame)

    @property
    def threads(self) -> int:
        """How many attributes may be worked on at once: one for each core, within reason."""
        return min(available_cores(), _MOST_THREADS)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Columns in table order."""
        return {
            name: replace(describe(dtype), inferred=self._inferred)
            for name, dtype in self._frame.schema.items()
        }

    def convert(self, kinds: Mapping[str, NumericKind]) -> None:
        """Make whole numbers real where the plan says so, and inferred real numbers whole."""
        wanted = self._wanted_types(kinds)
        self._frame = self._frame.with_columns(
            *(self._frame[name].cast(dtype) for name, dtype in wanted.items())
        )
        self._plain = {}
        self.__dict__.pop("columns", None)

    def _wanted_types(self, kinds: Mapping[str, NumericKind]) -> dict[str, nw.dtypes.DType]:
        columns = self.columns
        wanted: dict[str, nw.dtypes.DType] = {}
        for name, kind in kinds.items():
            column = columns[name]
            if (kind, column.kind, column.clock) == ("real", "integer", None):
                wanted[name] = nw.Float64()
            elif (kind, column.kind) == ("integer", "real") and column.inferred:
                values = self._column(name).drop_nulls()
                if bool((values.round() == values).all()):
                    wanted[name] = nw.Int64()
        return wanted

    def code(self, codings: Mapping[str, Coding]) -> None:
        """Code the numbers of these columns, and of no others, whenever they are looked at."""
        self._coding = dict(codings)

    def recode(self, attribute: str, groups: Mapping[str, str]) -> None:
        """Put groups, as text, in the place of categories; what is in none stays as it is."""
        texts = grouped(self._frame[attribute], groups).to_list()
        library = self._frame.implementation
        column = nw.new_series("column", texts, nw.String, backend=library)
        self._frame = self._frame.with_columns(column.alias(attribute))
        self._plain.pop(attribute, None)
        self.__dict__.pop("columns", None)

    def arrange(self, plan: Plan) -> UnitFacts:
        """Look at which records are of one unit and of one stratum, if the plan names them."""
        unit, strata = (plan.unit,) if plan.unit else (), plan.within
        self._layout = Layout(
            frozenset(plan.per_unit), *(self._numbered(names) for names in (unit, strata))
        )
        if not plan.unit:
            return UnitFacts()
        same = (*plan.per_unit, *(plan.within if plan.per_unit or plan.pooled_groups else ()))
        return UnitFacts(
            missing=self._column(plan.unit).null_count(),
            largest=self._layout.largest_unit,
            differing={name: self._differing(name) for name in same},
        )

    def _differing(self, attribute: str) -> int:
        return int(np.count_nonzero(self._layout.differs(polars_of(self._column(attribute)))))

    def _numbered(self, names: Sequence[str]) -> Integers | None:
        return numbered([polars_of(self._column(name)) for name in names]) if names else None

    def counted(self, attribute: str) -> int:
        """Count the records, or the units if the attribute has one value for each of them."""
        rows = self._layout.counting(attribute)
        return self.records if rows is None else len(rows)

    def stratum_sizes(self, attribute: str) -> Integers:
        """Count the values of an attribute in each stratum."""
        present, strata = self.present(attribute), self._layout.strata_of(attribute)
        return np.bincount(strata[present]) if strata is not None else np.array([present.sum()])

    @property
    def pooled_sizes(self) -> Integers:
        """Count what is pooled in each stratum: units, or records where there are none."""
        layout = self._layout
        rows = np.arange(self.records) if layout.unit is None else layout.first
        return np.bincount(np.zeros_like(rows) if layout.stratum is None else layout.stratum[rows])

    def text_facts(self, attribute: str) -> TextFacts:
        """Look at a column that does not hold numbers."""
        values = [str(value) for value in self._column(attribute).drop_nulls().to_list()]
        numbers = pl.Series(values, dtype=pl.String).cast(pl.Float64, strict=False)
        return TextFacts(nulls=self.records - len(values), not_numbers=numbers.null_count())

    def drop_missing(self, attributes: Sequence[str]) -> None:
        """Leave out the records with a null in any of these attributes."""
        present = self._complete(attributes)
        mask = nw.new_series("present", present, nw.Boolean, backend=self._frame.implementation)
        self._frame, self._plain = _without_index(self._frame.filter(mask)), {}
        self._positions = self._positions[present]

    def facts(self, domains: Mapping[str, tuple[float, float]]) -> dict[str, Facts]:
        """Look at numeric columns once each; `outside` counts values not in their domain."""
        return {attribute: self._look(attribute, *ends) for attribute, ends in domains.items()}

    def _look(self, attribute: str, lower: float, upper: float) -> Facts:
        from microveil.core.kernels import sorting as kernels

        values = self._values(attribute)
        not_finite, fractional, outside, smallest, largest = kernels.look(values, lower, upper)
        return Facts(
            nulls=self.counted(attribute) - len(values),
            not_finite=not_finite,
            fractional=fractional,
            smallest=smallest,
            largest=largest,
            outside=outside,
        )

    def observed_grid(self, attribute: str) -> Grid:
        """Grid of the last decimal seen in a numeric column."""
        single = self.columns[attribute].single_precision
        return grid_of_observed(self._values(attribute), single_precision=single)

    def expected_errors(self, attribute: NumericSettings, ks: Sequence[int]) -> Reals:
        """Return the expected squared error of an attribute with clusters of each k."""
        parts = self.ranked(attribute)
        errors: Reals = np.sum([expected_errors(part, attribute, ks) for part in parts], axis=0)
        return errors

    def expected_squares(self, attribute: NumericSettings, *, clamped: bool) -> tuple[float, float]:
        """Return the squares within clusters and the expected squares of noise, in grid units."""
        parts = [expected_squares(p, attribute, clamped=clamped) for p in self.ranked(attribute)]
        within, noise = zip(*parts, strict=True)
        return sum(within), sum(noise)

    def ranked(self, attribute: NumericSettings) -> list[Integers]:
        """Return the values of an attribute in grid units, ascending, stratum by stratum."""
        ranked = self.rank(attribute)[1]
        return [ranked[part] for part in self._parts_of(attribute)]

    def rank(self, attribute: AttributeSettings) -> tuple[Order, Integers]:
        """Return the order of ascending units, which the caller may change, and these units.

        Strata come one after the other.
        """
        order, ranked = _rank(self.units(attribute))
        strata = self._layout.strata_of(attribute.name)
        if strata is None:
            return order, ranked
        by_stratum = np.argsort(strata[self.present(attribute.name)][order], kind="stable")
        return order[by_stratum], ranked[by_stratum]

    def _parts_of(self, attribute: AttributeSettings) -> list[slice]:
        """Return where the values of each stratum lie in rank order; strata may have none."""
        ends = np.cumsum(self.stratum_sizes(attribute.name)).tolist()
        return [slice(a, b) for a, b in pairwise([0, *ends]) if a < b]

    def units(self, attribute: AttributeSettings) -> Integers:
        """Return values in grid units, or codes of categories, in record order.

        Missing ones are left out.
        """
        if isinstance(attribute, CategorySettings):
            return self._codes(self._counting(attribute.name), attribute.categories)
        from microveil.core.kernels import sorting as kernels

        grid = attribute.grid
        return kernels.to_units(self._values(attribute.name), grid.step, grid.origin)

    def category_facts(
        self, attribute: str, categories: tuple[Category, ...] | None
    ) -> CategoryFacts:
        """Look at a column of categories; `seen` is only asked for where none are declared."""
        values, holds = category_values(self._counting(attribute))
        values, nulls = values.drop_nulls(), values.null_count()
        if categories is None:
            seen = tuple(values.unique().sort().to_list()) if holds != "other values" else ()
            return CategoryFacts(nulls, holds, 0, 0, seen)
        outside = len(values)
        if type(categories[0]) is _PYTHON.get(holds):
            outside -= int(values.is_in(list(categories)).sum())
        listed = listed_categories(self._column(attribute))
        unknown = 0 if listed is None else len(set(categories) - listed)
        return CategoryFacts(nulls, holds, outside, unknown, ())

    def _codes(self, column: nw.Series[Any], categories: tuple[Category, ...]) -> Integers:
        values, _ = category_values(column)
        codes = list(range(len(categories)))
        numbered = values.drop_nulls().replace_strict(
            list(categories), codes, return_dtype=pl.Int64
        )
        return numbered.to_numpy()

    def mask(self, attribute: AttributeSettings, seed: int | None) -> pl.DataFrame:
        """Mask an attribute; return its row of the table of losses."""
        words = open_words(seed, f"attribute {attribute.name}")
        if attribute.method.clustered:
            ties = open_words(seed, f"ties {attribute.name}")
            values, masked = mask_strata(
                self.rank(attribute), self._parts_of(attribute), attribute, words, ties
            )
        else:
            alone = mask_singly(self.units(attribute), attribute, words)
            values, masked = alone.values, MaskedStrata.of(alone, attribute)
        if isinstance(attribute, CategorySettings):
            if attribute.domain_source == "declared":
                self._declared[attribute.name] = attribute.categories
            self._keep_codes(attribute, self._for_everyone(attribute.name, values, -1))
        else:
            self._keep_numbers(attribute.name, self._for_everyone(attribute.name, values, np.nan))
        self._keep_clusters(attribute, masked.description)
        return losses_of(attribute, masked.fixed, masked.re_clustered)

    def _keep_codes(self, attribute: CategorySettings, codes: Integers) -> None:
        """Keep the categories of these codes, −1 where there is none."""
        self._keep(attribute.name, pl.Series([*attribute.categories, None]).gather(codes))

    def _keep_numbers(self, attribute: str, values: Reals) -> None:
        """Keep masked numbers, NaN where there is none."""
        self._keep(attribute, pl.Series(values, nan_to_null=True))

    def _for_everyone(
        self, attribute: str, values: NDArray[Number], absent: float
    ) -> NDArray[Number]:
        """Return one value for every record, `absent` where it has none."""
        counted = self.counted(attribute)
        if len(values) < counted:
            given, values = values, np.full(counted, absent, dtype=values.dtype)
            values[self.present(attribute)] = given
        return self._layout.spread(attribute, values)

    def _keep_clusters(self, attribute: AttributeSettings, description: Description) -> None:
        self._described[attribute.name] = attribute, description

    def pseudonymise(self, attribute: str, pseudonym: Callable[[str], str]) -> int:
        """Replace every value, as text, by its pseudonym; return the most records of one value."""
        texts = self._texts(attribute)
        self._keep_text(attribute, each_text(texts, pseudonym, pl.String()))
        counts = texts.drop_nulls().value_counts()["count"]
        return int(counts.max()) if len(counts) else 0  # type: ignore[arg-type]

    def shift(self, attribute: str, person: str, days: Callable[[str], int]) -> None:
        """Move dates or times by as many days as there are for the person of each record."""
        people, moments = self._texts(person), polars_of(self._column(attribute))
        unknown = int((people.is_null() & moments.is_not_null()).sum())
        if unknown:
            raise no_person(attribute, person, unknown)
        number = each_text(people, days, pl.Int64())
        moved, outside = shifted(moments, number, self.columns[attribute])
        if outside:
            raise leaves_the_calendar(attribute, outside)
        self._keep(attribute, moved)

    def _texts(self, attribute: str) -> pl.Series:
        """Return the values of a column of text or whole numbers as text."""
        values, holds = category_values(self._column(attribute))
        if holds not in ("text", "whole numbers"):
            raise no_pseudonym(attribute)
        return values.cast(pl.String)

    def _keep_text(self, attribute: str, texts: pl.Series) -> None:
        library = self._frame.implementation
        self._masked[attribute] = nw.new_series(
            "column", texts.to_list(), nw.String, backend=library
        )

    def clusters(self, attributes: Sequence[str]) -> pl.DataFrame | pl.LazyFrame:
        """Return the private description of the clusters of attributes that were masked."""
        return cluster_rows([self._described[attribute] for attribute in attributes])

    def pool(self, pool: Pool, seed: int | None) -> Pooled:
        """Pool the masked values of attributes in joint clusters, and check that it came out right.

        Missing values are pooled as well.
        """
        labels, parts = self.cluster_jointly(pool, seed, masked=pool.follows_masked_values)
        clusters = {}
        for level in pool.levels:
            label, names = labels.of(level[0]), ", ".join(a.name for a in level)
            self._joint[names] = self._layout.spread(level[0].name, label)
            clusters[level[0].per_unit] = found = clusters_of(label)
            if found.smallest < pool.anonymity:
                raise pooled_wrongly(pool.names, f"a joint cluster has {found.smallest} records")
        words = open_words(seed, f"pooling {', '.join(pool.names)}")
        if pool.pooling == "average":
            return Pooled(parts, self._average(pool, clusters, words))
        for block in pool.blocks:
            self._exchange(block, clusters[block[0].per_unit], words)
        return Pooled(parts, None)

    def cluster_jointly(
        self, pool: Pool, seed: int | None, *, masked: bool
    ) -> tuple[JointLabels, int]:
        """Cluster records, or units, on original or masked values.

        Returns the labels and the number of parts.
        """

        def read(attribute: AttributeSettings) -> tuple[NDArray[Any], NDArray[np.bool_]]:
            present = self.present(attribute.name)
            if masked:
                return self._masked_units(attribute)[present], present
            return self.units(attribute), present

        ties = open_words(seed, f"joint {', '.join(pool.names)}")
        layout, k = self._layout, pool.anonymity
        if layout.unit is None:
            points = points_of(pool.attributes, self.records, read)
            label, parts = cluster_points(points, k, ties, strata=layout.stratum)
            return JointLabels(label), parts
        units, records = ([a for a in pool.attributes if a.per_unit == x] for x in (True, False))
        own = points_of(units, len(layout.first), read)
        members = points_of(records, self.records, read)
        strata = None if layout.stratum is None else layout.stratum[layout.first]
        return cluster_units(own, members, layout.unit, k, ties, strata)

    def _exchange(
        self, block: Sequence[AttributeSettings], clusters: JointClusters, words: WordSource
    ) -> None:
        giver, rows = exchange(clusters, words), self._layout.counting(block[0].name)
        if rows is not None:
            giver = self._layout.spread(block[0].name, rows[giver])
        for attribute in block:
            before = self._released_bits(attribute.name)
            self._rearrange(attribute.name, giver)
            if not holds_the_same(before, self._released_bits(attribute.name), clusters):
                raise pooled_wrongly([attribute.name], "a masked value left its joint cluster")

    def _average(self, pool: Pool, by_level: dict[bool, JointClusters], words: WordSource) -> int:
        for attribute in pool.attributes:
            clusters = by_level[attribute.per_unit]
            values, present = self._masked_units(attribute), self.present(attribute.name)
            if isinstance(attribute, CategorySettings):
                ordinal = attribute.kind == "ordinal"
                chosen = average_categories(values, clusters, present, words, ordinal=ordinal)
                codes = self._layout.spread(attribute.name, clusters.spread(chosen))
                self._keep_codes(attribute, codes)
            else:
                means = publish(average_numbers(values, clusters, present), attribute)
                spread = self._layout.spread(attribute.name, clusters.spread(means))
                self._keep_numbers(attribute.name, spread)
        smallest = self._smallest_class(pool.names)
        if smallest < pool.anonymity:
            raise pooled_wrongly(pool.names, f"the release is {smallest}-anonymous")
        return smallest

    def _masked_units(self, attribute: AttributeSettings) -> NDArray[Any]:
        """Return masked numbers, or codes of masked categories, that count; 0 if missing."""
        present, released = self.present(attribute.name), self._released_counting(attribute.name)
        values: NDArray[Any] = (
            self._codes(released, attribute.categories)
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

    def count_broken(self, rules: Sequence[Rule]) -> list[int | None]:
        """Count the original records that break each rule."""
        return [
            int(rule.broken({name: with_gaps(self._column(name)) for name in rule.factors}).sum())
            for rule in rules
        ]

    def keep_rules(self, system: System) -> list[Kept]:
        """Change masked values so that rules are kept; say what that took."""
        values = {name: with_gaps(self._released(name)) for name in system.names}
        kept = keep(system, values, None if system.fixed else reference(system))
        for column in system.movable:
            if not np.array_equal(values[column.name], kept[column.name], equal_nan=True):
                self._keep_numbers(column.name, kept[column.name])
        return how_kept(system, values, kept)

    @property
    def joint_clusters(self) -> Mapping[str, Integers]:
        """The joint cluster of each record, in record order, for every pool by its attributes."""
        return self._joint

    def derive(self, derived: Mapping[str, Derived]) -> None:
        """Recompute attributes, in this order, from masked ones."""
        for attribute, recipe in derived.items():
            undefined = self.derive_one(attribute, recipe)
            if undefined:
                raise no_finite_result(attribute, undefined, self.records)

    def derive_one(self, attribute: str, derived: Derived) -> int:
        """Recompute an attribute, unless some records, which are counted, have no finite result."""
        inputs = pl.DataFrame({name: self._released(name).to_polars() for name in derived.inputs})
        inputs = inputs.with_columns(cs.numeric().cast(pl.Float64))  # which does not wrap around
        known = inputs.select(~pl.any_horizontal(pl.all().is_null())).to_series()
        try:
            result = _evaluate(derived, inputs)
            if not result.equals(_evaluate(derived, inputs.reverse()).reverse()):
                raise DataError(
                    "its expression depends on the order of records; compute it record by record",
                    attribute=attribute,
                    setting="expression",
                )
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
                f"{self.columns[attribute].type_name}; change it",
                attribute=attribute,
                setting="expression",
            ) from None
        return undefined

    def finish(self, attributes: Sequence[str]) -> Released:
        """Return the masked table with these columns, of the kind and types that came in."""
        columns = [
            own_categories(self._released(name), self._declared.get(name, ())).alias(name)
            for name in attributes
        ]
        columns = [as_objects(c) if c.name in self._objects else c for c in columns]
        return ReleasedInMemory(self._frame.select(*columns).to_native(), self._positions)

    def discard(self) -> None:
        """Nothing is stored."""

    def _column(self, attribute: str) -> nw.Series[Any]:
        if attribute not in self._plain:
            self._plain[attribute] = column_of(self._frame, attribute)
        return self._plain[attribute]

    def _keep(self, attribute: str, masked: pl.Series) -> None:
        self._masked[attribute] = column_like(self._column(attribute), masked)

    def _rearrange(self, attribute: str, giver: Integers) -> None:
        """Give every record the masked value of another one."""
        self._masked[attribute] = nw.maybe_reset_index(self._masked[attribute][giver])

    def _released(self, attribute: str) -> nw.Series[Any]:
        return self._masked[attribute] if attribute in self._masked else self._column(attribute)

    def _released_counting(self, attribute: str) -> nw.Series[Any]:
        released, rows = self._released(attribute), self._layout.counting(attribute)
        return released if rows is None else nw.maybe_reset_index(released[rows])

    def _released_bits(self, attribute: str) -> Integers:
        return _bits(self._released_counting(attribute))

    def _complete(self, attributes: Sequence[str]) -> NDArray[np.bool_]:
        """Which records have a value in each of these attributes."""
        complete = np.ones(self.records, dtype=np.bool_)
        for attribute in attributes:
            complete &= _is_present(self._column(attribute))
        return complete

    def _counting(self, attribute: str) -> nw.Series[Any]:
        """Return the values that count: of every record, or of the first one of every unit."""
        column, rows = self._column(attribute), self._layout.counting(attribute)
        return column if rows is None else nw.maybe_reset_index(column[rows])

    def present(self, attribute: str) -> NDArray[np.bool_]:
        """Which records have a value, or which units if the attribute has one for each."""
        return _is_present(self._counting(attribute))

    def _values(self, attribute: str) -> Reals:
        column = self._counting(attribute)
        values = numbers(column.drop_nulls() if column.null_count() else column)
        coding = self._coding.get(attribute)
        return values if coding is None else coding.of(values)


@dataclass(frozen=True, eq=False)
class ReleasedInMemory:
    """A released table in memory; `positions` are those of its records in what came in."""

    data: UserTable
    positions: Integers
    row_order: Literal["random", "as in the original"] = "as in the original"

    def beside_original(self) -> None:
        """Nothing is kept of the original."""

    def shuffled(self, seed: int | None) -> Released:
        """Return it with its records in random order."""
        return ReleasedInMemory(*self.arranged(keep_order=False, seed=seed), "random")

    def arranged(self, *, keep_order: bool, seed: int | None) -> tuple[UserTable, Integers]:
        """Return the table in its original or in random order, and where each record stood."""
        if keep_order:
            order = np.argsort(self.positions)
        else:
            order = random_order(len(self.positions), open_words(seed, "row order"))
        shuffled = nw.from_native(self.data, eager_only=True)[order]
        # A pandas index would tell the old order.
        return nw.maybe_reset_index(shuffled).to_native(), self.positions[order]


def each_text(
    texts: pl.Series, function: Callable[[str], str | int], dtype: pl.DataType
) -> pl.Series:
    """Call a function once for every text there is, and give every record its result."""
    known = texts.drop_nulls().unique()
    results = pl.Series([function(text) for text in known], dtype=dtype)
    return texts.replace_strict(known, results, default=None, return_dtype=dtype)


def _rank(values: Integers) -> tuple[Order, Integers]:
    """Return the order of ascending values, and the values in it."""
    from microveil.core.kernels import sorting as kernels

    small = np.uint32 if len(values) < 2**32 else np.int64
    order, spare = np.empty(len(values), small), np.empty(len(values), small)
    ranked = kernels.rank(values, order, spare)
    return order, ranked


def _is_present(column: nw.Series[Any]) -> NDArray[np.bool_]:
    if not column.null_count():
        return np.ones(len(column), dtype=np.bool_)
    return ~column.is_null().to_numpy().astype(np.bool_)


def _bits(column: nw.Series[Any]) -> Integers:
    """Return a number for every value by which equal values can be told."""
    return polars_of(column).hash().to_numpy().view(np.int64)


def pooled_wrongly(attributes: Sequence[str], found: str) -> DataError:
    """Say that pooling did not come out as promised."""
    return DataError(f"pooling {', '.join(attributes)}: {found}; nothing was released")


def no_pseudonym(attribute: str) -> DataError:
    """Say that there are no pseudonyms for these values."""
    return DataError(
        "a pseudonym is of text or whole numbers, found other values; convert it to text "
        "first, the same in all tables",
        attribute=attribute,
        setting="role",
    )


def no_person(attribute: str, person: str, unknown: int) -> DataError:
    """Say that dates cannot move with people who are missing."""
    return DataError(
        f"its dates move with the person, and {person!r} is missing in {unknown:,} records "
        "that have a date; leave these out, or drop the attribute",
        attribute=attribute,
        setting="role",
    )


def leaves_the_calendar(attribute: str, outside: int) -> DataError:
    """Say that dates cannot be moved that far."""
    return DataError(
        f"{outside:,} of its dates would leave the calendar when they are moved; a date "
        "that stands for none, such as the last of the year 9999, would also tell how far "
        "those of its person were moved: make such dates missing first",
        attribute=attribute,
        setting="role",
    )


def no_finite_result(attribute: str, undefined: int, records: int) -> DataError:
    """Say that a derived attribute cannot be computed everywhere."""
    return DataError(
        f"its expression has no finite result in {undefined:,} of {records:,} records (a division "
        "by zero?); change the expression",
        attribute=attribute,
        setting="expression",
    )


def open_table(data: UserTable) -> nw.DataFrame[Any]:
    """Open a Polars or pandas DataFrame or a PyArrow Table, without its index."""
    try:
        frame = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise DataError("column names must differ, found the same name twice; rename one") from None
    except TypeError:
        raise DataError(
            "data must be a Polars or pandas DataFrame, a PyArrow Table or a path, "
            f"got {type(data).__module__}.{type(data).__qualname__}"
        ) from None
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError("column names must be text, found other types; rename the columns")
    return with_decimals(_without_index(frame))


def _decimal_objects(data: UserTable, opened: nw.DataFrame[Any]) -> frozenset[str]:
    """Name the columns of pandas that hold decimals as Python objects."""
    if not opened.implementation.is_pandas():
        return frozenset()
    decimals = [name for name, dtype in opened.schema.items() if dtype.is_decimal()]
    return frozenset(name for name in decimals if data[name].dtype == object)


def _without_index(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """Leave a pandas index behind: it has no role in the plan and often names people."""
    return nw.maybe_reset_index(frame)


def _evaluate(derived: Derived, inputs: pl.DataFrame) -> pl.Series:
    result = inputs.with_columns(derived.parsed.alias("result"))["result"]
    return result.cast(pl.Float64) if result.dtype.is_numeric() else result
