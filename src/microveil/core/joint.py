"""Joint clusters: one cluster per record for a whole group of attributes."""

import numpy as np

from microveil.core.attribute import AttributeSettings, NumericSettings
from microveil.core.grid import Integers, Reals
from microveil.core.mdav import joint_clusters, standardise
from microveil.core.noise import WordSource, random_order


def cluster_points(points: Reals, k: int, ties: WordSource) -> tuple[Integers, int]:
    """Cluster records by MDAV; return each one's cluster, and the number of blocks that took.

    MDAV breaks ties by position, here by that in a random order, so that equal records are not
    clustered with their neighbours in the table.
    """
    return joint_clusters(points, k, random_order(len(points), ties))


def coordinates(units: Integers, attribute: AttributeSettings) -> Reals:
    """Place the values of an attribute in a space whose squared distances MDAV compares.

    Numbers and ordinal categories have mean 0 and standard deviation 1. Two nominal categories are
    at squared distance 1, or with a taxonomy the share of levels at which their groups differ.
    """
    if isinstance(attribute, NumericSettings) or attribute.kind == "ordinal":
        return standardise(units[:, np.newaxis].astype(np.float64))
    places: Reals = category_places(attribute.categories, attribute.paths)[units]
    return places


def category_places(categories: tuple[object, ...], paths: tuple[tuple[str, ...], ...]) -> Reals:
    """Return a point for each category, at the squared distances of `coordinates`.

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
