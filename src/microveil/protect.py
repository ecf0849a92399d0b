"""The straight line: read → settle → cluster → summarise → sensitivity → noise → spread."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from microveil.accounting import held_loss, noise_scales, reclustered_loss
from microveil.certificate import certify
from microveil.clusters import ClusterSummary
from microveil.engines.base import Engine
from microveil.engines.memory import MemoryEngine
from microveil.errors import DataError
from microveil.formats import read_table
from microveil.grid import Integers, Reals
from microveil.noise import LARGEST_SCALE, WordSource, add_discrete_laplace, open_words
from microveil.plan import Plan
from microveil.post import isotonic
from microveil.release import Detail, Release
from microveil.settle import Masking, settle

Progress = Callable[[str, int, int], None]


def protect(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Protect a table of people.

    Guarantee
    ---------
    With clusters and noise scales held, the masked values of a table and of any neighbour are
    within a factor exp(ε) of each other in probability: attribute a pays its share ε_a, and the
    shares add up to ε. The certificate says what happens when clusters are formed again, and what
    the released table shows besides.

    Parameters
    ----------
    data
        A Polars or pandas DataFrame, a PyArrow Table, or the path of a CSV or Parquet file. A
        pandas index is left behind.
    plan
        What to do with each attribute.
    seed
        For experiments only: repeatable noise. The certificate then says «not for publication».
    progress
        Called with an attribute's name, how many are masked and how many there are.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> release = protect(people, plan)
    >>> release.data["age"].n_unique() <= 2
    True
    >>> release.certificate.attributes[0].epsilon
    1.0
    """
    source = Path(data) if isinstance(data, str | Path) else None
    engine: Engine = MemoryEngine(data if source is None else read_table(source))
    settled = settle(plan, engine)
    details, losses = [], []
    for done, masking in enumerate(settled.maskings, start=1):
        summary = engine.summarise(
            masking.name, masking.grid, masking.k if masking.method.clustered else None
        )
        masked = mask(summary, masking, open_words(seed, masking.name))
        engine.spread(masking.name, masked.published)
        details.append(_detail(summary, masking, masked))
        losses.append(_losses(summary, masking, masked))
        if progress:
            progress(masking.name, done, len(settled.maskings))
    _derive(plan, engine)
    return Release(
        data=engine.finish(list(settled.columns)),
        certificate=certify(settled, records=engine.records, seeded=seed is not None),
        detail=Detail(pl.concat(details), pl.DataFrame(losses), engine.positions),
        plan=plan,
        source=source,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class Masked:
    """Clusters after masking; all but `published` in grid units."""

    centroid: Integers
    scale: Integers
    published: Reals


def mask(summary: ClusterSummary, masking: Masking, source: WordSource) -> Masked:
    """Mask the centroids of one attribute.

    Guarantee
    ---------
    Centroids move by whole grid units, and discrete Laplace noise of scale t turns a move by d
    into a loss of d/t. `accounting.noise_scales` keeps the loss of the one cluster that moves
    (clusters held), or the sum over all that do (clusters formed again), within ε. What follows
    (leaving the grid, isotonic regression, clamping, rounding) is post-processing.
    """
    if not summary.fits():
        raise DataError(
            f"attribute {masking.name!r}: values too large for its noise grid when {masking.k} of "
            "them are added; declare lower and upper, a larger resolution, or a smaller k"
        )
    method, domain = masking.method, masking.domain_units
    centroid = method.centroid(summary, 0)
    scale = noise_scales(method, summary, domain, masking.epsilon_per_record, masking.guarantee)
    if scale.max() > LARGEST_SCALE:
        raise DataError(
            f"attribute {masking.name!r}: epsilon is too small for its noise grid; "
            "raise epsilon, or declare a narrower domain or a larger resolution"
        )
    noisy = add_discrete_laplace(centroid, scale, source)
    values = masking.grid.to_values(noisy)
    if masking.post == "isotonic":
        values = isotonic(values, scale)
    return Masked(centroid, scale, published=_publish(values, masking))


def _publish(values: Reals, masking: Masking) -> Reals:
    if masking.kind == "integer":
        values = np.rint(values)
    elif masking.decimals is not None:
        values = np.round(values, masking.decimals)
    return np.clip(values, masking.published_lower, masking.published_upper)


def _derive(plan: Plan, engine: Engine) -> None:
    for name in plan.derivation_order:
        undefined = engine.derive(name, plan.derived[name])
        if undefined:
            raise DataError(
                f"attribute {name!r}: its expression has no finite result in {undefined:,} of "
                f"{engine.records:,} records (a division by zero?); change the expression"
            )


def _losses(summary: ClusterSummary, masking: Masking, masked: Masked) -> dict[str, str | float]:
    """Compute what one record can lose in this table, exactly."""
    case = masking.method, summary, masking.domain_units, masked.scale
    return {
        "attribute": masking.name,
        "epsilon": masking.epsilon_per_record,
        "fixed_clusters": held_loss(*case),
        "re_clustered": reclustered_loss(*case),
    }


def _detail(summary: ClusterSummary, masking: Masking, masked: Masked) -> pl.DataFrame:
    """Describe every cluster; where none are formed one row says it all."""
    grid, clustered = masking.grid, masking.method.clustered
    reach = masking.method.calibration(summary, masking.domain_units).largest
    detail = pl.DataFrame(
        {
            "attribute": pl.repeat(masking.name, len(summary), eager=True),
            "cluster": np.arange(len(summary)),
            "records": summary.size,
            "smallest": grid.to_values(summary.smallest),
            "largest": grid.to_values(summary.largest),
            "centroid": grid.to_values(masked.centroid),
            "sensitivity": reach / summary.size * grid.step,
            "scale": masked.scale * grid.step,
        }
    )
    if clustered:
        return detail
    of_a_cluster = pl.col("cluster", "smallest", "largest", "centroid")
    return detail.head(1).with_columns(
        pl.when(False).then(of_a_cluster), records=pl.lit(masking.records, dtype=pl.Int64)
    )
