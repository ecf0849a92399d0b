"""How long a noise-optimal partition takes, on one core, as the values grow and ε falls."""

import time

import numpy as np
import polars as pl

from microveil import Confidential, Plan
from microveil.core.partition import cut
from microveil.engines.memory import memory_table
from microveil.release.resolve import resolve


def main() -> None:
    """Print seconds of processor time, and of a sort of the same values."""
    measure(10_000, 0.1)
    measure(100_000, 0.1)
    for epsilon in (1.0, 0.25, 0.1, 0.025, 0.01):
        measure(1_000_000, epsilon)


def measure(records: int, epsilon: float) -> None:
    """Cut skewed values of an attribute that has all of ε."""
    roles = {"x": Confidential(lower=0, upper=10**7)}
    plan = Plan(epsilon=epsilon, anonymity=0, attributes=roles)
    values = np.random.default_rng(1).lognormal(10, 1, records).clip(0, 10**7)
    engine = memory_table(pl.DataFrame({"x": values}))
    (settings,) = resolve(plan, engine).numeric
    cut(engine.ranked(settings)[0][0][:1000], settings)
    start = time.process_time()
    ((ranked, _),) = engine.ranked(settings)
    sorting = time.process_time() - start
    start = time.process_time()
    sizes = cut(ranked, settings)
    cutting = time.process_time() - start
    print(
        f"{records:>9,} values, ε = {epsilon:<5g}, cap {settings.cap}: {cutting:.2f} s "
        f"({cutting / records * 1e6:.2f} µs a value), sort {sorting:.2f} s; "
        f"{len(sizes):,} clusters of {sizes.min()} to {sizes.max()}"
    )


if __name__ == "__main__":
    main()
