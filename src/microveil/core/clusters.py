"""Individual ranking: clusters of consecutive sorted values, and what is known of each."""

from dataclasses import dataclass

import numpy as np

from microveil.core.sharing import sharing_of
from microveil.types import Integers

LARGEST_TOTAL = 2**62


@dataclass(frozen=True, eq=False)
class ClusterSummary:
    """All the mathematics ever sees of the data: a few whole numbers per cluster, in grid steps.

    ``second_smallest`` and the like count repeats: in 3, 3, 3, 4 the third smallest is 3. In
    clusters of fewer than three records they repeat the nearest value there is.

    ``total`` is the sum modulo 2^64. It is only ever used as a difference from a multiple of the
    cluster's own values, which fits 64 bits although the sum itself may not.

    `persons` says how many have the value in the middle of a cluster, which is that of all where
    they agree, and `nearest` how far the nearest other value of the attribute is from it; 0 if
    there is none.
    """

    size: Integers
    total: Integers
    smallest: Integers
    second_smallest: Integers
    third_smallest: Integers
    largest: Integers
    second_largest: Integers
    third_largest: Integers
    persons: Integers
    nearest: Integers

    def __len__(self) -> int:
        return len(self.size)

    @property
    def averaged(self) -> Integers:
        """How many values a centroid is the mean of."""
        return self.size

    def fits(self) -> bool:
        """Whether every cluster's sum of distances from its smallest value fits 62 bits."""
        widths = (self.largest - self.smallest).astype(np.float64)
        return bool(np.all(self.size * widths < LARGEST_TOTAL))

    def neighbours(self, lower: int, upper: int) -> tuple[Integers, Integers]:
        """Return the values ranked just before and just after each cluster, and the given ends."""
        return np.append(lower, self.largest[:-1]), np.append(self.smallest[1:], upper)

    def mean(self, moved: Integers | int = 0) -> Integers:
        """Return means, rounded to the grid (halves upwards), after the sums have moved."""
        return rounded_mean(self.total + moved, self.size, self.smallest)

    def winsorised_mean(self, moved: Integers | int = 0) -> Integers:
        """Return means after the paper's pre-processing, or of what trimming has left."""
        return rounded_mean(self.pulled_in() + moved, self.averaged, self.second_smallest)

    def pulled_in(self) -> Integers:
        """Return sums after the paper's pre-processing, min := min′ and max := max′."""
        total = self.total - self.smallest - self.largest
        return total + self.second_smallest + self.second_largest


NOTHING_BEFORE, NOTHING_AFTER = -(2**62), 2**62


@dataclass(frozen=True, eq=False)
class PartialSummary(ClusterSummary):
    """Some clusters of an attribute, in any order, with the values ranked next to each of them."""

    before: Integers
    after: Integers

    def neighbours(self, lower: int, upper: int) -> tuple[Integers, Integers]:
        """Return the values ranked just before and just after each cluster, and the given ends."""
        return (
            np.where(self.before == NOTHING_BEFORE, lower, self.before),
            np.where(self.after == NOTHING_AFTER, upper, self.after),
        )


@dataclass(frozen=True, eq=False)
class TrimmedSummary(ClusterSummary):
    """Clusters that leave out t records at each end: a share of their size, rounded down.

    ``inner_total`` is the sum of the others, modulo 2^64. In ascending order, ``below`` is the last
    value left out at the lower end, ``lowest`` the next, ``highest`` the last that is kept, and
    ``above`` the first left out at the upper end. Clusters too small to leave out a record have the
    paper's pre-processing instead, and these values say nothing of them.
    """

    left_out: Integers
    inner_total: Integers
    below: Integers
    lowest: Integers
    highest: Integers
    above: Integers

    @property
    def averaged(self) -> Integers:
        """How many values a centroid is the mean of."""
        return self.size - 2 * self.left_out

    def pulled_in(self) -> Integers:
        """Return the sums of the records that are kept."""
        return np.where(self.left_out > 0, self.inner_total, super().pulled_in())


def rounded_mean(total: Integers, size: Integers, least: Integers) -> Integers:
    """Divide sums, modulo 2^64, by sizes, halves upwards; `least` is near the means."""
    above_least = total - size * least  # exact modulo 2^64, and small: see ClusterSummary.fits
    rounded: Integers = least + (2 * above_least + size) // (2 * size)
    return rounded


def cluster_sizes(records: int, k: int) -> Integers:
    """Sizes of ⌊n/k⌋ clusters of k records; the remainder joins the last.

    Examples
    --------
    >>> cluster_sizes(11, 3)
    array([3, 3, 5])
    """
    sizes = np.full(records // k, k, dtype=np.int64)
    sizes[-1] += records % k
    return sizes


def left_out(size: Integers, trim: float) -> Integers:
    """Return how many records clusters leave out at each end; at least one is always kept.

    Examples
    --------
    >>> left_out(np.array([3, 9, 10, 25]), 0.1)
    array([0, 0, 1, 2])
    """
    return np.minimum((trim * size).astype(np.int64), (size - 1) // 2)


def summarise(
    ranked: Integers, size: Integers, trim: float = 0.0, among: Integers | None = None
) -> ClusterSummary:
    """Summarise consecutive clusters of the given sizes in ascending values.

    A share to trim gives a `TrimmedSummary`. Of some clusters, `among` has the values of the whole
    attribute, or as many around these as there may be persons to count.

    Examples
    --------
    >>> summary = summarise(np.array([1, 2, 4, 4, 9, 9]), np.array([3, 3]))
    >>> summary.mean(), summary.winsorised_mean()
    (array([2, 7]), array([2, 9]))
    """
    end = np.cumsum(size)
    start = end - size
    sharing = sharing_of(ranked[start + size // 2], ranked if among is None else among)
    summary = ClusterSummary(
        size=size,
        total=np.add.reduceat(ranked, start),
        smallest=ranked[start],
        second_smallest=ranked[np.minimum(start + 1, end - 1)],
        third_smallest=ranked[np.minimum(start + 2, end - 1)],
        largest=ranked[end - 1],
        second_largest=ranked[np.maximum(end - 2, start)],
        third_largest=ranked[np.maximum(end - 3, start)],
        persons=sharing.persons,
        nearest=sharing.nearest,
    )
    return _trimmed(summary, ranked, start, end, left_out(size, trim)) if trim else summary


def _trimmed(
    summary: ClusterSummary, ranked: Integers, start: Integers, end: Integers, cut: Integers
) -> TrimmedSummary:
    sums = np.append(0, np.cumsum(ranked))
    return TrimmedSummary(
        **vars(summary),
        left_out=cut,
        inner_total=sums[end - cut] - sums[start + cut],
        below=ranked[np.maximum(start + cut - 1, start)],
        lowest=ranked[start + cut],
        highest=ranked[end - cut - 1],
        above=ranked[np.minimum(end - cut, end - 1)],
    )


def singletons(steps: Integers) -> ClusterSummary:
    """Summarise every record as a cluster of its own, in record order."""
    alone = np.ones_like(steps)
    return ClusterSummary(*[alone, *[steps] * 7, alone, np.zeros_like(steps)])
