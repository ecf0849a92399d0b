"""Run a plan several times and measure what comes out."""

from statistics import fmean
from typing import Any

from microveil.errors import DataError
from microveil.evaluation.categorical import share_unchanged
from microveil.evaluation.learning import learning_figures
from microveil.evaluation.pairing import Pair, pair_up, without_constants
from microveil.evaluation.result import Figure
from microveil.evaluation.risk_figures import linkages_of
from microveil.evaluation.utility import mean_sse
from microveil.exploration.result import Measured
from microveil.plan.plan import Plan
from microveil.release.protect import protect


def measure(
    table: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    target: Any,  # noqa: ANN401 - a name, or classes of any kind
    *,
    runs: int,
    seed: int,
) -> Measured:
    """Return the means of seeded runs."""
    each = [_one_run(table, plan, target, seed + run) for run in range(runs)]
    return Measured(
        attributes=each[0].attributes,
        mean_sse=fmean(run.mean_sse for run in each),
        linkage=fmean(run.linkage for run in each),
        f_measure=None if target is None else fmean(run.f_measure or 0.0 for run in each),
        f_original=None if target is None else fmean(run.f_original or 0.0 for run in each),
        unchanged=None if each[0].unchanged is None else fmean(r.unchanged or 0.0 for r in each),
    )


def _one_run(table: Any, plan: Plan, target: Any, seed: int) -> Measured:  # noqa: ANN401
    name = target if isinstance(target, str) else None
    release = protect(table, plan, seed=seed)
    given = pair_up(table, release, detail=None, aligned=False, attributes=None, target=name)
    pair, _ = without_constants(given)
    if not pair.numeric:
        raise DataError(
            "every confidential attribute of numbers is constant, so there is no error to measure; "
            "protect other attributes"
        )
    complete = pair.complete_records()
    if not len(complete[0]):
        raise DataError(
            "no record has a value in every confidential attribute, so records cannot be compared; "
            "make an attribute that is mostly missing an identifier"
        )
    f_measure, f_original = (None, None) if target is None else _learned(pair, target, seed)
    return Measured(
        attributes=len(pair.numeric),
        mean_sse=mean_sse(*complete),
        linkage=max(linked.share for linked in linkages_of(pair, sample=10_000, seed=seed)),
        f_measure=f_measure,
        f_original=f_original,
        unchanged=_unchanged(pair),
    )


def _unchanged(pair: Pair) -> float | None:
    """Mean share of records, over the attributes of categories, that keep theirs."""
    shares = [share_unchanged(codes, masked) for _, codes, masked in pair.codes() if len(codes)]
    return fmean(shares) if shares else None


def _learned(pair: Pair, target: Any, seed: int) -> tuple[float, float]:  # noqa: ANN401
    """Mean F-measures over the classes, trained on the release and on the original."""
    items = learning_figures(pair, target, estimator=None, train=0.66, seed=seed)
    figures = [item for item in items if isinstance(item, Figure)]

    def mean_of(measure: str) -> float:
        return fmean(figure.value for figure in figures if figure.measure == measure)

    of_release = mean_of("learning.f_measure")
    return of_release, mean_of("learning.f_measure_original")
