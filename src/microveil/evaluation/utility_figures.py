"""Figures of utility, with readings.

Missing values: a measure of one attribute uses the records in which it is present, in both tables
where records are compared one by one; a measure of several attributes uses complete records.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from microveil.core.grid import Reals
from microveil.errors import DataError
from microveil.evaluation import utility
from microveil.evaluation.encoding import encoded
from microveil.evaluation.pairing import Pair, complete, deviation, present
from microveil.evaluation.result import Figure, Items, NotComputed, moves, percent

_KINDS: tuple[tuple[utility.Correlation, str], ...] = (
    ("pearson", "utility.pearson"),
    ("spearman", "utility.spearman"),
)
_CORRELATIONS = tuple(measure for _, measure in _KINDS)
_OF_NUMBERS = (
    "utility.mean_sse", "utility.sse_sst", "utility.il1s", "risk.rank_disclosure",
    "risk.value_disclosure",
)  # fmt: skip


def distribution_figures(pair: Pair) -> Items:
    """Compare the numbers of the two tables as wholes."""
    for name, values, masked in zip(pair.numeric, pair.original.T, pair.released.T, strict=True):
        original, released = present(values)[:, np.newaxis], present(masked)[:, np.newaxis]
        (mean,) = utility.mean_differences(original, released)
        yield Figure(
            "utility.means",
            name,
            float(mean),
            f"the mean {moves(mean, pair.deviations(name, abs(mean)))}",
        )
        if len(released) == 1:
            yield NotComputed(("utility.variances",), "the release has one value", name)
        else:
            (change,) = utility.variance_differences(original, released)
            yield Figure(
                "utility.variances",
                name,
                float(change),
                f"the variance {moves(change, percent(abs(change)))}",
            )
        quantiles = utility.quantile_differences(original, released).ravel()
        worst = int(np.argmax(np.abs(quantiles)))
        yield Figure(
            "utility.quantiles",
            name,
            float(quantiles[worst]),
            f"of nine quantiles the {percent(utility.QUANTILES[worst])} one moves most, by "
            f"{pair.deviations(name, abs(quantiles[worst]))}",
        )
    if pair.numeric:
        original, released = complete(pair.original), complete(pair.released)
        yield from _correlation_figures(pair.numeric, original, released)


def _correlation_figures(names: Sequence[str], original: Reals, released: Reals) -> Items:
    varies = [a for a in range(len(names)) if deviation(original[:, a]) * deviation(released[:, a])]
    for a in sorted(set(range(len(names))) - set(varies)):
        yield NotComputed(
            _CORRELATIONS, "it is constant among the complete records of a table", names[a]
        )
    if len(varies) < 2:
        yield NotComputed(_CORRELATIONS, "they need two numeric attributes or more that vary")
        return
    for kind, measure in _KINDS:
        changes = utility.correlation_differences(original[:, varies], released[:, varies], kind)
        for i, j in combinations(range(len(varies)), 2):
            change = float(changes[i, j])
            yield Figure(
                measure,
                f"{names[varies[i]]} × {names[varies[j]]}",
                change,
                f"the correlation {moves(change, f'{abs(change):.3g}')}",
            )


def propensity_figures(pair: Pair) -> Items:
    """Tell masked from original records by all attributes together, categories encoded."""
    original, released = map(complete, encoded(pair))
    try:
        told_apart = utility.propensity(original, released)
    except DataError:
        yield NotComputed(
            ("utility.pmse", "utility.pmse_ratio"),
            "too few records are complete in one of the tables",
        )
        return
    share = len(released) / (len(original) + len(released))
    yield Figure(
        "utility.pmse",
        None,
        told_apart.pmse,
        f"{told_apart.pmse:.3g} on a scale from 0, where a logistic regression cannot tell masked "
        f"from original records, to {share * (1 - share):.3g}, where it always can",
    )
    yield Figure(
        "utility.pmse_ratio",
        None,
        told_apart.ratio,
        f"masked records can be told apart {told_apart.ratio:.3g} times as well as records drawn "
        "anew from the original could be",
    )


def error_figures(pair: Pair, scale: utility.Scale) -> Items:
    """Compare records one by one: how far numbers have moved."""
    if not pair.numeric:
        yield NotComputed(_OF_NUMBERS, "no attribute holds numbers")
        return
    cells, moved = 0, 0.0
    for name, values, masked in pair.columns():
        if not deviation(values):
            yield NotComputed(
                ("utility.sse_sst",), "it does not vary where both tables have it", name
            )
            continue
        (ratio,) = utility.sse_sst(values[:, np.newaxis], masked[:, np.newaxis])
        yield Figure(
            "utility.sse_sst",
            name,
            float(ratio),
            f"the squared error is {percent(ratio)} of the squared spread of the attribute",
        )
        (mean,) = utility.il1s(values[:, np.newaxis], masked[:, np.newaxis])
        cells, moved = cells + len(values), moved + len(values) * float(mean)
    if cells:
        yield Figure(
            "utility.il1s",
            None,
            moved / cells,
            f"a value moves by {np.sqrt(2) * moved / cells:.3g} standard deviations on average",
        )
    yield from _mean_sse_figure(*pair.complete_records(), scale)


def _mean_sse_figure(original: Reals, released: Reals, scale: utility.Scale) -> Items:
    if not len(original) or not all(map(deviation, original.T)):
        yield NotComputed(("utility.mean_sse",), "too few records are complete in both tables")
        return
    mean_sse = utility.mean_sse(original, released, scale=scale)
    distance = np.sqrt(mean_sse * original.shape[1])
    in_deviations = (
        f"a masked value lies {distance:.3g} standard deviations from its original, in the root "
        "mean square (scale: standard deviation)"
    )
    as_printed = "as the paper prints it, which depends on the data's units (scale: variance)"
    yield Figure(
        "utility.mean_sse", None, mean_sse, in_deviations if scale == "std" else as_printed
    )
