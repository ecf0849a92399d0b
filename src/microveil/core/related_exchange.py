"""Exchange that keeps relations: values of a joint cluster are put into its rows anew.

Independent permutations lose every relation within a joint cluster. Here its rows take its values
by a model of the whole table: categories one attribute after the other, by swaps from an
independent start, and numbers by the ranks of a correlated normal sample.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import factorial

import numpy as np
from numpy.typing import NDArray

from microveil.core.pooling import JointClusters
from microveil.core.random_words import WordSource, draw_all
from microveil.core.relation_model import (
    LEAST_PERSONS,
    RelationModel,
    RowValues,
    StateWeights,
    fit_relations,
    kept_scores,
    normal_quantiles,
    sample_clusters,
)
from microveil.types import Booleans, Integers, Reals

ReadRows = Callable[[], RowValues]

_SWEEPS = 12
_ARRANGEMENTS = np.array([factorial(n) for n in range(21)], dtype=np.uint64)
_NONE = np.empty(0, dtype=np.bool_)
_NO_MEANS = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Part:
    """Joint clusters that share a model: from which one to which, and the model.

    None stands for independent exchange.
    """

    first: int
    last: int
    model: RelationModel | None


@dataclass(frozen=True, eq=False)
class RelatedExchange:
    """Rows whose values are exchanged within joint clusters, and the models they go by.

    `clusters` come part by part. `block` says of how many ranks a block is.
    """

    clusters: JointClusters
    parts: tuple[Part, ...]
    block: int

    @classmethod
    def fit(
        cls,
        clusters: JointClusters,
        kept: Sequence[ReadRows],
        exchanged: Sequence[ReadRows],
        block: int,
        source: WordSource,
        *,
        strata: Integers | None = None,
        persons: Integers | None = None,
        share: float = 1.0,
    ) -> "RelatedExchange":
        """Fit a model to masked values: one for each stratum that is large enough, one for others.

        `strata` has the stratum of each row, `persons` whose row it is where a person can have
        several, `share` which part of a table all rows are.
        """
        ordered, counts = _by_stratum(clusters, strata)
        samples = []
        for first, last in pairwise([0, *np.cumsum(counts).tolist()]):
            start = int(ordered.ends[first - 1]) if first else 0
            rows, ends = sample_clusters(ordered.ends[first:last] - start, source)
            samples.append((first, last, ordered.order[start + rows], ends))
        everyone = np.concatenate([rows for _, _, rows, _ in samples])
        old = [read().take(everyone) for read in kept]
        new = [read().take(everyone) for read in exchanged]
        parts, at = [], 0
        for first, last, rows, ends in samples:
            own = np.arange(at, at + len(rows))
            at += len(rows)
            whose = None if persons is None else persons[rows]
            model = fit_relations(
                [v.take(own) for v in old], [v.take(own) for v in new], ends, block, whose, share
            )
            parts.append(Part(first, last, model))
        return cls(ordered, tuple(parts), block)

    @property
    def related(self) -> bool:
        """Whether some rows go by a model, and not by independent exchange."""
        return any(part.model is not None for part in self.parts)

    def elsewhere(self, clusters: JointClusters) -> "RelatedExchange":
        """Exchange the rows of other joint clusters by the model of the first part."""
        first = Part(0, len(clusters.size), self.parts[0].model)
        return RelatedExchange(clusters, (first,), self.block)

    def draw(
        self, kept: Sequence[ReadRows], exchanged: Sequence[ReadRows], source: WordSource
    ) -> Iterator[tuple[int, Integers]]:
        """Draw for every row of an attribute the row whose value it is given; one by one.

        Yields the place of the attribute among those exchanged. `kept` columns stand in their rows.

        Guarantee
        ---------
        Rows are shuffled first, and values sorted, so that what is drawn depends on each
        attribute's values in a joint cluster as a set, on kept columns and on models: rows of a
        cluster with equal kept values are as likely in any order, whoever had which value. Then
        values that fewer than `block` of a cluster's rows have fall on one of `block` rows or more
        of it, each as likely, independently for every attribute.
        """
        return _Draw(self, kept, source).givers(exchanged)


def _by_stratum(clusters: JointClusters, strata: Integers | None) -> tuple[JointClusters, Integers]:
    """Put the clusters of each stratum of enough rows beside each other, all others last."""
    if strata is None:
        return clusters, np.array([len(clusters.size)])
    own = strata[clusters.order[clusters.ends - clusters.size]]
    rows = np.bincount(own, weights=clusters.size)
    part = np.where(rows[own] >= LEAST_PERSONS, own, len(rows))
    order = np.argsort(part, kind="stable")
    starts, size = (clusters.ends - clusters.size)[order], clusters.size[order]
    moved = np.arange(int(size.sum())) + np.repeat(starts - (np.cumsum(size) - size), size)
    counts = np.unique(part, return_counts=True)[1]
    return JointClusters(clusters.order[moved], size), counts


class _Draw:
    """One draw of all attributes of some rows, in the order of their clusters."""

    def __init__(self, plan: RelatedExchange, kept: Sequence[ReadRows], source: WordSource) -> None:
        from microveil.core.kernels import permutations as kernels

        self.plan, self.source = plan, source
        self.order, ends = plan.clusters.order.copy(), plan.clusters.ends
        draw_all(
            len(self.order), source,
            lambda words, done: kernels.shuffle(self.order, ends, words, done),
            words_per_draw=1.0,
        )  # fmt: skip
        self.ends = ends
        values = [read().take(self.order) for read in kept]
        self.scores = kept_scores(values, ends)
        self.columns: list[NDArray[np.int32]] = []
        for one in values:
            if one.states is not None:
                self._add(one.states)

    def _parts(self) -> Iterator[tuple[slice, Integers, RelationModel | None]]:
        for part in self.plan.parts:
            start = int(self.ends[part.first - 1]) if part.first else 0
            end = int(self.ends[part.last - 1])
            yield slice(start, end), self.ends[part.first : part.last] - start, part.model

    def _add(self, states: Integers) -> None:
        """Add the columns in which the states of one more attribute are."""
        columns = np.full(len(states), -1, dtype=np.int32)
        for rows, _, model in self._parts():
            if model is not None:
                known = model.columns[len(self.columns)]  # others were not in its sample
                here = states[rows]
                columns[rows] = np.append(known, np.int32(-1))[np.minimum(here, len(known))]
        self.columns.append(columns)

    def givers(self, exchanged: Sequence[ReadRows]) -> Iterator[tuple[int, Integers]]:
        """Yield who gives, for attributes of categories first."""
        from microveil.core.kernels import rank_tables as kernels

        numbers: list[tuple[int, Booleans, Integers | None]] = []
        for place, read in enumerate(exchanged):
            before = read()
            if before.states is None:
                numbers.append((place, _NONE, None))
                continue
            old = before.states[self.order]
            states = self._arranged(place, old)
            self._add(states)
            given = np.empty(len(states), dtype=np.int64)
            kernels.match_states(old, states, self.ends, given)
            if before.numbers is None:
                yield place, self._of_records(given)
            else:
                numbers.append((place, states == 0, given))
        samples = self._samples(len(numbers))
        for number, (place, has_number, matched) in enumerate(numbers):
            values = exchanged[place]().numbers
            assert values is not None  # noqa: S101 - an attribute without states
            given = self._by_rank(values[self.order], number, samples, has_number, matched)
            yield place, self._of_records(given)

    def _of_records(self, given: Integers) -> Integers:
        giver = np.empty_like(given)
        giver[self.order] = self.order[given]
        return giver

    def _arranged(self, place: int, old: Integers) -> Integers:
        """Put the states of an attribute into rows anew."""
        states, kinds = old.copy(), int(old.max(initial=0)) + 1
        columns = np.empty((len(old), len(self.columns)), dtype=np.int32)
        for number, column in enumerate(self.columns):
            columns[:, number] = column
        for rows, ends, model in self._parts():
            own = None if model is None else model.states[place]
            self._arrange(states[rows], ends, own, kinds, columns[rows], self.scores[rows])
        return states

    def _arrange(
        self, states: Integers, ends: Integers, own: StateWeights | None, kinds: int,
        columns: NDArray[np.int32], scores: NDArray[np.float32],
    ) -> None:  # fmt: skip
        from microveil.core.kernels import category_swaps as kernels

        known = 0 if own is None else len(own.related)
        kinds = max(kinds, known)  # either may have seen more than the other
        related, weights = np.zeros(kinds, np.bool_), np.zeros((kinds, 0))
        if own is not None:
            related[:known] = own.related
            weights = np.zeros((kinds, own.weights.shape[1]))
            weights[:known] = own.weights
        per_row = 1.0 + (_SWEEPS if weights.shape[1] else 0.0)
        draw = partial(
            kernels.arrange, states, ends, related, weights, columns, scores, _SWEEPS,
            self.plan.block,
        )  # fmt: skip
        draw_all(len(ends), self.source, draw, per_row * len(states) / len(ends))

    def _samples(self, numbers: int) -> NDArray[np.uint16]:
        """Return independent normal samples, as places among the quantiles: exact bits."""
        rows = len(self.order)
        samples = np.empty(rows * numbers, dtype=np.uint16)
        for start in range(0, len(samples), 2**22):
            part = samples[start : start + 2**22]
            part[:] = self.source.words(-(-len(part) // 4)).view(np.uint16)[: len(part)]
        return samples.reshape(rows, numbers)

    def _by_rank(
        self, values: Reals, number: int, samples: NDArray[np.uint16], has_number: Booleans,
        matched: Integers | None,
    ) -> Integers:  # fmt: skip
        """Give each row the number of its rank."""
        from microveil.core.kernels import rank_tables as kernels

        given = np.arange(len(values)) if matched is None else matched
        normal, block = normal_quantiles().astype(np.float32), self.plan.block
        for rows, ends, model in self._parts():
            loadings = np.eye(samples.shape[1], dtype=np.float32)[number]
            means = _NO_MEANS
            if model is not None:
                loadings = model.loadings[number].astype(np.float32)
                means = self._means(rows, ends, model.slopes[:, number])
            here = has_number[rows] if len(has_number) else has_number
            draw = partial(
                kernels.give_by_rank, values[rows], here, ends, samples[rows], normal, loadings,
                means, block, _ARRANGEMENTS, given[rows], rows.start,
            )  # fmt: skip
            shuffled = 0.0 if block == 1 else 1.0 / block if block < len(_ARRANGEMENTS) else 1.0
            draw_all(len(ends), self.source, draw, shuffled * len(given[rows]) / len(ends))
        return given

    def _means(self, rows: slice, ends: Integers, slopes: Reals) -> NDArray[np.float32]:
        """Return what the columns of each row add to its normal sample."""
        from microveil.core.kernels import rank_tables as kernels

        if not len(slopes):
            return _NO_MEANS
        means: NDArray[np.float32] = (self.scores[rows] @ slopes[: self.scores.shape[1]]).astype(
            np.float32
        )
        for columns in self.columns:
            kernels.add_by_state(columns[rows], slopes, ends, means)
        return means
