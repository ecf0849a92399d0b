"""Categories: clusters of counts, the representative of each, and when one record can change it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeKind, CategorySettings
from microveil.core.noise import permute_and_flip, randomised_response
from microveil.core.random_words import WordSource
from microveil.core.unit_clusters import Members, members_of
from microveil.types import Integers, Reals


@dataclass(frozen=True, eq=False)
class CategorySummary:
    """All the mathematics sees of categories: how many records of each there are in a cluster.

    `persons` counts, for each category, the persons or units of all clusters who have it.
    `members` says whose they are, where one unit may have several.
    """

    size: Integers
    counts: Integers
    persons: Integers
    members: Members | None = None

    def __len__(self) -> int:
        return len(self.size)

    def scores(self, kind: AttributeKind) -> Integers:
        """Score each category as representative; one record changes every score by 1 at most.

        Nominal: its count, so that the mode scores highest. Ordinal: minus the larger of the
        numbers of records below and above it, so that the median does.
        """
        if kind == "nominal":
            return self.counts
        below = np.cumsum(self.counts, axis=1) - self.counts
        above = self.size[:, np.newaxis] - below - self.counts
        scores: Integers = -np.maximum(below, above)
        return scores


def summarise_categories(
    codes: Integers, size: Integers, categories: int, unit: Integers | None = None
) -> CategorySummary:
    """Count the categories of consecutive clusters of the given sizes.

    Examples
    --------
    >>> summarise_categories(np.array([0, 0, 1, 1, 1, 2]), np.array([3, 3]), 3).counts
    array([[2, 1, 0],
           [0, 2, 1]])
    """
    cells = np.repeat(np.arange(len(size)), size) * categories + codes
    counts = np.bincount(cells, minlength=len(size) * categories)
    owned = codes if unit is None else np.unique(np.column_stack([codes, unit]), axis=0)[:, 0]
    persons = np.bincount(owned, minlength=categories)
    members = None if unit is None else members_of(size, unit)
    return CategorySummary(size, counts.reshape(len(size), categories), persons, members)


def summarise_ranked(counts: Integers, size: Integers, start: Integers) -> CategorySummary:
    """Count the categories of clusters of consecutive ranks, given how many there are of each.

    Records are ranked by category, so these counts alone say which categories a range of ranks has.

    Examples
    --------
    >>> summarise_ranked(np.array([2, 3, 1]), np.array([3, 3]), np.array([0, 3])).counts
    array([[2, 1, 0],
           [0, 2, 1]])
    """
    ends = np.cumsum(counts)
    reached = np.clip(ends, start[:, np.newaxis], (start + size)[:, np.newaxis])
    before = np.clip(ends - counts, start[:, np.newaxis], (start + size)[:, np.newaxis])
    return CategorySummary(size, reached - before, counts)


def leaders(scores: Integers) -> Integers:
    """Return the category of the highest score in every cluster, the first of equals."""
    first: Integers = np.argmax(scores, axis=1)
    return first


def is_stable(scores: Integers, records: int | Integers = 1) -> NDArray[np.bool_]:
    """Whether a cluster keeps its leader whatever so many of its records become.

    A record moves two scores by 1 each, towards each other at worst. Equal scores go to the first
    category, so one before the leader must stay strictly behind: a lead of 3, or else of 2. This is
    exact for modes; a median may keep its place with less.

    Examples
    --------
    >>> is_stable(np.array([[3, 0], [2, 0], [0, 2], [2, 1]]))
    array([ True,  True, False, False])
    """
    leader = leaders(scores)[:, np.newaxis]
    others = np.arange(scores.shape[1])
    lead = np.take_along_axis(scores, leader, axis=1) - scores
    needed = 2 * np.reshape(records, (-1, 1)) + (others < leader)
    stable: NDArray[np.bool_] = np.all((lead >= needed) | (others == leader), axis=1)
    return stable


def released_as_is(summary: CategorySummary, settings: CategorySettings) -> NDArray[np.bool_]:
    """Which clusters publish their leader without noise.

    Under iDP those that are stable, if enough persons have it.
    """
    if not settings.method.promise.publishes_agreement:
        return np.zeros(len(summary), dtype=np.bool_)
    members, scores = summary.members, summary.scores(settings.kind)
    most = settings.persons if members is None else members.largest(members.own, len(summary))
    crowd = summary.persons[leaders(scores)] >= settings.enough
    return is_stable(scores, most) & crowd


def values_of_one(
    summary: CategorySummary, as_is: NDArray[np.bool_], settings: CategorySettings
) -> Integers:
    """Return of each cluster by how many values ε is divided there.

    Those of a person as the plan has them; of units, the most that one of the cluster has in all
    clusters that are not released as they are.
    """
    members = summary.members
    if members is None:
        return np.full(len(summary), settings.persons)
    drawn = members.added_up(np.where(as_is[members.cluster], 0, members.own)).astype(np.int64)
    return members.largest(drawn[members.unit], len(summary))


def representatives(
    summary: CategorySummary,
    as_is: NDArray[np.bool_],
    settings: CategorySettings,
    source: WordSource,
) -> Integers:
    """Choose a representative for every cluster: the code of a category.

    Guarantee
    ---------
    Clusters released as they are keep their leader on every table that differs in one record.
    In the others one record changes each score by 1 at most, and permute-and-flip with ε/2 a count
    keeps the probabilities of every choice within a factor exp(ε). Formed again, each cluster
    still has at most one record exchanged, and `CategorySettings.most_changing` of them really
    differ. Which clusters are released as they are is held, as noise scales are.

    Let a unit have m_w values in clusters that are not released as they are, m_wj of them in one.
    It changes scores there by m_wj at most, which costs ε·m_wj/m_w at a rate of ε/2 divided by the
    largest m_w of the cluster's units: ε over all its clusters.
    """
    scores, values = summary.scores(settings.kind), values_of_one(summary, as_is, settings)
    chosen = leaders(scores)
    for most in np.unique(values[~as_is]).tolist():
        drawn = ~as_is & (values == most)
        chosen[drawn] = permute_and_flip(scores[drawn], settings.rate_for(most), source)
    return chosen


def category_losses(
    summary: CategorySummary, as_is: NDArray[np.bool_], settings: CategorySettings
) -> Reals:
    """Return what one record can lose in each cluster, or each unit in all of them."""
    values, members = values_of_one(summary, as_is, settings), summary.members
    spent = np.zeros(len(summary))
    for most in np.unique(values[~as_is]).tolist():
        spent[~as_is & (values == most)] = float(2 * settings.rate_for(most))
    return spent if members is None else members.added_up(spent[members.cluster] * members.own)


def respond(codes: Integers, settings: CategorySettings, source: WordSource) -> Integers:
    """Mask every record's category by itself, by randomised response.

    Guarantee
    ---------
    Whatever a record's category is, the probability of each answer differs by a factor of at
    most exp(ε): a rate of ε/2 a count, and two counts differ.
    """
    return randomised_response(codes, len(settings.categories), 2 * settings.rate, source)


def choice_probabilities(scores: Integers, rate: float) -> Reals:
    """Probability that permute-and-flip chooses each category, cluster by cluster.

    Examples
    --------
    >>> choice_probabilities(np.array([[1, 1], [5, 0]]), np.log(2)).round(4)
    array([[0.5   , 0.5   ],
           [0.9844, 0.0156]])
    """
    probabilities: Reals = np.exp(log_choice_probabilities(scores, rate))
    return probabilities


def log_choice_probabilities(scores: Integers, rate: float) -> Reals:
    """Logarithms of `choice_probabilities`, also where these are too small for a double.

    With p_c = exp(−rate·(highest score − score of c)), category c is chosen when it comes up
    before every other that would be accepted: p_c·∫ ∏_{s≠c} (1 − p_s t) dt over t from 0 to 1, a
    polynomial that Gauss and Legendre's rule integrates exactly.
    """
    behind = rate * (scores.max(axis=1, keepdims=True) - scores)
    nodes, weights = np.polynomial.legendre.leggauss(scores.shape[1] // 2 + 1)
    reject = 1 - np.exp(-behind)[..., np.newaxis] * (nodes + 1) / 2
    others = reject.prod(axis=1, keepdims=True) / reject
    logarithms: Reals = np.log(others @ weights / 2) - behind
    return logarithms
