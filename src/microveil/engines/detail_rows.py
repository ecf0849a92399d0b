"""Rows of the private detail: the clusters of an attribute, and what a record can lose."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings
from microveil.core.mask import Description

CLUSTER_COLUMNS: dict[str, type[pl.DataType]] = {
    "attribute": pl.String,
    "cluster": pl.Int64,
    "records": pl.Int64,
    "left_out": pl.Int64,
    "smallest": pl.Float64,
    "largest": pl.Float64,
    "centroid": pl.Float64,
    "sensitivity": pl.Float64,
    "scale": pl.Float64,
    "shared_by": pl.Int64,
    "unmoved": pl.Float64,
    "category": pl.String,
    "lead": pl.Int64,
}
LOSS_COLUMNS: dict[str, type[pl.DataType]] = {
    "attribute": pl.String,
    "epsilon": pl.Float64,
    "fixed_clusters": pl.Float64,
    "re_clustered": pl.Float64,
}


def cluster_rows(described: Sequence[tuple[AttributeSettings, Description]]) -> pl.DataFrame:
    """Return one row per cluster of each attribute, or one row for a method that forms none."""
    columns = [_columns(settings, description) for settings, description in described]
    return pl.DataFrame(
        {
            name: _joined([c[name] for c in columns], dtype)
            for name, dtype in CLUSTER_COLUMNS.items()
        }
    )


def _columns(settings: AttributeSettings, description: Description) -> dict[str, NDArray[Any]]:
    count = len(description["records"])
    absent = {
        name: np.full(count, None if dtype == pl.String else np.nan)
        for name, dtype in CLUSTER_COLUMNS.items()
    }
    own = {"attribute": np.full(count, settings.name, dtype=object)}
    if settings.method.clustered:
        own["cluster"] = np.arange(count)
    return {**absent, **own, **description}


def _joined(parts: list[NDArray[Any]], dtype: type[pl.DataType]) -> pl.Series:
    """Put columns one below the other; NaN stands for nothing."""
    if dtype == pl.String:
        return pl.Series([value for part in parts for value in part.tolist()], dtype=dtype)
    return pl.Series(np.concatenate(parts), nan_to_null=True).cast(dtype)


def loss_row(settings: AttributeSettings, fixed: float, re_clustered: float | None) -> pl.DataFrame:
    """Return what one record of an attribute can lose in this table, exactly."""
    row = (settings.name, settings.epsilon_per_record, fixed, re_clustered)
    return pl.DataFrame([row], schema=LOSS_COLUMNS, orient="row")
