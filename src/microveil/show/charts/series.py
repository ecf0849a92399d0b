"""Curves of a frontier and places on a map, which charts and the terminal draw alike."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Curve:
    """One curve: errors above 0, since they are drawn by their logarithms.

    Attributes
    ----------
    label
        What the legend says, such as ``"ε = 1"``.
    points
        The error by k, or by whatever runs along the horizontal axis.
    beside
        The errors of what has no place on that axis, by name.
    """

    label: str
    points: Mapping[float, float]
    beside: Mapping[str, float] = field(default_factory=dict)

    @property
    def errors(self) -> list[float]:
        """Everything that is drawn."""
        return [*self.points.values(), *self.beside.values()]


LINKAGES = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
"""Shares of rows linked that are written beside a map."""


@dataclass(frozen=True)
class PlacedRelease:
    """A release on the map.

    Attributes
    ----------
    name
        What it is called.
    family
        What the legend says; places of one family have one shape.
    error
        Mean SSE, above 0.
    linkage
        The share of rows that the most successful attack links.
    series
        What the legend says of its colour, such as ``"ε = 1"``; by default the family's.
    joined
        Whether a line goes on to the next place of the same family and series.
    """

    name: str
    family: str
    error: float
    linkage: float
    series: str = ""
    joined: bool = False

    @property
    def colour(self) -> str:
        """What places of one colour have in common."""
        return self.series or self.family


def places(curves: Iterable[Curve]) -> list[float]:
    """List every place on the horizontal axis."""
    return sorted({place for curve in curves for place in curve.points})


def names_beside(curves: Sequence[Curve]) -> list[str]:
    """List what is drawn beside the curves, in the order in which it is first named."""
    return list(dict.fromkeys(name for curve in curves for name in curve.beside))


def ticks(errors: Sequence[float]) -> list[float]:
    """Return two to ten round numbers that enclose all errors, for a logarithmic axis.

    Examples
    --------
    >>> ticks([0.03, 0.4]), ticks([0.003, 40]), ticks([0.26, 0.33])
    ([0.02, 0.05, 0.1, 0.2, 0.5], [0.001, 0.01, 0.1, 1.0, 10.0, 100.0], [0.2, 0.3, 0.4])
    """
    low, high = math.log10(min(errors)), math.log10(max(errors))
    first, last = math.floor(low), math.ceil(high)
    first -= float(f"1e{first}") > min(errors)  # a logarithm may round up to a whole number
    if last - first > 3:
        step = math.ceil((last - first) / 8)
        return [float(f"1e{exponent}") for exponent in range(first, last + step, step)]
    digits = (1, 2, 5) if high - low > 0.5 else range(1, 10)
    marks = [float(f"{digit}e{e}") for e in range(first, last + 2) for digit in digits]
    start = max(i for i, mark in enumerate(marks) if mark <= min(errors))
    end = min(i for i, mark in enumerate(marks) if i > start and mark >= max(errors))
    return marks[start : end + 1]
