"""Attributes under attack, and neighbouring tables to tell them from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microveil.core.attribute import AttributeSettings, NumericSettings
from microveil.core.mask import publish_centroids
from microveil.engines.local import LocalTable
from microveil.lab.audit.category_targets import CategoryMechanism, CategoryTarget, mask_counts
from microveil.lab.audit.number_targets import Mechanism, NumericTarget
from microveil.lab.audit.target import AuditTarget
from microveil.release.resolve import ResolvedPlan

AnyTarget = NumericTarget | CategoryTarget
Targets = Sequence[AuditTarget[Any]]


def open_targets(
    table: LocalTable,
    resolved: ResolvedPlan,
    mechanism: Mechanism = publish_centroids,
    category_mechanism: CategoryMechanism = mask_counts,
) -> tuple[AnyTarget, ...]:
    """Make a target of every confidential attribute of the table a plan was resolved against."""
    prepared = table.prepared(resolved.preparation)

    def open_target(settings: AttributeSettings) -> AnyTarget:
        steps, present = prepared.read(settings)
        if isinstance(settings, NumericSettings):
            single = prepared.columns[settings.name].single_precision
            return NumericTarget(settings, steps, present, mechanism, single)
        return CategoryTarget(settings, steps, present, category_mechanism)

    return tuple(map(open_target, resolved.attributes))


@dataclass(frozen=True, eq=False)
class Neighbour:
    """A table in which one record changed, as far as each target is concerned."""

    summaries: tuple[Any, ...]
    loss: float


def worst_neighbour(targets: Targets, records: Sequence[int], *, fixed: bool) -> Neighbour:
    """Return the most telling of these records, changed to what tells most in every target."""
    neighbours = (
        neighbour(targets, summaries)
        for record in dict.fromkeys(records)
        for summaries in zip(*(t.furthest(record, fixed=fixed) for t in targets), strict=True)
    )
    return max(neighbours, key=lambda one: one.loss)


def random_neighbour(targets: Targets, random: np.random.Generator, *, fixed: bool) -> Neighbour:
    """Return the table with one record's values exchanged for other records' values."""
    record = int(random.integers(len(targets[0].present)))
    summaries = tuple(
        target.changed(record, int(random.choice(target.values)), fixed=fixed) for target in targets
    )
    return neighbour(targets, summaries)


def neighbour(targets: Targets, summaries: tuple[Any, ...]) -> Neighbour:
    """Add up what is likelier here, and what there: attributes are masked independently."""
    losses = (target.losses(there) for target, there in zip(targets, summaries, strict=True))
    return Neighbour(summaries, max(map(sum, zip(*losses, strict=True))))
