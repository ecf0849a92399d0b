"""Rows of the private detail: the clusters of an attribute, and what a record can lose."""

import numpy as np
import polars as pl

from microveil.core.attribute import AttributeSettings
from microveil.core.mask import Description, Masked

CLUSTERS = {
    "attribute": pl.String,
    "cluster": pl.Int64,
    "records": pl.Int64,
    "left_out": pl.Int64,
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


def cluster_rows(settings: AttributeSettings, description: Description) -> pl.DataFrame:
    """Return one row per cluster, or one row for a method that forms none."""
    count = len(description["records"])
    columns = {
        "attribute": pl.repeat(settings.name, count, eager=True),
        "cluster": np.arange(count) if settings.method.clustered else [None] * count,
        **description,
    }
    rows = pl.DataFrame(columns, schema_overrides=CLUSTERS)
    absent = [pl.lit(None, dtype=t).alias(n) for n, t in CLUSTERS.items() if n not in columns]
    return rows.with_columns(*absent).select(*CLUSTERS)


def loss_row(settings: AttributeSettings, masked: Masked) -> pl.DataFrame:
    """Return what one record can lose in this table, exactly."""
    return losses_of(settings, *masked.total_losses(settings))


def losses_of(
    settings: AttributeSettings, fixed: float, re_clustered: float | None
) -> pl.DataFrame:
    """Return the row of an attribute with these losses."""
    row = (settings.name, settings.epsilon_per_record, fixed, re_clustered)
    return pl.DataFrame([row], schema=LOSSES, orient="row")
