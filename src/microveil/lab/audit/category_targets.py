"""Categories under attack."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import Category, CategorySettings
from microveil.core.categories import (
    CategorySummary,
    leaders,
    log_choice_probabilities,
    released_as_is,
    representatives,
    respond,
)
from microveil.core.random_words import WordSource
from microveil.lab.audit.models import CERTAIN, CategoryModel
from microveil.lab.audit.target import AuditTarget
from microveil.types import Integers, Reals

CategoryMechanism = Callable[
    [CategorySummary, NDArray[np.bool_], CategorySettings, WordSource], Integers
]

_MOST_CLUSTERS = 300
_MOST_CATEGORIES = 12
_FIRM = 2  # the margin of a leader that one record cannot overturn


def mask_counts(
    summary: CategorySummary,
    as_is: NDArray[np.bool_],
    settings: CategorySettings,
    source: WordSource,
) -> Integers:
    """Mask categories as `protect` does, from the counts of clusters or of single records."""
    if settings.method.clustered:
        return representatives(summary, as_is, settings, source)
    return respond(leaders(summary.counts), settings, source)


@dataclass(frozen=True, eq=False)
class CategoryTarget(AuditTarget[CategorySummary]):
    """An attribute of categories; which clusters are released as they are is fixed, as scales are.

    Where the method forms no clusters, every record is a cluster of its own. `watched` names the
    only clusters that matter to an attack; None: all.
    """

    settings: CategorySettings
    mechanism: CategoryMechanism
    watched: Integers | None = None

    @cached_property
    def as_is(self) -> NDArray[np.bool_]:
        """Which clusters are released as they are."""
        return released_as_is(self.summary, self.settings)

    def model(self, summary: CategorySummary) -> CategoryModel:
        """Return what a table with these clusters should publish, as it would by itself."""
        as_is = released_as_is(summary, self.settings)
        logarithms = self.log_probabilities(summary.counts, as_is)
        return CategoryModel(self.settings, logarithms, self._scores(summary.counts), as_is)

    @property
    def cells(self) -> int:
        """How many numbers the mechanism sees in one run."""
        return self.summary.counts.size

    @property
    def telling_values(self) -> Iterable[int]:
        """Every category: there are few enough to try them all."""
        return range(len(self.settings.categories))

    @property
    def new_values(self) -> list[tuple[int, Category]]:
        """Every category, or the first and the last if there are more than 12."""
        every = list(enumerate(self.settings.categories))
        return every if len(every) <= _MOST_CATEGORIES else [every[0], every[-1]]

    def summarise(self, ranked: Integers) -> CategorySummary:
        """Count the categories in the clusters that are watched."""
        summary = super().summarise(ranked)
        return summary if self.watched is None else _only(summary, self.watched)

    def watching(self, there: CategorySummary) -> tuple[Self, CategorySummary]:
        """Leave out the clusters that do not differ, but for the one most like the most telling.

        Each is masked by itself, so they tell nothing; one stays to catch choices made together.
        """
        moved, ratios = self._ratios(there)
        most = moved[np.argmax(np.abs(ratios).max(axis=1))] if len(moved) else 0
        watched = np.unique([*moved, self._most_alike(most, moved)])
        return replace(self, watched=watched), _only(there, watched)

    def losses(self, there: CategorySummary) -> tuple[float, float]:
        """How much likelier any choice can be here than there, and there than here, exactly.

        Clusters are masked independently: the likeliest choices of all that differ add up.
        """
        _, ratios = self._ratios(there)
        return float(ratios.max(axis=1).sum()), float((-ratios).max(axis=1).sum())

    def closed_form(self, *, fixed: bool) -> None:
        """None: what is known exactly is the loss of the neighbours that are looked at."""

    def telling_records(self, *, fixed: bool) -> list[int]:
        """Return the record of the worst neighbour.

        Randomised response treats all records alike. With fixed clusters, every category of every
        cluster is looked at, each kind of cluster once and at most 300 kinds, those with the
        clearest leaders. Re-clustered, every category is looked at, or the first and the last if
        there are more than 12.
        """
        if not self.clustered:
            return [self.record(0)]
        return [self._telling_fixed() if fixed else self._telling_reclustered()]

    def suspects(self) -> list[CategorySummary]:
        """Return neighbours whose leaders are weakened: a leader's record goes to a rival.

        One cluster each: of those that one record can overturn the closest call and the clearest,
        and of those it cannot the closest call, where a wrong rule for stability would fail first.
        """
        if not self.clustered:
            return []
        scores = self._scores(self.summary.counts)
        margins = _margins(scores, leaders(scores))
        weak = sorted(np.flatnonzero(margins < _FIRM).tolist(), key=margins.__getitem__)
        firm = sorted(np.flatnonzero(margins >= _FIRM).tolist(), key=margins.__getitem__)
        return [self._weakened(one) for one in dict.fromkeys([*weak[:1], *weak[-1:], *firm[:1]])]

    def release(self, source: WordSource) -> Integers:
        """Run the mechanism once, as it is released."""
        return self.mechanism(self.summary, self.as_is, self.settings, source)

    def run(self, summary: CategorySummary, runs: int, source: WordSource) -> Integers:
        """Run the mechanism many times; one row of published categories per run."""
        counts = np.tile(summary.counts, (runs, 1))
        repeated = CategorySummary(np.tile(summary.size, runs), counts, summary.persons)
        chosen = self.mechanism(repeated, np.tile(self.as_is, runs), self.settings, source)
        return chosen.reshape(runs, -1)

    def statistics(self, there: CategorySummary, published: Integers) -> Reals:
        """Compute four numbers per run, each large where this table is likelier than the other.

        The likelihood ratio is the best there is against the honest mechanism. The others look for
        leaders published too often, for published categories that fewer or more records have in
        the other table, and for choices that are the same in two clusters.
        """
        moved, ratios = self._ratios(there)
        if not len(moved):
            return np.zeros((4, len(published)))
        here, away = self.summary.counts[moved], there.counts[moved]
        seen, clusters = published[:, moved], np.arange(len(moved))
        leads = [seen == leaders(self._scores(counts)) for counts in (here, away)]
        most = int(moved[np.argmax(np.abs(ratios).max(axis=1))])
        return np.stack(
            [
                np.clip(ratios, -CERTAIN, CERTAIN)[clusters, seen].sum(axis=1),
                leads[0].sum(axis=1) - leads[1].sum(axis=1),
                (here - away)[clusters, seen].sum(axis=1),
                published[:, most] == published[:, self._most_alike(most, moved)],
            ]
        ).astype(np.float64)

    def is_off_grid(self, published: Integers) -> bool:  # noqa: ARG002 - they have no grid
        """Categories have no bits to tell."""
        return False

    def log_probabilities(self, counts: Integers, as_is: NDArray[np.bool_]) -> Reals:
        """Logarithms of the probability that clusters with these counts publish each category."""
        rate = float(self.settings.rate)
        if not self.clustered:
            away = -2 * rate * (counts == 0)
            logarithms: Reals = away - np.log(np.exp(away).sum(axis=1, keepdims=True))
            return logarithms
        scores = self._scores(counts)
        is_leader = np.arange(counts.shape[1]) == leaders(scores)[:, np.newaxis]
        certain = np.where(is_leader, 0.0, -np.inf)
        return np.where(as_is[:, np.newaxis], certain, log_choice_probabilities(scores, rate))

    def _ratios(self, there: CategorySummary) -> tuple[Integers, Reals]:
        """Clusters that differ, and how much likelier they publish each category here."""
        here = self.summary.counts
        moved = np.flatnonzero(np.any(here != there.counts, axis=1))
        return moved, self._compare(here[moved], there.counts[moved], self.as_is[moved])

    def _compare(self, here: Integers, there: Integers, as_is: NDArray[np.bool_]) -> Reals:
        with np.errstate(invalid="ignore"):  # what is impossible in both does not tell
            ratios = self.log_probabilities(here, as_is) - self.log_probabilities(there, as_is)
        return np.where(np.isnan(ratios), 0.0, ratios)

    def _scores(self, counts: Integers) -> Integers:
        summary = CategorySummary(counts.sum(axis=1), counts, self.summary.persons)
        return summary.scores(self.settings.kind)

    def _telling_fixed(self) -> int:
        """Return the record whose change within its cluster loses most."""
        pairs = [
            (cluster, code)
            for cluster in self._kinds_of_clusters().tolist()
            for code in np.flatnonzero(self.summary.counts[cluster]).tolist()
        ]
        if not pairs:
            return self.record(0)
        cluster, code = max(pairs, key=lambda pair: self._fixed_loss(*pair))
        start = int(self.sizes[:cluster].sum())
        members = self.values[self.order[start : start + int(self.sizes[cluster])]]
        return self.record(start + int(np.argmax(members == code)))

    def _kinds_of_clusters(self) -> Integers:
        """Return one cluster of each kind that one record can change, some of the most telling.

        All that matters of a nominal cluster is how often its categories occur, not which they are.
        """
        noisy = np.flatnonzero(~self.as_is)
        counts = self.summary.counts[noisy]
        kinds = np.sort(counts, axis=1) if self.settings.kind == "nominal" else counts
        clusters = noisy[np.unique(kinds, axis=0, return_index=True)[1]]
        ordered = np.sort(self._scores(self.summary.counts[clusters]), axis=1)
        leads = ordered[:, -1] - ordered[:, -2]
        return clusters[np.argsort(-leads, kind="stable")[:_MOST_CLUSTERS]]

    def _fixed_loss(self, cluster: int, code: int) -> float:
        """Loss of the worst change of one record of this category within its cluster."""
        here = self.summary.counts[cluster]
        every = np.eye(len(here), dtype=np.int64)
        ratios = self._compare(
            np.tile(here, (len(here), 1)), here - every[code] + every, np.zeros(len(here), np.bool_)
        )
        return float(np.abs(ratios).max())

    def _telling_reclustered(self) -> int:
        """Return the record whose change loses most; those of one category are all alike."""
        ranked = self.values[self.order]
        records = [self.record(int(rank)) for rank in np.unique(ranked, return_index=True)[1]]
        if len(records) > _MOST_CATEGORIES:
            records = [records[0], records[-1]]
        return max(
            records, key=lambda record: max(map(self.loss, self.furthest(record, fixed=False)))
        )

    def _weakened(self, cluster: int) -> CategorySummary:
        """Change the record of a cluster that makes its leader lead by least."""
        here, every = self.summary.counts[cluster], np.eye(len(self.settings.categories), dtype=int)
        others = np.concatenate([here - every[code] + every for code in np.flatnonzero(here)])
        leader = np.repeat(leaders(self._scores(here[np.newaxis])), len(others))
        counts = self.summary.counts.copy()
        counts[cluster] = others[np.argmin(_margins(self._scores(others), leader))]
        return CategorySummary(self.summary.size, counts, self.summary.persons)

    def _most_alike(self, cluster: int, moved: Integers) -> int:
        """Return the cluster most like this one of those that do not differ and are not as is."""
        away = np.abs(self.summary.counts - self.summary.counts[cluster]).sum(axis=1)
        away[self.as_is] += 2 * away.max() + 1
        away[moved] = np.iinfo(np.int64).max
        return int(np.argmin(away))


def _only(summary: CategorySummary, clusters: Integers) -> CategorySummary:
    return CategorySummary(summary.size[clusters], summary.counts[clusters], summary.persons)


def _margins(scores: Integers, leader: Integers) -> Reals:
    """How far a category leads; half a score less where equal scores would go to the rival."""
    others, leader = np.arange(scores.shape[1]), leader[:, np.newaxis]
    lead = np.take_along_axis(scores, leader, axis=1) - scores - (others < leader) / 2
    margins: Reals = np.where(others == leader, np.inf, lead).min(axis=1)
    return margins
