"""The integer grid on which an attribute is clustered and masked.

All arithmetic between reading a value and publishing its masked version happens in whole
multiples of a power of two, the grid step g. A grid follows from plan facts alone wherever the
plan declares enough; a step that followed a data-dependent noise scale would publish the scale.
"""

import math
from dataclasses import dataclass

import numpy as np

from microveil.types import Integers, Reals

LARGEST_STEPS = 2**60
"""Grid positions stay within ±2^60, so that sums of three differences fit 64 bits."""

_DOMAIN_BITS = 40
_RESOLUTION_BITS = 20
_DOUBLE_BITS = 55
MOST_DECIMALS = 15


@dataclass(frozen=True)
class Grid:
    """Multiples of `step`, counted from `origin` (itself a multiple of `step`)."""

    step: float
    origin: float = 0.0

    def to_steps(self, values: Reals) -> Integers:
        """Round values to the grid, each by itself and monotonically.

        Because each record is rounded on its own, tables that differ in one record still differ
        in one record afterwards: rounding the input costs no privacy.
        """
        steps: Integers = np.rint((values - self.origin) / self.step).astype(np.int64)
        return steps

    def to_values(self, steps: Integers) -> Reals:
        """Leave the grid: the only floating-point step after masking, and post-processing."""
        values: Reals = self.to_widths(steps) + self.origin
        return values

    def to_widths(self, steps: Integers | Reals) -> Reals:
        """Turn distances on the grid into distances of values; infinite where doubles end."""
        with np.errstate(over="ignore"):
            widths: Reals = steps * np.float64(self.step)
        return widths

    def holds(self, smallest: float, largest: float) -> bool:
        """Whether values in this range stay within the grid's 60 bits."""
        reach = max(abs(smallest - self.origin), abs(largest - self.origin))
        return reach <= LARGEST_STEPS * self.step


def grid_of_domain(lower: float, upper: float) -> Grid:
    """Grid of a declared domain: the power of two at or below (upper − lower)·2^−40.

    Examples
    --------
    >>> grid_of_domain(0, 2**40)
    Grid(step=1.0, origin=0.0)
    """
    step = power_of_two_below((upper - lower) * 2.0**-_DOMAIN_BITS)
    return Grid(step, origin=math.floor(lower / step) * step)


def grid_of_decimals(decimals: int) -> Grid:
    """Grid of values with so many decimals: a power of two, 2^−20 below the last of them."""
    return Grid(power_of_two_below(10.0**-decimals * 2.0**-_RESOLUTION_BITS))


def grid_of_observed(values: Reals, *, single_precision: bool = False) -> Grid:
    """Grid of the last decimal seen in the data, no finer than double precision can use.

    This looks at the data, so callers must warn.
    """
    decimals = observed_decimals(values, single_precision=single_precision)
    return grid_of_last_decimal(decimals, float(np.max(np.abs(values))))


def grid_of_last_decimal(decimals: int, largest: float) -> Grid:
    """Grid of values with so many decimals, of which the largest is so far from 0."""
    finest = power_of_two_below(largest) * 2.0**-_DOUBLE_BITS if largest else 0.0
    if decimals == MOST_DECIMALS and finest:
        return Grid(finest)
    return Grid(max(grid_of_decimals(decimals).step, finest))


def observed_decimals(values: Reals, *, single_precision: bool = False) -> int:
    """Fewest decimals that write every value exactly, up to 15.

    Examples
    --------
    >>> observed_decimals(np.array([0.5, 1.25, 3.0]))
    2
    """
    exact = values.astype(np.float32) if single_precision else values
    for decimals in range(MOST_DECIMALS):
        if np.array_equal(np.round(exact, decimals), exact):
            return decimals
    return MOST_DECIMALS


def power_of_two_below(positive: float) -> float:
    """Largest power of two at or below a positive number.

    Examples
    --------
    >>> power_of_two_below(0.3), power_of_two_below(8.0)
    (0.25, 8.0)
    """
    _, exponent = math.frexp(positive)
    return math.ldexp(1.0, exponent - 1)
