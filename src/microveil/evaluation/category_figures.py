"""Figures of categories, with readings. Missing ones are treated as in the figures of utility."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from microveil.core.grid import Integers
from microveil.evaluation import categorical
from microveil.evaluation.compared import MISSING
from microveil.evaluation.pairing import Pair
from microveil.evaluation.result import Figure, Items, NotComputed, moves, percent


def category_figures(pair: Pair) -> Items:
    """Compare the categories of the two tables as wholes."""
    for attribute in pair.categorical:
        codes, masked = (c[c != MISSING] for c in (attribute.original, attribute.released))
        distance = categorical.total_variation(codes, masked)
        yield Figure(
            "utility.total_variation",
            attribute.name,
            distance,
            f"{percent(distance)} of records would have to change category for the released "
            "distribution to be that of the original",
        )
    if pair.categorical:
        yield from _association_figures(
            [attribute.name for attribute in pair.categorical],
            _complete([attribute.original for attribute in pair.categorical]),
            _complete([attribute.released for attribute in pair.categorical]),
        )


def _association_figures(names: Sequence[str], original: Integers, released: Integers) -> Items:
    varies = [a for a in range(len(names)) if _varies(original[:, a]) and _varies(released[:, a])]
    for a in sorted(set(range(len(names))) - set(varies)):
        yield NotComputed(
            ("utility.cramers_v",),
            "it has fewer than two categories among the complete records of a table",
            names[a],
        )
    if len(varies) < 2:
        yield NotComputed(
            ("utility.cramers_v",), "it needs two attributes or more with two categories or more"
        )
        return
    changes = categorical.association_differences(original[:, varies], released[:, varies])
    for i, j in combinations(range(len(varies)), 2):
        change = float(changes[i, j])
        yield Figure(
            "utility.cramers_v",
            f"{names[varies[i]]} × {names[varies[j]]}",
            change,
            f"the association {moves(change, f'{abs(change):.3g}')} on a scale from 0 to 1 "
            "(Cramér's V, not corrected for bias)",
        )


def unchanged_figures(pair: Pair) -> Items:
    """Compare records one by one: how many keep their category."""
    for attribute, codes, masked in pair.codes():
        if not len(codes):
            yield NotComputed(
                ("utility.unchanged",), "no record has it in both tables", attribute.name
            )
            continue
        share = categorical.share_unchanged(codes, masked)
        most = np.bincount(codes).max() / len(codes)
        yield Figure(
            "utility.unchanged",
            attribute.name,
            share,
            f"{percent(share)} of records keep their category, so someone who takes a released "
            f"category for the true one is right as often; always guessing the most frequent one "
            f"is right for {percent(most)}",
        )


def _complete(columns: Sequence[Integers]) -> Integers:
    table = np.column_stack(columns)
    complete: Integers = table[(table != MISSING).all(axis=1)]
    return complete


def _varies(codes: Integers) -> bool:
    return len(np.unique(codes)) > 1
