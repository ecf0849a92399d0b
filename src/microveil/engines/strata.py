"""Mask an attribute stratum by stratum; a table without strata is one of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.grid import Integers
from microveil.core.mask import Description, Masked, mask_clusters, summary_of
from microveil.core.noise import WordSource, draw_all
from microveil.core.partition import cut

Order = NDArray[Any]
"""Positions of values in rank order, in 32 bits where that is enough."""


@dataclass(frozen=True, eq=False)
class MaskedStrata:
    """The clusters of all strata, and what a record, which stays in its own, can lose."""

    description: Description
    fixed: float
    re_clustered: float | None

    @classmethod
    def of(cls, strata: Sequence[tuple[Masked, AttributeSettings]]) -> "MaskedStrata":
        """Put strata together: the most that is lost is that of the worst of them."""
        descriptions = [masked.description for masked, _ in strata]
        fixed, again = zip(*(masked.total_losses(own) for masked, own in strata), strict=True)
        return cls(
            {name: np.concatenate([d[name] for d in descriptions]) for name in descriptions[0]},
            max(fixed),
            None if None in again else max(again),
        )


def mask_strata(
    order: Order,
    ranked: Integers,
    parts: Sequence[slice],
    attribute: AttributeSettings,
    words: WordSource,
    ties: WordSource,
) -> tuple[NDArray[Any], MaskedStrata]:
    """Mask the values of an attribute, ranked within strata; return one for each of them.

    Guarantee
    ---------
    Every stratum is masked as a table of its own, with as many records as it has. One record that
    changes and keeps its stratum touches what is published of that one only, so the guarantee of
    `mask_clusters` is that of all of them: nothing is added up over strata.
    """
    categories = isinstance(attribute, CategorySettings)
    values: NDArray[Any] = np.empty(len(order), dtype=np.int64 if categories else np.float64)
    strata = []
    for part in parts:
        own, here = replace(attribute, records=part.stop - part.start), order[part]
        sizes = cut(ranked[part], own)
        _shuffle_ties(here, ranked[part], sizes, ties)
        masked = mask_clusters(summary_of(ranked[part], sizes, own), own, words)
        _spread(masked.values, sizes, here, values)
        strata.append((masked, own))
    return values, MaskedStrata.of(strata)


def _shuffle_ties(order: Order, ranked: Integers, sizes: Integers, source: WordSource) -> None:
    """Put records of equal value into clusters at random."""
    from microveil.core.kernels import columns as kernels

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
    from microveil.core.kernels import columns as kernels

    kernels.spread(masked, sizes, order, values)
