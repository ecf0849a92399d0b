"""How the attributes of a table go together within joint clusters: a model fitted to all of it.

Categories follow what stands before them in a row by a pairwise model: a category goes with
others, and with numbers that are kept, by a weight each. Numbers follow categories and numbers that
are kept by a regression of normal scores, and each other by one correlation matrix. Scores are
those of ranks within joint clusters, so only relations within them count.

A model must not describe a person. Categories of fewer than 30 persons have no weights, and more
persons for each weight are asked for where there are many of these; without 1,000 persons no
category has one, and a table that is too small for a correlation matrix has no model at all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.random_words import WordSource, random_order
from microveil.types import Booleans, Integers, Reals

LEAST_PERSONS = 1_000
"""Categories have weights in tables of so many persons or more."""

_LEAST_OF_CATEGORY = 30
_PERSONS_PER_WEIGHT = 5
_RIDGE = 1e-4
_SAMPLE = 100_000  # rows a model is fitted to: it takes no longer for longer tables
_STEPS = 40
_KEPT_STEPS = 8
_WIDEST = 2**16


class RowValues(NamedTuple):
    """What an attribute has in some rows: numbers, NaN where there is none, states, or both.

    A state is a category, or for numbers whether there is one (0) and why not; missing categories
    are states like others.
    """

    numbers: Reals | None
    states: Integers | None

    def take(self, rows: Integers) -> "RowValues":
        """Return the values of some rows."""
        return RowValues(
            None if self.numbers is None else self.numbers[rows],
            None if self.states is None else self.states[rows],
        )


def numbers_in_rows(numbers: Reals, why: Integers | int = 0) -> RowValues:
    """Tell numbers from missing ones, NaN, if there are any; `why` they are is numbered from 0 on.

    Examples
    --------
    >>> numbers_in_rows(np.array([2.5, np.nan, np.nan]), np.array([0, 1, 0])).states
    array([0, 2, 1])
    """
    missing = np.isnan(numbers)
    return RowValues(numbers, np.where(missing, 1 + why, 0) if missing.any() else None)


def masked_in_rows(
    attribute: AttributeSettings, values: Reals, why: Integers | int = 0
) -> RowValues:
    """Return what an attribute has in some rows, given its numbers or codes, NaN if missing."""
    if not isinstance(attribute, CategorySettings) or attribute.kind == "ordinal":
        return numbers_in_rows(values, why)
    last = len(attribute.categories) + why
    return RowValues(None, np.where(np.isnan(values), last, values).astype(np.int64))


@dataclass(frozen=True, eq=False)
class StateWeights:
    """How the states of an attribute go with what stands in their rows before them.

    `related` says which states have weights.
    """

    related: Booleans
    weights: Reals


@dataclass(frozen=True, eq=False)
class RelationModel:
    """How attributes go together within joint clusters.

    Attributes
    ----------
    columns
        For each attribute with states, kept ones first, the column of every state; −1 without one.
    states
        The weights of the states of exchanged attributes, None for those without states.
    slopes
        What every kept number and every column of a state adds to the normal score of an exchanged
        number: one row each, and a column for each exchanged number.
    loadings
        A square root of the correlation matrix of what these leave over.
    least
        Categories of fewer persons have no weights; None if none have.
    """

    columns: tuple[NDArray[np.int32], ...]
    states: tuple[StateWeights | None, ...]
    slopes: Reals
    loadings: Reals
    least: int | None


@lru_cache
def normal_quantiles() -> Reals:
    """Quantiles of the normal distribution, at the middles of 2^16 equal parts."""
    quantile = NormalDist().inv_cdf
    found = np.array([quantile((i + 0.5) / _WIDEST) for i in range(_WIDEST // 2)])
    both: Reals = np.append(found, -found[::-1])
    return both


def sample_clusters(ends: Integers, source: WordSource) -> tuple[Integers, Integers]:
    """Draw clusters for a model to be fitted to; return their rows, and where each ends."""
    sizes = np.diff(ends, prepend=0)
    if len(ends) == 0 or ends[-1] <= _SAMPLE:
        return np.arange(int(sizes.sum())), ends
    drawn = random_order(len(ends), source)
    drawn = np.sort(drawn[: max(1, int(np.searchsorted(np.cumsum(sizes[drawn]), _SAMPLE)))])
    own = np.cumsum(sizes[drawn])
    rows = np.arange(own[-1]) + np.repeat(
        (ends - sizes)[drawn] - (own - sizes[drawn]), sizes[drawn]
    )
    return rows, own


def fit_relations(
    kept: Sequence[RowValues],
    exchanged: Sequence[RowValues],
    ends: Integers,
    block: int,
    persons: Integers | None = None,
    share: float = 1.0,
) -> RelationModel | None:
    """Fit a model to rows in the order of their joint clusters; None if they are too few.

    `persons` says whose rows they are, where a person can have several; `share` which part of a
    table they are, where there must be enough persons in the whole.
    """
    persons = np.arange(ends[-1]) if persons is None else persons
    columns, least = _columns([*kept, *exchanged], len(kept), persons, share)
    if columns is None:
        return None
    design = _Design.of(kept, ends, persons)
    states = []
    for place, values in enumerate([*kept, *exchanged]):
        own = columns[place]
        if place >= len(kept):
            states.append(None if values.states is None else design.weigh(values.states, own))
        if values.states is not None:
            design.add(own[values.states])
    numbers = [values.numbers for values in exchanged if values.numbers is not None]
    slopes, loadings = design.regress(numbers, block)
    with_states = tuple(own for own, v in zip(columns, [*kept, *exchanged], strict=True)
                        if v.states is not None)  # fmt: skip
    return RelationModel(with_states, tuple(states), slopes, loadings, least)


def _columns(
    values: Sequence[RowValues], kept: int, persons: Integers, share: float
) -> tuple[list[NDArray[np.int32]] | None, int | None]:
    """Give states columns where enough persons have them; None if there are too few for any model.

    Returns also how many persons are enough; None where no state has a column.
    """
    number = np.unique(persons, return_inverse=True)[1]
    people = (int(number.max(initial=-1)) + 1) / share
    counts = [_persons_of(v.states, number) / share for v in values]
    scores = sum(v.numbers is not None for v in values[:kept])
    numbers = sum(v.numbers is not None for v in values[kept:])
    plain = numbers * (numbers - 1) // 2 + numbers * scores
    if people < _PERSONS_PER_WEIGHT * plain:
        return None, None
    least = _LEAST_OF_CATEGORY
    while people >= max(LEAST_PERSONS, least):
        wide = [_free(count, least) for count in counts]
        weights, before = plain, scores
        for place, free in enumerate(wide):
            weights += free * before if place >= kept else 0
            before += free
        weights += numbers * sum(wide)
        if people >= _PERSONS_PER_WEIGHT * weights:
            break
        least *= 2
    else:
        least = int(people) + 1
    columns, start = [], scores
    for count in counts:
        enough = count >= least if _free(count, least) else np.zeros(len(count), dtype=np.bool_)
        columns.append(np.where(enough, start + np.cumsum(enough) - 1, -1).astype(np.int32))
        start += int(enough.sum())
    return columns, least if start > scores else None


def _persons_of(states: Integers | None, persons: Integers) -> Integers:
    """Count the persons, numbered from 0 on, who have each state."""
    if states is None:
        return np.zeros(0, dtype=np.int64)
    people = int(persons.max(initial=0)) + 1
    return np.bincount(np.unique(states * people + persons) // people)


def _free(count: Reals, least: int) -> int:
    return max(0, int(np.count_nonzero(count >= least)) - 1)


class _Design:
    """What stands in the rows that a model is fitted to; attributes come one by one."""

    def __init__(self, scores: NDArray[np.float32], ends: Integers) -> None:
        self.scores, self.ends = scores, ends
        self.columns = np.empty((len(scores), 0), dtype=np.int32)
        self.width = scores.shape[1]

    @classmethod
    def of(cls, kept: Sequence[RowValues], ends: Integers, persons: Integers) -> "_Design":
        """Begin with the scores of kept numbers, but of those that tell few persons from others."""
        scores = kept_scores(kept, ends)
        squares = np.square(scores, dtype=np.float64)
        telling = squares.sum(axis=0) ** 2 / np.maximum((squares**2).sum(axis=0), 1e-9)
        telling *= len(np.unique(persons)) / len(persons)
        return cls(scores * (telling >= _LEAST_OF_CATEGORY), ends)

    def add(self, columns: NDArray[np.int32]) -> None:
        """Add the columns in which the states of one more attribute are."""
        self.columns = np.column_stack([self.columns, columns])
        self.width = max(self.width, int(columns.max(initial=-1)) + 1)

    def weigh(self, states: Integers, own: NDArray[np.int32]) -> StateWeights:
        """Fit how the states of one more attribute go with what is there."""
        related = own >= 0
        width = self.width if related.any() else 0
        weights = np.zeros((len(own), width))
        if width:
            weights = self._fitted(states, related)
        return StateWeights(related, weights)

    def _fitted(self, states: Integers, related: Booleans) -> Reals:
        from microveil.core.kernels import category_swaps as kernels

        left, right = _pairs(self.ends)
        differ = (states[left] != states[right]) & related[states[left]] & related[states[right]]
        left, right = left[differ], right[differ]
        curvature = np.zeros((len(related), self.width))

        def loss(weights: Reals) -> tuple[float, Reals]:
            slope = np.zeros_like(weights)
            curvature[:] = 0.0
            total = kernels.likelihood(
                weights, left, right, states, self.columns, self.scores, slope, curvature
            )
            ridge = _RIDGE * len(left)
            penalty = 0.5 * ridge * float(np.sum(weights**2))
            return total + penalty, slope + ridge * weights

        loss(np.zeros_like(curvature))
        return self._centred(minimise(loss, curvature + _RIDGE * len(left) + 1e-9))

    def _centred(self, weights: Reals) -> Reals:
        """Centre the weights of each attribute's states, so that 0 stands for a typical one."""
        for columns in self.columns.T:
            there, counts = np.unique(columns[columns >= 0], return_counts=True)
            if len(there):
                mean = weights[:, there] @ counts / counts.sum()
                weights[:, there] -= mean[:, np.newaxis]
        return weights

    def regress(self, numbers: Sequence[Reals], block: int) -> tuple[Reals, Reals]:
        """Return what everything there adds to scores of numbers, and a root of what is left."""
        from microveil.core.kernels import rank_tables as kernels

        if not numbers:
            return np.zeros((self.width, 0)), np.zeros((0, 0))
        size = np.diff(self.ends, prepend=0).astype(np.float64)
        spared = float(np.sum(size**2 / np.maximum(size - 1, 1)) / size.sum())
        scores = np.empty((len(self.scores), len(numbers)), dtype=np.float32)
        kept, squares = np.empty(len(numbers)), np.empty(len(numbers))
        for place, values in enumerate(numbers):
            mine = scores[:, place]
            square, product, count = kernels.score_ranks(
                values, self.ends, block, normal_quantiles(), mine
            )
            kept[place] = product / max(count, 1) * np.sqrt(spared)
            squares[place] = square / max(count, 1)
        present = np.column_stack([~np.isnan(values) for values in numbers]).astype(np.float64)
        both = np.maximum(present.T @ present, 1.0)
        told = squares / np.maximum(kept, 1e-9) ** 2
        covariance = scores.T @ scores / both * _trusted(np.outer(told, told) / both)
        target = latent_correlation(covariance, kept, squares)
        places = self._places() * np.sqrt(spared)
        within = places.T @ places / len(places) + _RIDGE * np.eye(self.width)
        across = places.T @ scores / np.maximum(present.sum(axis=0), 1.0)
        across = across / np.maximum(kept, 1e-9)
        across *= _trusted(told / np.diag(both) / np.maximum(np.diag(within), 1e-9)[:, np.newaxis])
        slopes = np.linalg.solve(within, across) if self.width else np.zeros((0, len(numbers)))
        return slopes, _root(target - slopes.T @ across)

    def _places(self) -> Reals:
        """Return kept scores, and for each column whether a row has it, beside its cluster."""
        places = np.zeros((len(self.scores), self.width))
        places[:, : self.scores.shape[1]] = self.scores
        cluster = np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))
        for columns in self.columns.T:
            rows = np.flatnonzero(columns >= 0)
            there = np.unique(columns[rows])
            known = np.maximum(np.bincount(cluster[rows], minlength=len(self.ends)), 1)
            for column in there:
                has = columns[rows] == column
                share = np.bincount(cluster[rows[has]], minlength=len(self.ends)) / known
                places[rows, column] = has - share[cluster[rows]]
        return places


def kept_scores(kept: Sequence[RowValues], ends: Integers) -> NDArray[np.float32]:
    """Return the normal scores of kept numbers within clusters, 0 where there is none."""
    from microveil.core.kernels import rank_tables as kernels

    numbers = [values.numbers for values in kept if values.numbers is not None]
    scores = np.zeros((int(ends[-1]), len(numbers)), dtype=np.float32)
    for place, values in enumerate(numbers):
        kernels.score_ranks(values, ends, 1, normal_quantiles(), scores[:, place])
    return scores


def latent_correlation(covariance: Reals, kept: Reals, squares: Reals) -> Reals:
    """Return which correlation of normal samples gives their scores this covariance.

    A sample's rank keeps `kept` of it: scores of two independent ones that correlate by r have a
    covariance of about kept₁·kept₂·r, which grows to the smaller of their `squares` where r is 1;
    in between a fifth power stands for all higher ones.

    Examples
    --------
    >>> half = latent_correlation(np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones(2), np.ones(2))
    >>> half[0, 1].item()
    0.5
    """
    linear = np.maximum(np.outer(kept, kept), 1e-9)
    rest = np.maximum(squares - kept**2, 0.0)
    rest = np.minimum(rest, rest[:, np.newaxis])
    r = np.clip(covariance / linear, -1, 1)
    for _ in range(_KEPT_STEPS):
        r = r - (linear * r + rest * r**5 - covariance) / (linear + 5 * rest * r**4)
    r = np.clip(r, -1, 1)
    np.fill_diagonal(r, 1.0)
    return r


def _trusted(noise: Reals) -> Reals:
    """Return how much of a relation counts, given the square of the error it is measured with.

    Of a number that nearly everybody has alike, a relation is about the few others.
    """
    trusted: Reals = 1 / (1 + (_LEAST_OF_CATEGORY * noise) ** 2)
    return trusted


def minimise(
    loss: Callable[[Reals], tuple[float, Reals]], curvature: Reals, steps: int = _STEPS
) -> Reals:
    """Find weights of least loss from 0 on, by limited-memory BFGS scaled by the curvature."""
    scale = 1 / np.sqrt(curvature)
    at = np.zeros_like(curvature)
    value, slope = loss(at)
    slope = slope * scale
    moves: list[tuple[Reals, Reals, float]] = []
    for _ in range(steps):
        step = -_curved(slope, moves)
        descent, length = float(np.sum(step * slope)), 1.0
        while True:
            there = at + length * step * scale
            new, new_slope = loss(there)
            if new <= value + 1e-4 * length * descent or length < 1e-6:
                break
            length /= 2
        new_slope = new_slope * scale
        turn, move = new_slope - slope, length * step
        if new >= value - 1e-7 * abs(value):
            break
        if (product := float(np.sum(turn * move))) > 0:
            moves = [*moves[-_KEPT_STEPS:], (move, turn, product)]
        at, value, slope = there, new, new_slope
    return at


def _curved(slope: Reals, moves: Sequence[tuple[Reals, Reals, float]]) -> Reals:
    """Multiply a slope by the inverse curvature that earlier moves tell of."""
    shares = []
    for move, turn, product in reversed(moves):
        shares.append(float(np.sum(move * slope)) / product)
        slope = slope - shares[-1] * turn
    if moves:
        _, turn, product = moves[-1]
        slope = slope * product / float(np.sum(turn**2))
    for move, turn, product in moves:
        slope = slope + (shares.pop() - float(np.sum(turn * slope)) / product) * move
    return slope


def _pairs(ends: Integers) -> tuple[Integers, Integers]:
    """Pair rows of the same cluster: all of them, or as many as a model needs."""
    sizes = np.diff(ends, prepend=0)
    end, position = np.repeat(ends, sizes), np.arange(ends[-1])
    size, found = np.repeat(sizes, sizes), []
    for apart in range(1, int(sizes.max(initial=1)) // 2 + 1):
        if apart > 1 and apart * len(position) > _SAMPLE:
            break
        right = position + apart
        right = np.where(right >= end, right - size, right)
        new = (2 * apart < size) | ((2 * apart == size) & (right > position))
        found.append((position[new], right[new]))
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate([x for x, _ in found]), np.concatenate([x for _, x in found])


def _root(matrix: Reals) -> Reals:
    """Return the triangular root of a symmetric matrix, its negative directions left out."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    above = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    root: Reals = np.linalg.cholesky(above)
    return root
