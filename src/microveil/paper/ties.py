"""How much of a data set iDP-CBLS releases without noise, because values are repeated.

A cluster of equal values has zero cluster-based sensitivity: no single record can move its
pre-processed centroid, so it is released as it is.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from microveil.clusters import cluster_sizes, summarise
from microveil.grid import grid_of_observed
from microveil.paper.datasets import Table


def shares_without_noise(
    tables: Mapping[str, Table], ks: Mapping[str, Sequence[int]]
) -> pl.DataFrame:
    """Share of values in clusters of zero sensitivity: dataset, attribute, k, share."""
    rows = [
        (name, column.name, k, _share(column, k))
        for name, table in tables.items()
        for column in table.attributes
        for k in ks[name]
    ]
    return pl.DataFrame(rows, schema=["dataset", "attribute", "k", "share"], orient="row")


def _share(column: pl.Series, k: int) -> float:
    values = column.to_numpy()
    units = np.sort(grid_of_observed(values).to_units(values))
    summary = summarise(units, cluster_sizes(len(units), k))
    return float(summary.size[summary.smallest == summary.largest].sum() / len(units))
