"""What heavy tails do to means and errors: tables of firms, no declared domains, ε = 1.

Amounts of 834 firms, lognormal or Pareto, some also 0 or negative; three firms are far larger than
all others. "Mean" is how far a release moves the mean of the attribute it moves most, in standard
deviations, over twenty seeded runs: on average, and at worst. Nothing is pooled: exchange leaves
means as they are.
"""

import numpy as np
import polars as pl

from microveil import Plan, protect
from microveil.measures.distances import mean_sse
from microveil.types import Reals

FIRMS, ATTRIBUTES, RUNS = 834, 13, 20
EXTREME = (50, 20, 10)
TABLES = {
    "lognormal, σ = 1": ("lognormal", 1.0),
    "lognormal, σ = 1.5": ("lognormal", 1.5),
    "lognormal, σ = 2": ("lognormal", 2.0),
    "lognormal, σ = 2.5": ("lognormal", 2.5),
    "Pareto, α = 2": ("pareto", 2.0),
    "Pareto, α = 1.5": ("pareto", 1.5),
    "Pareto, α = 1": ("pareto", 1.0),
    "four in ten are 0": ("zeros", 1.5),
    "three in ten are negative": ("signed", 1.5),
}
PLANS = [(0.0, 3), (0.1, 3), (0.15, 3), (0.2, 3), (0.25, 3), (0.1, 10)]
"""Shares to trim, and the smallest cluster."""


def firms(tail: str = "lognormal", weight: float = 2.0, seed: int = 1) -> pl.DataFrame:
    """Make whole amounts of firms; large firms are large in every attribute."""
    random = np.random.default_rng(seed)
    shape = FIRMS, ATTRIBUTES
    if tail == "pareto":
        amounts = 2000 * (1 + random.pareto(weight, shape))
    else:
        size, own = random.normal(size=(FIRMS, 1)), random.normal(size=shape)
        amounts = np.exp(8 + weight * (size + own) / np.sqrt(2))
    if tail == "zeros":
        amounts *= random.random(shape) < 0.6
    if tail == "signed":
        amounts *= np.where(random.random(shape) < 0.3, -1, 1)
    amounts[: len(EXTREME)] *= np.array(EXTREME)[:, None]
    return pl.DataFrame({f"x{a}": column for a, column in enumerate(np.rint(amounts).T)})


def moved(table: pl.DataFrame, plan: Plan, runs: int) -> tuple[Reals, float]:
    """Return how far each run moves each mean, in standard deviations, and log10 of mean SSE."""
    original = table.to_numpy()
    releases = [
        protect(table, plan, seed=seed, keep_order=True).data.to_numpy() for seed in range(runs)
    ]
    means = np.array([release.mean(axis=0) for release in releases])
    shifts = np.abs(means - original.mean(axis=0)) / original.std(axis=0, ddof=1)
    error = float(np.log10(np.mean([mean_sse(original, release) for release in releases])))
    return shifts, error


def main() -> None:
    """Print how far means move and the error, for several shares to trim."""
    for label, table in TABLES.items():
        print(label)
        data = firms(*table)
        attributes = dict.fromkeys(data.columns, "confidential")
        for trim, k in PLANS:
            plan = Plan(epsilon=1.0, trim=trim, k=k, anonymity=0, attributes=attributes)
            shifts, error = moved(data, plan, RUNS)
            worst = shifts.max(axis=1)
            print(f"  trim = {trim:<5g} k = {k:<3} mean {worst.mean():.2f}, at worst "
                  f"{worst.max():.2f}; log10 mean SSE {error:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
