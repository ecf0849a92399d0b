"""How shares of categories change, and how many records keep theirs."""

import numpy as np

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.paired_columns import MISSING
from microveil.measures import category_distances


def share_figures(seen: Examined, _: Asked) -> Items:
    """Compare the categories of the two tables as wholes."""
    for attribute in seen.pair.categorical:
        before, after = attribute.original != MISSING, attribute.released != MISSING
        codes, masked = attribute.original[before], attribute.released[after]
        weights = seen.pair.weighing(before, after)
        weighted = weights is not None
        distance = category_distances.total_variation(codes, masked, weights)
        yield Figure("utility.total_variation", attribute.name, distance, weighted=weighted)
        if min(len(codes), len(masked)) > 1:
            common = category_distances.share_overlap(codes, masked, weights)
            facts = {"of": "category"}
            measure = "utility.interval_overlap"
            yield Figure(measure, attribute.name, common, facts, weighted=weighted)


def unchanged_figures(seen: Examined, _: Asked) -> Items:
    """Compare records one by one: how many keep their category."""
    for attribute, codes, masked in seen.pair.codes():
        if not len(codes):
            yield NotComputed(("utility.unchanged",), "in_no_record_of_both", attribute.name)
            continue
        share = category_distances.share_unchanged(codes, masked)
        most = float(np.bincount(codes).max() / len(codes))
        yield Figure("utility.unchanged", attribute.name, share, {"most_frequent": most})
