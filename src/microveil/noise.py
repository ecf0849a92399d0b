"""Exact discrete Laplace noise on whole numbers, and the random words it is made of."""

import os
from hashlib import sha256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from microveil.errors import PlanError
from microveil.grid import Integers

Words = NDArray[np.uint64]

CUT_OFF = 2**61
"""Masked positions are cut off at ±2^61: a function of the exact sum, so post-processing."""

LARGEST_SCALE = 2**62

_WORDS_PER_DRAW = 9
_MOST_WORDS = 2**20


class WordSource(Protocol):
    """Independent uniform 64-bit words."""

    def words(self, count: int) -> Words:
        """Return the next `count` words."""


class SystemWords:
    """Words from the operating system's secure generator: for releases."""

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


class SeededWords:
    """Repeatable words for experiments and tests. What they mask is not for publication.

    Every purpose (an attribute's name, say) has a stream of its own, so the result does not
    depend on the order or the threads in which attributes are masked.
    """

    def __init__(self, seed: int, purpose: str = "") -> None:
        digest = sha256(purpose.encode()).digest()
        entropy = [seed, *np.frombuffer(digest, dtype=np.uint32).tolist()]
        self._bits = np.random.PCG64(np.random.SeedSequence(entropy))

    def words(self, count: int) -> Words:
        """Return the next `count` words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


def open_words(seed: int | None, purpose: str) -> WordSource:
    """Open the system's source, or a seeded stream for this purpose."""
    if seed is not None and seed < 0:
        raise PlanError(f"seed must be 0 or more, got {seed}")
    return SystemWords() if seed is None else SeededWords(seed, purpose)


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
    >>> add_discrete_laplace(np.array([5, 7]), np.array([0, 0]), SystemWords())
    array([5, 7])
    """
    from microveil import kernels

    masked = np.empty_like(centroids)
    words: Words = np.empty(0, dtype=np.uint64)
    done = 0
    while done < len(centroids):
        wanted = min(_WORDS_PER_DRAW * (len(centroids) - done) + 64, _MOST_WORDS)
        words = np.concatenate([words, source.words(wanted)])
        done, used = kernels.add_discrete_laplace(centroids, scales, masked, words, done, CUT_OFF)
        words = words[used:]
    return masked


def random_order(count: int, source: WordSource) -> Integers:
    """Return a random permutation: the order of independent 64-bit keys."""
    return np.argsort(source.words(count), kind="stable")
