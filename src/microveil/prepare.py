"""Settle a plan, and choose from the data what the plan leaves to be chosen from it."""

from dataclasses import replace

import numpy as np

from microveil.engines.base import Engine
from microveil.expected import expected_squares
from microveil.grid import Integers
from microveil.masking import NumericMasking
from microveil.plan import Plan
from microveil.settle import Settled, settle

_LARGEST_K = 1_000


def prepare(plan: Plan, engine: Engine) -> Settled:
    """Check the plan against the table, and choose k where the plan says ``"auto"``.

    Guarantee
    ---------
    Level 1 holds clusters as they are, whatever k they were formed with, so the choice costs
    nothing there. On a neighbouring table another k may be chosen: level 2 has no bound.
    """
    settled = settle(plan, engine)
    maskings = tuple(
        replace(m, k=_best_k(engine.ranked(m.name, m.grid), m))
        if m.k_chosen and isinstance(m, NumericMasking)
        else m
        for m in settled.maskings
    )
    notes = tuple(
        f"attribute {m.name!r}: the data decided where clusters begin and end"
        for m in maskings
        if m.chosen_from_data
    )
    return replace(settled, maskings=maskings, notes=settled.notes + notes)


def _best_k(ranked: Integers, masking: NumericMasking) -> int:
    """Return the k of least expected error, over values in steps of about a twentieth."""
    most = min(_LARGEST_K, max(masking.method.least_k, len(ranked) // 2))
    steps = np.geomspace(masking.method.least_k, most, 120)
    candidates = np.unique(np.rint(steps).astype(int)).tolist()
    errors = [
        sum(expected_squares(ranked, replace(masking, k=k), clamped=True)) for k in candidates
    ]
    return int(candidates[int(np.argmin(errors))])
