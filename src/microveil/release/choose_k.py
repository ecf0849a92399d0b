"""Resolve a plan, and choose from the data what the plan leaves to be chosen from it."""

from dataclasses import replace

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.engines.base import Engine
from microveil.plan.plan import Plan
from microveil.release.resolve import ResolvedPlan, resolve

_LARGEST_K = 1_000


def resolve_and_choose(plan: Plan, engine: Engine) -> ResolvedPlan:
    """Check the plan against the table, and choose k where the plan says ``"auto"``.

    Guarantee
    ---------
    Level 1 holds clusters as they are, whatever k they were formed with, so the choice costs
    nothing there. On a neighbouring table another k may be chosen: level 2 has no bound.
    """
    resolved = resolve(plan, engine)
    attributes = tuple(
        replace(m, k=_best_k(plan, engine, m))
        if m.k_chosen and isinstance(m, NumericSettings)
        else m
        for m in resolved.attributes
    )
    return replace(resolved, attributes=attributes)


def _best_k(plan: Plan, engine: Engine, settings: NumericSettings) -> int:
    """Return the k of least expected error, over values in steps of about a twentieth."""
    fewest = _fewest(engine, settings.name) if plan.within else settings.records
    most = min(_LARGEST_K, max(settings.method.least_k, fewest // 2))
    steps = np.geomspace(settings.method.least_k, most, 120)
    candidates = np.unique(np.rint(steps).astype(int)).tolist()
    return int(candidates[int(np.argmin(engine.expected_errors(settings, candidates)))])


def _fewest(engine: Engine, attribute: str) -> int:
    """Count the values in the smallest stratum that has some."""
    sizes = engine.stratum_sizes(attribute)
    return int(sizes[sizes > 0].min())
