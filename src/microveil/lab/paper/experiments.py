"""The paper's experiments: every release it makes, and what is measured of each.

The releases are made by `microveil.protect`, with the settings of the paper's Section 4. One
*experiment* is one run at one k on one data set: all methods, ε and α. Its figures depend on
nothing else, so experiments may run in any order, in any process, or be taken from an earlier run.
"""

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.choices import MethodName
from microveil.lab.paper.datasets import CENSUS, WINE, PaperTable
from microveil.measures.distances import mean_sse
from microveil.measures.learning import scikit_learn
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential
from microveil.release.protect import protect
from microveil.release.release import Release
from microveil.types import Reals

ALPHAS = (1.5, 3.0)
PAPER_EPSILONS = (0.01, 0.1, 1.0)
TRAINING_SHARE = 0.66
RUNS, QUICK_RUNS = 10, 3

ORIGINAL = "original"
CONSTANT = "constant"
"""Not trained at all: a class's F-measure if every record is said to be of it; not in the paper."""
NOISELESS = "noiseless"
"""iDP-CBLS at an ε so large that only its microaggregation is left; not in the paper."""
_NO_NOISE = 1e9
MICROVEIL = "microveil"
"""What the library recommends at the same ε, beside the paper's four methods."""

KS: dict[str, tuple[int, ...]] = {
    CENSUS.name: (
        3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100,
    ),
    WINE.name: (
        3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 75, 100, 125, 150, 175, 200, 250, 300,
        350, 400,
    ),
}  # fmt: skip
"""The values of k between the paper's bounds, dense where its text places the best ones."""

QUICK_KS: dict[str, tuple[int, ...]] = {
    CENSUS.name: (3, 5, 15, 50, 100),
    WINE.name: (3, 5, 15, 50, 400),
}

EXPERIMENT_COLUMNS = {
    "dataset": pl.String,
    "method": pl.String,
    "alpha": pl.Float64,
    "epsilon": pl.Float64,
    "k": pl.Int64,
    "run": pl.Int64,
    "mean_sse_std": pl.Float64,
    "mean_sse_variance": pl.Float64,
    "correlation": pl.Float64,
    "without_noise": pl.Float64,
    "f_first_class": pl.Float64,
    "f_second_class": pl.Float64,
}
"""Columns of the results: one row per release.

`alpha`, `epsilon`, `k` are null where a method has none. `mean_sse_std` and `mean_sse_variance` are
the mean SSE with distances divided by standard deviations and, as printed, by variances.
`correlation` is between original and masked values, averaged over attributes; `without_noise` the
share of values in clusters of zero sensitivity. What is not measured of a method is null.
"""


@dataclass(frozen=True)
class Experiment:
    """One run at one k; `k` is None for what has none: DP, microveil and references."""

    dataset: str
    k: int | None
    run: int

    @property
    def name(self) -> str:
        """A file name of its own."""
        k = "none" if self.k is None else f"{self.k:03}"
        return f"{self.dataset.lower().replace(' ', '-')}-k-{k}-run-{self.run:02}"


@dataclass(frozen=True)
class PaperSetting:
    """One release: a method with all its parameters."""

    method: str
    alpha: float | None = None
    epsilon: float | None = None


def list_experiments(runs: int, *, quick: bool) -> list[Experiment]:
    """List all experiments, the longest first so that no core idles at the end."""
    ks = QUICK_KS if quick else KS
    return [
        Experiment(dataset, k, run)
        for dataset in reversed(ks)
        for k in (*ks[dataset], None)
        for run in range(1, runs + 1)
    ]


def perform(experiment: Experiment, table: PaperTable) -> pl.DataFrame:
    """Make every release of a experiment and measure it."""
    rows = [_measure(experiment, setting, table) for setting in _settings(experiment)]
    return pl.DataFrame(rows, schema=EXPERIMENT_COLUMNS)


def _settings(experiment: Experiment) -> list[PaperSetting]:
    methods = ("DP", MICROVEIL) if experiment.k is None else ("DP-UM", "iDP-LS", "iDP-CBLS")
    published = [
        PaperSetting(method, alpha, epsilon)
        for method in methods
        for alpha in ALPHAS
        for epsilon in PAPER_EPSILONS
    ]
    references = (ORIGINAL, CONSTANT) if experiment.k is None else (NOISELESS,)
    return [*published, *map(PaperSetting, references)]


def _measure(experiment: Experiment, setting: PaperSetting, table: PaperTable) -> dict[str, object]:
    row = {
        "dataset": experiment.dataset,
        **asdict(setting),
        "k": experiment.k,
        "run": experiment.run,
    }
    if setting.method == CONSTANT:
        return row | _f_measures_of_constants(table.second_class)
    seed = seed_of(experiment, setting)
    original = masked = table.attributes.to_numpy()
    if setting.method != ORIGINAL:
        release = make_release(setting, experiment.k, table.attributes, seed)
        masked = release.data.to_numpy()
        row |= _figures(original, masked) | {"without_noise": _share_without_noise(release)}
    if setting.method not in ("DP", "DP-UM"):
        row |= f_measures(original, masked, table.second_class, seed)
    return row


def _figures(original: Reals, masked: Reals) -> dict[str, object]:
    return {
        "mean_sse_std": mean_sse(original, masked, scale="std"),
        "mean_sse_variance": mean_sse(original, masked, scale="variance"),
        "correlation": _correlation(original, masked),
    }


def seed_of(experiment: Experiment, setting: PaperSetting) -> int:
    """Give every release noise of its own, the same whenever it is made again."""
    key = (
        experiment.dataset,
        experiment.k,
        experiment.run,
        setting.method,
        setting.alpha,
        setting.epsilon,
    )
    return int.from_bytes(sha256(repr(key).encode()).digest()[:4])


def make_release(
    setting: PaperSetting, k: int | None, attributes: pl.DataFrame, seed: int
) -> Release:
    """Protect the attributes as the paper does."""
    alpha = setting.alpha or ALPHAS[0]
    domains = {
        name: Confidential(lower=0.0, upper=alpha * float(attributes[name].to_numpy().max()))
        for name in attributes.columns
    }
    return protect(attributes, _plan(setting, k, domains), keep_order=True, seed=seed)


def _plan(setting: PaperSetting, k: int | None, domains: dict[str, Confidential]) -> Plan:
    epsilon = setting.epsilon or _NO_NOISE
    if setting.method == MICROVEIL:
        return Plan(epsilon=epsilon, anonymity=0, attributes=domains)
    method = "iDP-CBLS" if setting.method == NOISELESS else setting.method
    return Plan.published(
        epsilon=epsilon,
        method=cast("MethodName", method),
        k=k or 1,  # plain DP forms no clusters
        attributes=domains,
    )


def _share_without_noise(release: Release) -> float:
    clusters = release.detail.clusters
    still = clusters.filter(pl.col("sensitivity") == 0)
    return int(still["records"].sum()) / int(clusters["records"].sum())


def _correlation(original: Reals, masked: Reals) -> float:
    """Average the attributes' correlations; 0 for one that was masked to a constant."""
    columns = zip(original.T, masked.T, strict=True)
    return float(np.mean([np.corrcoef(x, y)[0, 1] if np.ptp(y) else 0.0 for x, y in columns]))


def f_measures(
    original: Reals,
    masked: Reals,
    second_class: NDArray[np.bool_],
    seed: int,
    chosen: NDArray[np.bool_] | None = None,
) -> dict[str, object]:
    """Train on the first 66% of the masked records, test on the rest of the original ones.

    A random forest with scikit-learn's defaults. A class that is never predicted has F-measure 0.
    Where `chosen` is given, it trains on those of the first 66% that are chosen.
    """
    training = _training_records(second_class)
    learned = slice(training) if chosen is None else np.flatnonzero(chosen[:training])
    forest = scikit_learn("ensemble").RandomForestClassifier(random_state=seed, n_jobs=1)
    forest.fit(masked[learned], second_class[learned])
    return _f_of_both(second_class[training:], forest.predict(original[training:]))


def _f_measures_of_constants(second_class: NDArray[np.bool_]) -> dict[str, object]:
    actual = second_class[_training_records(second_class) :]
    never, always = np.zeros_like(actual), np.ones_like(actual)
    return {
        "f_first_class": _f_of_both(actual, never)["f_first_class"],
        "f_second_class": _f_of_both(actual, always)["f_second_class"],
    }


def _training_records(second_class: NDArray[np.bool_]) -> int:
    return round(TRAINING_SHARE * len(second_class))


def _f_of_both(actual: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> dict[str, object]:
    both = scikit_learn("metrics").f1_score(
        actual, predicted, labels=[False, True], average=None, zero_division=0.0
    )
    return {"f_first_class": float(both[0]), "f_second_class": float(both[1])}
