"""How many persons have a value, and how far the next value is.

Records that agree are no crowd: what few persons have must not go out without noise.
"""

from typing import NamedTuple

import numpy as np

from microveil.types import Integers

_NONE = 2**62  # further than any two grid positions are apart


class Sharing(NamedTuple):
    """How many persons, or units, have each of some values, and the distance to the nearest other.

    The distance is 0 where there is no other value.
    """

    persons: Integers
    nearest: Integers


def sharing_of(values: Integers, among: Integers, unit: Integers | None = None) -> Sharing:
    """Look for values among ascending ones, each of one person, or of the `unit` that is given.

    Examples
    --------
    >>> sharing_of(np.array([2, 9]), np.array([2, 2, 2, 4, 9]))
    Sharing(persons=array([3, 1]), nearest=array([2, 5]))
    >>> sharing_of(np.array([2]), np.array([2, 2, 2, 4]), unit=np.array([0, 1, 0, 0]))
    Sharing(persons=array([2]), nearest=array([2]))
    """
    first, end = (np.searchsorted(among, values, side) for side in ("left", "right"))
    ends = np.concatenate([[among[0] - _NONE], among, [among[-1] + _NONE]])
    nearest = np.minimum(values - ends[first], ends[end + 1] - values)
    counted = np.arange(len(among) + 1) if unit is None else _units_before(among, unit)
    return Sharing(counted[end] - counted[first], np.where(nearest < _NONE, nearest, 0))


def _units_before(among: Integers, unit: Integers) -> Integers:
    """Count different units of equal values, up to each place."""
    value = np.cumsum(np.diff(among, prepend=among[0]) > 0)
    _, first = np.unique(value * (int(unit.max()) + 1) + unit, return_index=True)
    counted = np.zeros(len(among) + 1, dtype=np.int64)
    counted[first + 1] = 1
    return np.cumsum(counted)
