"""Categories as numbers, for measures that take all attributes together."""

from collections.abc import Iterable

import numpy as np

from microveil.compare.paired_columns import MISSING, MOST_CATEGORIES, Categories, Numbers
from microveil.compare.pairing import Pair
from microveil.types import Integers, Reals

Tables = tuple[Reals, Reals]
"""Of the original and of the release: records × columns, NaN where a value is missing."""


def encoded(pair: Pair) -> Tables:
    """Return all attributes as models take them: numbers, ranks, and a column for each category.

    An ordinal attribute becomes the place of its category in the declared order. A nominal one
    becomes a column of 0 and 1 for each category of the original, the hundred most frequent at
    most; any other category is 0 in all of them.
    """
    return _beside((pair.original, pair.released), map(features_of, pair.categorical))


def _beside(first: Tables, others: Iterable[Tables]) -> Tables:
    original, released = zip(first, *others, strict=True)
    return np.hstack(original), np.hstack(released)


def features_of(attribute: Numbers | Categories) -> Tables:
    """Return one attribute as models take it: numbers as they are, categories as columns."""
    if isinstance(attribute, Numbers):
        return attribute.original[:, np.newaxis], attribute.released[:, np.newaxis]
    if attribute.kind == "ordinal":
        return _ranks(attribute)
    known = attribute.original[attribute.original != MISSING]
    seen, counts = np.unique(known, return_counts=True)
    columns = np.sort(seen[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]])
    return _rows(attribute, (np.arange(len(attribute.paths))[:, np.newaxis] == columns) * 1.0)


def _ranks(attribute: Categories) -> Tables:
    return _rows(attribute, np.arange(float(len(attribute.paths)))[:, np.newaxis])


def _rows(attribute: Categories, rows: Reals) -> Tables:
    """Give each record the row of its category; NaN if that is missing."""
    with_missing = np.vstack([rows, np.full(rows.shape[1], np.nan)])  # MISSING is the last row

    def of(codes: Integers) -> Reals:
        chosen: Reals = with_missing[codes]
        return chosen

    return of(attribute.original), of(attribute.released)
