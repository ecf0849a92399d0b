"""What both charts draw: log10 mean SSE of iDP-CBLS against k, one curve for each ε."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from microveil.core.choices import DEFAULT_METHOD
from microveil.exploration.result import Point

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, which colour-blind people can tell apart, without black and yellow."""

BESIDE = (("best k", "measured"), ("noise-optimal", "expected"), ("noise-optimal", "measured"))
"""What stands beside the curves."""


EXPECTED = "Expected error cuts off noise at half the domain and ignores isotonic regression"


@dataclass(frozen=True)
class Curve:
    """One ε: logarithms by k of the fixed partition, and by name of what stands beside."""

    epsilon: float
    by_k: dict[int, float]
    beside: dict[tuple[str, str], float]

    @property
    def values(self) -> list[float]:
        """Everything that is drawn."""
        return [*self.by_k.values(), *self.beside.values()]


def curves(points: Sequence[Point]) -> list[Curve]:
    """Collect the curves; a point without error has no logarithm and is left out."""
    drawn = [p for p in points if p.method == DEFAULT_METHOD]
    epsilons = dict.fromkeys(p.epsilon for p in drawn)
    return [_curve(e, [p for p in drawn if p.epsilon == e]) for e in epsilons]


def _curve(epsilon: float, points: list[Point]) -> Curve:
    beside: dict[tuple[str, str], float | None] = {}
    for point in points:
        measured = point.found.mean_sse if point.found else None
        if point.partition != "fixed":
            beside["noise-optimal", "expected"] = point.expected
            beside["noise-optimal", "measured"] = measured
        elif point.found:
            beside["best k", "measured"] = measured
    by_k = {p.k: p.expected for p in points if p.partition == "fixed" and p.k}
    return Curve(
        epsilon,
        {k: math.log10(error) for k, error in by_k.items() if error > 0},
        {name: math.log10(error) for name in BESIDE if (error := beside.get(name))},
    )


def sizes(found: Iterable[Curve]) -> list[int]:
    """List every k that is drawn."""
    return sorted({k for curve in found for k in curve.by_k})


def columns_beside(found: Sequence[Curve]) -> list[tuple[str, str]]:
    """List what is drawn beside."""
    return [name for name in BESIDE if any(name in curve.beside for curve in found)]


def ticks(found: Iterable[Curve]) -> list[float]:
    """Return four to nine round numbers that enclose all values."""
    values = [value for curve in found for value in curve.values]
    low, high = min(values), max(values)
    step = next((s for s in (0.1, 0.2, 0.5, 1.0, 2.0) if (high - low) / s <= 6), 5.0)
    first, last = math.floor(low / step), max(math.ceil(high / step), math.floor(low / step) + 1)
    return [round(i * step, 1) for i in range(first, last + 1)]


def signed(value: float) -> str:
    """Write a tick with a proper minus sign.

    Examples
    --------
    >>> signed(-1.5), signed(0.0)
    ('−1.5', '0.0')
    """
    return f"{value:.1f}".replace("-", "−")
