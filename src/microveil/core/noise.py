"""Exact draws: discrete Laplace and Gaussian noise, and choices that are likely good ones."""

from fractions import Fraction
from math import isqrt

import numpy as np

from microveil.core.random_words import WordSource, draw_all
from microveil.types import Integers

CUT_OFF = 2**61
"""Masked positions are cut off at ±2^61: a function of the exact sum, so post-processing."""

LARGEST_SCALE = 2**62


LARGEST_DEVIATION = 2**26
_WORDS_PER_GAUSSIAN = 24


def add_discrete_laplace(
    centroids: Integers, scales: Integers, source: WordSource, *, parts: int = 1
) -> Integers:
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
        One scale per centroid, 0 ≤ t ≤ 2^62, in units of 1/parts.
    source
        Where random words come from.
    parts
        Into how many parts the unit of scales is divided.

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
        lambda words, done: kernels.draw_laplace(
            centroids, scales, parts, masked, words, done, CUT_OFF
        ),
    )
    return masked


def add_discrete_gaussian(values: Integers, variance: Fraction, source: WordSource) -> Integers:
    """Add discrete Gaussian noise of a variance parameter σ² to each whole number.

    P(noise = x) ∝ exp(−x²/(2σ²)), drawn exactly by the algorithm of Canonne, Kamath and Steinke
    (2020) in integer arithmetic. σ² is the one asked for, or larger by less than a part in 10,000.
    Noise beyond 256 standard deviations, which has a chance below 10^−14000, is drawn again.

    Guarantee
    ---------
    If the values move by at most d in Euclidean distance between two tables, the noisy values are
    d²/(2σ²)-zCDP.

    Examples
    --------
    >>> from microveil.core.random_words import SeededWords
    >>> add_discrete_gaussian(np.array([100, 100]), Fraction(9), SeededWords(1)).shape
    (2,)
    """
    from microveil.core.kernels import draws as kernels

    noisy = np.empty_like(values)
    settings = _drawn_variance(variance)
    draw_all(
        len(values),
        source,
        lambda words, done: kernels.draw_gaussian(values, *settings, noisy, words, done, CUT_OFF),
        _WORDS_PER_GAUSSIAN,
    )
    return noisy


def _drawn_variance(variance: Fraction) -> tuple[int, int, int, int]:
    """Return the σ² at or above a variance that is drawn, as a fraction, its scale and root.

    The scale is that of the discrete Laplace noise from which draws are accepted; the root divides
    the numerator, so that no product of the kernel overflows. σ² exceeds the variance by less than
    a part in 10,000, which is noise that the guarantee does not need.
    """
    if not 0 < variance <= LARGEST_DEVIATION**2:
        raise ValueError(f"variance must be above 0 and at most 2^52, got {float(variance)}")
    scale = isqrt(int(variance)) + 1
    denominator = max(1, 2**42 // scale**2)
    numerator = -(-variance.numerator * denominator // variance.denominator)
    root = min(scale, numerator)
    numerator += -numerator % root
    scale = isqrt(numerator // denominator) + 1
    return numerator, denominator, scale, root


def exponential_mechanism(scores: Integers, rate: Fraction, source: WordSource) -> int:
    """Choose a position with a chance in proportion to exp(rate·score), exactly.

    Guarantee
    ---------
    If every score differs by at most d between two tables, the choice is (2·rate·d)-differentially
    private and (2·rate·d)²/8-zCDP (Cesar and Rogers 2021).

    Examples
    --------
    >>> from microveil.core.random_words import SystemWords
    >>> exponential_mechanism(np.array([0, 900, 1]), Fraction(1), SystemWords())
    1
    """
    from microveil.core.kernels import draws as kernels

    top, bottom = _at_most(rate)
    behind = [(int(scores.max()) - score) * top for score in scores.tolist()]
    whole = np.array([min(one // bottom, 2**62) for one in behind])
    rest = np.array([one % bottom for one in behind])
    chosen = np.empty(1, dtype=np.int64)
    draw_all(
        1,
        source,
        lambda words, done: kernels.draw_weighted(whole, rest, bottom, chosen, words, done),
        4 * len(scores),
    )
    return int(chosen[0])


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
