"""Expected error without running: squares within clusters plus the variance of the noise."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.core.expected import expected_squares
from microveil.core.tables import UserTable
from microveil.engines.base import Engine
from microveil.engines.memory import MemoryEngine
from microveil.errors import PlanError
from microveil.formats import load
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.resolve import ResolvedPlan


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
    data: UserTable,
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
    if plan.joint_groups:
        raise PlanError("the expected error of joint clusters is not known; evaluate a release")
    table = load(data, verbatim=plan.verbatim)
    engine = MemoryEngine(table.data, inferred=table.meta.inferred)
    return expected_of(resolve_and_choose(plan, engine), engine, clamped=clamped)


def expected_of(resolved: ResolvedPlan, engine: Engine, *, clamped: bool) -> ExpectedError:
    """Predict the mean SSE of a plan that was resolved against the table of an engine."""
    if not resolved.numeric:
        raise PlanError("categories have no squared error to expect; evaluate a release")
    rows, varying = [], 0
    for settings in resolved.numeric:
        ranked = engine.ranked(settings)
        within, noise = expected_squares(ranked, settings, clamped=clamped)
        variance = float(np.var(ranked, ddof=1)) * len(ranked) or np.inf
        shares = {"within": within / variance, "noise": noise / variance}
        rows.append({"attribute": settings.name, "k": settings.k, **shares})
        varying += variance < np.inf
    attributes = pl.DataFrame(rows)
    error = (pl.col("within") + pl.col("noise")) / max(1, varying) ** 2
    attributes = attributes.with_columns(mean_sse=error)
    return ExpectedError(float(attributes["mean_sse"].sum()), attributes)
