"""The paper's data sets for measurements."""

import numpy as np
import polars as pl

from microveil import Confidential, Plan, protect
from microveil.lab.paper.datasets import DataSet, load_data_set
from microveil.measures.distances import mean_sse

RUNS = 10


def load_with_domains(
    dataset: DataSet, alpha: float = 1.5
) -> tuple[pl.DataFrame, dict[str, Confidential]]:
    """Read a data set and declare its domains as the paper does: [0, α·max]."""
    table = load_data_set(dataset).attributes
    tops = alpha * table.to_numpy().max(axis=0)
    return table, {
        name: Confidential(lower=0, upper=float(top))
        for name, top in zip(table.columns, tops, strict=True)
    }


def log_mean_sse(table: pl.DataFrame, plan: Plan) -> float:
    """Mean SSE over ten seeded runs, as its logarithm to base 10."""
    original = table.to_numpy()
    errors = [
        mean_sse(original, protect(table, plan, seed=seed, keep_order=True).data.to_numpy())
        for seed in range(RUNS)
    ]
    return float(np.log10(np.mean(errors)))
