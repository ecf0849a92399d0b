"""A budget of differential privacy: spends what it has, exactly, and lists what it was spent on."""

from collections.abc import Sequence
from copy import copy
from fractions import Fraction
from math import exp, isqrt, log, log1p, sqrt
from typing import NamedTuple

import numpy as np

from microveil.core.noise import (
    LARGEST_DEVIATION,
    add_discrete_gaussian,
    add_discrete_laplace,
    exponential_mechanism,
)
from microveil.core.random_words import WordSource
from microveil.types import Integers

_DIGITS = 2**60


class Payment(NamedTuple):
    """What a part of the budget was spent on: ρ, or ε where δ is 0."""

    purpose: str
    amount: Fraction


class Sensitivity(NamedTuple):
    """By how much one person moves whole numbers: sum of amounts, and sum of their squares."""

    sum: int
    squares: int


ONE_RECORD = Sensitivity(1, 1)


class PrivacyBudget:
    """Whole numbers and choices that are (ε, δ)-differentially private together.

    With δ above 0 every step is ρ-zCDP and the ρ add up; with δ = 0 every step is ε-DP.

    Guarantee
    ---------
    All that `counts` and `choose` return, taken together, is (ε, δ)-differentially private for
    tables whose numbers and scores differ by no more than the sensitivities say.
    """

    def __init__(self, epsilon: float, delta: float, source: WordSource) -> None:
        self.epsilon, self.delta, self._source = epsilon, delta, source
        self.total = Fraction(epsilon) if delta == 0 else rho_within(epsilon, delta)
        self.spent: list[Payment] = []

    @property
    def pure(self) -> bool:
        """Whether δ is 0."""
        return self.delta == 0

    @property
    def left(self) -> Fraction:
        """What is left to spend."""
        return self.total - sum((one.amount for one in self.spent), Fraction())

    def deviation(self, share: Fraction, sensitivity: Sensitivity) -> float:
        """Return the standard deviation of the noise that a share of the budget buys."""
        amount = share * self.total
        if self.pure:
            return sqrt(2) * float(sensitivity.sum / amount)
        return sqrt(float(sensitivity.squares / (2 * amount)))

    def affords(self, share: Fraction, sensitivity: Sensitivity) -> bool:
        """Whether the noise that a share of the budget buys is small enough to be drawn."""
        return self.deviation(share, sensitivity) < LARGEST_DEVIATION

    def counts(
        self, values: Integers, share: Fraction, sensitivity: Sensitivity, purpose: str
    ) -> Integers:
        """Return whole numbers with the noise that a share of the budget buys."""
        amount = self._spend(share, purpose)
        flat = np.ascontiguousarray(values, dtype=np.int64).ravel()
        if self.pure:
            scale = Fraction(sensitivity.sum) / amount
            noisy = self.add_laplace(flat, scale)
        else:
            noisy = self.add_gaussian(flat, Fraction(sensitivity.squares) / (2 * amount))
        return noisy.reshape(np.shape(values))

    def choose(
        self, scores: Sequence[Integers], share: Fraction, sensitivity: Sensitivity, purpose: str
    ) -> list[int]:
        """Choose one of each list of scores, likely a high one.

        The sensitivity is that of all lists together: one record is in the scores of one list only.
        """
        amount = self._spend(share, purpose)
        epsilon = amount if self.pure else _root(8 * amount)
        return [self.pick(one, epsilon / (2 * sensitivity.sum)) for one in scores]

    def add_laplace(self, values: Integers, scale: Fraction) -> Integers:
        """Add discrete Laplace noise of a scale, or of one that is larger by little."""
        parts = max(1, 2**40 // (int(scale) + 1))
        steps = -(-scale.numerator * parts // scale.denominator)
        return add_discrete_laplace(values, np.full(len(values), steps), self._source, parts=parts)

    def add_gaussian(self, values: Integers, variance: Fraction) -> Integers:
        """Add discrete Gaussian noise of a variance, or of one that is larger by little."""
        return add_discrete_gaussian(values, variance, self._source)

    def pick(self, scores: Integers, rate: Fraction) -> int:
        """Choose a position with a chance in proportion to exp(rate·score)."""
        return exponential_mechanism(scores, rate, self._source)

    def beside(self) -> "PrivacyBudget":
        """Return what is left, for some of the records; others have the same, see `spend_beside`.

        Each record may be in one part only.
        """
        part = copy(self)
        part.spent = list(self.spent)
        return part

    def spend_beside(self, parts: Sequence["PrivacyBudget"]) -> None:
        """Spend what the dearest part did: whoever has records in several has fewer in each."""
        self.spent = max(parts, key=lambda part: part.total - part.left).spent

    def _spend(self, share: Fraction, purpose: str) -> Fraction:
        amount = share * self.total
        if amount <= 0 or amount > self.left:
            raise ValueError(f"{purpose}: the budget does not hold {float(share):.3g} of it more")
        self.spent.append(Payment(purpose, amount))
        return amount


def rho_within(epsilon: float, delta: float) -> Fraction:
    """Return a ρ, close to the largest, whose ρ-zCDP implies (ε, δ)-differential privacy.

    Examples
    --------
    >>> round(float(rho_within(1.0, 1e-5)), 4)
    0.0306
    """
    low, high = 0.0, epsilon
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return Fraction(int(low * (1 - 1e-9) * _DIGITS), _DIGITS)


def delta_of(rho: float, epsilon: float) -> float:
    """Return δ for which ρ-zCDP implies (ε, δ)-DP: CKS 2020, Proposition 12, at a good order α.

    It holds for every α above 1, so an inexact minimum is a bound as well.
    """
    if rho == 0:
        return 0.0
    low, high = 1.0 + 1e-9, 2.0 + 2 * (epsilon + 50) / rho
    for _ in range(150):
        left, right = low * (high / low) ** (1 / 3), low * (high / low) ** (2 / 3)
        if _log_delta(left, rho, epsilon) < _log_delta(right, rho, epsilon):
            high = right
        else:
            low = left
    return exp(min(0.0, _log_delta((low + high) / 2, rho, epsilon)))


def _log_delta(order: float, rho: float, epsilon: float) -> float:
    return (order - 1) * (order * rho - epsilon) + order * log1p(-1 / order) - log(order - 1)


def epsilon_within(rho: float, delta: float) -> float:
    """Return the ε, close to the smallest, that ρ-zCDP implies with this δ.

    Examples
    --------
    >>> epsilon_within(0.0305, 1e-5) <= 1.0
    True
    """
    low, high = 0.0, 1.0
    while delta_of(rho, high) > delta:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(rho, middle) <= delta else (middle, high)
    return high


def _root(amount: Fraction) -> Fraction:
    """Return the square root, rounded down."""
    scaled = amount * _DIGITS**2
    return Fraction(isqrt(scaled.numerator // scaled.denominator), _DIGITS)
