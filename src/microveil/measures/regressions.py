"""Linear and logistic regressions by weights, with intervals that survive a wrong variance."""

from typing import NamedTuple

import numpy as np

from microveil.compare.estimates import Estimate, around
from microveil.types import Reals

_MOST_STEPS = 50
_CLOSE = 1e-8


class Coefficients(NamedTuple):
    """Coefficients of a regression, without the intercept, and their standard errors."""

    values: Reals
    errors: Reals

    @property
    def estimates(self) -> list[Estimate]:
        """Each with its 95% confidence interval."""
        return [around(float(v), float(e)) for v, e in zip(self.values, self.errors, strict=True)]


def linear_regression(terms: Reals, target: Reals, weights: Reals) -> Coefficients | None:
    """Regress by weighted least squares; None where the data do not determine the coefficients.

    Errors are those of White (1980) with n/(n − p), which hold where the variance differs from
    record to record, and for sampling weights.

    Examples
    --------
    >>> x = np.arange(5.0)[:, np.newaxis]
    >>> found = linear_regression(x, 2 * x.ravel() + 1, np.ones(5))
    >>> round(float(found.values[0]), 9), round(float(found.errors[0]), 9)
    (2.0, 0.0)
    """
    design, scale = _design(terms)
    if not _determined(design):
        return None
    inverse = _inverse(design.T @ (weights[:, np.newaxis] * design))
    found = inverse @ (design.T @ (weights * target))
    scores = (weights * (target - design @ found))[:, np.newaxis] * design
    return _without_intercept(found, inverse, scores, scale)


def logistic_regression(terms: Reals, target: Reals, weights: Reals) -> Coefficients | None:
    """Regress what is 0 or 1 by weighted maximum likelihood; None where there is no maximum.

    Examples
    --------
    >>> x = np.array([0.0, 0, 0, 0, 1, 1, 1, 1])[:, np.newaxis]
    >>> found = logistic_regression(x, np.array([0.0, 0, 0, 1, 0, 1, 1, 1]), np.ones(8))
    >>> bool(np.isclose(found.values[0], 2 * np.log(3)))  # odds of 1/3 and of 3
    True
    """
    design, scale = _design(terms)
    if not _determined(design) or len(np.unique(target)) < 2:
        return None
    found = np.zeros(design.shape[1])
    for _ in range(_MOST_STEPS):
        chances = 1 / (1 + np.exp(-np.clip(design @ found, -700, 700)))
        spread = weights * chances * (1 - chances)
        information = design.T @ (spread[:, np.newaxis] * design)
        if np.linalg.cond(information) > 1 / _CLOSE**1.5:
            return None
        scores = (weights * (target - chances))[:, np.newaxis] * design
        step = np.linalg.solve(information, scores.sum(axis=0))
        found = found + step
        if np.abs(step).max() < _CLOSE:
            return _without_intercept(found, _inverse(information), scores, scale)
    return None


def _design(terms: Reals) -> tuple[Reals, Reals]:
    """Put a column of ones before the terms, which get the mean 0 and the deviation 1."""
    scale = terms.std(axis=0)
    scale[scale == 0] = 1.0
    return np.column_stack([np.ones(len(terms)), (terms - terms.mean(axis=0)) / scale]), scale


def _determined(design: Reals) -> bool:
    records, columns = design.shape
    return records > columns and bool(np.linalg.matrix_rank(design.T @ design) == columns)


def _inverse(matrix: Reals) -> Reals:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _without_intercept(found: Reals, inverse: Reals, scores: Reals, scale: Reals) -> Coefficients:
    records, columns = scores.shape
    covariance = inverse @ (scores.T @ scores) @ inverse * records / (records - columns)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Coefficients(found[1:] / scale, errors[1:] / scale)
