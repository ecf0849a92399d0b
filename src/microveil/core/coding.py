"""What becomes of numbers before they are masked: rounded, and drawn in to the ends of a domain."""

import math
from dataclasses import dataclass

import numpy as np

from microveil.types import Reals


@dataclass(frozen=True)
class Coding:
    """Rounding, and top and bottom coding.

    Guarantee
    ---------
    A coded value follows from the value alone and from the plan. Tables that differ in one record
    still do when they are coded, so what holds for coded values holds for the values themselves.

    Attributes
    ----------
    lower, upper
        The ends of the domain, infinite where there are none. Rounding does not lead beyond them.
    bottom, top
        Whether values beyond an end are moved to it. Otherwise they, and infinite ones, stay as
        they are, to be refused.
    step
        What values are rounded to a multiple of; 0 if they are not.
    """

    lower: float = -math.inf
    upper: float = math.inf
    bottom: bool = False
    top: bool = False
    step: float = 0.0

    def of(self, values: Reals) -> Reals:
        """Code values.

        Examples
        --------
        >>> Coding(lower=0, upper=100, top=True, step=25).of(np.array([-5.0, 30.0, 95.0, 180.0]))
        array([ -5.,  25., 100., 100.])
        """
        rounded = np.rint(values / self.step) * self.step if self.step else values
        inside = (values >= self.lower) & (values <= self.upper) & np.isfinite(values)
        coded = np.where(inside, np.clip(rounded, self.lower, self.upper), values)
        if self.top:
            coded[np.isfinite(values) & (values > self.upper)] = self.upper
        if self.bottom:
            coded[np.isfinite(values) & (values < self.lower)] = self.lower
        return coded
