"""What is counted of a table, for which part of the budget, and the model that follows from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import comb, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np

from microveil.core.budget import PrivacyBudget, Sensitivity
from microveil.core.random_words import WordSource
from microveil.core.synthesis.cells import BRANCH, AnyCells, CategoryCells, NumberCells
from microveil.core.synthesis.coded_records import PairKey, RecordSums
from microveil.core.synthesis.copula import GRID, CellScores, estimate_copula
from microveil.core.synthesis.margins import Margin, number_counts, to_totals
from microveil.core.synthesis.tilted_copula import SUPPORT, TiltedCopula
from microveil.types import Integers, Reals

PaidFor = Literal["records", "one-way", "products", "choices", "pairs"]

_COUNT = Fraction(2, 100)
_REST = 1 - _COUNT
_CHOICE = Fraction(15, 100)
_FEWEST_LEVELS, _TYPICAL_LEVELS, _DEEPER = 3, 5, (8, 200, 5000)
_ENOUGH_FOR_PAIRS = 8
_ENOUGH_FOR_ONE_MODEL = 30
_FEWEST_BINS, _MOST_BINS, _BEYOND_NOISE = 3, 24, 15
_FEWEST_RECORDS = 10.0
_AFTER_EACH, _AT_THE_END = 4, 20


class _Shares(NamedTuple):
    """How the budget is divided; those of choices and pairs are of all rounds together."""

    one_way: Fraction
    products: Fraction
    choices: Fraction
    pairs: Fraction


_WITH_PAIRS = _Shares(
    _REST * Fraction(30, 100),
    _REST * Fraction(30, 100),
    _REST * Fraction(40, 100) * _CHOICE,
    _REST * Fraction(40, 100) * (1 - _CHOICE),
)
_WITHOUT_PAIRS = _Shares(
    _REST * Fraction(70, 100), _REST * Fraction(30, 100), Fraction(0), Fraction(0)
)


class _Measured(NamedTuple):
    """A noisy number of records and the variance of its noise."""

    number: float
    variance: float


@dataclass(frozen=True)
class Course:
    """What is done for a noisy number of records; nothing else of the data decides on it.

    `in_parts` says whether every value of the predicted attribute has a model of its own.
    """

    shares: _Shares
    depth: int
    in_parts: bool


@dataclass(frozen=True, eq=False)
class LearntPart:
    """A model of some records, and how many there are; `value` is what they have in common."""

    model: TiltedCopula
    records: int
    value: int | None = None


@dataclass(frozen=True, eq=False)
class LearntTable:
    """All that a synthetic table is made of; `predicted` is the attribute its parts differ in."""

    attributes: tuple[AnyCells, ...]
    parts: tuple[LearntPart, ...]
    predicted: int | None

    @property
    def records(self) -> int:
        """How many rows there are to be."""
        return sum(part.records for part in self.parts)

    def rows(self, part: LearntPart, size: int, rng: np.random.Generator) -> list[Reals]:
        """Draw rows of a part: the values of numbers, and the cells of categories."""
        drawn = zip(part.model.margins, part.model.draw(size, rng), strict=True)
        columns = [_values(margin.cells, cells, rng) for margin, cells in drawn]
        if self.predicted is not None and part.value is not None:
            columns.insert(self.predicted, np.full(size, float(part.value)))
        return columns


class TableLearner:
    """Learns a model of a table from noisy counts.

    Guarantee
    ---------
    What `learn` returns is a function of what the budget returned, of random numbers that do not
    depend on the data, and of the cells, which are public. A person, who has at most `most`
    records, moves each sum by no more than the sensitivities say; where parts of the table have
    models of their own, each record is in one of them. So the model, and whatever is drawn from
    it, is as private as the budget says.

    Parameters
    ----------
    attributes
        The cells of each attribute.
    budget
        What may be spent.
    most
        How many records of one person there are, at most.
    predicted
        The attribute for each of whose values there may be a model of its own.
    source
        Where random numbers come from that are not noise.
    support
        Draws by which the model is fitted.
    """

    def __init__(
        self,
        attributes: Sequence[AnyCells],
        budget: PrivacyBudget,
        *,
        most: int,
        predicted: int | None,
        source: WordSource,
        support: int = SUPPORT,
    ) -> None:
        self._attributes, self._budget = tuple(attributes), budget
        self._most, self._predicted, self._support = most, predicted, support
        self._rng = np.random.default_rng(source.words(8))

    def learn(self, records: RecordSums) -> LearntTable:
        """Count what the budget pays for; return the model that follows from it."""
        moves = self._moves(1)
        counted = self._budget.counts(np.array([records.count()]), _COUNT, moves, "records")
        known = _Measured(float(counted[0]), self._budget.deviation(_COUNT, moves) ** 2)
        course, predicted = self._course(known.number), self._predicted
        if predicted is None or not course.in_parts:
            part = self._learn(records, self._attributes, course, self._budget, [known])
            return LearntTable(self._attributes, (part,), None)
        others = [cells for place, cells in enumerate(self._attributes) if place != predicted]
        budgets, parts = [], []
        for value, some in enumerate(records.parts(predicted, self._attributes[predicted].size)):
            budgets.append(self._budget.beside())
            part = self._learn(some, others, course, budgets[-1], [])
            parts.append(replace(part, value=value))
        self._budget.spend_beside(budgets)
        return LearntTable(self._attributes, tuple(parts), predicted)

    @property
    def noise(self) -> float:
        """About how much noise is added to each count of one attribute."""
        typical = sum(_histograms(_coarser(one, _TYPICAL_LEVELS)) for one in self._attributes)
        return self._budget.deviation(_WITH_PAIRS.one_way, self._moves(typical))

    @property
    def affordable(self) -> bool:
        """Whether all the noise is small enough to be drawn."""
        count = len(self._attributes)
        products = self._moves(max(1, comb(count, 2)), GRID**2)
        each = _WITH_PAIRS.pairs / count
        return self._budget.affords(_WITH_PAIRS.products, products) and (
            self._budget.affords(each, self._moves(1))
        )

    def _moves(self, sums: int, length: int = 1) -> Sensitivity:
        """Return by how much a person moves sums, in each of which a record counts up to length."""
        return Sensitivity(self._most * sums * length, self._most**2 * sums * length**2)

    def _course(self, n: float) -> Course:
        """Decide by the noisy number of records what is worth its noise."""
        noise = self.noise
        predicted = None if self._predicted is None else self._attributes[self._predicted]
        in_parts = predicted is not None and n < _ENOUGH_FOR_ONE_MODEL * noise
        if predicted is not None and in_parts:
            n /= predicted.size - predicted.missing
        pairs = n >= _ENOUGH_FOR_PAIRS * noise and len(self._attributes) - in_parts > 1
        depth = _FEWEST_LEVELS + sum(n > times * noise for times in _DEEPER)
        return Course(_WITH_PAIRS if pairs else _WITHOUT_PAIRS, depth, in_parts)

    def _learn(
        self,
        records: RecordSums,
        attributes: Sequence[AnyCells],
        course: Course,
        budget: PrivacyBudget,
        known: list[_Measured],
    ) -> LearntPart:
        attributes = [_coarser(one, course.depth) for one in attributes]
        n, margins = self._margins(records, attributes, course.shares.one_way, budget, known)
        size = max(n, _FEWEST_RECORDS)
        correlations = self._correlations(records, margins, size, course.shares.products, budget)
        rounds = min(len(margins), comb(len(margins), 2)) if course.shares.pairs else 0
        each = course.shares.pairs / rounds if rounds else Fraction(1)
        noise = budget.deviation(each, self._moves(1))
        bins = [_bins(margin, size, noise) for margin in margins]
        model = TiltedCopula(margins, bins, correlations, size, self._rng, self._support)
        if rounds:
            exact = records.pairs(
                [b[m.cells.cell_of_code] for b, m in zip(bins, margins, strict=True)]
            )
            self._tilt(model, exact, course.shares, rounds, budget)
        return LearntPart(model, max(round(n), 0))

    def _margins(
        self,
        records: RecordSums,
        attributes: Sequence[AnyCells],
        share: Fraction,
        budget: PrivacyBudget,
        known: list[_Measured],
    ) -> tuple[float, list[Margin]]:
        """Count attributes one by one; return how many records there are, and distributions."""
        exact = records.one_way([len(one.cell_of_code) for one in attributes])
        groups = [_grouped(one, counts) for one, counts in zip(attributes, exact, strict=True)]
        moves = self._moves(sum(map(_histograms, attributes)))
        variance = budget.deviation(share, moves) ** 2
        noisy = budget.counts(
            np.concatenate([c for g in groups for c in g]), share, moves, "one-way"
        )
        counted = list(_like(groups, noisy.astype(np.float64)))
        n = _mean([*known, *(_total(group, variance) for group in counted)])
        size = max(n, _FEWEST_RECORDS)
        return n, [
            Margin(cells, _counts(cells, group, variance, size))
            for cells, group in zip(attributes, counted, strict=True)
        ]

    def _correlations(
        self,
        records: RecordSums,
        margins: Sequence[Margin],
        n: float,
        share: Fraction,
        budget: PrivacyBudget,
    ) -> Reals:
        """Estimate how attributes go together, two by two, from all products of their scores."""
        if len(margins) == 1:
            return np.eye(1)
        scores = [CellScores(margin) for margin in margins]
        tables = [
            one.table[margin.cells.cell_of_code]
            for one, margin in zip(scores, margins, strict=True)
        ]
        owner = np.repeat(np.arange(len(scores)), [one.width for one in scores])
        below = np.nonzero(owner[:, None] > owner)
        moves = self._moves(comb(len(margins), 2), GRID**2)
        sums = np.zeros((len(owner), len(owner)))
        sums[below] = budget.counts(records.products(tables)[below], share, moves, "products")
        scale = GRID**2 * n
        return estimate_copula(
            (sums + sums.T) / scale, scores, budget.deviation(share, moves) / scale
        )

    def _tilt(
        self,
        model: TiltedCopula,
        exact: Mapping[PairKey, Integers],
        shares: _Shares,
        rounds: int,
        budget: PrivacyBudget,
    ) -> None:
        """Count the pairs that the model fits worst, and fit it to them."""
        moves, left = self._moves(1), list(exact)
        variance = budget.deviation(shares.pairs / rounds, moves) ** 2
        for _ in range(rounds):
            misfits = [_misfit(exact[pair], model.table(pair), variance) for pair in left]
            (chosen,) = budget.choose(
                [np.array(misfits)], shares.choices / rounds, moves, "choices"
            )
            pair = left.pop(chosen)
            counts = budget.counts(exact[pair], shares.pairs / rounds, moves, "pairs")
            model.add(pair, counts.astype(np.float64), variance)
            model.fit(_AFTER_EACH)
        model.fit(_AT_THE_END)


def _misfit(exact: Integers, modelled: Reals, variance: float) -> int:
    """Return by how many records a model is wrong, beyond what noise and chance would leave.

    One record moves it by one, since what is modelled is rounded to whole records.
    """
    chance = sqrt(2 / pi) * float(np.sqrt(variance + modelled).sum())
    return int(np.abs(exact - np.rint(modelled).astype(np.int64)).sum()) - round(chance)


def _coarser(cells: AnyCells, depth: int) -> AnyCells:
    return cells.coarser(depth) if isinstance(cells, NumberCells) else cells


def _histograms(cells: AnyCells) -> int:
    """Return in how many counts of an attribute a record is."""
    return cells.levels if isinstance(cells, NumberCells) else 1


def _grouped(cells: AnyCells, codes: Integers) -> list[Integers]:
    """Return counts of cells from those of codes: of numbers at every level, and single values.

    A record is in one cell of each level, or in one of the single values.
    """
    if isinstance(cells, CategoryCells):
        return [codes]
    body = codes[: len(codes) - cells.single]
    levels = [body.reshape(BRANCH**level, -1).sum(axis=1) for level in range(1, cells.levels + 1)]
    return [*levels, codes[len(codes) - cells.single :]]


def _like(groups: Sequence[Sequence[Integers]], noisy: Reals) -> Iterator[list[Reals]]:
    """Divide numbers into groups of the same lengths as these."""
    at = 0
    for group in groups:
        ends = at + np.cumsum([0, *map(len, group)])
        yield [noisy[start:end] for start, end in pairwise(ends.tolist())]
        at = int(ends[-1])


def _counts(cells: AnyCells, group: Sequence[Reals], variance: float, n: float) -> Reals:
    if isinstance(cells, NumberCells):
        return number_counts(cells, group, variance, n)
    (counts,) = to_totals(group[0][None], np.array([n]))
    return np.asarray(counts)


def _total(group: Sequence[Reals], variance: float) -> _Measured:
    """Return the number of records by the counts with the fewest cells."""
    cells = [group[0], *(group[-1:] if len(group) > 1 else [])]
    together = np.concatenate(cells)
    return _Measured(float(together.sum()), len(together) * variance)


def _mean(measured: Iterable[_Measured]) -> float:
    """Return the mean of numbers, the less noisy ones counting more."""
    known = list(measured)
    weights = np.array([1 / one.variance for one in known])
    return float(np.array([one.number for one in known]) @ weights / weights.sum())


def _bins(margin: Margin, n: float, noise: float) -> Integers:
    """Return the bin of each cell: about as many records as noise moves, or more."""
    wanted = int(np.clip(round(sqrt(n / (2 * noise + _BEYOND_NOISE))), _FEWEST_BINS, _MOST_BINS))
    least = 2 * noise / n
    cells = margin.cells
    if isinstance(cells, CategoryCells):
        rare = margin.chances < least
        bins = np.where(rare, len(rare), np.arange(len(rare)))
    else:
        bins = np.minimum((margin.middles * wanted).astype(np.int64), wanted - 1)
        if cells.missing and margin.chances[-1] >= least:
            bins[-1] = wanted
    return np.unique(bins, return_inverse=True)[1]


def _values(cells: AnyCells, drawn: Integers, rng: np.random.Generator) -> Reals:
    if isinstance(cells, CategoryCells):
        return drawn.astype(np.float64)
    values: Reals = cells.decode(drawn, rng.random(len(drawn)))
    return values
