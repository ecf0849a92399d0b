"""Random words of 64 bits: where they come from, and how draws take them."""

import os
from collections.abc import Callable
from hashlib import sha256
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from microveil.errors import PlanError
from microveil.types import Integers

Words = NDArray[np.uint64]

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
        raise PlanError(f"seed must be 0 or more, got {seed}", setting="seed")
    return SystemWords() if seed is None else SeededWords(seed, purpose)


def draw_all(
    count: int,
    source: WordSource,
    draw: Callable[[Words, int], tuple[int, int]],
    words_per_draw: float = _WORDS_PER_DRAW,
) -> None:
    """Offer words to a kernel until it has made all its draws; it may take fewer or more."""
    words: Words = np.empty(0, dtype=np.uint64)
    done = 0
    while done < count:
        wanted = min(int(words_per_draw * (count - done)) + 64, _MOST_WORDS)
        words = np.concatenate([words, source.words(wanted)])
        done, used = draw(words, done)
        words = words[used:]


def random_order(count: int, source: WordSource) -> Integers:
    """Return a random permutation: the order of independent 64-bit keys."""
    return np.argsort(source.words(count), kind="stable")
