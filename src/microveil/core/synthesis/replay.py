"""The exact privacy loss of a run: made on one table, and forced on a neighbour."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from microveil.core.budget import PrivacyBudget
from microveil.core.random_words import WordSource
from microveil.types import Integers, Reals


@dataclass
class _Tape:
    """What a run was asked and answered, and by how much another table explains it less."""

    asked: list[tuple[Integers, Integers]] = field(default_factory=list)
    at: int = 0
    loss: float = 0.0


class _Recording(PrivacyBudget):
    """Notes every question, and its answer."""

    def __init__(self, epsilon: float, delta: float, source: WordSource, tape: _Tape) -> None:
        super().__init__(epsilon, delta, source)
        self._tape = tape

    def add_laplace(self, values: Integers, scale: Fraction) -> Integers:
        """Add noise, and note it."""
        return self._noted(values, super().add_laplace(values, scale))

    def add_gaussian(self, values: Integers, variance: Fraction) -> Integers:
        """Add noise, and note it."""
        return self._noted(values, super().add_gaussian(values, variance))

    def pick(self, scores: Integers, rate: Fraction) -> int:
        """Choose, and note it."""
        return int(self._noted(scores, np.array([super().pick(scores, rate)]))[0])

    def _noted(self, asked: Integers, answer: Integers) -> Integers:
        self._tape.asked.append((asked, answer))
        return answer


class _Replaying(_Recording):
    """Answers as the tape does, and adds up how much likelier that was with the other table."""

    def add_laplace(self, values: Integers, scale: Fraction) -> Integers:
        """Give the noted numbers."""
        before, answer = self._next()
        further = np.abs(answer - values) - np.abs(answer - before)
        self._tape.loss += float(further.sum() / scale)
        return answer

    def add_gaussian(self, values: Integers, variance: Fraction) -> Integers:
        """Give the noted numbers."""
        before, answer = self._next()
        moved = (values - before).astype(np.float64)
        further = moved @ (values + before - 2 * answer)
        self._tape.loss += float(further) / (2 * float(variance))
        return answer

    def pick(self, scores: Integers, rate: Fraction) -> int:
        """Give the noted choice."""
        before, answer = self._next()
        chosen = int(answer[0])
        self._tape.loss += _log_chance(before, rate, chosen) - _log_chance(scores, rate, chosen)
        return chosen

    def _next(self) -> tuple[Integers, Integers]:
        self._tape.at += 1
        return self._tape.asked[self._tape.at - 1]


def _log_chance(scores: Integers, rate: Fraction, chosen: int) -> float:
    weighed: Reals = (scores - scores.max()) * float(rate)
    return float(weighed[chosen] - np.log(np.exp(weighed).sum()))


def replayed_loss(
    run: Callable[[PrivacyBudget, int], object],
    epsilon: float,
    delta: float,
    source: WordSource,
) -> float:
    """Return the privacy loss of one run.

    `run` makes a release of table 0 or of its neighbour, table 1, from what it asks the budget and
    from random numbers that are the same both times.

    Guarantee
    ---------
    A release is a function of the answers, so that its own loss is at most this on average, and
    where δ = 0 in every run.
    """
    tape = _Tape()
    run(_Recording(epsilon, delta, source, tape), 0)
    run(_Replaying(epsilon, delta, source, tape), 1)
    if tape.at != len(tape.asked):
        raise ValueError(f"asked {len(tape.asked)} times, and {tape.at} times when replayed")
    return tape.loss
