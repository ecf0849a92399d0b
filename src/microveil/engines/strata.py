"""Mask an attribute stratum by stratum; a table without strata is one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.clusters import ClusterSummary
from microveil.core.mask import Description, Masked, mask_clusters, summary_of
from microveil.core.partition import cut
from microveil.core.random_words import WordSource, draw_all
from microveil.core.sharing import sharing_of
from microveil.types import Integers

Order = NDArray[Any]
"""Positions of values in rank order, in 32 bits where that is enough."""


@dataclass(frozen=True, eq=False)
class MaskedStrata:
    """The clusters of all strata, and what a record, which stays in its own, can lose."""

    description: Description
    fixed: float
    re_clustered: float | None

    @classmethod
    def of(cls, masked: Masked, settings: AttributeSettings) -> "MaskedStrata":
        """Return what is kept of a stratum, and not the losses of each of its clusters."""
        return cls(masked.description, *masked.total_losses(settings))

    @classmethod
    def together(cls, strata: "Sequence[MaskedStrata]") -> "MaskedStrata":
        """Put strata together: the most that is lost is that of the worst of them."""
        if len(strata) == 1:
            return strata[0]
        again = [one.re_clustered for one in strata]
        return cls(
            {
                name: np.concatenate([one.description[name] for one in strata])
                for name in strata[0].description
            },
            max(one.fixed for one in strata),
            None if None in again else max(again),  # type: ignore[type-var]
        )


def mask_strata(
    ranking: tuple[Order, Integers],
    parts: Sequence[slice],
    unit: Integers | None,
    attribute: AttributeSettings,
    words: WordSource,
    ties: WordSource,
) -> tuple[NDArray[Any], MaskedStrata]:
    """Mask the values of an attribute; return one for each of them.

    `ranking` is the order of its values within strata, and the values in that order; `unit` has
    the unit of each value, before they were ranked, of an attribute that is masked by unit.

    Guarantee
    ---------
    Every stratum is masked as a table of its own, with as many records as it has. One record that
    changes and keeps its stratum touches what is published of that one only, so the guarantee of
    `mask_clusters` is that of all of them: nothing is added up over strata. Units that are masked
    by unit are in one stratum each. Who has a value is counted in the stratum; where all values of
    one are the same, the nearest other is that of all strata.
    """
    order, ranked = ranking
    del ranking  # so that nobody holds what is not needed any more
    everywhere = cache(partial(np.unique, ranked))
    strata, published = [], []
    for part in parts:
        own, whose = replace(attribute, records=part.stop - part.start), None
        if unit is None:
            sizes = cut(ranked[part], own)
            _shuffle_ties(order[part], ranked[part], sizes, ties)
        else:  # whose values come first decides where clusters of units end
            shuffle_equal(order[part], ranked[part], ties)
            whose = unit[order[part]]
            sizes = cut(ranked[part], own, whose)
        summary = summary_of(ranked[part], sizes, own, whose)
        if isinstance(summary, ClusterSummary) and ranked[part][0] == ranked[part][-1]:
            nearest = sharing_of(summary.smallest, everywhere()).nearest
            summary = replace(summary, nearest=nearest)
        masked = mask_clusters(summary, own, words)
        strata.append(MaskedStrata.of(masked, own))
        published.append((masked.values, sizes))
        del masked
    del ranked, everywhere  # a column's worth of memory, before there is one more
    categories = isinstance(attribute, CategorySettings)
    values: NDArray[Any] = np.empty(len(order), dtype=np.int64 if categories else np.float64)
    for part, (masks, sizes) in zip(parts, published, strict=True):
        _spread(masks, sizes, order[part], values)
    return values, MaskedStrata.together(strata)


def shuffle_equal(order: Order, ranked: Integers, source: WordSource) -> None:
    """Put all values that are equal in random order."""
    _shuffle_ties(order, ranked, np.ones(len(order), dtype=np.int64), source)


def _shuffle_ties(order: Order, ranked: Integers, sizes: Integers, source: WordSource) -> None:
    """Put records of equal value into clusters at random."""
    from microveil.core.kernels import sorting as kernels

    ends, inside = np.cumsum(sizes), np.zeros(1, dtype=np.bool_)
    tied = kernels.tied_across(ranked, ends)
    if not tied:
        return
    draw_all(
        len(order),
        source,
        lambda words, done: kernels.shuffle_ties(order, ranked, ends, inside, words, done),
        words_per_draw=tied / len(order),
    )


def _spread(masked: NDArray[Any], sizes: Integers, order: Order, values: NDArray[Any]) -> None:
    """Give every record its cluster's masked value."""
    from microveil.core.kernels import sorting as kernels

    kernels.spread(masked, sizes, order, values)
