"""Utility: how far a masked table is from its original.

Every function takes two-dimensional arrays, records × attributes, without missing values. Standard
deviations and variances are those of the original, with n − 1 in the denominator. An attribute
that is constant in the original has no scale to measure in: where the two tables are compared
record by record it counts 0 if it is unchanged; otherwise it is an error. Differences of estimates
take sampling weights, and then measure in weighted standard deviations.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from microveil.compare import estimates
from microveil.compare.asked import Scale
from microveil.compare.estimates import LARGEST, Weights, standard_deviations
from microveil.errors import DataError
from microveil.types import Integers, Reals

Correlation = Literal["pearson", "spearman"]

_MOST_STEPS, _SMALLEST_GAIN = 100, 1e-14  # of Newton's method, in mean log-likelihood
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def mean_sse(original: Reals, masked: Reals, *, scale: Scale = "std") -> float:
    """Mean squared distance between a record and its masked version.

    (1/n) Σ_i d(r_i, r_i′)² with d = (1/m)·sqrt(Σ_a (x_a − y_a)²/s_a²). Records are in the same
    order in both tables.

    Parameters
    ----------
    original, masked
        Records × attributes.
    scale
        ``"std"``: s is the standard deviation, so that the measure is free of units.
        ``"variance"``: s is the variance, as the paper prints it.

    Examples
    --------
    >>> original = np.array([[0.0], [2.0], [4.0]])
    >>> mean_sse(original, np.array([[2.0], [2.0], [2.0]]))
    0.6666666666666666
    >>> mean_sse(original, np.array([[2.0], [2.0], [2.0]]), scale="variance")
    0.16666666666666666
    """
    if scale not in ("std", "variance"):
        raise DataError(f'scale must be "std" or "variance", got {scale!r}')
    check_records(original, masked)
    moves = in_deviations(masked - original, original)
    if scale == "variance":
        moves = in_deviations(moves, original)
    return float(np.mean(np.sum(moves**2, axis=1)) / original.shape[1] ** 2)


def sse_sst(original: Reals, masked: Reals) -> Reals:
    """Each attribute's squared error as a share of its squared spread, SSE/SST.

    Σ (x − y)² / Σ (x − x̄)²: 0 when nothing changed, 1 when every value was replaced by the mean.

    Examples
    --------
    >>> sse_sst(np.array([[0.0], [2.0], [4.0]]), np.array([[2.0], [2.0], [2.0]]))
    array([1.])
    """
    check_records(original, masked)
    moves = in_deviations(masked - original, original)
    ratios: Reals = np.sum(moves**2, axis=0) / max(len(original) - 1, 1)
    return ratios


def il1s(original: Reals, masked: Reals) -> Reals:
    """Each attribute's mean IL1s: how far a value moves, in √2 standard deviations.

    The mean of |x − y|/(√2·S). Their mean over the attributes is the IL1s of sdcMicro, a sum over
    cells, divided by the number of cells.

    Examples
    --------
    >>> il1s(np.array([[0.0], [2.0], [4.0]]), np.array([[2.0], [2.0], [2.0]])).round(4)
    array([0.4714])
    """
    check_records(original, masked)
    moves = np.abs(in_deviations(masked - original, original))
    means: Reals = np.mean(moves, axis=0) / np.sqrt(2)
    return means


def mean_differences(original: Reals, masked: Reals, weights: Weights | None = None) -> Reals:
    """Change of each attribute's mean, in standard deviations of the original."""
    _check_attributes(original, masked)
    before, after = weights or (None, None)
    change = _means(masked, after) - _means(original, before)
    return in_deviations(change[np.newaxis], original, before).ravel()


def variance_differences(original: Reals, masked: Reals, weights: Weights | None = None) -> Reals:
    """Change of each attribute's variance, relative to the original: −0.1 is a tenth less."""
    _check_attributes(original, masked)
    _check_varies("original", original)
    if len(masked) < 2:
        raise DataError("masked must hold two records or more to have a variance, found one")
    before, after = weights or (None, None)
    change: Reals = _variances(masked, after) / _variances(original, before) - 1
    return change


def quantile_differences(original: Reals, masked: Reals, weights: Weights | None = None) -> Reals:
    """Change of each of `QUANTILES` (rows) of each attribute, in standard deviations."""
    _check_attributes(original, masked)
    before, after = weights or (None, None)
    change = _quantiles(masked, after) - _quantiles(original, before)
    return in_deviations(change, original, before)


def total_difference(original: Reals, masked: Reals, weights: Weights | None = None) -> float:
    """Change of one attribute's total, relative to the original; infinite where that is 0.

    Examples
    --------
    >>> total_difference(np.array([1.0, 3.0]), np.array([1.0, 4.0]))
    0.25
    """
    before, after = weights or (np.ones(len(original)), np.ones(len(masked)))
    total = float(before @ original)
    change = float(after @ masked) - total
    return change / abs(total) if total else (np.inf if change else 0.0)


def interval_overlap(original: Reals, masked: Reals, weights: Weights | None = None) -> float:
    """How far 95% confidence intervals of one attribute's mean overlap (Karr et al. 2006).

    1 where they are the same, 0 where they have nothing in common.

    Examples
    --------
    >>> interval_overlap(np.array([1.0, 3.0]), np.array([1.0, 3.0]))
    1.0
    """
    before, after = weights or (np.ones(len(original)), np.ones(len(masked)))
    intervals = (estimates.interval_of_mean(x, w) for x, w in ((original, before), (masked, after)))
    return float(estimates.overlap(*intervals))


def correlation_differences(
    original: Reals, masked: Reals, kind: Correlation = "pearson", weights: Weights | None = None
) -> Reals:
    """Change of the correlation of every pair of attributes, as a matrix.

    Spearman's correlation gives equal values the mean of their ranks.

    Examples
    --------
    >>> original = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 9.0]])
    >>> masked = np.array([[1.0, 1.0], [2.0, 9.0], [3.0, 2.0]])
    >>> correlation_differences(original, masked, "spearman").round(12)
    array([[ 0. , -0.5],
           [-0.5,  0. ]])
    """
    _check_attributes(original, masked)
    before, after = weights or (None, None)
    of_masked = _correlations("masked", masked, kind, after)
    change: Reals = of_masked - _correlations("original", original, kind, before)
    return change


def ranks(table: Reals) -> Reals:
    """Ranks 1 … n within each attribute; equal values share the mean of their ranks."""
    columns = [pl.Series(column).rank("average").to_numpy() for column in table.T]
    return np.column_stack(columns)


@dataclass(frozen=True)
class Propensity:
    """How well a model tells masked records from original ones.

    `expected` is what pMSE would be on average if the masked records were drawn anew from the
    distribution of the original ones, and `ratio` is pmse/expected.
    """

    pmse: float
    expected: float
    ratio: float


def propensity(original: Reals, masked: Reals) -> Propensity:
    """Propensity-score mean squared error of a logistic regression, and its null ratio.

    Both tables are stacked and a logistic regression on the attributes (main effects, no penalty)
    estimates for each of the N records the probability p that it is a masked one;
    pMSE = (1/N) Σ (p − c)², c the share of masked records. It is 0 when the model cannot tell
    the tables apart and c(1 − c) when it always can. For k parameters its null expectation is
    (k − 1)(1 − c)²c/N (Snoke, Raab, Nowok, Dibben and Slavković 2018); attributes that follow
    linearly from the others add no parameter.

    Main effects see shifts of location, so a release that keeps its means and loses its spread
    goes unnoticed here: read it beside the variances and correlations. Masked records are not
    drawn but follow the original ones, so the ratio of a good release is below 1.

    Examples
    --------
    >>> original = np.array([[0.0], [0.0], [0.0], [1.0]])
    >>> told_apart = propensity(original, 1 - original)
    >>> round(told_apart.pmse, 6), round(told_apart.ratio, 6)
    (0.0625, 4.0)
    """
    _check_attributes(original, masked)
    stacked = _independent(np.vstack([original, masked]))
    is_masked = np.repeat([0, 1], [len(original), len(masked)])
    share, total = len(masked) / len(stacked), len(stacked)
    parameters = 1 + stacked.shape[1]
    if parameters == 1:
        raise DataError("every attribute is constant, so there is nothing to tell tables apart by")
    pmse = float(np.mean((_propensity_scores(stacked, is_masked) - share) ** 2))
    expected = (parameters - 1) * (1 - share) ** 2 * share / total
    return Propensity(pmse, expected, pmse / expected)


def _means(table: Reals, weights: Reals | None) -> Reals:
    return table.mean(axis=0) if weights is None else estimates.means(table, weights)


def _variances(table: Reals, weights: Reals | None) -> Reals:
    return table.var(axis=0, ddof=1) if weights is None else estimates.variances(table, weights)


def _quantiles(table: Reals, weights: Reals | None) -> Reals:
    if weights is None:
        return np.quantile(table, QUANTILES, axis=0)
    return np.column_stack([estimates.quantiles(c, weights, QUANTILES) for c in table.T])


def in_deviations(moves: Reals, original: Reals, weights: Reals | None = None) -> Reals:
    """Express moves, one column per attribute, in the attributes' standard deviations.

    A move of 0 stays 0 in a constant attribute; any other move of it cannot be expressed.
    """
    deviations = standard_deviations(original, weights)
    constant = deviations == 0
    moved = np.flatnonzero(constant & np.any(moves != 0, axis=0))
    if len(moved):
        raise DataError(
            f"attribute {moved[0]} (counted from 0): constant in the original but changed in the "
            "release, so its change has no standard deviation to be measured in; leave it out"
        )
    scaled: Reals = moves / np.where(constant, 1.0, deviations)
    return scaled


def _correlations(
    name: str, table: Reals, kind: Correlation, weights: Reals | None = None
) -> Reals:
    _check_varies(name, table)
    if weights is not None:
        ranked = estimates.weighted_ranks(table, weights) if kind == "spearman" else table
        return estimates.weighted_correlations(ranked, weights)
    return np.atleast_2d(np.corrcoef(ranks(table) if kind == "spearman" else table, rowvar=False))


def _propensity_scores(components: Reals, is_masked: Integers) -> Reals:
    """Fit a logistic regression without penalty by Newton's method; return its probabilities.

    Of tables that can be told apart wholly, each step brings every probability nearer to 0 or 1.
    """
    design = np.column_stack([np.ones(len(components)), components])
    signs = 1.0 - 2 * is_masked
    weights = np.zeros(design.shape[1])

    def loss(weights: Reals) -> float:
        return float(np.logaddexp(0, signs * (design @ weights)).mean())

    def scores(weights: Reals) -> Reals:
        return (1 + np.tanh(design @ weights / 2)) / 2

    for _ in range(_MOST_STEPS):
        fitted = scores(weights)
        slope = design.T @ (fitted - is_masked) / len(design)
        curvature = (design.T * (fitted * (1 - fitted))) @ design / len(design)
        step = np.linalg.lstsq(curvature, slope)[0]
        while loss(weights - step) > loss(weights):
            step /= 2
        weights -= step
        if slope @ step < _SMALLEST_GAIN:
            break
    return scores(weights)


def _independent(table: Reals) -> Reals:
    """Uncorrelated columns that span the same space: principal components with any variance."""
    deviations = standard_deviations(table)
    varying = table[:, deviations > 0]
    standard = (varying - varying.mean(axis=0)) / deviations[deviations > 0]
    variances, directions = np.linalg.eigh(standard.T @ standard / len(table))
    kept = variances > 1e-10 * len(variances)
    components: Reals = standard @ (directions[:, kept] / np.sqrt(variances[kept]))
    return components


def _check_varies(name: str, table: Reals) -> None:
    constant = np.flatnonzero(standard_deviations(table) == 0)
    if len(constant):
        raise DataError(
            f"attribute {constant[0]} (counted from 0): constant in {name}, so it has neither "
            "a variance to compare nor correlations; leave it out"
        )


def check_records(original: Reals, masked: Reals) -> None:
    """Refuse tables that do not hold the same records and attributes, or not only numbers."""
    _check_attributes(original, masked)
    if len(original) != len(masked):
        raise DataError(
            "original and masked must hold the same records in the same order, found "
            f"{len(original):,} and {len(masked):,} records"
        )


def _check_attributes(original: Reals, masked: Reals) -> None:
    for name, table in (("original", original), ("masked", masked)):
        if table.ndim != 2 or 0 in table.shape:
            raise DataError(
                f"{name} must be records × attributes with at least one of each, "
                f"got an array of shape {table.shape}"
            )
        unusable = int(np.count_nonzero(~(np.abs(table) <= LARGEST)))
        if unusable:
            raise DataError(
                f"{name} must hold numbers within ±{LARGEST:g}, found {unusable:,} that are "
                "missing or beyond; leave their records out"
            )
    if original.shape[1] != masked.shape[1]:
        raise DataError(
            "original and masked must hold the same attributes, found "
            f"{original.shape[1]} and {masked.shape[1]}"
        )
