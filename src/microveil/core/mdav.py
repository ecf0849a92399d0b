"""Joint clusters: multivariate microaggregation by maximum distance to the average vector (MDAV).

All attributes of a record share one cluster of k or more, so what is published of the cluster is
the same for at least k records. MDAV runs in parts of the table; then records of near clusters
change places while that lowers the squares within.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from microveil.errors import DataError, PlanError
from microveil.machine import available_cores
from microveil.types import Integers, Reals


class Effort(NamedTuple):
    """How much is done for joint clusters that lie close.

    Attributes
    ----------
    part
        Records that MDAV runs over at once, at most. Its time grows with their square.
    block
        Records among which places are changed, at most.
    near, passes
        How many of the nearest clusters each one swaps records with, and how often at most.
    """

    part: int
    block: int
    near: int
    passes: int


_LARGE = 400_000


def effort_for(records: int, k: int) -> Effort:
    """Return what pays for so many records: the more there are, the less time each may take.

    What it gains and costs is measured in bench/pooling.py: more neighbours pay more where there
    are many attributes and cost little where there are few, and swaps come to their end before
    twelve passes. Large k leaves fewer clusters in a block, and more records to compare between
    two of them.

    Examples
    --------
    >>> effort_for(5_000, 10)
    Effort(part=5000, block=20000, near=32, passes=12)
    >>> effort_for(10_000_000, 10)
    Effort(part=500, block=4000, near=6, passes=3)
    """
    scale = max(1.0, k / 10)
    if records <= _LARGE:
        part, block, near, passes = 5_000, 20_000, 32, 12
    else:
        part, block, near, passes = 500, 4_000, 6, 3
    return Effort(int(part * scale), int(block * scale), max(6, int(near / scale)), passes)


def standardise(columns: Reals | Integers) -> Reals:
    """Bring every column to mean 0 and standard deviation 1; a constant one becomes 0.

    Examples
    --------
    >>> standardise(np.array([[1.0, 7.0], [3.0, 7.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    standard = columns.astype(np.float64)  # the only copy: a table may have many records
    if not len(standard):  # some strata of a table may lack a column
        return standard
    lowest, highest = standard.min(axis=0), standard.max(axis=0)
    varies = highest > lowest
    # To [0, 1] first: squares of very large or very close numbers would lose all their digits.
    standard -= lowest
    standard /= np.where(varies, highest - lowest, 1.0)
    standard -= standard.mean(axis=0)
    standard /= np.where(varies, standard.std(axis=0), 1.0)
    return standard


def mdav(points: Reals, k: int) -> Integers:
    """Partition records into clusters of k (the last one: up to 2k − 1) by MDAV.

    MDAV-generic of Domingo-Ferrer and Torra (2005). While 3k records or more remain: from their
    centroid find the farthest record r, form a cluster of r and the k − 1 records nearest to it,
    and another one of the record s farthest from r and the k − 1 nearest to s. Of 2k to 3k − 1
    records, r and its k − 1 nearest form a cluster, and the others one. Fewer records form one.
    Distances are Euclidean. Ties go to the record that comes first; s is sought among those that
    the cluster of r has left, which only matters where all others are equally far from r.

    Parameters
    ----------
    points
        One row per record, one column per attribute; distances mean something if these are
        standardised.
    k
        Records per cluster.

    Returns
    -------
    Integers
        The cluster of every record, numbered from 0 in the order they are formed.

    Raises
    ------
    PlanError
        If k is below 1.
    DataError
        If there are fewer than k records, or values that are missing, infinite or too large for
        their squares to be added.

    Examples
    --------
    >>> mdav(np.array([[0.0], [5.0], [1.0], [6.0], [2.0], [50.0], [51.0]]), k=2)
    array([1, 2, 1, 2, 2, 0, 0])
    """
    _check(points, k)
    from microveil.core.kernels import mdav_steps as kernels

    return kernels.label_by_mdav(np.array(points.T, dtype=np.float64, order="C"), k)


def cut_blocks(points: Reals, order: Integers, most: int) -> list[Integers]:
    """Cut records into blocks of at most `most`, across the direction in which they vary most.

    Of ⌈n/most⌉ blocks of equal size, half go to either side of the first cut, and so on. A cut is
    across the first principal component of the records on its two sides, so that it parts as few
    neighbours as possible; of those on the cut itself, the first in the given order go below.

    Examples
    --------
    >>> points = np.array([[3.0, 0.0], [9.0, 0.1], [1.0, 0.2], [8.0, 0.3]])
    >>> cut_blocks(points, np.arange(4), most=2)
    [array([0, 2]), array([1, 3])]
    """
    if most < 1:
        raise PlanError(f"a block must have room for 1 record or more, got {most}")
    from microveil.core.kernels import mdav_steps as kernels

    waiting, blocks = [(order, -(-len(order) // most))], []
    while waiting:
        records, parts = waiting.pop()
        if parts == 1:
            blocks.append(records)
            continue
        along = kernels.project(points, records)
        lower = len(records) * (parts // 2) // parts
        below, above = kernels.part(records, along, lower, np.partition(along, lower)[lower])
        waiting += [(above, parts - parts // 2), (below, parts // 2)]
    return blocks


def joint_clusters(
    points: Reals,
    k: int,
    order: Integers | None = None,
    effort: Effort | None = None,
    *,
    strata: Integers | None = None,
) -> tuple[Integers, int]:
    """Partition records by MDAV within parts of the table, and swap records in blocks of parts.

    With `strata`, the stratum of every record, no block and no cluster has records of two of them.

    By default the effort follows from the number of records, as `effort_for` says.

    Ties go to the record that comes first in the given order, or else in the table. Parts never
    have fewer than k records: a part of less than 2k counts as 2k. Beside the points, a few whole
    numbers per record are held in memory, and the points of the blocks that are worked on.

    Returns
    -------
    tuple[Integers, int]
        The cluster of every record, numbered from 0, and the number of parts. In each part one
        cluster has k to 2k − 1 records and all others have k.

    Raises
    ------
    PlanError, DataError
        As `mdav` does.

    Examples
    --------
    >>> joint_clusters(np.array([[0.0], [7.0], [1.0], [8.0]]), k=2)
    (array([0, 1, 0, 1]), 1)
    """
    _check(points, k)
    order = np.arange(len(points)) if order is None else order
    effort = effort_for(len(points), k) if effort is None else effort
    most = max(effort.block, effort.part, 2 * k)
    blocks = [b for stratum in by_stratum(order, strata) for b in cut_blocks(points, stratum, most)]
    with ThreadPoolExecutor(available_cores()) as threads:
        partitions = threads.map(lambda block: _clusters_of(points[block], k, effort), blocks)
        label, clusters, parts = np.empty(len(points), dtype=np.int64), 0, 0
        for records, (partition, count) in zip(blocks, partitions, strict=True):
            label[records] = partition + clusters
            clusters += int(partition.max()) + 1
            parts += count
    return label, parts


def _clusters_of(points: Reals, k: int, effort: Effort) -> tuple[Integers, int]:
    """Partition the records of a block; return their clusters, and the number of parts."""
    parts = cut_blocks(points, np.arange(len(points)), max(effort.part, 2 * k))
    label, clusters = np.empty(len(points), dtype=np.int64), 0
    for records in parts:
        label[records] = mdav(points[records], k) + clusters
        clusters = int(label[records].max()) + 1
    return swapped(points, label, effort.near, effort.passes), len(parts)


def swapped(points: Reals, label: Integers, near: int, passes: int) -> Integers:
    """Let records of near clusters change places while that lowers the squares within.

    Clusters keep their sizes.

    Examples
    --------
    >>> points = np.array([[0.0], [9.0], [1.0], [7.0], [2.0], [8.0]])
    >>> swapped(points, np.array([0, 0, 0, 1, 1, 1]), near=1, passes=2)
    array([0, 1, 0, 1, 0, 1])
    """
    size = np.bincount(label)
    if len(size) < 2 or not passes:
        return label
    from microveil.core.kernels import swaps as kernels

    member = np.argsort(label, kind="stable")
    kernels.swap_records(np.ascontiguousarray(points[member]), member, size, near, passes)
    better = np.empty_like(label)
    better[member] = np.repeat(np.arange(len(size)), size)
    return better


def by_stratum(order: Integers, strata: Integers | None) -> list[Integers]:
    """Part records, in the given order, by their strata, numbered from 0 on.

    Examples
    --------
    >>> by_stratum(np.array([3, 0, 2, 1]), np.array([0, 1, 1, 0]))
    [array([3, 0]), array([2, 1])]
    """
    if strata is None:
        return [order]
    own = strata[order]
    sizes = np.bincount(own)
    parts = np.split(order[np.argsort(own, kind="stable")], np.cumsum(sizes)[:-1])
    return [part for part in parts if len(part)]


def _check(points: Reals, k: int) -> None:
    if k < 1:
        raise PlanError(f"k must be 1 or more, got {k}", setting="k")
    if len(points) < k:
        raise DataError(
            f"clusters of k = {k} need {k} records or more, found {len(points):,}", setting="k"
        )
    if not np.isfinite(np.vdot(points, points)):
        raise DataError(
            "joint clusters need finite numbers whose squares can be added; fill in or leave out "
            "missing values and standardise the attributes"
        )
