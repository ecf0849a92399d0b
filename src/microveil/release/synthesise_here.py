"""Synthetic releases of tables in memory, and of files larger than memory."""

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from microveil.core.random_words import open_words
from microveil.core.synthesis.coded_records import RecordSums
from microveil.engines.coded_local import NotHeld, coded_records
from microveil.engines.drawn import RowsToDraw, SyntheticRows, as_kind_of
from microveil.engines.local import LocalTable
from microveil.engines.memory import memory_table
from microveil.formats import TableMeta
from microveil.plan.plan import Plan
from microveil.release.release import Release
from microveil.release.store import LocalStore
from microveil.release.synthesise import SyntheticPlan, synthesise
from microveil.types import Progress, UserTable


def synthesise_in_memory(
    data: UserTable, plan: Plan, meta: TableMeta, seed: int | None, progress: Progress | None
) -> Release:
    """Make a synthetic release of a table in memory, of its kind."""
    return _synthesise(
        plan,
        memory_table(data, inferred=meta.inferred),
        lambda rows: SyntheticRows(as_kind_of(rows.all(), data)),
        meta.path,
        None,
        seed,
        progress,
    )


def synthesise_in_files(
    table: LocalTable, plan: Plan, path: Path | None, scratch: Path, seed: int | None,
    progress: Progress | None,
) -> Release:  # fmt: skip
    """Make a synthetic release of a file larger than memory: codes and rows are in files too."""

    def drawn(rows: RowsToDraw) -> SyntheticRows:
        parts = []
        for number in range(rows.chunks):
            parts.append(scratch / f"rows{number}.parquet")
            rows.chunk(number).write_parquet(parts[-1], compression="lz4")
        return SyntheticRows(pl.scan_parquet(parts))

    return _synthesise(plan, table, drawn, path, scratch, seed, progress)


def _synthesise(
    plan: Plan,
    table: LocalTable,
    drawn: Callable[[RowsToDraw], SyntheticRows],
    path: Path | None,
    scratch: Path | None,
    seed: int | None,
    progress: Progress | None,
) -> Release:
    def sums(resolved: SyntheticPlan) -> tuple[RecordSums, Mapping[str, NotHeld]]:
        words = open_words(seed, "records of units")
        return coded_records(
            table.source,
            resolved.attributes,
            drop_missing=plan.missing == "drop",
            bounded=None if plan.unit is None else (plan.unit, plan.records_per_person, words),
            scratch=scratch,
        )

    store = LocalStore(TableMeta(path))
    return synthesise(plan, table, sums, drawn, store, seed=seed, progress=progress)
