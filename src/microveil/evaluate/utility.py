"""Utility: how far a masked table is from its original.

Every function takes two-dimensional arrays, records × attributes, without missing values. Standard
deviations and variances are those of the original, with n − 1 in the denominator.
"""

from typing import Literal

import numpy as np

from microveil.errors import DataError
from microveil.grid import Reals

Scale = Literal["std", "variance"]


def mean_sse(original: Reals, masked: Reals, *, scale: Scale = "std") -> float:
    """Mean squared distance between a record and its masked version.

    (1/n) Σ_i d(r_i, r_i′)² with d = (1/m)·sqrt(Σ_a (x_a − y_a)²/s_a²). Records are in the same
    order in both tables. An attribute that is constant in the original has no scale: it counts 0
    if it is unchanged and is an error if it is not.

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
    _check_records(original, masked)
    moves = in_deviations(masked - original, original)
    if scale == "variance":
        moves = in_deviations(moves, original)
    return float(np.mean(np.sum(moves**2, axis=1)) / original.shape[1] ** 2)


def standard_deviations(original: Reals) -> Reals:
    """Each attribute's standard deviation; exactly 0 where it is constant."""
    varies = original.max(axis=0) > original.min(axis=0)
    deviations = np.zeros(original.shape[1])
    deviations[varies] = original[:, varies].std(axis=0, ddof=1)
    return deviations


def in_deviations(moves: Reals, original: Reals) -> Reals:
    """Express moves, one column per attribute, in the attributes' standard deviations.

    A move of 0 stays 0 in a constant attribute; any other move of it cannot be expressed.
    """
    deviations = standard_deviations(original)
    constant = deviations == 0
    moved = np.flatnonzero(constant & np.any(moves != 0, axis=0))
    if len(moved):
        raise DataError(
            f"attribute {moved[0]} (counted from 0): constant in the original but changed in the "
            "release, so its change has no standard deviation to be measured in; leave it out"
        )
    scaled: Reals = moves / np.where(constant, 1.0, deviations)
    return scaled


def _check_records(original: Reals, masked: Reals) -> None:
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
        unusable = int(np.count_nonzero(~np.isfinite(table)))
        if unusable:
            raise DataError(
                f"{name} must hold finite numbers, found {unusable:,} that are missing or "
                "infinite; leave their records out"
            )
    if original.shape[1] != masked.shape[1]:
        raise DataError(
            "original and masked must hold the same attributes, found "
            f"{original.shape[1]} and {masked.shape[1]}"
        )
