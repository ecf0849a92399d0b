"""Attributes under attack, and neighbouring tables to tell them from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from microveil.clusters import ClusterSummary, singletons, summarise
from microveil.engines.memory import MemoryEngine
from microveil.grid import Integers
from microveil.masking import NumericMasking
from microveil.mechanism import calibrate
from microveil.partition import cut
from microveil.settle import Settled


@dataclass(frozen=True, eq=False)
class Target:
    """One attribute under attack: its values in grid units, and which records have one."""

    masking: NumericMasking
    units: Integers
    present: NDArray[np.bool_]

    @cached_property
    def order(self) -> Integers:
        """Positions of the values in rank order."""
        return np.argsort(self.units, kind="stable")

    @cached_property
    def sizes(self) -> Integers:
        """Sizes of the clusters."""
        return cut(self.units[self.order], self.masking)

    @cached_property
    def summary(self) -> ClusterSummary:
        """Summaries of the table as it is."""
        return self._summarise(self.units[self.order] if self._clustered else self.units)

    @cached_property
    def scales(self) -> Integers:
        """Noise scales of the table as it is, held throughout the attack."""
        return calibrate(self.summary, self.masking)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The furthest values a record may take: the domain's ends, or far beyond the data."""
        low, high = int(self.units.min()), int(self.units.max())
        far = min(3 * (high - low) + 1, 2**59)
        declared = np.array([self.masking.lower, self.masking.upper])
        known = np.isfinite(declared)
        units = self.masking.grid.to_units(np.where(known, declared, 0))
        return (
            int(units[0]) if known[0] else low - far,
            int(units[1]) if known[1] else high + far,
        )

    def position(self, record: int) -> int | None:
        """Where a record's value stands among those present; None where it is missing."""
        return int(np.count_nonzero(self.present[:record])) if self.present[record] else None

    def record(self, rank: int) -> int:
        """Return the record of a rank."""
        return int(np.flatnonzero(self.present)[self.order[rank]])

    def changed(self, record: int, value: int, *, held: bool) -> ClusterSummary:
        """Summarise the table with one value changed, clusters held or formed again."""
        position = self.position(record)
        units = self.units.copy()
        if position is None:
            return self.summary
        units[position] = value
        if not self._clustered:
            return self._summarise(units)
        if not held:
            return self._summarise(np.sort(units))
        ranked = units[self.order]
        rank = int(np.flatnonzero(self.order == position)[0])
        ends = np.cumsum(self.sizes)
        cluster = int(np.searchsorted(ends, rank, side="right"))
        members = slice(int(ends[cluster] - self.sizes[cluster]), int(ends[cluster]))
        ranked[members] = np.sort(ranked[members])
        return self._summarise(ranked)

    def loss(self, there: ClusterSummary) -> float:
        """Loss between the table as it is and another one, exactly."""
        centroid = self.masking.method.centroid
        moved = np.abs(centroid(there, 0) - centroid(self.summary, 0))
        if np.any(moved[self.scales == 0]):
            return float("inf")
        noisy = self.scales > 0
        return float(np.sum(moved[noisy] / self.scales[noisy]))

    @property
    def _clustered(self) -> bool:
        return self.masking.method.clustered

    def _summarise(self, units: Integers) -> ClusterSummary:
        return summarise(units, self.sizes) if self._clustered else singletons(units)


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A table in which one record changed, as far as each target is concerned."""

    summaries: tuple[ClusterSummary, ...]
    loss: float


def open_targets(engine: MemoryEngine, settled: Settled) -> tuple[Target, ...]:
    """Make a target of every confidential attribute."""
    return tuple(
        Target(m, engine.units(m.name, m.grid), engine.present(m.name)) for m in settled.numeric
    )


def worst_neighbour(targets: Sequence[Target], records: Sequence[int], *, held: bool) -> Neighbour:
    """Return the most telling of these records, moved to its more telling end in every target."""
    neighbours = [_furthest(targets, record, held=held) for record in dict.fromkeys(records)]
    return max(neighbours, key=lambda neighbour: neighbour.loss)


def random_neighbour(
    targets: Sequence[Target], random: np.random.Generator, *, held: bool
) -> Neighbour:
    """Return the table with one record's values exchanged for other records' values."""
    record = int(random.integers(len(targets[0].present)))
    summaries = tuple(
        target.changed(record, int(random.choice(target.units)), held=held) for target in targets
    )
    return _neighbour(targets, summaries)


def telling_records(target: Target, *, held: bool) -> list[int]:
    """Return the records whose change can tell most about this target."""
    if not held or not target.masking.method.clustered:
        return [target.record(0), target.record(len(target.units) - 1)]
    method, domain = target.masking.method, target.masking.domain_units
    ends, picks = np.cumsum(target.sizes), []
    reaches = method.held(target.summary, domain)
    for reach, ranks in ((reaches.up, ends - target.sizes), (reaches.down, ends - 1)):
        loss = reach / target.summary.size / np.maximum(target.scales, 1)
        picks.append(target.record(int(ranks[np.argmax(loss)])))
    return picks


def _furthest(targets: Sequence[Target], record: int, *, held: bool) -> Neighbour:
    summaries = tuple(
        max((t.changed(record, end, held=held) for end in t.ends), key=t.loss) for t in targets
    )
    return _neighbour(targets, summaries)


def _neighbour(targets: Sequence[Target], summaries: tuple[ClusterSummary, ...]) -> Neighbour:
    losses = (target.loss(there) for target, there in zip(targets, summaries, strict=True))
    return Neighbour(summaries, sum(losses))
