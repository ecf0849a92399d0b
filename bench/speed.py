"""How fast protecting is, as ratios against sorting and against plain pandas in the same run."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

from microveil import Confidential, Plan, protect
from microveil.types import Reals

K, EPSILON, REPEATS = 10, 1.0, 3


def columns(records: int, attributes: int) -> dict[str, Reals]:
    """Make incomes of two decimals."""
    random = np.random.default_rng(1)
    return {f"x{a}": random.lognormal(10, 1, records).round(2) for a in range(attributes)}


ATTRIBUTE = Confidential(lower=0, upper=100_000_000, decimals=2)


def plan_of(names: list[str]) -> Plan:
    """Mask all attributes by iDP-CBLS."""
    return Plan.published(epsilon=EPSILON, k=K, attributes=dict.fromkeys(names, ATTRIBUTE))


def best(run: Callable[[], object]) -> float:
    """Return the shortest of three times."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def plain_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    """Write iDP-CBLS down as the paper does, with what pandas offers: sort, group, transform."""
    random, masked = np.random.default_rng(), frame.copy()
    for name in frame:
        ranked = frame[name].sort_values()
        cluster = np.minimum(np.arange(len(ranked)) // K, len(ranked) // K - 1)

        def mask(values: "pd.Series[float]") -> "pd.Series[float]":
            v = values.to_numpy(copy=True)
            up = (v[-1] - v[1]) + (v[2] - v[1]) + (v[-1] - v[-2])
            down = (v[-2] - v[0]) + (v[-2] - v[-3]) + (v[1] - v[0])
            v[0], v[-1] = v[1], v[-2]
            scale = max(up, down) / len(v) / EPSILON
            return v.mean() + random.laplace(0, scale)  # type: ignore[no-any-return]

        masked[name] = ranked.groupby(cluster).transform(mask).reindex(frame.index)
    return masked


def recommend(
    table: pl.DataFrame, published: float, sort: float, plans: list[tuple[float, int]]
) -> None:
    """Print how long recommended plans take beside the published one and the sort."""
    attributes = dict.fromkeys(table.columns, ATTRIBUTE)
    for epsilon, anonymity in plans:
        plan = Plan(epsilon=epsilon, anonymity=anonymity, attributes=attributes)
        protect(table.head(1_000), plan)
        seconds = best(lambda plan=plan: protect(table, plan, keep_order=True))  # type: ignore[misc]
        pooled = "pooled" if anonymity else "not pooled"
        print(f"{table.height:>11,} × 4   recommended, ε = {epsilon:g}, {pooled}: {seconds:.2f} s "
              f"  {seconds / published:.1f} times the published plan, {seconds / sort:.1f} times "
              "np.argsort", flush=True)  # fmt: skip


def main() -> None:
    """Print ratios."""
    small = pl.DataFrame(columns(1_000, 1))
    protect(small, plan_of(small.columns))  # compile, or load what is compiled
    sort, ours = {}, {}
    for records in (1_000_000, 10_000_000):
        data = columns(records, 4)
        table = pl.DataFrame(data)
        plan = plan_of(table.columns)
        sort[records] = best(lambda data=data: [np.argsort(x) for x in data.values()])  # type: ignore[misc]
        ours[records] = best(lambda table=table, plan=plan: protect(table, plan, keep_order=True))  # type: ignore[misc]
        print(
            f"{records:>11,} × 4   np.argsort {sort[records]:.2f} s   protect {ours[records]:.2f} s"
            f"   ratio {ours[records] / sort[records]:.2f}",
            flush=True,
        )
        epsilons = [(1.0, 10), (1.0, 0)] + [(0.1, 0), (0.01, 0)] * (records == 1_000_000)
        recommend(table, ours[records], sort[records], epsilons)
    growth = [times[10_000_000] / times[1_000_000] for times in (sort, ours)]
    print(f"from 1 to 10 million: np.argsort × {growth[0]:.1f}, protect × {growth[1]:.1f}")
    table = pl.DataFrame(columns(1_000_000, 1))
    frame = pd.DataFrame(columns(1_000_000, 1))
    plain = best(lambda: plain_pandas(frame))
    fast = best(lambda: protect(table, plan_of(table.columns), keep_order=True))
    print(f"  1,000,000 × 1   plain pandas {plain:.2f} s   protect {fast:.2f} s   "
          f"{plain / fast:.0f} times faster")  # fmt: skip
    microveil = str(Path(sys.executable).with_name("microveil"))
    with tempfile.TemporaryDirectory() as directory:
        for command in (["--help"], ["demo", "-o", directory, "--overwrite"]):
            line = [microveil, *command]
            seconds = best(lambda line=line: subprocess.run(line, check=True, capture_output=True))  # type: ignore[misc]
            print(f"microveil {command[0]:<8}{seconds:.2f} s")


if __name__ == "__main__":
    main()
