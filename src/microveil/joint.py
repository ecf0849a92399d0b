"""Joint clusters: one cluster per record for a whole group of attributes."""

from dataclasses import dataclass

import numpy as np

from microveil.engines.base import Engine
from microveil.errors import DataError
from microveil.grid import Reals
from microveil.masking import Masking, NumericMasking
from microveil.mdav import joint_clusters, standardise
from microveil.noise import WordSource, random_order
from microveil.settle import Settled


@dataclass(frozen=True)
class JointClusters:
    """A group of attributes as it was clustered; `blocks` counts the parts MDAV ran over."""

    attributes: tuple[str, ...]
    k: int
    blocks: int


def cluster_groups(settled: Settled, engine: Engine, ties: WordSource) -> tuple[JointClusters, ...]:
    """Cluster the records by MDAV in each group of the plan, and let the engine hold the clusters.

    MDAV breaks ties by position, here by that in a random order, so that equal records are not
    clustered with their neighbours in the table.
    """
    found = []
    for number in range(len(settled.plan.joint_groups)):
        maskings = settled.group(number)
        points = joint_points(maskings, engine)
        order = random_order(len(points), ties)
        labels = np.empty(len(points), dtype=np.int64)
        labels[order], blocks = joint_clusters(points[order], maskings[0].k)
        names = tuple(m.name for m in maskings)
        engine.join(names, labels)
        found.append(JointClusters(names, maskings[0].k, blocks))
    return tuple(found)


def check_anonymity(groups: tuple[JointClusters, ...], engine: Engine) -> tuple[int, ...]:
    """Count the rarest combination of masked values in each group: k records or more."""
    smallest = tuple(engine.smallest_class(group.attributes) for group in groups)
    for group, count in zip(groups, smallest, strict=True):
        if count < group.k:
            raise DataError(
                f"group {', '.join(group.attributes)}: the release is {count}-anonymous instead of "
                f"{group.k}-anonymous; nothing was released"
            )
    return smallest


def joint_points(maskings: tuple[Masking, ...], engine: Engine) -> Reals:
    """Place the records in a space whose squared distances MDAV compares.

    Numbers and ordinal categories have mean 0 and standard deviation 1. Two nominal categories are
    at squared distance 1, or with a taxonomy the share of levels at which their groups differ.
    """
    return np.column_stack([_coordinates(masking, engine) for masking in maskings])


def _coordinates(masking: Masking, engine: Engine) -> Reals:
    if isinstance(masking, NumericMasking):
        values = engine.units(masking.name, masking.grid).astype(np.float64)
        return standardise(values[:, np.newaxis])
    codes = engine.codes(masking.name, masking.categories)
    if masking.kind == "ordinal":
        return standardise(codes[:, np.newaxis].astype(np.float64))
    places: Reals = category_places(masking.categories, masking.paths)[codes]
    return places


def category_places(categories: tuple[object, ...], paths: tuple[tuple[str, ...], ...]) -> Reals:
    """Return a point for each category, at the squared distances of `joint_points`.

    Examples
    --------
    >>> paths = (("health",), ("health",), ("craft",))
    >>> places = category_places(("nurse", "doctor", "smith"), paths)
    >>> [round(float(np.sum((places[0] - place) ** 2)), 3) for place in places]
    [0.0, 0.5, 1.0]
    """
    levels = 1 + max((len(path) for path in paths), default=0)
    columns = []
    for level in range(levels):
        above = [
            path[: level + 1] if level < len(path) else (*path, category)
            for category, path in zip(categories, paths or [()] * len(categories), strict=True)
        ]
        group = {place: number for number, place in enumerate(dict.fromkeys(above))}
        columns.append(np.eye(len(group))[[group[place] for place in above]])
    places: Reals = np.hstack(columns) / np.sqrt(2 * levels)
    return places
