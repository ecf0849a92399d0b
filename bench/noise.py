"""How many exact discrete Laplace draws a second, beside what they are made of and others make."""

import os
import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from microveil.core.noise import add_discrete_laplace
from microveil.core.random_words import SeededWords, SystemWords

DRAWS = 2_000_000
SCALE = 2**30


def per_second(count: int, work: Callable[[], object], repeats: int = 3) -> float:
    """Best of a few runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return count / min(times)


def main() -> None:
    """Print draws a second on one core."""
    centroids = np.zeros(DRAWS, dtype=np.int64)
    scales = np.full(DRAWS, SCALE)
    random = np.random.default_rng(1)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    opendp = space >> dp.m.then_laplace(scale=float(SCALE))
    few = [0] * 20_000
    rates = {
        "microveil, system words": per_second(
            DRAWS, lambda: add_discrete_laplace(centroids, scales, SystemWords())
        ),
        "microveil, seeded words": per_second(
            DRAWS, lambda: add_discrete_laplace(centroids, scales, SeededWords(1))
        ),
        "os.urandom, 64-bit words": per_second(DRAWS, lambda: os.urandom(8 * DRAWS)),
        "NumPy laplace (floating point)": per_second(DRAWS, lambda: random.laplace(size=DRAWS)),
        "OpenDP (exact, one scale)": per_second(len(few), lambda: opendp(few), repeats=1),
    }
    for name, rate in rates.items():
        ratio = rates["microveil, system words"] / rate
        print(f"{name:<32}{rate / 1e6:8.2f} million a second   (microveil is {ratio:.3g}×)")


if __name__ == "__main__":
    main()
