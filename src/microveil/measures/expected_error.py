"""Expected error without running: squares within clusters plus the variance of the noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.core.attribute import NumericSettings
from microveil.core.pooling import Pool
from microveil.engines.local import LocalTable
from microveil.engines.memory import memory_table
from microveil.errors import PlanError
from microveil.formats import load_table
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.resolve import ResolvedPlan
from microveil.types import Integers, Reals, UserTable


@dataclass(frozen=True, eq=False)
class ExpectedError:
    """What a release is expected to lose, before anything is masked. A function of the data.

    Attributes
    ----------
    mean_sse
        Expected mean SSE, distances in standard deviations, as `evaluate` measures it.
    attributes
        One row per attribute: its k, its squares within clusters, those of its noise and those
        added by pooling, per record and in units of its variance, and its part of `mean_sse`.
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
    so at small ε the true error is lower. Pooling adds the squares within joint clusters of the
    original values, twice if values are exchanged; that averaging also takes noise away is ignored.
    Attributes that are constant have no scale to measure error in and do not count, and neither do
    categories.

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
    >>> plan = Plan.published(epsilon=10.0, k=3, attributes={"age": "confidential"})
    >>> round(expected_error(table, plan).mean_sse, 3)
    0.063
    """
    read = load_table(data, **plan.reading)
    table = memory_table(read.data, inferred=read.meta.inferred)
    return expected_of(resolve_and_choose(plan, table), table, clamped=clamped)


def expected_of(resolved: ResolvedPlan, table: LocalTable, *, clamped: bool) -> ExpectedError:
    """Predict the mean SSE of a plan that was resolved against a table."""
    if not resolved.numeric:
        raise PlanError("categories have no squared error to expect; evaluate a release")
    table = table.prepared(resolved.preparation)
    rows, varying, pooled = [], 0, squares_added(resolved.pools, table)
    for settings in resolved.numeric:
        within, noise = table.expected_squares(settings, clamped=clamped)
        steps = table.steps(settings)
        variance = float(np.var(steps, ddof=1)) * len(steps) or np.inf
        squares = {"within": within, "noise": noise, "pooled": pooled.get(settings.name, 0.0)}
        shares = {name: square / variance for name, square in squares.items()}
        rows.append({"attribute": settings.name, "k": settings.k, **shares})
        varying += variance < np.inf
    attributes = pl.DataFrame(rows)
    error = pl.sum_horizontal("within", "noise", "pooled") / max(1, varying) ** 2
    attributes = attributes.with_columns(mean_sse=error)
    return ExpectedError(float(attributes["mean_sse"].sum()), attributes)


def squares_added(pools: Sequence[Pool], table: LocalTable) -> dict[str, float]:
    """Return the squares that pooling adds to each numeric attribute, in grid steps."""
    added = {}
    for pool in pools:
        labels, _ = table.cluster_jointly(pool, seed=0)
        for attribute in pool.attributes:
            if isinstance(attribute, NumericSettings):
                steps, present = table.read(attribute)
                here = labels.of(attribute)[present]
                times = 2 if pool.pooling == "exchange" else 1
                added[attribute.name] = times * _squares_within(steps - steps.mean(), here)
    return added


def _squares_within(values: Reals, label: Integers) -> float:
    sums, sizes = np.bincount(label, values), np.maximum(np.bincount(label), 1)
    return float(np.sum(values**2) - np.sum(sums**2 / sizes))
