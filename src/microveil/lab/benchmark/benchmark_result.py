"""What a benchmark measured."""

from dataclasses import dataclass

import polars as pl

from microveil.lab.benchmark.map_points import points_of_map
from microveil.shown import Shown


@dataclass(frozen=True, eq=False)
class Benchmark(Shown):
    """What was measured. It is computed from the data: keep it private unless they are public.

    Attributes
    ----------
    results
        One row per attack: see `microveil.lab.benchmark.jobs.BENCHMARK_COLUMNS`.
    """

    results: pl.DataFrame

    @property
    def names(self) -> list[str]:
        """Names of the tables, in the order given."""
        return self.results["data"].unique(maintain_order=True).to_list()

    def points(self, name: str) -> pl.DataFrame:
        """Return the points of one table's map: see `microveil.lab.benchmark.map_points`."""
        return points_of_map(self.results.filter(data=name))
