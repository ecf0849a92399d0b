"""Pooling: error and linkage, MDAV beside published figures, time and memory, what swaps gain."""

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
from scipy.optimize import linear_sum_assignment

from bench.paper import load_with_domains
from microveil import Plan, protect
from microveil.attacks.nearest import nearest_linkage
from microveil.attacks.one_to_one import one_to_one_linkage
from microveil.attacks.structure import structure_linkage
from microveil.core.choices import Pooling
from microveil.core.joint import cluster_points
from microveil.core.mdav import Effort, effort_for, joint_clusters, mdav, standardise
from microveil.core.pooling import collect_clusters, exchange, holds_the_same
from microveil.core.random_words import SystemWords
from microveil.lab.paper.datasets import CENSUS, WINE, load_data_set
from microveil.measures.distances import mean_sse
from microveil.types import Integers, Reals

PUBLISHED = {3: 5.6922, 5: 9.0884, 10: 14.1559}
ATTRIBUTES, K = 10, 10
MIB = 2**20


def people(records: int, attributes: int = ATTRIBUTES) -> Reals:
    """Skewed, correlated attributes, standardised; made one by one to save memory."""
    random = np.random.default_rng(1)
    shared, points = random.normal(size=records), np.empty((records, attributes))
    for a in range(attributes):
        own = random.normal(size=(records, 1))
        points[:, a] = standardise(np.exp(0.7 * (own + shared[:, np.newaxis])))[:, 0]
    return points


def independent(records: int, attributes: int = ATTRIBUTES) -> Reals:
    """Attributes that have nothing to do with each other, the worst case for cuts."""
    return standardise(np.random.default_rng(1).normal(size=(records, attributes)))


def relative_error(points: Reals, label: Integers) -> float:
    """100 · SSE/SST of a partition."""
    size = np.bincount(label)
    residuals = [values - (np.bincount(label, values) / size)[label] for values in points.T]
    return float(100 * np.sum(np.square(residuals)) / np.sum((points - points.mean(axis=0)) ** 2))


def numpy_mdav(points: Reals, k: int) -> Integers:
    """MDAV in plain NumPy, for records without ties."""
    label = np.zeros(len(points), dtype=np.int64)
    remaining = np.arange(len(points))

    def distances(centre: Reals) -> Reals:
        squares: Reals = np.sum((points[remaining] - centre) ** 2, axis=1)
        return squares

    while len(remaining) >= 2 * k:
        centre = points[remaining].mean(axis=0)
        for _ in range(2 if len(remaining) >= 3 * k else 1):
            centre = points[remaining[np.argmax(distances(centre))]]
            near = np.argpartition(distances(centre), k)[:k]
            label[remaining[near]] = label.max() + 1
            remaining = np.delete(remaining, near)
    return label


def published_error() -> None:
    """Print the error on all 13 attributes of Census."""
    table = load_data_set(replace(CENSUS, attributes=tuple(CENSUS.columns))).attributes
    points = standardise(table.to_numpy())
    print("Census, 13 attributes, SSE/SST in %:   k   microveil   published")
    for k, published in PUBLISHED.items():
        error = relative_error(points, mdav(points, k))
        print(f"{k:>40}{error:>12.4f}{published:>12.4f}")


def against_numpy(records: int = 20_000) -> None:
    """Print the time beside that of plain NumPy, on one core."""
    points = people(records)
    mdav(points[:1000], K)
    seconds, partitions = [], []
    for partition in (mdav, numpy_mdav):
        start = time.process_time()
        partitions.append(partition(points, K))
        seconds.append(time.process_time() - start)
    pairs = np.unique(np.column_stack(partitions), axis=0)
    same = all(len(np.unique(label)) == len(pairs) for label in partitions)
    print(
        f"{records:,} × {ATTRIBUTES}, k = {K}: {seconds[0]:.2f} s, plain NumPy {seconds[1]:.2f} s "
        f"({seconds[1] / seconds[0]:.0f} ×), {'the same' if same else 'OTHER'} clusters"
    )


def pool(points: Reals) -> tuple[Integers, int]:
    """Cluster records, exchange every attribute by itself, and check what comes out."""
    words = SystemWords()
    label, blocks = cluster_points(points, K, words)
    clusters = collect_clusters(label)
    for column in points.T:
        values = np.ascontiguousarray(column)
        released = values[exchange(clusters, words)]
        if not holds_the_same(values, released, clusters):
            raise AssertionError("a value left its joint cluster")
    return clusters.size, blocks


def measure(records: int) -> str:
    """Pool so many records; return time and peak memory of this process."""
    pool(people(1000))
    points = people(records)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start, cpu = time.perf_counter(), time.process_time()
    size, blocks = pool(points)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return (
        f"{records:>10,} × {ATTRIBUTES}, k = {K}: {seconds:6.1f} s ({cpu:.1f} s of CPU), "
        f"{blocks} block(s), clusters of {size.min()} to {size.max()}, "
        f"peak {peak / MIB:.0f} MiB ({before / MIB:.0f} before; the group has "
        f"{points.nbytes / MIB:.0f})"
    )


def time_and_memory() -> None:
    """Print time and memory, each size in a process of its own."""
    for records in (100_000, 1_000_000, 10_000_000):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            print(process.submit(measure, records).result())


EFFORTS = (
    Effort(20_000, 20_000, near=0, passes=0),
    Effort(5_000, 20_000, near=32, passes=30),
    Effort(5_000, 20_000, near=32, passes=12),
    Effort(5_000, 20_000, near=16, passes=8),
    Effort(5_000, 20_000, near=6, passes=3),
    Effort(5_000, 4_000, near=32, passes=12),
    Effort(1_000, 20_000, near=16, passes=8),
    Effort(500, 4_000, near=16, passes=8),
    Effort(500, 4_000, near=6, passes=3),
)


def closeness(large: int = 200_000) -> None:
    """Print the squares within joint clusters, and the time, against MDAV over the whole table."""
    against_mdav("Census", standardise(load_data_set(CENSUS).attributes.to_numpy()))
    against_mdav("Wine Quality", standardise(load_data_set(WINE).attributes.to_numpy()))
    for records in (2_000, 20_000, 60_000, large):
        for attributes in (4, 10):
            against_mdav(f"people, {records:,} × {attributes}", people(records, attributes))
    for attributes in (4, 10):
        against_mdav(f"independent, {large:,} × {attributes}", independent(large, attributes))


def against_mdav(name: str, points: Reals) -> None:
    """Print what every effort gains and costs for a table."""
    start = time.process_time()
    plain = relative_error(points, mdav(points, K))
    print(f"{name}, k = {K}: MDAV has SSE/SST {plain:.3f}%, "
          f"{time.process_time() - start:.2f} s of CPU")  # fmt: skip
    default = effort_for(len(points), K)
    for effort in EFFORTS:
        start = time.process_time()
        label, _ = joint_clusters(points, K, effort=effort)
        seconds = time.process_time() - start
        print(
            f"  parts of {effort.part:,}, blocks of {effort.block:,}, {effort.near} near, "
            f"{effort.passes} passes: {relative_error(points, label) / plain:.3f} of it, "
            f"{seconds:.2f} s{' (default)' if effort == default else ''}",
            flush=True,
        )


def linked_by_joint_clusters(original: Reals, masked: Reals, k: int) -> float:
    """Link as someone who forms the joint clusters anew, and finds out which rows are whose.

    Rows go to joint clusters one to one, at the least total distance from their means; in each,
    people are given rows at random. The rows are in the order of the people.
    """
    label = mdav(standardise(original), k)
    size = np.bincount(label)
    means = np.column_stack([np.bincount(label, column) / size for column in original.T])
    places = np.repeat(np.arange(len(size)), size)
    scale = original.std(axis=0)
    away = (masked[:, None, :] - means[places][None, :, :]) / scale
    rows, taken = linear_sum_assignment(np.sum(away**2, axis=2))
    return float(np.sum((places[taken] == label[rows]) / size[label[rows]]) / len(original))


def error_and_linkage() -> None:
    """Print what recommended releases of Census lose, and how many of their rows can be linked."""
    table, roles = load_with_domains(CENSUS)
    original = table.to_numpy().astype(np.float64)
    print(
        "Census, ε = 1, recommended: log10 mean SSE; linked by nearest, one to one, structure, and "
        "by joint clusters formed anew"
    )
    kinds: tuple[Pooling, ...] = ("exchange", "average")
    for pooling in kinds:
        for anonymity in (0, 5, 10, 25):
            plan = Plan(epsilon=1.0, anonymity=anonymity, pooling=pooling, attributes=roles)
            masked = (
                protect(table, plan, seed=1, keep_order=True).data.to_numpy().astype(np.float64)
            )
            attacks = (nearest_linkage, one_to_one_linkage, structure_linkage)
            shares = "".join(f"{attack(original, masked).share:8.1%}" for attack in attacks)
            if anonymity:
                shares += f"{linked_by_joint_clusters(original, masked, anonymity):8.1%}"
            error = np.log10(mean_sse(original, masked))
            print(f"  {pooling:<9} {anonymity:>3}{error:8.2f}{shares}", flush=True)


def main() -> None:
    """Print all of it."""
    parts = (
        published_error, error_and_linkage, against_numpy, time_and_memory, closeness,
    )  # fmt: skip
    for part in parts:
        part()


if __name__ == "__main__":
    main()
