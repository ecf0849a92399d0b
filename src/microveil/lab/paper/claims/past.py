"""Past the paper: microveil's own line beside iDP-CBLS. It judges no claim."""

from collections.abc import Iterator

from microveil.lab.paper.curves import Curves
from microveil.lab.paper.datasets import DATA_SETS
from microveil.lab.paper.experiments import ALPHAS, MICROVEIL, PAPER_EPSILONS

_CBLS = "iDP-CBLS"

_INTRODUCTION = """\
## Past the paper

The line "microveil" is `Plan(epsilon, attributes)`: iDP-CBLS with noise-optimal clusters of 3 to
400 records, trimmed by a tenth at each end, and penalised isotonic regression. It spends the same
ε at level 1 (fixed clusters), but has no bound at level 2 (re-clustered), since its clusters follow
the data. It does not pool values here. It is not in the paper and counts in no verdict. The table
compares it with iDP-CBLS at the best k of each figure, which is chosen after the fact and favours
iDP-CBLS. The number after ± is the standard error of the mean over runs.

{summary}
"""


def past_the_paper(curves: Curves) -> str:
    """Write the section: mean SSE and F-measures of microveil beside iDP-CBLS."""
    summary = "\n".join(_summary(curves, dataset) for dataset in curves.datasets)
    tables = [_table(curves, dataset) for dataset in curves.datasets]
    return "\n".join([_INTRODUCTION.format(summary=summary), *tables])


def _summary(curves: Curves, dataset: str) -> str:
    shares = []
    for epsilon in PAPER_EPSILONS:
        best = curves.sse(dataset, _CBLS, epsilon).min(axis=1)
        ratio = curves.sse(dataset, MICROVEIL, epsilon)[:, 0] / best
        shares.append(" and ".join(f"{value:.1%}" for value in ratio))
    ours, theirs = (_losses(curves, dataset, method) for method in (MICROVEIL, _CBLS))
    epsilons = " | ".join(f"{epsilon:g}" for epsilon in PAPER_EPSILONS)
    alphas = " and ".join(f"{alpha:g}" for alpha in ALPHAS)
    return (
        f"- {dataset}, ε = {epsilons}: mean SSE {' | '.join(shares)} of the smallest of iDP-CBLS "
        f"(α = {alphas}); F-measures at most {ours} below those of original data, and {theirs} "
        "with iDP-CBLS."
    )


def _losses(curves: Curves, dataset: str, method: str) -> str:
    """How far the F-measure of a class is below the upper bound, at the worse α and class."""
    bound = curves.f_original(dataset)[:, None]
    best = [curves.f(dataset, method, epsilon).max(axis=2) for epsilon in PAPER_EPSILONS]
    return " | ".join(f"{(1 - f / bound).max():.1%}" for f in best)


def _table(curves: Curves, dataset: str) -> str:
    first, second = DATA_SETS[dataset].class_names
    heads = [
        f"{dataset}: ε", "α", "mean SSE, iDP-CBLS", "microveil",
        f'F "{first}", iDP-CBLS', "microveil", f'F "{second}", iDP-CBLS', "microveil",
    ]  # fmt: skip
    bound = [f"{f:.3f}" for f in curves.f_original(dataset)]
    original = ["original data", "", "", "", bound[0], bound[0], bound[1], bound[1]]
    rows = [heads, ["---"] * len(heads), *_rows(curves, dataset), original]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _rows(curves: Curves, dataset: str) -> Iterator[list[str]]:
    for epsilon in PAPER_EPSILONS:
        sse, f = (measure(dataset, _CBLS, epsilon) for measure in (curves.sse, curves.f))
        ours, f_ours = (measure(dataset, MICROVEIL, epsilon) for measure in (curves.sse, curves.f))
        errors, our_errors = (curves.sse_error(dataset, m, epsilon) for m in (_CBLS, MICROVEIL))
        for place, alpha in enumerate(ALPHAS):
            best = sse[place].argmin()
            k = curves.ks(dataset)[best]
            yield [
                f"{epsilon:g}", f"{alpha:g}",
                f"{_mean(sse[place, best], errors[place, best])} (k = {k})",
                _mean(ours[place, 0], our_errors[place, 0]),
                f"{f[0, place].max():.3f}", f"{f_ours[0, place, 0]:.3f}",
                f"{f[1, place].max():.3f}", f"{f_ours[1, place, 0]:.3f}",
            ]  # fmt: skip


def _mean(mean: float, error: float) -> str:
    """Write a mean and its standard error, a share of it; a single run has none."""
    return f"{mean:.3g} ± {error:.0%}" if error else f"{mean:.3g}"
