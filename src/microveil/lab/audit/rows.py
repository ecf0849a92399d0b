"""From the rows of a released table back to what each cluster published."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.lab.audit.models import Published
from microveil.lab.audit.target import AuditTarget
from microveil.types import Integers


class OtherClustersError(Exception):
    """Released rows do not form the clusters that the plan asks for."""


@dataclass(frozen=True, eq=False)
class _Tie:
    """Rows of one value in several clusters, not all of which have other values to be known by.

    `alone` are clusters of k of these rows and nothing else. `before` is the cluster that began
    with smaller values, `after` one that goes on with larger ones or has more than k records, each
    with the number of its rows.
    """

    rows: Integers
    alone: Integers
    before: tuple[int, int] | None
    after: tuple[int, int] | None


class RowReader:
    """Read the published value of every cluster from the rows of a release.

    Which records are in a cluster follows from their original values, except among equal ones,
    which are put into clusters at random. Clusters of nothing but one value are then told by their
    number alone: k rows share a masked value, or several times k. They are alike in all respects
    and are taken in random order, or in rising order after isotonic regression. Left out are those
    that are not alike, having different noise, and those without a value of their own where the
    data decided how large clusters are.
    """

    def __init__(self, target: AuditTarget[Any]) -> None:
        self._k, self._order, self._sizes = target.settings.k, target.order, target.sizes
        self._rising = target.settings.post != "none"
        self._cluster = np.repeat(np.arange(len(target.sizes)), target.sizes)
        self._certain = np.ones(len(target.order), dtype=np.bool_)
        self._witness: Integers = target.order
        self._ties: list[_Tie] = []
        if target.clustered:
            self._look_for_ties(target.values[target.order], target)
        read = self._witness >= 0
        if target.settings.partition == "fixed":
            read[:] = True
        for tie in self._ties:
            read[tie.alone] = self._rising or target.own_model.alike(tie.alone)
        self.clusters: Integers = np.flatnonzero(read)

    def _look_for_ties(self, ranked: Integers, target: AuditTarget[Any]) -> None:
        starts = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
        ends = np.append(starts[1:], len(ranked))
        spans = self._cluster[starts] != self._cluster[ends - 1]
        self._certain = ~np.repeat(spans, ends - starts)
        self._witness = np.full(len(self._sizes), -1)
        ranks = np.flatnonzero(self._certain)
        self._witness[self._cluster[ranks]] = self._order[ranks]
        if target.settings.partition == "fixed":
            pairs = zip(starts[spans].tolist(), ends[spans].tolist(), strict=True)
            self._ties = [tie for start, end in pairs if (tie := self._tie(start, end))]

    def _tie(self, start: int, end: int) -> _Tie | None:
        """Describe a tie from one rank to another; None if all its clusters are known."""
        first, last = int(self._cluster[start]), int(self._cluster[end - 1])
        if np.all(self._witness[first : last + 1] >= 0):
            return None
        closing = np.cumsum(self._sizes)
        opening = closing - self._sizes
        before = after = None
        if opening[first] < start:
            before = first, int(closing[first]) - start
        if closing[last] > end or self._sizes[last] > self._k:
            after = last, end - int(opening[last])
        alone = np.arange(first + (before is not None), last + (after is None))
        return _Tie(self._order[start:end], alone, before, after)

    def read(self, rows: Published, random: np.random.Generator) -> Published:
        """Return the values of all clusters, of which those of `clusters` mean something.

        The rows are those of records with a value.

        Raises
        ------
        OtherClustersError
            If the rows cannot be of these clusters.
        """
        values = np.zeros(len(self._sizes), dtype=rows.dtype)
        known = self._witness >= 0
        values[known] = rows[self._witness[known]]
        certain = self._certain
        if np.any(rows[self._order[certain]] != values[self._cluster[certain]]):
            raise OtherClustersError
        for tie in self._ties:
            self._untie(tie, rows[tie.rows], values, known, random)
        return values

    def _untie(
        self,
        tie: _Tie,
        rows: Published,
        values: Published,
        known: NDArray[np.bool_],
        random: np.random.Generator,
    ) -> None:
        """Find the values of the clusters that have a part in a tie and are not known yet."""
        seen, counts = np.unique(rows, return_counts=True)
        if tie.before:
            cluster, count = tie.before
            counts[seen == values[cluster]] -= count
        if tie.after:
            cluster, count = tie.after
            if not known[cluster]:
                values[cluster] = _odd_one(seen, counts, count % self._k, self._k)
                known[cluster] = True
            counts[seen == values[cluster]] -= count
        whole, rest = np.divmod(counts, self._k)
        if rest.any() or counts.min() < 0 or whole.sum() != len(tie.alone):
            raise OtherClustersError
        found = np.repeat(seen, whole)
        values[tie.alone] = found if self._rising else random.permutation(found)
        known[tie.alone] = True


def _odd_one(seen: Published, counts: Integers, rest: int, k: int) -> Any:  # noqa: ANN401
    """Return the only value that occurs k times, or several times k times, and `rest` more."""
    odd = seen[counts % k == rest]
    if len(odd) != 1:
        raise OtherClustersError
    return odd[0]
