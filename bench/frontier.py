"""Useful and safe: error, learning, correlations and linkage of pooled releases and of peers.

Census and Wine Quality, domains [0, 1.5·max]; means over seeded runs, ten unless `--runs` says
otherwise. "Worst linkage" is that of the most successful of three attacks in each run. Peers have
no ε: MDAV is microaggregation by joint clusters alone, rank swapping exchanges values within a
quarter of the ranks. The joint mode is that of earlier versions, noise in joint clusters, as
measured then. With `--svg FILE` draws the map of both data sets.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from bench.paper import load_with_domains
from bench.peers import aggregated, swapped
from microveil import Plan, PrivacyWarning, protect
from microveil.attacks.nearest import nearest_linkage
from microveil.attacks.one_to_one import one_to_one_linkage
from microveil.attacks.structure import structure_linkage
from microveil.core.choices import Pooling
from microveil.lab.paper.datasets import CENSUS, WINE, DataSet, load_data_set
from microveil.measures.distances import mean_sse
from microveil.measures.learning import scores_of
from microveil.show.charts.canvas import alt
from microveil.show.charts.render import to_svg
from microveil.show.charts.risk_map import draw_risk_map
from microveil.show.charts.series import PlacedRelease
from microveil.types import Reals

LIMIT = 0.1
POOLED: tuple[tuple[Pooling, int, float], ...] = (
    ("exchange", 10, 1.0), ("average", 10, 1.0), ("exchange", 10, 0.1), ("average", 10, 0.1),
    ("exchange", 25, 1.0), ("average", 25, 1.0),
)  # fmt: skip
FORMER = {
    "Census": {1.0: (-0.58, 0.818, 0.68, 0.016), 0.1: (0.38, 0.411, 1.05, 0.002)},
    "Wine Quality": {1.0: (-0.26, 0.513, 0.61, 0.001), 0.1: (1.02, 0.439, 0.80, 0.000)},
}
"""Of the joint mode of earlier versions, k = 10: as below, but linked by nearest records alone."""

Masker = Callable[[int], Reals]


@dataclass(frozen=True)
class Row:
    """A line of the table: means over runs."""

    family: str
    name: str
    log_error: float
    learned: float
    correlation: float
    linked: float

    def __str__(self) -> str:
        figures = f"{self.log_error:8.2f}{self.learned:9.3f}{self.correlation:9.2f}"
        return f"  {self.family:<22}{self.name:<16}{figures}{self.linked:10.1%}"


def main() -> None:
    """Print a table for each data set, or for the one that is named."""
    warnings.simplefilter("ignore", PrivacyWarning)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="?", default="")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--svg", type=Path)
    given = parser.parse_args()
    maps = []
    for dataset in (CENSUS, WINE):
        if given.dataset.lower() in dataset.name.lower():
            rows = []
            print(f"\n{dataset.name}: log10 mean SSE, mean F, correlation off by, worst linkage")
            for row in _rows(dataset, given.runs):
                print(row, flush=True)
                rows.append(row)
            maps.append(_map(dataset.name, rows))
    if given.svg:
        told = "Error and worst linkage of releases, pooled and not, and of peers"
        both = alt.vconcat(*maps).properties(description=told)
        given.svg.write_text(to_svg(both), encoding="utf-8")


def _rows(dataset: DataSet, runs: int) -> Iterator[Row]:
    table, roles = load_with_domains(dataset)
    original, target = table.to_numpy().astype(float), load_data_set(dataset).second_class

    def measure(family: str, name: str, mask: Masker) -> Row:
        each = np.array([_figures(original, mask(seed), target, seed) for seed in range(runs)])
        error, learned, correlation, linked = each.mean(axis=0)
        return Row(family, name, float(np.log10(error)), learned, correlation, linked)

    learned = np.mean([_learned(original, original, target, seed) for seed in range(runs)])
    print(f"  {'original':<38}{'–':>8}{learned:9.3f}{'–':>9}{'100.0%':>10}")
    for epsilon in (1.0, 0.1):
        plan = Plan(epsilon=epsilon, anonymity=0, attributes=roles)
        yield measure("not pooled", f"ε = {epsilon:g}", _protected(table, plan))
    for pooling, anonymity, epsilon in POOLED:
        plan = Plan(epsilon=epsilon, anonymity=anonymity, pooling=pooling, attributes=roles)
        name = f"{anonymity}, ε = {epsilon:g}"
        yield measure(pooling, name, _protected(table, plan))
    for epsilon, figures in FORMER[dataset.name].items():
        yield Row("joint mode (former)", f"10, ε = {epsilon:g}", *figures)
    for k in (10, 25):
        yield measure("MDAV, no ε", f"{k}", _peer(partial(aggregated, k), original))
    yield measure("rank swapping, no ε", "25%", _peer(partial(swapped, 0.25), original))


def _protected(table: pl.DataFrame, plan: Plan) -> Masker:
    return lambda seed: (
        protect(table, plan, seed=seed, keep_order=True).data.to_numpy().astype(float)
    )


def _peer(mask: partial[Reals], original: Reals) -> Masker:
    return lambda seed: mask(original, np.random.default_rng(seed))


def _figures(original: Reals, masked: Reals, target: object, seed: int) -> tuple[float, ...]:
    attacks = (nearest_linkage, one_to_one_linkage, structure_linkage)
    return (
        mean_sse(original, masked),
        _learned(original, masked, target, seed),
        float(np.abs(np.corrcoef(original.T) - np.corrcoef(masked.T)).max()),
        max(attack(original, masked, seed=seed).share for attack in attacks),
    )


def _learned(original: Reals, masked: Reals, target: object, seed: int) -> float:
    scores = scores_of(masked, original, np.asarray(target), seed=seed).values()
    return float(np.mean([score or 0.0 for score in scores]))


def _beside(row: Row) -> str:
    """Name places that stand apart; of pooled ones, which lie close, those of exchange at ε = 1."""
    if row.family in ("not pooled", "joint mode (former)"):
        return row.name
    return (
        f"k = {row.name.partition(',')[0]}"
        if row.family == "exchange" and row.name.endswith("= 1")
        else ""
    )


def _map(name: str, rows: list[Row]) -> "alt.LayerChart":
    places = [
        PlacedRelease(_beside(row), row.family, 10**row.log_error, row.linked) for row in rows
    ]
    told = f"{name}: error and worst linkage of releases, pooled and not, and of peers"
    return draw_risk_map(places, limit=LIMIT, description=told).properties(width=620, title=name)


if __name__ == "__main__":
    main()
