"""Exact draws: discrete Laplace noise, permute-and-flip, randomised response."""

from fractions import Fraction

import numpy as np

from microveil.core.random_words import WordSource, draw_all
from microveil.types import Integers

CUT_OFF = 2**61
"""Masked positions are cut off at ±2^61: a function of the exact sum, so post-processing."""

LARGEST_SCALE = 2**62


def add_discrete_laplace(centroids: Integers, scales: Integers, source: WordSource) -> Integers:
    """Add discrete Laplace noise of scale t_j to each whole number.

    P(noise = x) = (e^(1/t) − 1)/(e^(1/t) + 1) · e^(−|x|/t), drawn exactly by the algorithm of
    Canonne, Kamath and Steinke (2020) in integer arithmetic; t = 0 adds nothing. Results beyond
    ±2^61 are cut off there.

    Guarantee
    ---------
    If centroid j moves by at most d_j between two tables, the probabilities of any masked value
    differ by a factor of at most exp(d_j / t_j).

    Parameters
    ----------
    centroids
        Whole numbers within ±2^60.
    scales
        One scale per centroid, 0 ≤ t ≤ 2^62.
    source
        Where random words come from.

    Examples
    --------
    >>> import numpy as np
    >>> from microveil.core.random_words import SystemWords
    >>> add_discrete_laplace(np.array([5, 7]), np.array([0, 0]), SystemWords())
    array([5, 7])
    """
    from microveil.core.kernels import draws as kernels

    masked = np.empty_like(centroids)
    draw_all(
        len(centroids),
        source,
        lambda words, done: kernels.draw_laplace(centroids, scales, masked, words, done, CUT_OFF),
    )
    return masked


def permute_and_flip(scores: Integers, rate: Fraction, source: WordSource) -> Integers:
    """Choose a category for each row of scores, likely a high one (McKenna and Sheldon 2020).

    The categories come up in random order, and each is accepted with probability
    exp(−rate·(highest score − its score)); the first accepted is chosen. Drawn exactly, in integer
    arithmetic; a rate with more digits than 62 bits hold is rounded down.

    Guarantee
    ---------
    If every score differs by at most 1 between two tables, the probabilities of each choice differ
    by a factor of at most exp(2·rate).

    Examples
    --------
    >>> from microveil.core.random_words import SystemWords
    >>> permute_and_flip(np.array([[0, 900], [900, 0]]), Fraction(1), SystemWords())
    array([1, 0])
    """
    from microveil.core.kernels import draws as kernels

    chosen = np.empty(len(scores), dtype=np.int64)
    scores, (top, bottom) = np.ascontiguousarray(scores), _at_most(rate)
    draw_all(
        len(scores),
        source,
        lambda words, done: kernels.draw_choices(scores, top, bottom, chosen, words, done),
    )
    return chosen


def randomised_response(
    codes: Integers, categories: int, epsilon: Fraction, source: WordSource
) -> Integers:
    """Replace categories by random ones: the true one is exp(ε) times as likely as each other.

    Guarantee
    ---------
    Whatever a record's category is, the probability of each answer differs by a factor of at
    most exp(ε). Drawn exactly, as `permute_and_flip` is.
    """
    from microveil.core.kernels import draws as kernels

    masked, (top, bottom) = np.empty_like(codes), _at_most(epsilon)
    draw_all(
        len(codes),
        source,
        lambda words, done: kernels.draw_responses(
            codes, categories, top, bottom, masked, words, done
        ),
    )
    return masked


def _at_most(rate: Fraction) -> tuple[int, int]:
    """Return the largest fraction of two 63-bit numbers at or below a rate; it may be 0."""
    rate = min(rate, Fraction(2**60))
    bottom = 1 << (62 - max(0, int(rate).bit_length()))
    below = Fraction(int(rate * bottom), bottom)
    return below.numerator, below.denominator
