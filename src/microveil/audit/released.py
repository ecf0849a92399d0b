"""The informed adversary: knows all records but one, sees the released table."""

from dataclasses import dataclass

import numpy as np

from microveil.audit.targets import Target
from microveil.grid import Reals


@dataclass(frozen=True)
class Pinned:
    """How narrowly such an adversary pins the missing value, over all records of an attribute.

    Widths are in standard deviations of the attribute. `open_ended` is the share of records in
    an outermost cluster without a declared domain, whose value is bounded on one side only.
    """

    attribute: str
    median_width: float
    share_below_tenth: float
    open_ended: float


def pinned(target: Target, published: Reals) -> Pinned:
    """Measure the intervals that the released table leaves.

    The adversary sees which known records share the missing one's masked value, and so which
    cluster (or clusters, where masked values coincide) it is in. Its value then lies between the
    largest value of the cluster below and the smallest of the cluster above.
    """
    summary = target.summary
    _, group = np.unique(published, return_inverse=True)
    first, last = (np.full(group.max() + 1, edge) for edge in (len(summary), -1))
    places = np.arange(len(summary))
    np.minimum.at(first, group, places)
    np.maximum.at(last, group, places)
    step, origin = target.masking.grid.step, target.masking.grid.origin
    ends = (np.array([target.masking.lower, target.masking.upper]) - origin) / step
    below = np.concatenate([ends[:1], summary.largest])[first[group]]
    above = np.concatenate([summary.smallest, ends[1:]])[last[group] + 1]
    deviation = float(np.std(target.units)) or 1.0
    widths = np.repeat((above - below) / deviation, summary.size)
    return Pinned(
        attribute=target.masking.name,
        median_width=float(np.median(widths)),
        share_below_tenth=float(np.mean(widths < 0.1)),
        open_ended=float(np.mean(np.isinf(widths))),
    )
