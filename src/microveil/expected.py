"""Expected error without running: squares within clusters plus the variance of the noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from microveil.clusters import ClusterSummary, singletons, summarise
from microveil.engines.memory import MemoryEngine
from microveil.errors import PlanError
from microveil.formats import load
from microveil.grid import Integers, Reals
from microveil.masking import NumericMasking
from microveil.mechanism import calibrate
from microveil.partition import cut
from microveil.plan import Plan
from microveil.post import expected_squares_of_noise


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


def expected_error(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    clamped: bool = False,
) -> ExpectedError:
    """Predict the mean SSE of a release without drawing noise.

    Within-cluster squares about the centroids used, plus Σ n_j·2·b_j². Clamping to the domain and
    isotonic regression are ignored: the first can only lower the error, the second usually does,
    so at small ε the true error is lower. Attributes that are constant have no scale to measure
    error in and do not count, and neither do categories. Joint clusters are refused.

    Parameters
    ----------
    data, plan
        As for `protect`.
    clamped
        Cut off noise at half the width of a declared domain, as the noise-optimal partition does:
        rough, but nearer to the truth at small ε.

    Examples
    --------
    >>> table = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan(epsilon=10.0, k=3, attributes={"age": "confidential"})
    >>> round(expected_error(table, plan).mean_sse, 3)
    0.063
    """
    from microveil.prepare import prepare

    if plan.joint_groups:
        raise PlanError("the expected error of joint clusters is not known; evaluate a release")
    engine = MemoryEngine(load(data, verbatim=plan.verbatim).data)
    settled = prepare(plan, engine)
    if not settled.numeric:
        raise PlanError("categories have no squared error to expect; evaluate a release")
    rows, varying = [], 0
    for masking in settled.numeric:
        ranked = engine.ranked(masking.name, masking.grid)
        within, noise = expected_squares(ranked, masking, clamped=clamped)
        variance = float(np.var(ranked, ddof=1)) * len(ranked) or np.inf
        shares = {"within": within / variance, "noise": noise / variance}
        rows.append({"attribute": masking.name, "k": masking.k, **shares})
        varying += variance < np.inf
    attributes = pl.DataFrame(rows)
    error = (pl.col("within") + pl.col("noise")) / max(1, varying) ** 2
    attributes = attributes.with_columns(mean_sse=error)
    return ExpectedError(float(attributes["mean_sse"].sum()), attributes)


def expected_squares(
    ranked: Integers, masking: NumericMasking, *, clamped: bool
) -> tuple[float, float]:
    """Return the squares within clusters and the expected squares of noise, in grid units.

    Clamped, noise is cut off at half the domain's width.
    """
    half_width = (masking.upper - masking.lower) / 2 / masking.grid.step
    clustered = masking.method.clustered
    summary = summarise(ranked, cut(ranked, masking)) if clustered else singletons(ranked)
    scales = calibrate(summary, masking).astype(np.float64)
    squares = expected_squares_of_noise(scales, half_width if clamped else np.inf)
    noise = float(np.sum(summary.size * squares))
    return float(np.sum(_within(ranked, summary, masking))), noise


def _within(ranked: Integers, summary: ClusterSummary, masking: NumericMasking) -> Reals:
    """Squares of records about the centroid of their cluster."""
    away = ranked - np.repeat(masking.method.centroid(summary, 0), summary.size)
    squares: Reals = away.astype(np.float64) ** 2
    return squares
