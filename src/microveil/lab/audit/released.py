"""The informed attacker: knows all records but one, sees the released table."""

from dataclasses import dataclass

import numpy as np

from microveil.core.categories import CategorySummary, leaders, released_as_is
from microveil.lab.audit.category_targets import CategoryTarget
from microveil.lab.audit.number_targets import NumericTarget
from microveil.types import Integers, Reals


@dataclass(frozen=True)
class Pinned:
    """How narrowly the informed attacker pins the missing value, over all records.

    Widths are in standard deviations of the attribute. `open_ended` is the share of records in
    an outermost cluster without a declared domain, whose value is bounded on one side only.
    """

    attribute: str
    median_width: float
    share_below_tenth: float
    open_ended: float


def pinned(target: NumericTarget, published: Reals) -> Pinned:
    """Measure the intervals that the released table leaves.

    The attacker sees which known records share the missing one's masked value, and so which
    cluster (or clusters, where masked values coincide) it is in. Its value then lies between the
    largest value of the cluster below and the smallest of the cluster above.
    """
    summary = target.summary
    _, group = np.unique(published, return_inverse=True)
    first, last = (np.full(group.max() + 1, edge) for edge in (len(summary), -1))
    places = np.arange(len(summary))
    np.minimum.at(first, group, places)
    np.maximum.at(last, group, places)
    step, origin = target.settings.grid.step, target.settings.grid.origin
    ends = (np.array([target.settings.lower, target.settings.upper]) - origin) / step
    below = np.concatenate([ends[:1], summary.largest])[first[group]]
    above = np.concatenate([summary.smallest, ends[1:]])[last[group] + 1]
    deviation = float(np.std(target.values)) or 1.0
    widths = np.repeat((above - below) / deviation, summary.size)
    return Pinned(
        attribute=target.settings.name,
        median_width=float(np.median(widths)),
        share_below_tenth=float(np.mean(widths < 0.1)),
        open_ended=float(np.mean(np.isinf(widths))),
    )


@dataclass(frozen=True)
class Narrowed:
    """How many categories remain possible for the informed attacker, over all records.

    `certain` is the share of records for which there is only one, `possible` the mean number of
    them, out of `categories`.
    """

    attribute: str
    certain: float
    possible: float
    categories: int


def narrowed(target: CategoryTarget, published: Integers) -> Narrowed:
    """Count the categories that clusters by individual ranking leave to the missing record.

    The attacker knows all other records and, beyond what a table shows in which many clusters
    publish the same category, which of them are in which cluster; not how ties were broken. So they
    know the missing record's cluster, the one short of a member. Its category comes neither
    before the last category of the cluster before nor after the first one of the cluster after,
    or it would rank elsewhere; and any category from the one to the other, put in its place,
    leaves every cluster as it is if ties fall accordingly. What the other clusters publish tells
    no more, since their records are known. What its own one publishes rules out those categories
    that would make the cluster stable with another leader: it would have been released as it is.
    Every other choice has a probability above 0, so nothing else is certain.
    """
    summary, last = target.summary, len(target.settings.categories) - 1
    occurs = summary.counts > 0
    lowest, highest = np.argmax(occurs, axis=1), last - np.argmax(occurs[:, ::-1], axis=1)
    below, above = np.append(0, highest[:-1]), np.append(lowest[1:], last)
    possible = np.tile((above - below + 1)[:, np.newaxis], last + 1)
    for cluster in np.flatnonzero(below < above).tolist():
        options = range(below[cluster], above[cluster] + 1)
        for code in np.flatnonzero(occurs[cluster]).tolist():
            possible[cluster, code] = _consistent(target, cluster, code, options, published)
    records = summary.counts / summary.counts.sum()
    return Narrowed(
        attribute=target.settings.name,
        certain=float(records[possible == 1].sum()),
        possible=float(np.sum(records * possible)),
        categories=last + 1,
    )


def _consistent(
    target: CategoryTarget, cluster: int, code: int, options: range, published: Integers
) -> int:
    """Count the categories with which a cluster could have published what it did."""
    every = np.eye(len(target.settings.categories), dtype=np.int64)
    counts = target.summary.counts[cluster] - every[code] + every[options]
    changed = CategorySummary(counts.sum(axis=1), counts, target.summary.persons)
    leader = leaders(changed.scores(target.settings.kind))
    stable = released_as_is(changed, target.settings)
    return int(np.count_nonzero(~stable | (leader == published[cluster])))
