"""Expected error without running: squares within clusters plus the variance of the noise."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from microveil.clusters import ClusterSummary, singletons, summarise
from microveil.engines.memory import MemoryEngine
from microveil.formats import read_table
from microveil.grid import Integers, Reals
from microveil.mechanism import calibrate
from microveil.partition import cut
from microveil.plan import Plan
from microveil.post import expected_squares_of_noise
from microveil.settle import Masking


@dataclass(frozen=True, eq=False)
class ExpectedError:
    """What a release is expected to lose, before anything is masked. A function of the data.

    Attributes
    ----------
    mean_sse
        Expected mean SSE, distances in standard deviations, as `evaluate` measures it.
    attributes
        One row per attribute: its k, its squares within clusters and those of its noise, per
        record and in units of its variance, and its part of `mean_sse`.
    """

    mean_sse: float
    attributes: pl.DataFrame


def expected_error(data: Any, plan: Plan) -> ExpectedError:  # noqa: ANN401 - the user's kind
    """Predict the mean SSE of a release without drawing noise.

    Within-cluster squares about the centroids used, plus Σ n_j·2·b_j². Clamping to the domain and
    isotonic regression are ignored: the first can only lower the error, the second usually does,
    so at small ε the true error is lower.

    Parameters
    ----------
    data, plan
        As for `protect`.

    Examples
    --------
    >>> table = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan(epsilon=10.0, k=3, attributes={"age": "confidential"})
    >>> round(expected_error(table, plan).mean_sse, 3)
    0.063
    """
    from microveil.prepare import prepare

    engine = MemoryEngine(read_table(data) if isinstance(data, str | Path) else data)
    settled = prepare(plan, engine)
    rows = []
    for masking in settled.maskings:
        ranked = engine.ranked(masking.name, masking.grid)
        within, noise = expected_squares(ranked, masking)
        variance = float(np.var(ranked, ddof=1)) * len(ranked)
        share = (within + noise) / variance if variance else 0.0
        rows.append(
            {
                "attribute": masking.name,
                "k": masking.k,
                "within": within / variance if variance else 0.0,
                "noise": noise / variance if variance else 0.0,
                "mean_sse": share / len(settled.maskings) ** 2,
            }
        )
    attributes = pl.DataFrame(rows)
    return ExpectedError(float(attributes["mean_sse"].sum()), attributes)


def expected_squares(
    ranked: Integers, masking: Masking, ceiling: float = np.inf
) -> tuple[float, float]:
    """Return the squares within clusters and the expected squares of noise, in grid units.

    Noise is cut off at `ceiling`, as clamping to a domain does.
    """
    clustered = masking.method.clustered
    summary = summarise(ranked, cut(ranked, masking)) if clustered else singletons(ranked)
    scales = calibrate(summary, masking).astype(np.float64)
    noise = float(np.sum(summary.size * expected_squares_of_noise(scales, ceiling)))
    return float(np.sum(_within(ranked, summary, masking))), noise


def _within(ranked: Integers, summary: ClusterSummary, masking: Masking) -> Reals:
    """Squares of records about the centroid of their cluster."""
    away = ranked - np.repeat(masking.method.centroid(summary, 0), summary.size)
    squares: Reals = away.astype(np.float64) ** 2
    return squares
