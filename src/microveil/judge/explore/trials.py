"""Run a plan several times and measure what comes out."""

from statistics import fmean
from typing import Any

import narwhals as nw
import numpy as np

from microveil.attacks.attack_rows import ATTACKS, LINKAGE
from microveil.attacks.known import EVERYTHING
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined, examine
from microveil.compare.figures import Figure, figures_in
from microveil.compare.pairing import Pair
from microveil.errors import DataError
from microveil.judge.explore.exploration import Measured
from microveil.judge.explore.repeated import RepeatedTable
from microveil.judge.registry import MEASURES
from microveil.measures.category_distances import share_unchanged
from microveil.measures.distances import mean_sse
from microveil.measures.learning import Lesson, lesson_of, scores_of
from microveil.measures.use_figures import use_figures
from microveil.release.protect import run_resolved
from microveil.release.resolve import ResolvedPlan
from microveil.release.store import LocalStore
from microveil.types import Reals

_ALL = 2**62


class Measurer:
    """Runs plans of one table.

    A model of the target is trained on every release, and once on the original.

    Parameters
    ----------
    table
        The original.
    opened
        The table that the plans were resolved against.
    store
        Of the original.
    target
        The name of a column, classes, or None if nothing is to be learned.
    runs
        How often each plan is run.
    seed
        Of the first run and of the original's model.
    """

    def __init__(
        self,
        table: nw.DataFrame[Any],
        opened: RepeatedTable,
        store: LocalStore,
        target: Any,  # noqa: ANN401 - a name, or classes of any kind
        *,
        runs: int,
        seed: int,
    ) -> None:
        self._table, self._opened, self._store = table.to_native(), opened, store
        self._target, self._runs, self._seed = target, runs, seed
        self._f_original: float | None = None

    def measure(self, resolved: ResolvedPlan) -> Measured:
        """Return the means of seeded runs; attacks, which take the most time, are on the first."""
        each = [self._one_run(resolved, self._seed + run) for run in range(self._runs)]
        learned = [run.f_measure for run in each if run.f_measure is not None]
        unchanged = [run.unchanged for run in each if run.unchanged is not None]
        used = [run.use_loss for run in each if run.use_loss is not None]
        return Measured(
            attributes=each[0].attributes,
            mean_sse=fmean(run.mean_sse for run in each),
            linkage=each[0].linkage,
            f_measure=fmean(learned) if learned else None,
            f_original=each[0].f_original,
            unchanged=fmean(unchanged) if unchanged else None,
            use_loss=fmean(used) if used else None,
        )

    def _one_run(self, resolved: ResolvedPlan, seed: int) -> Measured:
        seen = self._seen(resolved, seed)
        pair = seen.pair
        complete = pair.complete_records()
        if not len(complete[0]):
            raise DataError(
                "no record has a value in every confidential attribute, so records cannot be "
                "compared; make an attribute that is mostly missing an identifier"
            )
        f_measure, f_original = self._learned(pair, seed)
        return Measured(
            attributes=len(pair.numeric),
            mean_sse=mean_sse(*complete),
            linkage=self._linked(seen) if seed == self._seed else 0.0,
            f_measure=f_measure,
            f_original=f_original,
            unchanged=_unchanged(pair),
            use_loss=_use_loss(seen, seed),
        )

    def _linked(self, seen: Examined) -> float:
        """Return the share that the most successful attack links.

        Where pooling proves a bound, only those by distance are made, the third taking longest, and
        what chance brings beyond it does not count: nobody can tell which links are right.
        """
        asked = Asked(most_by_structure=_ALL, seed=self._seed)
        attacks = (ATTACKS[id_].on_release for id_ in LINKAGE)
        found = (attack(seen, EVERYTHING, asked) for attack in attacks if attack is not None)
        return max(min(f.value, f.bound or 1) for f in found if isinstance(f, Figure))

    def _seen(self, resolved: ResolvedPlan, seed: int) -> Examined:
        release = run_resolved(resolved, self._opened, self._store, seed=seed)
        name = self._target if isinstance(self._target, str) else None
        random = np.random.default_rng(seed)
        with examine(self._table, release, random=random, target=name) as seen:
            if not seen.pair.numeric:
                raise DataError(
                    "every confidential attribute of numbers is constant, so there is no error to "
                    "measure; protect other attributes"
                )
            return seen

    def _learned(self, pair: Pair, seed: int) -> tuple[float | None, float | None]:
        """Mean F-measures over the classes, trained on the release and on the original."""
        if self._target is None:
            return None, None
        lesson = lesson_of(pair, self._target)
        if self._f_original is None:
            self._f_original = _mean_f(lesson, lesson.original, self._seed)
        return _mean_f(lesson, lesson.released, seed), self._f_original


def _mean_f(lesson: Lesson, training: Reals, seed: int) -> float:
    scores = scores_of(training, lesson.original, lesson.classes, seed=seed)
    return fmean(score for score in scores.values() if score is not None)


def _unchanged(pair: Pair) -> float | None:
    """Mean share of records, over the attributes of categories, that keep theirs."""
    shares = [share_unchanged(codes, masked) for _, codes, masked in pair.codes() if len(codes)]
    return fmean(shares) if shares else None


def _use_loss(seen: Examined, seed: int) -> float | None:
    """Return the worst figure of the uses, as a multiple of what is good."""
    figures = figures_in(use_figures(seen, Asked(seed=seed)))
    limits = (MEASURES[figure.measure].limits or (1.0, 1.0) for figure in figures)
    return max((f.value / good for f, (good, _) in zip(figures, limits, strict=True)), default=None)
