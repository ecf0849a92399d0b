"""An exploration as curves, mean SSE of iDP-CBLS against k for each ε, and as a map."""

from collections.abc import Sequence

from microveil.core.choices import DEFAULT_METHOD
from microveil.judge.explore.exploration import Exploration, Measured, Point
from microveil.show.charts.series import Curve, PlacedRelease

EXPECTED = "Expected error cuts noise off at half the domain and ignores isotonic regression"
JOINED = "Lines connect releases with increasingly large joint clusters."


def curves(points: Sequence[Point]) -> list[Curve]:
    """Collect the curves; a point without error has no logarithm and is left out."""
    drawn = [point for point in points if point.method == DEFAULT_METHOD and not point.pooled]
    epsilons = dict.fromkeys(point.epsilon for point in drawn)
    return [_curve(e, [p for p in drawn if p.epsilon == e]) for e in epsilons]


def map_of(exploration: Exploration) -> tuple[list[PlacedRelease], PlacedRelease | None]:
    """Place on the risk–utility map what was measured, and what is recommended.

    A point without error has no logarithm and is left out.
    """
    several = len({point.epsilon for point in exploration.points}) > 1
    chosen = [exploration.recommended] if exploration.recommended else []
    recommended = next(iter(_places(chosen, several=several)), None)
    return _places(exploration.points, several=several), recommended


def _places(points: Sequence[Point], *, several: bool) -> list[PlacedRelease]:
    return [_place(p, p.found, several=several) for p in points if p.found and p.found.mean_sse > 0]


def _place(point: Point, found: Measured, *, several: bool) -> PlacedRelease:
    budget = f"ε = {point.epsilon:g}"
    return PlacedRelease(
        name=f"{point.pooled or point.clusters}, {budget}",
        family=point.pooling or "not pooled",
        error=found.mean_sse,
        linkage=found.linkage,
        series=budget if several else "",
        joined=bool(point.pooled),
    )


def _curve(epsilon: float, points: list[Point]) -> Curve:
    """Collect the points of one ε; of those that differ in trim alone, that of least error."""
    best: dict[tuple[str | None, int], Point] = {}
    for point in points:
        key = point.partition, point.k or 0
        best[key] = min(best.get(key, point), point, key=lambda p: p.expected)
    by_k = {k: point.expected for (partition, k), point in best.items() if partition == "fixed"}
    beside = {}
    for (partition, _), point in best.items():
        if partition == "fixed" and point.found:
            beside["best k, measured"] = point.found.mean_sse
        elif partition != "fixed":
            beside[f"{partition}, expected"] = point.expected
            beside[f"{partition}, measured"] = point.found.mean_sse if point.found else 0.0
    return Curve(
        f"ε = {epsilon:g}",
        {k: error for k, error in by_k.items() if error > 0},
        {name: error for name, error in beside.items() if error > 0},
    )
