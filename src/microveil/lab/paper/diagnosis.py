"""What explains our results where they differ from the paper's, measured.

A cluster of equal values has zero cluster-based sensitivity: no single record can move its
pre-processed centroid, so iDP-CBLS releases it without noise at any ε.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.core.clusters import cluster_sizes, summarise
from microveil.core.grid import grid_of_observed
from microveil.lab.paper.datasets import CENSUS, PaperTable
from microveil.lab.paper.experiments import (
    ALPHAS,
    PAPER_EPSILONS,
    Experiment,
    PaperSetting,
    f_measures,
    make_release,
    seed_of,
)

TELLTALE = "FICA"
"""The attribute of Census that all but tells the class: a deduction in proportion to earnings."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What explains our results.

    Attributes
    ----------
    sensitivities
        For every data set, attribute and k: `without_noise`, the share of values that iDP-CBLS
        releases as they are; and, for the narrower domain, `local_to_global`, the mean square over
        clusters of local over global sensitivity, and `domain_width`, in standard deviations.
    learning
        F-measures on Census at the smallest k and ε, trained on only those records whose `TELLTALE`
        value is released without noise (`tied`), or only on the others; one row per run.
    """

    sensitivities: pl.DataFrame
    learning: pl.DataFrame

    def without_noise(self, dataset: str, k: int, attribute: str | None = None) -> float:
        """Share of values iDP-CBLS releases without noise at this k, in one attribute or all."""
        chosen = self.sensitivities.filter(dataset=dataset, k=k)
        chosen = chosen if attribute is None else chosen.filter(attribute=attribute)
        return float(np.mean(chosen["without_noise"].to_numpy()))

    def local_to_global(self, dataset: str, k: int) -> float:
        """Mean SSE that noise of iDP-LS adds, as a share of DP-UM's, if no domain cut it off."""
        chosen = self.sensitivities.filter(dataset=dataset, k=k)
        weights = chosen["domain_width"].to_numpy() ** 2
        return float(np.average(chosen["local_to_global"].to_numpy(), weights=weights))

    def widest(self, dataset: str) -> tuple[str, float]:
        """Attribute with the widest domain, and its share of the mean SSE that noise adds."""
        chosen = self.sensitivities.filter(dataset=dataset).unique("attribute")
        shares = chosen["domain_width"].to_numpy() ** 2
        return chosen["attribute"][int(shares.argmax())], float(shares.max() / shares.sum())


def diagnose(
    tables: Mapping[str, PaperTable], ks: Mapping[str, Sequence[int]], runs: int
) -> Diagnosis:
    """Measure what explains the results for these values of k."""
    rows = [
        {"dataset": name, "attribute": column.name, "k": k, **_sensitivities(column, k)}
        for name, table in tables.items()
        for column in table.attributes
        for k in ks[name]
    ]
    smallest = ks[CENSUS.name][0]
    learning = pl.concat(_learn(tables[CENSUS.name], smallest, run + 1) for run in range(runs))
    return Diagnosis(pl.DataFrame(rows), learning)


def _sensitivities(column: pl.Series, k: int) -> dict[str, float]:
    values = column.to_numpy()
    units = np.sort(grid_of_observed(values).to_steps(values))
    summary = summarise(units, cluster_sizes(len(units), k))
    upper = ALPHAS[0] * summary.largest[-1]
    local = np.maximum(upper - summary.smallest, summary.largest) / upper
    tied = summary.smallest == summary.largest
    return {
        "without_noise": float(summary.size[tied].sum() / summary.size.sum()),
        "local_to_global": float(np.mean(local**2)),
        "domain_width": float(ALPHAS[0] * values.max() / values.std(ddof=1)),
    }


def _learn(table: PaperTable, k: int, run: int) -> pl.DataFrame:
    """Train on part of the very release that the results hold for this run."""
    setting = PaperSetting("iDP-CBLS", ALPHAS[0], PAPER_EPSILONS[0])
    seed = seed_of(Experiment(table.dataset.name, k, run), setting)
    released = make_release(setting, k, table.attributes, seed).data
    tied = (released[TELLTALE] == table.attributes[TELLTALE]).to_numpy()
    original, masked = table.attributes.to_numpy(), released.to_numpy()
    return pl.DataFrame(
        {"tied": chosen}
        | f_measures(original, masked, table.second_class, seed, chosen=tied == chosen)
        for chosen in (True, False)
    )
