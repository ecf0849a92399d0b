"""What the private detail tells of each attribute: its clusters, and what a record can lose."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.accounting import held_loss, reclustered_loss
from microveil.categories import CategorySummary, leaders
from microveil.clusters import ClusterSummary
from microveil.grid import Integers
from microveil.masking import CategoryMasking, Masking, NumericMasking

CLUSTERS = {
    "attribute": pl.String,
    "cluster": pl.Int64,
    "records": pl.Int64,
    "smallest": pl.Float64,
    "largest": pl.Float64,
    "centroid": pl.Float64,
    "sensitivity": pl.Float64,
    "scale": pl.Float64,
    "category": pl.String,
    "lead": pl.Int64,
}
LOSSES = {
    "attribute": pl.String,
    "epsilon": pl.Float64,
    "fixed_clusters": pl.Float64,
    "re_clustered": pl.Float64,
}


def describe_clusters(
    summary: ClusterSummary, masking: NumericMasking, scales: Integers
) -> pl.DataFrame:
    """Describe every cluster; where none are formed one row says it all."""
    grid, method = masking.grid, masking.method
    reach = method.calibration(summary, masking.domain_units).largest
    clusters = _clusters(
        masking,
        summary.size,
        smallest=grid.to_values(summary.smallest),
        largest=grid.to_values(summary.largest),
        centroid=grid.to_values(method.centroid(summary, 0)),
        sensitivity=grid.to_widths(reach / summary.size),
        scale=grid.to_widths(scales),
    )
    if method.clustered:
        return clusters
    of_a_cluster = pl.col("cluster", "smallest", "largest", "centroid")
    return clusters.head(1).with_columns(
        pl.when(False).then(of_a_cluster), records=pl.lit(masking.records, dtype=pl.Int64)
    )


def describe_losses(
    summary: ClusterSummary, masking: NumericMasking, scales: Integers
) -> pl.DataFrame:
    """Compute what one record can lose in this table, exactly."""
    case = masking.method, summary, masking.domain_units, scales
    again = None if masking.chosen_from_data else reclustered_loss(*case)
    return _losses(masking, held_loss(*case), again)


def describe_category_clusters(
    summary: CategorySummary, masking: CategoryMasking, as_is: NDArray[np.bool_]
) -> pl.DataFrame:
    """Describe every cluster by its representative and the lead of its score.

    The sensitivity is that of the scores: 0 where one record cannot change the representative.
    """
    scores = summary.scores(masking.kind)
    ordered = np.sort(scores, axis=1)
    labels = pl.Series([str(category) for category in masking.categories])
    return _clusters(
        masking,
        summary.size,
        sensitivity=np.where(as_is, 0.0, 1.0),
        category=labels.gather(leaders(scores)),
        lead=ordered[:, -1] - ordered[:, -2],
    )


def describe_category_losses(masking: CategoryMasking, noisy: int) -> pl.DataFrame:
    """Bound what one record can lose, given how many clusters could fall out differently."""
    spent = float(2 * masking.rate)
    again = min(noisy, masking.most_changing) * spent if masking.method.clustered else spent
    return _losses(masking, spent if noisy else 0.0, None if masking.chosen_from_data else again)


def describe_responses(masking: CategoryMasking) -> pl.DataFrame:
    """Describe an attribute masked record by record in one row."""
    clusters = _clusters(masking, np.array([masking.records]), sensitivity=np.ones(1))
    return clusters.with_columns(cluster=pl.lit(None, dtype=pl.Int64))


def _clusters(masking: Masking, size: Integers, **columns: Any) -> pl.DataFrame:  # noqa: ANN401
    clusters = pl.DataFrame({"cluster": np.arange(len(size)), "records": size, **columns})
    absent = [pl.lit(None, dtype=t).alias(n) for n, t in CLUSTERS.items() if n not in clusters]
    named = clusters.with_columns(*absent).with_columns(attribute=pl.lit(masking.name))
    return named.select(*CLUSTERS).cast(CLUSTERS)  # type: ignore[arg-type]


def _losses(masking: Masking, held: float, formed_again: float | None) -> pl.DataFrame:
    row = (masking.name, masking.epsilon_per_record, held, formed_again)
    return pl.DataFrame([row], schema=LOSSES, orient="row")
