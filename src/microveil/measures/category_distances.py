"""Utility of categories: how far masked categories are from the original ones.

Every function takes whole numbers that stand for categories, without missing ones: one attribute as
a vector, several as records × attributes.
"""

import numpy as np

from microveil.compare import estimates
from microveil.compare.estimates import Weights
from microveil.errors import DataError
from microveil.types import Integers, Reals


def share_unchanged(original: Integers, masked: Integers) -> float:
    """Share of records whose masked category is their original one.

    (1/n)·#{i: x_i = y_i}, records in the same order. It is utility and risk at once: someone who
    takes a released category for the true one is right as often.

    Examples
    --------
    >>> share_unchanged(np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1]))
    0.75
    """
    _check_categories(original, masked)
    _check_same_records(original, masked)
    return float(np.mean(original == masked))


def total_variation(original: Integers, masked: Integers, weights: Weights | None = None) -> float:
    """Total variation distance of the distributions of categories in the two tables.

    ½·Σ_c |p_c − q_c|, p and q the shares of category c: the share of records that would have to
    change category to make the distributions equal. 0 where they are, 1 where no category
    occurs in both.

    Examples
    --------
    >>> total_variation(np.array([0, 0, 1, 2]), np.array([0, 0, 0, 1]))
    0.25
    """
    _check_categories(original, masked)
    categories = 1 + int(max(original.max(), masked.max()))
    before, after = weights or (np.ones(len(original)), np.ones(len(masked)))
    shares = estimates.weighted_shares(original, before, categories)
    return float(np.abs(shares - estimates.weighted_shares(masked, after, categories)).sum() / 2)


def share_overlap(original: Integers, masked: Integers, weights: Weights | None = None) -> float:
    """How far 95% confidence intervals of a category's share overlap; of the worst category.

    Examples
    --------
    >>> share_overlap(np.array([0, 0, 1]), np.array([0, 0, 1]))
    1.0
    """
    _check_categories(original, masked)
    categories = 1 + int(max(original.max(), masked.max()))
    before, after = weights or (np.ones(len(original)), np.ones(len(masked)))
    return min(
        map(
            estimates.overlap,
            estimates.intervals_of_shares(original, before, categories),
            estimates.intervals_of_shares(masked, after, categories),
        )
    )


def cramers_v(one: Integers, other: Integers, weights: Reals | None = None) -> float:
    """Cramér's V, the association of two attributes of a table: from 0 (none) to 1.

    sqrt(χ²/(n·(min(r, c) − 1))), χ² Pearson's statistic without continuity correction, r and c the
    numbers of categories that occur. This is the plain V, not corrected for its bias: attributes
    that have nothing to do with each other have a V above 0 (V² is about
    (r − 1)(c − 1)/(n·(min(r, c) − 1)) on average), more so with few records or many categories.
    The bias of two tables of the same records mostly cancels in their difference; where masking
    removed rare categories it does not.

    Examples
    --------
    >>> round(cramers_v(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0])), 4)
    0.5774
    """
    from scipy.stats.contingency import association, crosstab

    _check_categories(one, other)
    _check_same_records(one, other)
    observed = crosstab(one, other).count
    if min(observed.shape) == 1:
        raise DataError("Cramér's V needs two categories or more in both attributes, found one")
    if weights is not None:
        return _weighted_v(one, other, weights)
    return float(association(observed, method="cramer", correction=False))


def _weighted_v(one: Integers, other: Integers, weights: Reals) -> float:
    """Cramér's V with shares of the weights, which do not depend on their sum, for counts."""
    (rows, row), (columns, column) = (np.unique(x, return_inverse=True) for x in (one, other))
    cells = estimates.weighted_shares(
        row * len(columns) + column, weights, len(rows) * len(columns)
    )
    observed = cells.reshape(len(rows), len(columns))
    expected = np.outer(observed.sum(axis=1), observed.sum(axis=0))
    squares = float(np.sum((observed - expected) ** 2 / expected))
    return float(np.sqrt(squares / (min(observed.shape) - 1)))


def association_differences(
    original: Integers, masked: Integers, weights: Weights | None = None
) -> Reals:
    """Change of Cramér's V of every pair of attributes, as a matrix.

    Examples
    --------
    >>> original = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> association_differences(original, np.array([[0, 0], [0, 1], [1, 0], [1, 1]]))
    array([[ 0., -1.],
           [-1.,  0.]])
    """
    _check_categories(original, masked)
    attributes, (before, after) = original.shape[1], weights or (None, None)
    change = np.zeros((attributes, attributes))
    for i in range(attributes):
        for j in range(i):
            of_masked = cramers_v(masked[:, i], masked[:, j], after)
            change[i, j] = of_masked - cramers_v(original[:, i], original[:, j], before)
            change[j, i] = change[i, j]
    return change


def _check_categories(one: Integers, other: Integers) -> None:
    for codes in (one, other):
        if not codes.size:
            raise DataError("there must be at least one record to compare, found none")
        if not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0:
            raise DataError(
                "categories must be whole numbers from 0, without missing ones; "
                "leave records without a category out"
            )
    if one.shape[1:] != other.shape[1:]:
        raise DataError("both tables must hold the same attributes, found different numbers")


def _check_same_records(one: Integers, other: Integers) -> None:
    if len(one) != len(other):
        raise DataError(
            "both must hold the same records in the same order, found "
            f"{len(one):,} and {len(other):,} records"
        )
