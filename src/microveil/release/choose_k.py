"""Resolve a plan, and choose from the data what the plan leaves to be chosen from it."""

from dataclasses import replace

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.engines.base import OpenTable
from microveil.plan.plan import Plan
from microveil.release.resolve import ResolvedPlan, resolve

_LARGEST_K = 1_000


def resolve_and_choose(plan: Plan, table: OpenTable) -> ResolvedPlan:
    """Check the plan against the table, and choose k where the plan says ``"auto"``.

    Guarantee
    ---------
    Level 1 holds clusters as they are, whatever k they were formed with, so the choice costs
    nothing there. On a neighbouring table another k may be chosen: level 2 has no bound.
    """
    resolved = resolve(plan, table)
    prepared = table.prepared(resolved.preparation)
    attributes = tuple(
        replace(m, k=_best_k(plan, prepared, m))
        if m.k_chosen and isinstance(m, NumericSettings)
        else m
        for m in resolved.attributes
    )
    return replace(resolved, attributes=attributes)


def _best_k(plan: Plan, table: OpenTable, settings: NumericSettings) -> int:
    """Return the k of least expected error, over values in steps of about a twentieth."""
    counts = plan.within or settings.by_unit
    fewest = _fewest(table, settings) if counts else settings.records
    most = min(_LARGEST_K, max(settings.method.least_k, fewest // 2))
    steps = np.geomspace(settings.method.least_k, most, 120)
    candidates = np.unique(np.rint(steps).astype(int)).tolist()
    return int(candidates[int(np.argmin(table.expected_errors(settings, candidates)))])


def _fewest(table: OpenTable, settings: NumericSettings) -> int:
    """Count the values, or the units that have one, in the smallest stratum that has some."""
    sizes = table.stratum_sizes(settings.name, units=settings.by_unit)
    return int(sizes[sizes > 0].min())
