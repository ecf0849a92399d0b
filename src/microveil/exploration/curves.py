"""The frontier of an exploration as curves: mean SSE of iDP-CBLS against k, one for each ε."""

from collections.abc import Sequence

from microveil.charts.curves import Curve
from microveil.core.choices import DEFAULT_METHOD
from microveil.exploration.result import Point

EXPECTED = "Expected error cuts off noise at half the domain and ignores isotonic regression"


def curves(points: Sequence[Point]) -> list[Curve]:
    """Collect the curves; a point without error has no logarithm and is left out."""
    drawn = [point for point in points if point.method == DEFAULT_METHOD]
    epsilons = dict.fromkeys(point.epsilon for point in drawn)
    return [_curve(e, [p for p in drawn if p.epsilon == e]) for e in epsilons]


def _curve(epsilon: float, points: list[Point]) -> Curve:
    by_k: dict[float, float] = {}
    beside = dict.fromkeys(
        ("best k, measured", "noise-optimal, expected", "noise-optimal, measured"), 0.0
    )
    for point in points:
        measured = point.found.mean_sse if point.found else 0.0
        if point.partition != "fixed":
            beside["noise-optimal, expected"] = point.expected
            beside["noise-optimal, measured"] = measured
            continue
        by_k[point.k or 0] = point.expected
        if point.found:
            beside["best k, measured"] = measured
    return Curve(
        f"ε = {epsilon:g}",
        {k: error for k, error in by_k.items() if error > 0},
        {name: error for name, error in beside.items() if error > 0},
    )
