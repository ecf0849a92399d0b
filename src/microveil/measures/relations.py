"""How relations between attributes change: correlations of numbers, associations of categories.

A measure of several attributes uses the records in which none of them is missing.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from microveil.compare.asked import Asked
from microveil.compare.estimates import Weights
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import complete, deviation, is_complete
from microveil.measures import category_distances, distances
from microveil.types import Booleans, Integers, Reals

_KINDS: tuple[tuple[distances.Correlation, str], ...] = (
    ("pearson", "utility.pearson"),
    ("spearman", "utility.spearman"),
)
_CORRELATIONS = tuple(measure for _, measure in _KINDS)
_ASSOCIATION = "utility.cramers_v"


def correlation_figures(seen: Examined, _: Asked) -> Items:
    """Compare correlations of numbers."""
    pair = seen.pair
    if not pair.numeric:
        return
    original, released = complete(pair.original), complete(pair.released)
    weights = pair.weighing(is_complete(pair.original), is_complete(pair.released))
    spread = [deviation(before) * deviation(after) for before, after in zip(
        original.T, released.T, strict=True)]  # fmt: skip
    varies = np.flatnonzero(spread).tolist()
    yield from _constant(pair.numeric, varies, _CORRELATIONS, "constant_where_complete")
    if len(varies) < 2:
        yield NotComputed(_CORRELATIONS, "needs_two_numbers")
        return
    names = [pair.numeric[a] for a in varies]
    for kind, measure in _KINDS:
        changes = distances.correlation_differences(
            original[:, varies], released[:, varies], kind, weights
        )
        yield from _pairs(measure, names, changes, weights)


def association_figures(seen: Examined, _: Asked) -> Items:
    """Compare associations of categories."""
    categorical = seen.pair.categorical
    if not categorical:
        return
    original = np.column_stack([attribute.original for attribute in categorical])
    released = np.column_stack([attribute.released for attribute in categorical])
    before, after = ((table != MISSING).all(axis=1) for table in (original, released))
    weights = seen.pair.weighing(before, after)
    original, released = original[before], released[after]
    columns = zip(original.T, released.T, strict=True)
    varies = [a for a, both in enumerate(columns) if all(map(_varies, both))]
    names = [attribute.name for attribute in categorical]
    yield from _constant(names, varies, (_ASSOCIATION,), "one_category_where_complete")
    if len(varies) < 2:
        yield NotComputed((_ASSOCIATION,), "needs_two_categories")
        return
    changes = category_distances.association_differences(
        original[:, varies], released[:, varies], weights
    )
    yield from _pairs(_ASSOCIATION, [names[a] for a in varies], changes, weights)


def _constant(
    names: Sequence[str], varies: Sequence[int], measures: tuple[str, ...], reason: str
) -> Items:
    for a, name in enumerate(names):
        if a not in varies:
            yield NotComputed(measures, reason, name)


def _pairs(measure: str, names: Sequence[str], changes: Reals, weights: Weights | None) -> Items:
    for i, j in combinations(range(len(names)), 2):
        about = f"{names[i]} × {names[j]}"
        facts = {"first": names[i], "second": names[j]}
        change = float(changes[i, j])
        yield Figure(measure, about, change, facts, weighted=weights is not None)


def _varies(codes: Integers) -> bool:
    differs: Booleans = codes != codes[0] if len(codes) else np.zeros(0, dtype=np.bool_)
    return bool(differs.any())
