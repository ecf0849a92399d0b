"""Results as curves over k: what the figures draw and the claims are judged by."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from microveil.compare.asked import Scale
from microveil.lab.paper.experiments import ALPHAS, CONSTANT, MICROVEIL, NOISELESS, ORIGINAL
from microveil.types import Reals

_CLASSES = ("f_first_class", "f_second_class")
_MEASURES = ("sse", "correlation", *_CLASSES)


class Curves:
    """Means over runs. Curves are arrays, α × k, and constant where a method knows no α or no k.

    Parameters
    ----------
    results
        One row per release, as `microveil.lab.paper.experiments` describes them.
    scale
        What distances are divided by in the mean SSE.
    """

    def __init__(self, results: pl.DataFrame, scale: Scale = "std") -> None:
        self.runs = int(results["run"].n_unique())
        self.datasets: list[str] = sorted(results["dataset"].unique())
        self._ks: dict[str, list[int]] = {
            name: results.filter(dataset=name)["k"].drop_nulls().unique().sort().to_list()
            for name in self.datasets
        }
        keys = ["dataset", "method", "epsilon", "alpha", "k"]
        measured = results.rename({f"mean_sse_{scale}": "sse"}).group_by(keys)
        measures = pl.col(_MEASURES)
        means = measured.agg(measures.mean(), measures.std().name.suffix(" spread"))
        self._means = {tuple(row[key] for key in keys): row for row in means.to_dicts()}

    def ks(self, dataset: str) -> list[int]:
        """Every k of a data set, ascending."""
        return self._ks[dataset]

    def sse(self, dataset: str, method: str, epsilon: float | None = None) -> Reals:
        """Mean SSE, α × k."""
        return self._curve("sse", dataset, method, epsilon)

    def sse_error(self, dataset: str, method: str, epsilon: float | None = None) -> Reals:
        """How uncertain the mean SSE is: its standard error over the runs, as a share of it."""
        spread = self._curve("sse spread", dataset, method, epsilon)
        error: Reals = spread / math.sqrt(self.runs) / self.sse(dataset, method, epsilon)
        return error

    def correlation(self, dataset: str, method: str, epsilon: float | None = None) -> Reals:
        """Correlation of masked with original values, averaged over attributes, α × k."""
        return self._curve("correlation", dataset, method, epsilon)

    def f(self, dataset: str, method: str, epsilon: float | None = None) -> Reals:
        """F-measures, class × α × k."""
        return np.stack([self._curve(name, dataset, method, epsilon) for name in _CLASSES])

    def f_original(self, dataset: str) -> Reals:
        """F-measures of both classes when training on original data: the paper's upper bound."""
        return self.f(dataset, ORIGINAL)[:, 0, 0]

    def f_original_error(self, dataset: str) -> Reals:
        """How uncertain these are: their standard errors over the runs."""
        spread = [self._curve(f"{name} spread", dataset, ORIGINAL, None)[0, 0] for name in _CLASSES]
        return np.array(spread) / math.sqrt(self.runs)

    def f_constant(self, dataset: str) -> Reals:
        """F-measure of each class when every record is said to be of it."""
        return self.f(dataset, CONSTANT)[:, 0, 0]

    def f_noiseless(self, dataset: str) -> Reals:
        """F-measures after microaggregation alone, class × α × k."""
        return self.f(dataset, NOISELESS)

    def _curve(self, measure: str, dataset: str, method: str, epsilon: float | None) -> Reals:
        alphas: Sequence[float | None] = ALPHAS if epsilon is not None else (None,) * len(ALPHAS)
        without_k = method in ("DP", MICROVEIL, ORIGINAL, CONSTANT)
        ks = [None if without_k else k for k in self._ks[dataset]]
        curve = [
            [self._means[dataset, method, epsilon, alpha, k][measure] or 0.0 for k in ks]
            for alpha in alphas
        ]
        return np.array(curve)
