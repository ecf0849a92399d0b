"""Figures of utility, with readings.

Missing values: a measure of one attribute uses the records in which it is present, in both tables
where records are compared one by one; a measure of several attributes uses complete records.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations

import numpy as np

from microveil.compare.encoding import encoded
from microveil.compare.estimates import Weights
from microveil.compare.figures import Figure, Items, NotComputed, moves, percent
from microveil.compare.pairing import Pair, complete, deviation, is_complete, present
from microveil.errors import DataError
from microveil.measures import distances as utility
from microveil.types import Reals

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
        weights = pair.weighing(~np.isnan(values), ~np.isnan(masked))
        yield from _estimate_figures(pair, name, present(values), present(masked), weights)
    if pair.numeric:
        original, released = complete(pair.original), complete(pair.released)
        weights = pair.weighing(is_complete(pair.original), is_complete(pair.released))
        yield from _correlation_figures(pair.numeric, original, released, weights)


def _estimate_figures(
    pair: Pair, name: str, values: Reals, masked: Reals, weights: Weights | None
) -> Items:
    """Compare what is estimated of one attribute."""
    figure = partial(Figure, attribute=name, weighted=weights is not None)
    weighted = "weighted " if weights else ""
    original, released = values[:, np.newaxis], masked[:, np.newaxis]
    (mean,) = utility.mean_differences(original, released, weights)
    said = f"the {weighted}mean {moves(mean, pair.deviations(name, abs(mean), weights))}"
    yield figure("utility.means", value=float(mean), reading=said)
    if name not in pair.lengths:
        yield from _total_figure(name, utility.total_difference(values, masked, weights), weighted)
    if len(released) == 1:
        yield NotComputed(
            ("utility.variances", "utility.interval_overlap"), "the release has one value", name
        )
    else:
        (change,) = utility.variance_differences(original, released, weights)
        said = f"the {weighted}variance {moves(change, percent(abs(change)))}"
        yield figure("utility.variances", value=float(change), reading=said)
        common = utility.interval_overlap(values, masked, weights)
        said = f"the 95% confidence intervals of the {weighted}mean overlap by {percent(common)}"
        yield figure("utility.interval_overlap", value=common, reading=said)
    quantiles = utility.quantile_differences(original, released, weights).ravel()
    worst = int(np.argmax(np.abs(quantiles)))
    said = (
        f"of nine {weighted}quantiles the {percent(utility.QUANTILES[worst])} one moves most, by "
        f"{pair.deviations(name, abs(quantiles[worst]), weights)}"
    )
    yield figure("utility.quantiles", value=float(quantiles[worst]), reading=said)


def _total_figure(name: str, change: float, weighted: str) -> Items:
    if not np.isfinite(change):
        yield NotComputed(("utility.totals",), "its total in the original is 0", name)
        return
    said = f"the {weighted}total {moves(change, percent(abs(change)))}"
    yield Figure("utility.totals", name, change, said, weighted=bool(weighted))


def _correlation_figures(
    names: Sequence[str], original: Reals, released: Reals, weights: Weights | None
) -> Items:
    varies = [a for a in range(len(names)) if deviation(original[:, a]) * deviation(released[:, a])]
    for a in sorted(set(range(len(names))) - set(varies)):
        yield NotComputed(
            _CORRELATIONS, "it is constant among the complete records of a table", names[a]
        )
    if len(varies) < 2:
        yield NotComputed(_CORRELATIONS, "they need two numeric attributes or more that vary")
        return
    for kind, measure in _KINDS:
        changes = utility.correlation_differences(
            original[:, varies], released[:, varies], kind, weights
        )
        for i, j in combinations(range(len(varies)), 2):
            change = float(changes[i, j])
            yield Figure(
                measure,
                f"{names[varies[i]]} × {names[varies[j]]}",
                change,
                f"the {'weighted ' if weights else ''}correlation "
                f"{moves(change, f'{abs(change):.3g}')}",
                weighted=weights is not None,
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
