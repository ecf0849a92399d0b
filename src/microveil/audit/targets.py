"""Attributes under attack, and neighbouring tables to tell them from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microveil.audit.base import Target
from microveil.audit.categories import CategoryMechanism, CategoryTarget, mask_counts
from microveil.audit.numbers import Mechanism, NumericTarget
from microveil.engines.memory import MemoryEngine
from microveil.joint import cluster_groups
from microveil.masking import Masking, NumericMasking
from microveil.mechanism import mask
from microveil.noise import SeededWords
from microveil.settle import Settled

AnyTarget = NumericTarget | CategoryTarget
Targets = Sequence[Target[Any]]


def open_targets(
    engine: MemoryEngine,
    settled: Settled,
    mechanism: Mechanism = mask,
    category_mechanism: CategoryMechanism = mask_counts,
) -> tuple[AnyTarget, ...]:
    """Make a target of every confidential attribute, with the joint clusters of its group."""
    cluster_groups(settled, engine, SeededWords(0, "ties"))

    def open_target(masking: Masking) -> AnyTarget:
        where = engine.present(masking.name), engine.joint(masking.name)
        if isinstance(masking, NumericMasking):
            units = engine.units(masking.name, masking.grid)
            return NumericTarget(masking, units, *where, mechanism)
        codes = engine.codes(masking.name, masking.categories)
        return CategoryTarget(masking, codes, *where, category_mechanism)

    return tuple(map(open_target, settled.maskings))


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A table in which one record changed, as far as each target is concerned."""

    summaries: tuple[Any, ...]
    loss: float


def worst_neighbour(targets: Targets, records: Sequence[int], *, held: bool) -> Neighbour:
    """Return the most telling of these records, changed to what tells most in every target."""
    neighbours = (
        neighbour(targets, summaries)
        for record in dict.fromkeys(records)
        for summaries in zip(*(t.furthest(record, held=held) for t in targets), strict=True)
    )
    return max(neighbours, key=lambda one: one.loss)


def random_neighbour(targets: Targets, random: np.random.Generator, *, held: bool) -> Neighbour:
    """Return the table with one record's values exchanged for other records' values."""
    record = int(random.integers(len(targets[0].present)))
    summaries = tuple(
        target.changed(record, int(random.choice(target.values)), held=held) for target in targets
    )
    return neighbour(targets, summaries)


def neighbour(targets: Targets, summaries: tuple[Any, ...]) -> Neighbour:
    """Add up what is likelier here, and what there: attributes are masked independently."""
    losses = (target.losses(there) for target, there in zip(targets, summaries, strict=True))
    return Neighbour(summaries, max(map(sum, zip(*losses, strict=True))))
