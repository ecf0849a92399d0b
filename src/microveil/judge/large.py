"""Tables that are too large to be compared as a whole, put beside each other where they are."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from microveil.compare.pairing import check_belongs, positions_of
from microveil.engines.beside import Beside
from microveil.engines.beside_here import BesideHere
from microveil.errors import DataError
from microveil.formats import Source, scratch_directory, source_of
from microveil.judge.glance import beside_of
from microveil.plan.plan import Plan
from microveil.release.detail import Detail
from microveil.release.protect_file import is_large, open_lazily
from microveil.release.release import Release
from microveil.types import Progress, UserTable


@dataclass(frozen=True, eq=False)
class Large:
    """A large release beside its original, and what is known of how it was made."""

    beside: Beside
    detail: Detail | None
    plan: Plan | None
    aligned: bool


@contextmanager
def opened_if_large(
    original: UserTable,
    release: Release | UserTable,
    *,
    detail: Detail | str | Path | None,
    aligned: bool,
    progress: Progress | None,
) -> Iterator[Large | None]:
    """Open an original and its release if they had better not be read as a whole."""
    if isinstance(release, Release):
        if detail is not None or aligned:
            raise DataError("a Release knows its own row order; leave out detail and aligned")
        yield _of_release(original, release, progress)
        return
    if type(original).__module__.startswith("pyspark."):
        yield _of_spark(original, release, detail)
        return
    source, protected = source_of(original), source_of(release)
    if source is None or protected is None or not any(map(is_large, (source, protected))):
        yield None
        return
    with ExitStack() as open_until_then:
        yield _of_files(source, protected, detail, aligned, progress, open_until_then)


def _of_release(original: UserTable, release: Release, progress: Progress | None) -> Large | None:
    if release.rows.beside_original() is None and not isinstance(release.data, pl.LazyFrame):
        return None
    beside = beside_of(original, release)
    if isinstance(beside, BesideHere):
        beside = replace(beside, progress=progress)
    return Large(beside, release.detail, release.plan, aligned=False)


def _of_spark(original: UserTable, release: UserTable, detail: Detail | str | Path | None) -> Large:
    """Put two tables on Spark beside each other, by the fingerprints in the private detail."""
    from microveil.engines.spark.beside_spark import BesideOnSpark, staged_columns
    from microveil.release.spark_store import read_detail

    if isinstance(detail, str | Path):
        detail = read_detail(original.sparkSession, detail)
    if detail is None or detail.plan is None or detail.positions is None:
        raise DataError(
            "on Spark, which keeps no order of rows, only the private detail says which record is "
            "whose; write the release with detail=True (--detail) and give detail="
        )
    positions, plan = detail.positions, detail.plan
    beside = BesideOnSpark(
        staged_columns(original, plan), release, positions.sample, detail.clusters, plan
    )
    return Large(beside, detail, plan, aligned=False)


def _of_files(
    source: Source,
    protected: Source,
    detail: Detail | str | Path | None,
    aligned: bool,
    progress: Progress | None,
    open_until_then: ExitStack,
) -> Large | None:
    if source.path is None or protected.path is None:
        return None
    scratch = open_until_then.enter_context(scratch_directory(protected.path))
    if isinstance(detail, str | Path):
        detail = Detail.read(detail, scratch)
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
    return Large(replace(beside, positions=at), detail, plan, aligned)
