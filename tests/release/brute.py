"""Centroids as the definition has them, for tests that go through all neighbours of a table."""

from collections.abc import Sequence

from microveil.core.choices import MethodName


def centroids_of(values: Sequence[int], k: int, method: MethodName) -> list[float]:
    """Sort, cut into clusters of k of which the last takes the remainder, and take their means.

    iDP-CBLS pulls in the smallest and the largest of each.
    """
    ranked, number = sorted(values), len(values) // k
    ends = [*range(k, number * k, k), len(ranked)]
    clusters = [ranked[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [_mean(cluster, pulled_in=method == "iDP-CBLS") for cluster in clusters]


def _mean(cluster: list[int], *, pulled_in: bool) -> float:
    if pulled_in:
        cluster = [cluster[1], *cluster[1:-1], cluster[-2]]
    return sum(cluster) / len(cluster)
