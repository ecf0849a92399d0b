"""The paper's data sets for measurements."""

import os
from pathlib import Path

import numpy as np
import polars as pl

from microveil import Confidential, Plan, protect
from microveil.evaluate.utility import mean_sse

CENSUS = "AFNLWGT AGI EMCONTRB FEDTAX STATETAX TAXINC POTHVAL INTVAL FICA"
RUNS = 10


def load(name: str, alpha: float = 1.5) -> tuple[pl.DataFrame, dict[str, Confidential]]:
    """Read a data set and declare its domains as the paper does: [0, α·max]."""
    directory = os.environ.get("MICROVEIL_DATA")
    if not directory:
        raise SystemExit("set MICROVEIL_DATA to a directory with the paper's data sets")
    if name == "census":
        table = pl.read_csv(Path(directory, "census.csv")).select(CENSUS.split())
    else:
        table = pl.read_csv(Path(directory, "winequality-white.csv")).drop("quality")
    table = table.cast(pl.Float64)
    largest = table.to_numpy().max(axis=0)
    tops = dict(zip(table.columns, alpha * largest, strict=True))
    return table, {name: Confidential(lower=0, upper=float(top)) for name, top in tops.items()}


def log_mean_sse(table: pl.DataFrame, plan: Plan) -> float:
    """Mean SSE over ten seeded runs, as its logarithm to base 10."""
    original = table.to_numpy()
    errors = [
        mean_sse(original, protect(table, plan, seed=seed).data.to_numpy()) for seed in range(RUNS)
    ]
    return float(np.log10(np.mean(errors)))
