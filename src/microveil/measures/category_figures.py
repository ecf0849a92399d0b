"""Figures of categories, with readings. Missing ones are treated as in the figures of utility."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from microveil.compare.estimates import Weights
from microveil.compare.figures import Figure, Items, NotComputed, moves, percent
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair
from microveil.measures import category_distances as categorical
from microveil.types import Integers


def category_figures(pair: Pair) -> Items:
    """Compare the categories of the two tables as wholes."""
    for attribute in pair.categorical:
        before, after = attribute.original != MISSING, attribute.released != MISSING
        codes, masked = attribute.original[before], attribute.released[after]
        weights = pair.weighing(before, after)
        distance = categorical.total_variation(codes, masked, weights)
        yield Figure(
            "utility.total_variation",
            attribute.name,
            distance,
            f"{percent(distance)} of {'the weight' if weights else 'records'} would have to change "
            "category for the released distribution to be that of the original",
            weighted=weights is not None,
        )
        if min(len(codes), len(masked)) > 1:
            common = categorical.interval_overlap(codes, masked, weights)
            yield Figure(
                "utility.interval_overlap",
                attribute.name,
                common,
                f"the 95% confidence intervals of the {'weighted ' if weights else ''}share of its "
                f"worst category overlap by {percent(common)}",
                weighted=weights is not None,
            )
    if pair.categorical:
        original = np.column_stack([attribute.original for attribute in pair.categorical])
        released = np.column_stack([attribute.released for attribute in pair.categorical])
        before, after = ((table != MISSING).all(axis=1) for table in (original, released))
        yield from _association_figures(
            [attribute.name for attribute in pair.categorical],
            original[before],
            released[after],
            pair.weighing(before, after),
        )


def _association_figures(
    names: Sequence[str], original: Integers, released: Integers, weights: Weights | None
) -> Items:
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
    changes = categorical.association_differences(original[:, varies], released[:, varies], weights)
    for i, j in combinations(range(len(varies)), 2):
        change = float(changes[i, j])
        yield Figure(
            "utility.cramers_v",
            f"{names[varies[i]]} × {names[varies[j]]}",
            change,
            f"the {'weighted ' if weights else ''}association "
            f"{moves(change, f'{abs(change):.3g}')} on a scale from 0 to 1 "
            "(Cramér's V, not corrected for bias)",
            weighted=weights is not None,
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


def _varies(codes: Integers) -> bool:
    return len(np.unique(codes)) > 1
