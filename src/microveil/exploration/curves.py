"""An exploration as curves, mean SSE of iDP-CBLS against k for each ε, and as a map."""

from collections.abc import Sequence

from microveil.charts.curves import Curve, Place
from microveil.core.choices import DEFAULT_METHOD
from microveil.exploration.result import Point

EXPECTED = "Expected error cuts off noise at half the domain and ignores isotonic regression"


def curves(points: Sequence[Point]) -> list[Curve]:
    """Collect the curves; a point without error has no logarithm and is left out."""
    drawn = [point for point in points if point.method == DEFAULT_METHOD and not point.pooled]
    epsilons = dict.fromkeys(point.epsilon for point in drawn)
    return [_curve(e, [p for p in drawn if p.epsilon == e]) for e in epsilons]


def places(points: Sequence[Point]) -> list[Place]:
    """Place what was measured on the risk–utility map."""
    return [place_of(point) for point in points if point.found and point.found.mean_sse > 0]


def place_of(point: Point) -> Place:
    """Place a measured point on the map."""
    found = point.found
    assert found is not None  # noqa: S101 - only what was measured has a place
    family = f"{point.plan.pooling}" if point.pooled else "not pooled"
    number = f"{point.plan.anonymity}, " if point.pooled else ""
    return Place(f"{number}ε = {point.epsilon:g}", family, found.mean_sse, found.linkage)


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
