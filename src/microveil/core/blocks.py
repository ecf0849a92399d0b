"""Blocks of records of a table that is in no one place: a tree of cuts, found on a sample."""

from dataclasses import dataclass

import numpy as np

from microveil.types import Integers, Reals


@dataclass(frozen=True, eq=False)
class BlockTree:
    """Cuts that part records into blocks of neighbours, each about as large as the others.

    A node cuts across a direction at a threshold; of records on the threshold itself, which may be
    many, a share goes below. Children are numbered like nodes, and leaves from −1 down: leaf n is
    −1 − n.
    """

    direction: Reals
    threshold: Reals
    share: Reals
    below: Integers
    above: Integers

    @property
    def leaves(self) -> int:
        """Number of blocks."""
        return len(self.threshold) + 1

    def leaf_of(self, points: Reals, chance: Reals) -> Integers:
        """Return the block of each record, given a random number of [0, 1) for each."""
        node, chance = np.full(len(points), -1 if self.leaves == 1 else 0), chance.copy()
        while len(inner := np.flatnonzero(node >= 0)):
            at = node[inner]
            along = _along(points[inner], self.direction[at])
            on, share, drawn = along == self.threshold[at], self.share[at], chance[inner]
            first = on & (drawn < share)
            under = (along < self.threshold[at]) | first
            node[inner] = np.where(under, self.below[at], self.above[at])
            others = on & ~first  # what is left of the chance is as random as before
            drawn[first] /= share[first]
            drawn[others] = (drawn[others] - share[others]) / (1 - share[others])
            chance[inner] = drawn
        return -1 - node

    def merged(self, counts: Integers, least: int) -> Integers:
        """Return for every leaf the number of a block that has `least` records or more.

        Leaves that have fewer are put together with those beside them, as the tree has it.
        """
        label = np.arange(self.leaves)

        def collect(node: int) -> tuple[list[int], int]:
            if node < 0:
                return [-1 - node], int(counts[-1 - node])
            sides = [collect(int(child)) for child in (self.below[node], self.above[node])]
            leaves, total = sides[0][0] + sides[1][0], sides[0][1] + sides[1][1]
            if min(sides[0][1], sides[1][1]) < least:
                label[leaves] = leaves[0]
            return leaves, total

        collect(-1 if self.leaves == 1 else 0)
        return np.unique(label, return_inverse=True)[1]


def grow(points: Reals, parts: int) -> BlockTree:
    """Cut a sample of records into so many parts of equal size, as `mdav.cut_blocks` does all.

    Examples
    --------
    >>> tree = grow(np.array([[0.0], [1.0], [2.0], [9.0]]), parts=2)
    >>> tree.leaf_of(np.array([[0.5], [5.0]]), np.zeros(2))
    array([0, 1])
    """
    nodes: list[tuple[Reals, float, float]] = []
    children: list[list[int]] = []
    leaves = 0

    def cut(sample: Reals, parts: int) -> int:
        nonlocal leaves
        if parts == 1:
            leaves += 1
            return -leaves
        direction = _widest(sample)
        along = _along(sample, np.broadcast_to(direction, sample.shape))
        lower = len(along) * (parts // 2) // parts
        threshold = float(np.partition(along, lower)[lower]) if len(along) else 0.0
        under, on = along < threshold, np.flatnonzero(along == threshold)
        here = lower - int(np.count_nonzero(under))
        share = here / max(1, len(on))
        under[on[:here]] = True
        nodes.append((direction, threshold, share))
        children.append([])
        own = len(nodes) - 1
        children[own] = [cut(sample[under], parts // 2), cut(sample[~under], parts - parts // 2)]
        return own

    cut(points, parts)
    return BlockTree(
        np.array([node[0] for node in nodes]).reshape(len(nodes), points.shape[1]),
        np.array([node[1] for node in nodes]),
        np.array([node[2] for node in nodes]),
        np.array([pair[0] for pair in children], dtype=np.int64),
        np.array([pair[1] for pair in children], dtype=np.int64),
    )


def _widest(points: Reals) -> Reals:
    """Return the direction in which points vary most."""
    if len(points) < 2:
        first: Reals = np.eye(points.shape[1])[0]
        return first
    _, directions = np.linalg.eigh(np.atleast_2d(np.cov(points.T)))
    widest: Reals = directions[:, -1]
    return widest


def _along(points: Reals, direction: Reals) -> Reals:
    """Project points, each on its direction, one coordinate at a time: the same for any number."""
    along = np.zeros(len(points))
    for column in range(points.shape[1]):
        along += points[:, column] * direction[:, column]
    return along
