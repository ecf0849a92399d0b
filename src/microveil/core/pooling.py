"""Pooling: masked values of k or more records are mixed, so that no row tells whose it is.

Attributes are masked one by one first. Then, in every joint cluster, their masked values are
exchanged between records or averaged. Noise is not added again.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.choices import Pooling
from microveil.core.mask import publish
from microveil.core.random_words import WordSource, draw_all
from microveil.types import Integers, Reals

Present = NDArray[np.bool_]


def block_of(anonymity: int) -> int:
    """Return of how many ranks a block is: two values of a person meet by one chance in as many.

    Examples
    --------
    >>> [block_of(k) for k in (3, 10, 25, 50, 100, 1000)]
    [1, 3, 5, 5, 10, 10]
    """
    return max(1, min(10, anonymity // 3, max(5, anonymity // 10)))


@dataclass(frozen=True)
class Pool:
    """A group of attributes whose masked values are pooled in the same joint clusters.

    `anonymity` is the least number of records, or of units, in a joint cluster. `kept` are columns
    published as they are, whose relations to the attributes exchange keeps.
    """

    attributes: tuple[AttributeSettings, ...]
    anonymity: int
    pooling: Pooling
    kept: tuple[str, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def block(self) -> int:
        """Of how many ranks a block is."""
        return block_of(self.anonymity)

    @property
    def levels(self) -> tuple[tuple[AttributeSettings, ...], ...]:
        """Its attributes that have one value per unit, and the others, where there are any."""
        units = tuple(a for a in self.attributes if a.per_unit)
        others = tuple(a for a in self.attributes if not a.per_unit)
        return tuple(level for level in (units, others) if level)

    @property
    def follows_masked_values(self) -> bool:
        """Whether joint clusters are formed on masked values, and not on the original ones.

        Without individual clusters, ε covers the masked table whatever record changes; so that it
        still does after pooling, pooling may not look at the data. Where ε is promised with
        clusters fixed, joint clusters are fixed like the others, and the original values make
        better ones.
        """
        return not any(attribute.method.clustered for attribute in self.attributes)


@dataclass(frozen=True, eq=False)
class JointClusters:
    """Records in the order of their joint clusters, and how many each cluster has."""

    order: Integers
    size: Integers

    @property
    def ends(self) -> Integers:
        """Where each cluster ends in the order."""
        return np.cumsum(self.size)

    @property
    def smallest(self) -> int:
        """Number of records of the smallest cluster."""
        return int(self.size.min())

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Give every record its cluster's value."""
        spread = np.empty(len(self.order), dtype=values.dtype)
        spread[self.order] = np.repeat(values, self.size)
        return spread


def collect_clusters(label: Integers) -> JointClusters:
    """Collect the records of each joint cluster, given their labels from 0 on.

    Examples
    --------
    >>> collect_clusters(np.array([1, 0, 1, 0, 1])).order
    array([1, 3, 0, 2, 4])
    """
    from microveil.core.kernels import permutations as kernels

    size = np.bincount(label)
    return JointClusters(kernels.by_cluster(label, np.cumsum(size)), size)


def exchange(clusters: JointClusters, source: WordSource) -> Integers:
    """Draw for every record the record of its joint cluster whose masked values it is given.

    Within each cluster this is a permutation, each as likely as any other and independent of those
    of other clusters: Fisher and Yates's shuffle, its draws made exactly, by rejection. Every
    attribute needs a call of its own.

    Guarantee
    ---------
    Whichever of a cluster's rows belongs to whom, its exchanged values are equally likely: no
    attacker picks a person's row among them by these attributes with more than one chance in the
    cluster's size, whatever they know of everybody's values. It presumes that rows are published
    in random order and that no other column points to a row. Every value stays in its cluster, so
    what a cluster's records have in common is not hidden.

    Examples
    --------
    >>> from microveil.core.random_words import SeededWords
    >>> clusters = collect_clusters(np.array([0, 1, 0, 1, 0, 1]))
    >>> exchange(clusters, SeededWords(1))
    array([4, 5, 0, 3, 2, 1])
    """
    from microveil.core.kernels import permutations as kernels

    drawn, ends = clusters.order.copy(), clusters.ends
    draw_all(
        len(drawn),
        source,
        lambda words, done: kernels.shuffle(drawn, ends, words, done),
        words_per_draw=1.0,
    )
    giver = np.empty_like(drawn)
    giver[clusters.order] = drawn
    return giver


def average(
    attribute: AttributeSettings,
    values: NDArray[Any],
    clusters: JointClusters,
    present: Present,
    source: WordSource,
) -> NDArray[Any]:
    """Average masked numbers, or choose among codes of masked categories, in each joint cluster.

    NaN, or −1, where most are missing.
    """
    if isinstance(attribute, CategorySettings):
        ordinal = attribute.kind == "ordinal"
        return average_categories(values, clusters, present, source, ordinal=ordinal)
    return publish(average_numbers(values, clusters, present), attribute)


def average_numbers(values: Reals, clusters: JointClusters, present: Present) -> Reals:
    """Average the numbers that are present in each joint cluster; NaN where most are missing.

    Examples
    --------
    >>> values, present = np.array([1.0, 4.0, 0.0, 9.0]), np.array([True, True, False, True])
    >>> average_numbers(values, collect_clusters(np.array([0, 0, 1, 1])), present)
    array([2.5, 9. ])
    """
    from microveil.core.kernels import permutations as kernels

    return kernels.means_of_clusters(values, present, clusters.order, clusters.ends)


def average_categories(
    codes: Integers,
    clusters: JointClusters,
    present: Present,
    source: WordSource,
    *,
    ordinal: bool,
) -> Integers:
    """Choose the median (ordinal) or the mode (nominal) of each cluster; −1 if most are missing.

    Of two codes in the middle, or several that are equally frequent, one is drawn at random.
    """
    from microveil.core.kernels import permutations as kernels

    chosen, ends = np.empty(len(clusters.size), dtype=np.int64), clusters.ends
    draw_all(
        len(chosen),
        source,
        lambda words, done: kernels.choose_codes(
            codes, present, clusters.order, ends, ordinal, chosen, words, done
        ),
        words_per_draw=1.0,
    )
    return chosen


def holds_the_same(before: NDArray[Any], after: NDArray[Any], clusters: JointClusters) -> bool:
    """Whether every joint cluster has the same values before and after, repeats counted.

    Values are doubles or whole numbers of 64 bits; their bits count, those of NaN included. Sums of
    mixed bits are compared, which another cluster of values has by one chance in 2^64.
    """
    from microveil.core.kernels import permutations as kernels

    return kernels.same_multisets(
        before.view(np.int64), after.view(np.int64), clusters.order, clusters.ends
    )
