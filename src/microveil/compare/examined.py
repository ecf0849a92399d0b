"""A release beside its original, and the records of both that are looked at one by one.

There is one path for every size: all records are a sample of everybody. Of a table that is too
large some records are drawn, and nothing else need be in memory; what must be counted among all
released records is counted where these are.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.compare.figures import NotComputed
from microveil.compare.pairing import (
    Pair,
    check_belongs,
    pair_tables,
    positions_of,
    without_constants,
)
from microveil.engines.beside import Beside
from microveil.engines.beside_here import BesideHere, rows_of_units
from microveil.engines.classes import Classes
from microveil.engines.dtypes import column_of
from microveil.engines.memory import memory_table, open_table
from microveil.errors import DataError, MicroveilError, noted
from microveil.formats import (
    LoadedTable,
    Source,
    TableMeta,
    load_table,
    scratch_directory,
    source_of,
)
from microveil.plan.plan import Plan
from microveil.release.detail import Detail
from microveil.release.protect import protect
from microveil.release.protect_file import is_large, open_lazily
from microveil.release.release import Release
from microveil.release.resolve import resolve
from microveil.types import Integers, Progress, UserTable

DRAWN_OF_LARGE = 100_000
"""Records that are drawn from a table that is too large to be read as a whole."""


@dataclass(frozen=True, eq=False)
class Examined:
    """A release beside its original, and some records of both.

    Attributes
    ----------
    beside
        The two tables, wherever they are.
    given, pair
        The records that are looked at one by one; in `pair` without attributes that do not vary.
    left_out
        What `pair` does not have, and why.
    whole
        Whether these are all records.
    detail
        The private detail of the whole release, if it is known.
    """

    beside: Beside
    given: Pair
    pair: Pair
    left_out: tuple[NotComputed, ...]
    whole: bool
    detail: Detail | None = None

    @cached_property
    def everyone(self) -> Pair | None:
        """All records, one by one; None where they are too many to be read, or not paired."""
        beside = self.beside
        if not self.paired:
            return None
        if self.whole:
            return self.given
        if not isinstance(beside, BesideHere):
            return None
        if not (beside.in_memory or beside.records <= DRAWN_OF_LARGE):
            return None
        tables = beside.loaded(beside.original), beside.loaded(beside.released)
        return pair_tables(*tables, self.detail, self.plan, positions=beside.positions)

    @property
    def joint(self) -> Mapping[str, Integers]:
        """The joint cluster of every released record, in the order of the original, by group.

        Empty where nothing was pooled, where it is not known, and on Spark.
        """
        if self.detail is None or not isinstance(self.beside, BesideHere):
            return {}
        return self.detail.joint

    @property
    def plan(self) -> Plan | None:
        """What was done, if it is known."""
        return self.given.plan

    @property
    def planned(self) -> Plan:
        """What was done, where that must be known."""
        assert self.plan is not None  # noqa: S101 - callers have checked it
        return self.plan

    @property
    def records(self) -> int:
        """Number of released records."""
        return self.beside.records

    @property
    def drawn(self) -> int:
        """Number of released records that are looked at."""
        return len(self.given.released)

    @property
    def paired(self) -> bool:
        """Whether it is known which record is whose."""
        return self.given.positions is not None

    def classes(self, names: Sequence[str]) -> Classes:
        """Count the released records that share these columns, among all of them."""
        alone, smallest, records = self.beside.class_sizes(tuple(names))
        return Classes(alone / records, smallest, records)

    @property
    def people(self) -> nw.DataFrame[Any]:
        """Original records of those that are looked at, in the order of `rows`."""
        pair = self.given
        return pair.source if pair.positions is None else pair.source[pair.positions, :]

    @property
    def rows(self) -> nw.DataFrame[Any]:
        """Released records that are looked at."""
        return (
            self.given.table if self.given.order is None else self.given.table[self.given.order, :]
        )

    def some(self, rows: np.ndarray[Any, Any]) -> "Examined":
        """Look at some of the drawn records only."""
        return replace(self, pair=self.pair.some(rows), given=self.given.some(rows), whole=False)

    def trial(self, plan: Plan, records: int, random: np.random.Generator) -> "Examined | None":
        """Protect some of the records by a plan; None if that cannot be done with so few."""
        return self.protected_anew(plan, self.drawn_again(plan, records, random), random)

    def fits(self, plan: Plan) -> bool:
        """Whether a plan can be followed, as far as the records that are at hand tell."""
        if not self.whole:
            return True
        people = memory_table(self.people.to_native(), inferred=self.beside.inferred)
        try:
            with noted():
                resolve(plan, people)
        except MicroveilError:
            return False
        return True

    def drawn_again(self, plan: Plan, records: int, random: np.random.Generator) -> Integers:
        """Draw some of the records that are looked at, of whole units; return their places."""
        number = min(records, len(self.people))
        if plan.unit is not None:
            return rows_of_units(column_of(self.people, plan.unit), number, random)
        return np.sort(random.choice(len(self.people), number, replace=False))

    def protected_anew(
        self, plan: Plan, rows: Integers, random: np.random.Generator
    ) -> "Examined | None":
        """Protect the records at these places by a plan; None if they are too few for it."""
        table = self.people[rows, :].to_native()
        whole = LoadedTable(table, TableMeta(inferred=self.beside.inferred))
        seed = int(random.integers(2**32))
        for tried in (plan, plan.replace(within=())):  # of so few records strata may be too small
            with suppress(MicroveilError), noted():
                release = protect(whole, tried, keep_order=True, seed=seed)
                return _whole(table, release.data, release.detail, release.plan)
        return None

    def of_units(self, records: int, random: np.random.Generator) -> "Examined":
        """Look at all records, or at about so many of whole units."""
        if self.whole:
            return self
        original, released = self.beside.draw(records, random, self.planned.unit)
        drawn = len(open_table(released))
        few = Detail(self.given.clusters, pl.DataFrame(), np.arange(drawn), self.plan)
        return _whole(original, released, few, self.planned)


def _whole(original: UserTable, released: UserTable, detail: Detail, plan: Plan) -> Examined:
    """Look at all records of two tables in memory."""
    given = pair_tables(original, released, detail, plan)
    pair, constant = without_constants(given)
    beside = BesideHere(original, released, detail.positions, detail.clusters)
    return Examined(beside, given, pair, tuple(constant), whole=True, detail=detail)


@contextmanager
def examine(
    original: UserTable,
    release: Release | UserTable,
    *,
    random: np.random.Generator,
    most: int | None = None,
    detail: Detail | str | Path | None = None,
    aligned: bool = False,
    attributes: Sequence[str] | None = None,
    target: str | None = None,
    progress: Progress | None = None,
) -> Iterator[Examined]:
    """Put a release beside its original, wherever they are, and choose what is looked at.

    Parameters
    ----------
    original, release, detail, aligned, attributes, target, progress
        As for `evaluate`.
    random
        Draws records.
    most
        Records to look at one by one; None for all that are in memory, and `DRAWN_OF_LARGE` of
        those that are not.
    """
    with _opened(original, release, detail, aligned=aligned, progress=progress) as opened:
        yield opened.examined(most, random, attributes, target)


@dataclass(frozen=True, eq=False)
class _Opened:
    """Two tables as they were opened, and what is known of how the release was made."""

    beside: Beside
    detail: Detail | None
    plan: Plan | None
    paired: bool

    def examined(
        self,
        most: int | None,
        random: np.random.Generator,
        attributes: Sequence[str] | None,
        target: str | None,
    ) -> Examined:
        beside, detail = self.beside, self.detail
        in_memory = isinstance(beside, BesideHere) and beside.in_memory
        if most is None:
            most = beside.records if in_memory else DRAWN_OF_LARGE
        if isinstance(beside, BesideHere) and in_memory and beside.records <= most:
            original, released, positions = beside.original, beside.released, beside.positions
        else:
            unit = None if self.plan is None else self.plan.unit
            original, released = beside.draw(most, random, unit)
            positions = np.arange(len(open_table(released))) if self.paired else None
            detail = None if detail is None else _of_drawn(detail, beside)
        given = pair_tables(
            original, released, detail, self.plan,
            positions=positions, attributes=attributes, target=target,
        )  # fmt: skip
        pair, constant = without_constants(given)
        whole = len(given.released) == beside.records
        left_out = (*given.left_out, *constant)
        return Examined(beside, given, pair, left_out, whole, self.detail)


def _of_drawn(detail: Detail, beside: Beside) -> Detail:
    """Return the private detail as it is of records that were drawn."""
    known = beside.clusters()
    clusters = detail.clusters if known is None else known
    return replace(detail, clusters=clusters, joint={}, protected_sha256=None)


@contextmanager
def _opened(
    original: UserTable,
    release: Release | UserTable,
    detail: Detail | str | Path | None,
    *,
    aligned: bool,
    progress: Progress | None,
) -> Iterator[_Opened]:
    if isinstance(release, Release):
        if detail is not None or aligned:
            raise DataError("a Release knows its own row order; leave out detail and aligned")
        yield _of_release(original, release, progress)
        return
    if type(original).__module__.startswith("pyspark."):
        yield _of_spark(original, release, detail)
        return
    source, protected = source_of(original), source_of(release)
    files = source is not None and protected is not None and source.path and protected.path
    if not files or not any(map(is_large, (source, protected))):  # type: ignore[arg-type]
        yield _of_tables(original, release, detail, aligned=aligned)
        return
    assert source is not None and protected is not None  # noqa: PT018, S101 - they are files
    assert protected.path is not None  # noqa: S101
    with scratch_directory(protected.path) as scratch:
        yield _of_files(source, protected, detail, scratch, aligned=aligned, progress=progress)


def _of_release(original: UserTable, release: Release, progress: Progress | None) -> _Opened:
    """Open what `protect` returned, wherever its engine keeps it."""
    beside = release.rows.beside_original()
    if release.certificate.synthetic is not None:
        table = load_table(original, **release.plan.reading)
        beside = BesideHere(table.data, release.data, None, None, table.meta.inferred, progress)
        return _Opened(beside, None, release.plan, paired=False)
    if beside is None:
        inferred = False
        if not isinstance(original, pl.LazyFrame):
            table = load_table(original, **release.plan.reading)
            original, inferred = table.data, table.meta.inferred
        clusters, positions = release.detail.clusters, release.detail.positions
        codes = {} if positions is None else release.meta_of(positions).codes
        beside = BesideHere(original, release.data, positions, clusters, inferred, progress, codes)
        paired = positions is not None
        if paired:  # or the original is another table
            positions_of(beside.originals, beside.records, release.detail, release.plan)
    else:
        paired = True
    return _Opened(beside, release.detail, release.plan, paired)


def _of_spark(
    original: UserTable, release: UserTable, detail: Detail | str | Path | None
) -> _Opened:
    """Put two tables on Spark beside each other, by the fingerprints in the private detail."""
    from microveil.engines.spark.beside_spark import BesideOnSpark, staged_columns
    from microveil.release.spark_store import read_detail

    if isinstance(detail, str | Path):
        detail = read_detail(original.sparkSession, detail)
    if detail is None or detail.plan is None or detail.positions is None:
        raise DataError(
            "Spark keeps no order of rows, so only the private detail says which record is whose; "
            "write the release with detail=True (--detail) and give detail="
        )
    positions, plan = detail.positions, detail.plan
    beside = BesideOnSpark(
        staged_columns(original, plan), release, positions.sample, detail.clusters, plan
    )
    return _Opened(beside, detail, plan, paired=True)


def _of_tables(
    original: UserTable,
    release: UserTable,
    detail: Detail | str | Path | None,
    *,
    aligned: bool,
) -> _Opened:
    """Read two tables that fit in memory."""
    if isinstance(detail, str | Path):
        detail = Detail.read(detail)
    source = source_of(release)
    if source is not None and source.path is not None:
        check_belongs(source.path, detail)
    plan = detail.plan if detail else None
    verbatim = plan.verbatim if plan else ()
    released, about = load_table(release, verbatim=verbatim)  # no missing are written
    table = load_table(original, **plan.reading) if plan else load_table(original)
    originals, records = len(open_table(table.data)), len(open_table(released))
    positions = positions_of(originals, records, detail, plan, aligned=aligned)
    clusters = None if detail is None else detail.clusters
    beside = BesideHere(
        table.data, released, positions, clusters, table.meta.inferred, missing_codes=about.codes
    )
    return _Opened(beside, detail, plan, positions is not None)


def _of_files(
    source: Source,
    protected: Source,
    detail: Detail | str | Path | None,
    scratch: Path,
    *,
    aligned: bool,
    progress: Progress | None,
) -> _Opened:
    """Open files larger than memory, of which a part is read at a time."""
    if isinstance(detail, str | Path):
        detail = Detail.read(detail, scratch)
    assert protected.path is not None  # noqa: S101 - it is a file
    check_belongs(protected.path, detail)
    plan = None if detail is None else detail.plan
    verbatim = plan.verbatim if plan else ()
    if plan is not None:
        source = replace(source, na=source.na or plan.na, dates=source.dates or plan.dates)
    tables = []
    for name, each in (("original", source), ("released", protected)):
        (scratch / name).mkdir()
        tables.append(open_lazily(each, verbatim, scratch / name))
    (before, meta), (after, _) = tables
    clusters = None if detail is None else detail.clusters
    beside = BesideHere(before, after, None, clusters, meta.inferred, progress)
    at = positions_of(beside.originals, beside.records, detail, plan, aligned=aligned)
    return _Opened(replace(beside, positions=at), detail, plan, at is not None)
