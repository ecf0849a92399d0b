"""Compiled loops, imported only when they are run.

Random words are handed in as an array. A draw that runs out of them is abandoned and reported
with the position of its first word, so that the caller can offer the same words again with fresh
ones behind: the outcome does not depend on how the words were cut into arrays.
"""

import numpy as np

from microveil.core.kernels.compiled import compiled
from microveil.core.random_words import Words
from microveil.types import Integers

OUT_OF_WORDS = -1
LARGEST_INT64 = 2**63 - 1


@compiled()
def below(bound, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return a uniform integer in [0, bound) by rejection, and the next position."""
    range_ = np.uint64(bound)
    while at < len(words):
        word = words[at]
        at += 1
        # The first 2^64 mod bound words would favour small remainders; most words are above bound
        # and need no division to tell.
        if word >= range_ or word >= (np.uint64(0) - range_) % range_:
            return np.int64(word % range_), at
    return OUT_OF_WORDS, at


@compiled()
def _exp_minus(numerator, denominator, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Bernoulli(exp(−numerator/denominator)) for a fraction in [0, 1]: CKS 2020, Algorithm 1.

    Bernoulli(γ/i) is drawn as Bernoulli(γ) and Bernoulli(1/i), so that no product can overflow.
    """
    i = 1
    while True:
        if numerator < denominator:
            draw, at = below(denominator, words, at)
            if draw == OUT_OF_WORDS:
                return OUT_OF_WORDS, at
            if draw >= numerator:
                return i & 1, at
        if i > 1:
            draw, at = below(i, words, at)
            if draw == OUT_OF_WORDS:
                return OUT_OF_WORDS, at
            if draw != 0:
                return i & 1, at
        i += 1


@compiled()
def _magnitude(scale, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Geometric on 0, 1, 2, … with P(x) ∝ exp(−x/scale), cut off at 2^63 − 1."""
    while True:
        remainder, at = below(scale, words, at)
        if remainder == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        accept, at = _exp_minus(remainder, scale, words, at)
        if accept == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if accept == 1:
            break
    magnitude = remainder
    while True:
        another, at = _exp_minus(1, 1, words, at)
        if another == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if another == 0:
            return magnitude, at
        magnitude = magnitude + scale if magnitude <= LARGEST_INT64 - scale else LARGEST_INT64


@compiled()
def _laplace(scale, parts, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return whether there were words enough, discrete Laplace noise, and the next position."""
    while at < len(words):
        negative = words[at] >> np.uint64(63)
        magnitude, at = _magnitude(scale, words, at + 1)
        if magnitude == OUT_OF_WORDS:
            break
        magnitude //= parts
        if magnitude > 0 or negative == 0:  # zero would otherwise be drawn twice as often
            return True, (-magnitude if negative else magnitude), at
    return False, 0, at


@compiled()
def _added(centroid, noise, cut_off):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add noise, and cut off what lies beyond ±cut_off."""
    if noise > cut_off - centroid:
        return cut_off
    if noise < -cut_off - centroid:
        return -cut_off
    return centroid + noise


@compiled()
def draw_laplace(
    centroids: Integers,
    scales: Integers,
    parts: int,
    masked: Integers,
    words: Words,
    first: int,
    cut_off: int,
) -> tuple[int, int]:
    """Mask centroids from position `first` on; return the next position and the words used.

    Scales are in units of 1/parts.
    """
    used = 0
    for j in range(first, len(centroids)):
        if scales[j] == 0:
            masked[j] = centroids[j]
            continue
        found, noise, at = _laplace(scales[j], parts, words, used)
        if not found:
            return j, used
        masked[j] = _added(centroids[j], noise, cut_off)
        used = at
    return len(centroids), used


@compiled()
def _exp_minus_times(times, numerator, denominator, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Bernoulli(exp(−times·numerator/denominator)) for any fraction of 0 or more."""
    whole, rest = numerator // denominator, numerator % denominator
    for _ in range(times):
        for _ in range(whole):
            accept, at = _exp_minus(1, 1, words, at)
            if accept != 1:
                return accept, at
        accept, at = _exp_minus(rest, denominator, words, at)
        if accept != 1:
            return accept, at
    return 1, at


@compiled()
def _flip_in_random_order(scores, numerator, denominator, options, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Choose by permute-and-flip; the order is drawn as far as it is needed."""
    best = scores.max()
    options[:] = np.arange(len(options))
    for i in range(len(options)):
        draw, at = below(len(options) - i, words, at)
        if draw == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        options[i], options[i + draw] = options[i + draw], options[i]
        behind = best - scores[options[i]]
        accept, at = _exp_minus_times(behind, numerator, denominator, words, at)
        if accept == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if accept == 1:
            return options[i], at
    return options[-1], at  # never reached: the best score is always accepted


@compiled()
def draw_choices(
    scores: Integers, numerator: int, denominator: int, chosen: Integers, words: Words, first: int
) -> tuple[int, int]:
    """Choose for clusters from position `first` on; return the next position and words used."""
    used = 0
    options = np.empty(scores.shape[1], np.int64)
    for j in range(first, len(scores)):
        choice, at = _flip_in_random_order(scores[j], numerator, denominator, options, words, used)
        if choice == OUT_OF_WORDS:
            return j, used
        chosen[j], used = choice, at
    return len(scores), used


@compiled()
def _keep_or_replace(code, categories, numerator, denominator, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Propose any category until one is accepted: the true one always, another with exp(−ε)."""
    while True:
        proposed, at = below(categories, words, at)
        if proposed in (OUT_OF_WORDS, code):
            return proposed, at
        accept, at = _exp_minus_times(1, numerator, denominator, words, at)
        if accept == OUT_OF_WORDS:
            return OUT_OF_WORDS, at
        if accept == 1:
            return proposed, at


@compiled()
def draw_responses(
    codes: Integers,
    categories: int,
    numerator: int,
    denominator: int,
    masked: Integers,
    words: Words,
    first: int,
) -> tuple[int, int]:
    """Mask codes from position `first` on; return the next position and the words used."""
    used = 0
    for i in range(first, len(codes)):
        choice, at = _keep_or_replace(codes[i], categories, numerator, denominator, words, used)
        if choice == OUT_OF_WORDS:
            return i, used
        masked[i], used = choice, at
    return len(codes), used


@compiled()
def _exp_minus_product(a, b, c, d, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Bernoulli(exp(−(a/b)·(c/d))) for fractions in [0, 1], without forming a product."""
    i = 1
    while True:
        for numerator, denominator in ((a, b), (c, d), (1, i)):
            if numerator < denominator:
                draw, at = below(denominator, words, at)
                if draw == OUT_OF_WORDS:
                    return OUT_OF_WORDS, at
                if draw >= numerator:
                    return i & 1, at
        i += 1


@compiled()
def _exp_minus_square(x, first, second, words, at):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Bernoulli(exp(−(x/first)·(x/second))): whole parts and rests of both are multiplied out."""
    whole, rest = x // first, x % first
    other_whole, other_rest = x // second, x % second
    for times, numerator, denominator in (
        (whole * other_whole, 1, 1),
        (whole, other_rest, second),
        (other_whole, rest, first),
    ):
        accept, at = _exp_minus_times(times, numerator, denominator, words, at)
        if accept != 1:
            return accept, at
    return _exp_minus_product(rest, first, other_rest, second, words, at)


@compiled()
def draw_gaussian(
    values: Integers,
    numerator: int,
    denominator: int,
    scale: int,
    root: int,
    noisy: Integers,
    words: Words,
    first: int,
    cut_off: int,
) -> tuple[int, int]:
    """Add discrete Gaussian noise from position `first` on: CKS 2020, Algorithm 3.

    The variance is numerator/denominator, and `root` divides the numerator. Discrete Laplace noise
    y of this scale t is accepted with the chance exp(−(|y| − σ²/t)²/(2σ²)).
    """
    left, right = denominator * scale * root, 2 * (numerator // root) * scale
    most = LARGEST_INT64 // 2 // (denominator * scale)  # 256 scales or more: never seen
    used = 0
    for j in range(first, len(values)):
        at = used
        while True:
            found, noise, at = _laplace(scale, 1, words, at)
            if not found:
                return j, used
            if abs(noise) > most:
                continue
            x = abs(abs(noise) * denominator * scale - numerator)
            accept, at = _exp_minus_square(x, left, right, words, at)
            if accept == OUT_OF_WORDS:
                return j, used
            if accept == 1:
                break
        noisy[j] = _added(values[j], noise, cut_off)
        used = at
    return len(values), used


@compiled()
def draw_weighted(
    whole: Integers, rest: Integers, denominator: int, chosen: Integers, words: Words, first: int
) -> tuple[int, int]:
    """Choose i with a chance ∝ exp(−whole[i] − rest[i]/denominator), by rejection."""
    used = 0
    for j in range(first, len(chosen)):
        at = used
        while True:
            i, at = below(len(whole), words, at)
            if i == OUT_OF_WORDS:
                return j, used
            accept, at = _exp_minus_times(whole[i], 1, 1, words, at)
            if accept == 1:
                accept, at = _exp_minus(rest[i], denominator, words, at)
            if accept == OUT_OF_WORDS:
                return j, used
            if accept == 1:
                break
        chosen[j], used = i, at
    return len(chosen), used
