"""How long a noise-optimal partition takes, on one core, as the number of values grows."""

import time

import numpy as np
import polars as pl

from microveil import Confidential, Plan
from microveil.core.partition import cut
from microveil.engines.memory import MemoryEngine
from microveil.release.resolve import resolve


def main() -> None:
    """Print seconds, beside those of a sort of the same values."""
    plan = Plan.recommended(epsilon=0.1, attributes={"x": Confidential(lower=0, upper=10**7)})
    for records in (10_000, 100_000, 1_000_000):
        values = np.random.default_rng(1).lognormal(10, 1, records).clip(0, 10**7)
        engine = MemoryEngine(pl.DataFrame({"x": values}))
        (settings,) = resolve(plan, engine).numeric
        start = time.perf_counter()
        ranked = engine.ranked(settings)
        sorting = time.perf_counter() - start
        cut(ranked[:1000], settings)
        start = time.perf_counter()
        sizes = cut(ranked, settings)
        cutting = time.perf_counter() - start
        print(
            f"{records:>9,} values, cap {settings.cap}: {cutting:6.2f} s, "
            f"{cutting / records * 1e6:.1f} µs a value, {cutting / sorting:.0f} × the sort, "
            f"{len(sizes):,} clusters"
        )


if __name__ == "__main__":
    main()
