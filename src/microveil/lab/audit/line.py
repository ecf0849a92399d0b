"""The whole line, from the plan to the released table, run many times on one table."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from microveil.engines.dtypes import numbers
from microveil.engines.local import LocalTable
from microveil.engines.memory import memory_table
from microveil.errors import noted
from microveil.formats import LoadedTable
from microveil.lab.audit.category_targets import CategoryTarget
from microveil.lab.audit.checks import Check, Flaw, Observed
from microveil.lab.audit.models import CERTAIN, Published
from microveil.lab.audit.rows import OtherClustersError, RowReader
from microveil.lab.audit.target import AuditTarget
from microveil.lab.audit.targets import Targets, open_targets
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.protect import run_plan
from microveil.release.release import Release
from microveil.release.store import LocalStore
from microveil.types import Integers, Reals, UserTable

_MOST_CLUSTERS = 1_000
_FIRST = 200


def open_read(table: LoadedTable) -> LocalTable:
    """Open a table as `protect` does."""
    return memory_table(table.data, inferred=table.meta.inferred)


def most_telling(clusters: Integers, telling: Reals) -> Integers:
    """Return the most telling of very many clusters, and the first."""
    most = np.argsort(-telling[clusters], kind="stable")[:_MOST_CLUSTERS]
    return np.union1d(clusters[most], clusters[:_FIRST])


class _Rival(NamedTuple):
    """Another table that rows may be of, by one attribute, and how much likelier they were here."""

    reader: RowReader
    target: AuditTarget[Any]
    ratios: list[float]


class ReleaseLine:
    """One table on the line, and what its releases show.

    It sees what anybody sees, the released rows; knowing the original values, it tells which
    clusters they are of. Of very many clusters some are `watched`.
    """

    def __init__(self, table: LoadedTable, plan: Plan, targets: Targets) -> None:
        self.table, self.plan, self.targets = table, plan, targets
        self.readers = {t.settings.name: RowReader(t) for t in targets}
        self._published: dict[str, list[Published]] = {name: [] for name in self.readers}
        self.watched = {n: reader.clusters[:_MOST_CLUSTERS] for n, reader in self.readers.items()}
        self._rivals: dict[str, _Rival] = {}
        self.other_clusters: dict[str, None] = {}
        self.not_anonymous: dict[str, None] = {}
        self.off_grid: set[str] = set()

    def of_neighbour(self, data: UserTable) -> "ReleaseLine":
        """Open another table that the same plan is for."""
        table = LoadedTable(data, self.table.meta)
        with noted():  # it was said when the plan was first resolved
            opened = open_read(table)
            targets = open_targets(opened, resolve_and_choose(self.plan, opened))
        return ReleaseLine(table, self.plan, targets)

    def compare_with(self, other: "ReleaseLine", attribute: str) -> None:
        """Say of every release how much likelier its rows are here than of another table.

        This is for attributes whose clusters the data decide: those of two tables are not the same.
        """
        target = next(t for t in other.targets if t.settings.name == attribute)
        self._rivals[attribute] = _Rival(other.readers[attribute], target, [])

    def compared(self) -> Iterator[tuple[str, Reals]]:
        """Return by attribute the logarithms of how much likelier each release is here."""
        yield from ((name, self.ratios(name)) for name in self._rivals)

    def ratios(self, attribute: str) -> Reals:
        """Return the logarithms of one attribute; they are positive where its own table is."""
        return np.array([self._rivals[attribute].ratios])

    def release(self, seed: int | None) -> Release:
        """Walk the line once."""
        with noted():  # it was said when the plan was first resolved
            store = LocalStore(self.table.meta)
            return run_plan(self.plan, open_read(self.table), store, seed=seed, progress=None)

    def observe(self, seed: int | None, random: np.random.Generator) -> None:
        """Walk the line once more and keep what the release shows."""
        released = self.release(seed).data
        rows = {t.settings.name: _rows(released, t) for t in self.targets}
        self._count_alike(rows)
        for target in self.targets:
            name = target.settings.name
            if name in self._rivals:
                self._compare(target, rows[name], random)
            try:
                published = self.readers[name].read(rows[name], random)
            except OtherClustersError:
                self.other_clusters[name] = None
                continue
            self._published[name].append(published[self.watched[name]])
            if target.publishes_on_grid and target.is_off_grid(published[self.watched[name]]):
                self.off_grid.add(name)

    def _compare(
        self, target: AuditTarget[Any], rows: Published, random: np.random.Generator
    ) -> None:
        rival = self._rivals[target.settings.name]
        here = _log_likelihood(self.readers[target.settings.name], target, rows, random)
        there = _log_likelihood(rival.reader, rival.target, rows, random)
        rival.ratios.append(here - there)

    def _count_alike(self, rows: dict[str, Published]) -> None:
        """Count the rarest masked value of each attribute."""
        clustered = [target.settings for target in self.targets if target.clustered]
        for settings in clustered:
            if np.unique(rows[settings.name], return_counts=True)[1].min() < settings.k:
                self.not_anonymous[settings.name] = None

    def seen(self) -> dict[str, Observed]:
        """Return what was seen of every attribute whose clusters could be read throughout."""
        return {
            name: Observed(
                name, target.own_model, self.watched[name], np.stack(self._published[name])
            )
            for target in self.targets
            if (name := target.settings.name) not in self.other_clusters
        }


def _log_likelihood(
    reader: RowReader, target: AuditTarget[Any], rows: Published, random: np.random.Generator
) -> float:
    """Return how likely rows are with a table's clusters; hardly, if they show other clusters."""
    try:
        published = reader.read(rows, random)[reader.clusters]
    except OtherClustersError:
        return -CERTAIN * len(rows)
    likely = target.own_model.log_likelihood(published[np.newaxis], reader.clusters)
    return float(likely.sum())


def never_shown(lines: Sequence[ReleaseLine]) -> list[Check]:
    """Report what no release may ever show."""
    alike = dict.fromkeys(name for line in lines for name in line.not_anonymous)
    clusters = dict.fromkeys(name for line in lines for name in line.other_clusters)
    return [
        Check(Flaw.TOO_FEW_ALIKE, None, tuple(alike)),
        Check(Flaw.OTHER_CLUSTERS, None, tuple(clusters)),
    ]


def _rows(released: UserTable, target: AuditTarget[Any]) -> Published:
    """Return what the records that have a value publish, as numbers."""
    if isinstance(target, CategoryTarget):
        return memory_table(released).steps(target.settings)
    return numbers(nw.from_native(released, eager_only=True)[target.settings.name].drop_nulls())
