"""One candidate on one table with one seed: every attack on it, and how useful it remains."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil import __version__
from microveil.attacks.attack_rows import CONTROLLED, Attack
from microveil.attacks.known import with_gaps
from microveil.attacks.subject import ReleasedRows, Subject
from microveil.compare.estimates import standard_deviations
from microveil.compare.paired_columns import Categories, Numbers, compare_columns
from microveil.lab.benchmark.benchmark_data import Data
from microveil.lab.benchmark.peers import Candidate
from microveil.measures.distances import mean_sse
from microveil.measures.learning import f_and_area, scikit_learn
from microveil.types import Integers, Reals

BENCHMARK_COLUMNS = {
    "data": pl.String,
    "records": pl.Int64,
    "method": pl.String,
    "family": pl.String,
    "epsilon": pl.Float64,
    "seed": pl.Int64,
    "attack": pl.String,
    "rate": pl.Float64,
    "control": pl.Float64,
    "tried": pl.Int64,
    "risk": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "attack_auc": pl.Float64,
    "error": pl.Float64,
    "f_forest": pl.Float64,
    "auc_forest": pl.Float64,
    "f_boosting": pl.Float64,
    "auc_boosting": pl.Float64,
    "promise": pl.String,
    "anonymity": pl.Int64,
    "conditional": pl.Boolean,
    "microveil": pl.String,
    "python": pl.String,
    "numpy": pl.String,
}
"""Columns of the results: one row per attack.

`rate` and `control` are shares of correct guesses, `risk` is the gain over the control, `low` and
`high` its 95% interval. `error` is the mean SSE of numbers in standard deviations; `f_…` and
`auc_…` are the mean F-measure over the classes and the area under the curve of models trained on
the release and tested on original records, null where there is nothing to learn. `promise`,
`anonymity` and `conditional` are those of the `Candidate`.
"""


@dataclass(frozen=True, eq=False)
class BenchmarkJob:
    """The work of one process: picklable, and with the same figures every time."""

    data: Data
    candidate: Candidate
    seed: int
    attacks: Sequence[Attack] = CONTROLLED

    @property
    def name(self) -> str:
        """A file name that is unique among the jobs of one table."""
        epsilon = "none" if self.candidate.epsilon is None else f"{self.candidate.epsilon:g}"
        words = f"{self.data.name} {self.candidate.name} {epsilon} {self.seed}"
        return "".join(letter if letter.isalnum() else "-" for letter in words)

    def __call__(self) -> pl.DataFrame:
        """Release, attack and measure."""
        subject = subject_of(self.data, self.candidate)
        of_use = self._useful(subject)
        rows = []
        for attack in self.attacks:
            found = attack.with_control(subject, self.seed) if attack.with_control else None
            if found is None:
                continue
            rows.append(
                {
                    **self._facts(),
                    **of_use,
                    **{name: getattr(found, name)
                       for name in ("rate", "control", "tried", "risk", "low", "high")},
                    "attack": attack.label,
                    "attack_auc": found.auc,
                }
            )  # fmt: skip
        return pl.DataFrame(rows, schema=BENCHMARK_COLUMNS)

    def _facts(self) -> dict[str, Any]:
        candidate = self.candidate
        return {
            "data": self.data.name, "records": self.data.table.height, "method": candidate.name,
            "family": candidate.family, "epsilon": candidate.epsilon, "seed": self.seed,
            "promise": candidate.promise, "anonymity": candidate.anonymity,
            "conditional": candidate.conditional, "microveil": __version__,
            "python": platform.python_version(), "numpy": np.__version__,
        }  # fmt: skip

    def _useful(self, subject: Subject) -> dict[str, float | None]:
        scene = subject.whole(self.seed)
        figures: dict[str, float | None] = {
            "error": _error(scene.people, scene.rows, scene.nominal)
        }
        classes = self.data.classes
        if classes is None:
            return figures
        for name, model in _models(self.seed).items():
            figures[f"f_{name}"], figures[f"auc_{name}"] = f_and_area(
                scene.rows, scene.people, classes, estimator=model
            )
        return figures


def _models(seed: int) -> dict[str, Any]:
    ensemble = scikit_learn("ensemble")
    return {
        "forest": ensemble.RandomForestClassifier(random_state=seed, n_jobs=1),
        "boosting": ensemble.HistGradientBoostingClassifier(random_state=seed),
    }


def _error(original: Reals, released: Reals, nominal: Sequence[int]) -> float | None:
    """Mean SSE over numbers that vary, of records complete in both."""
    numbers = [a for a in range(original.shape[1]) if a not in nominal]
    original, released = original[:, numbers], released[:, numbers]
    complete = ~np.isnan(original).any(axis=1) & ~np.isnan(released).any(axis=1)
    original, released = original[complete], released[complete]
    varies = standard_deviations(original) > 0 if len(original) else np.zeros(0, dtype=np.bool_)
    return mean_sse(original[:, varies], released[:, varies]) if varies.any() else None


def subject_of(data: Data, candidate: Candidate) -> Subject:
    """Turn a table and a candidate into what attacks take: numbers, and codes of categories."""
    whole = nw.from_native(data.table, eager_only=True)
    compared = [compare_columns(name, whole, whole, data.plan) for name in data.table.columns]

    def release(chosen: Integers, seed: int) -> ReleasedRows:
        masked = nw.from_native(candidate.mask(data.table[chosen], seed), eager_only=True)
        columns = [compare_columns(name, whole, masked, data.plan) for name in data.table.columns]
        return ReleasedRows(_side_by_side(columns, lambda column: column.released))

    nominal = [
        a for a, column in enumerate(compared)
        if isinstance(column, Categories) and column.kind == "nominal"
    ]  # fmt: skip
    return Subject(_side_by_side(compared, lambda c: c.original), tuple(nominal), release)


def _side_by_side(columns: Sequence[Numbers | Categories], part: Callable[[Any], Any]) -> Reals:
    return np.column_stack(
        [with_gaps(part(c)) if isinstance(c, Categories) else part(c) for c in columns]
    )
