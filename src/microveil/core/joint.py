"""Joint clusters: one cluster per record for a whole group of attributes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microveil.core.attribute import AttributeSettings, CategorySettings, NumericSettings
from microveil.core.mdav import joint_clusters, standardise
from microveil.core.pooling import Present
from microveil.core.random_words import WordSource, random_order
from microveil.types import Integers, Reals


def cluster_points(
    points: Reals,
    k: int,
    ties: WordSource,
    *,
    strata: Integers | None = None,
) -> tuple[Integers, int]:
    """Cluster records by MDAV; return each one's cluster, and the number of blocks that took.

    No cluster has records of two strata.

    MDAV breaks ties by position, here by that in a random order, so that equal records are not
    clustered with their neighbours in the table.
    """
    order = random_order(len(points), ties)
    if len(order) < 2**31:
        order = order.astype(np.int32)  # half the memory
    return joint_clusters(points, k, order, strata=strata)


def place_records(
    group: Sequence[AttributeSettings],
    records: int,
    read: Callable[[AttributeSettings], tuple[NDArray[Any], Present]],
) -> Reals:
    """Place the records of a table in the space of a group of attributes, one column at a time.

    `read` returns the values of an attribute that are present, in grid steps or codes, and which
    records they are of. Beside the points, no more than a few columns are held in memory.
    """
    widths = [_width(attribute, records) for attribute in group]
    points, start = np.empty((records, sum(widths))), 0
    for attribute, width in zip(group, widths, strict=True):
        steps, present = read(attribute)
        points[:, start : start + width] = coordinates(steps, attribute, present)
        start += width
    return points


def coordinates(
    steps: NDArray[Any], attribute: AttributeSettings, present: Present | None = None
) -> Reals:
    """Place the values of an attribute in a space whose squared distances MDAV compares.

    Numbers and ordinal categories have mean 0 and standard deviation 1. Two nominal categories are
    at squared distance 1, or with a taxonomy the share of levels at which their groups differ.
    `steps` are those of the records that are present. A missing number is at the mean, a missing
    category at squared distance 1 from all others, and from the middle of an ordinal attribute.
    """
    absent = present is not None and not np.all(present)
    if isinstance(attribute, CategorySettings) and attribute.kind == "nominal":
        places = category_places(attribute.categories, attribute.paths, missing=absent)
        return places[steps if present is None else _codes(steps, present)]
    place = standardise(steps[:, np.newaxis])
    return place if present is None else _with_gaps(place[:, 0], attribute, present, absent=absent)


def _with_gaps(
    place: Reals, attribute: AttributeSettings, present: Present, *, absent: bool
) -> Reals:
    """Give records without a value their place, where `absent` says that there are some."""
    if not absent:
        return place[:, np.newaxis]
    everyone = np.zeros((len(present), 1 if isinstance(attribute, NumericSettings) else 2))
    everyone[present, 0] = place
    everyone[~present, 1:] = 1.0
    return everyone


class Scaling(NamedTuple):
    """What `coordinates` standardises by: the ends of all values, and how they lie between them.

    `mean` and `deviation` are those of values of which the lowest is 0 and the highest 1. `absent`
    says whether some records have no value.
    """

    lowest: float
    highest: float
    mean: float
    deviation: float
    absent: bool


def placed_by(
    steps: NDArray[Any], attribute: AttributeSettings, present: Present, scaling: Scaling
) -> Reals:
    """Place some of the values of an attribute as `coordinates` places all of them."""
    if isinstance(attribute, CategorySettings) and attribute.kind == "nominal":
        places = category_places(attribute.categories, attribute.paths, missing=scaling.absent)
        return places[_codes(steps.astype(np.int64), present)]
    width = scaling.highest - scaling.lowest
    place = (steps - scaling.lowest) / (width or 1.0) - scaling.mean
    place = place / scaling.deviation if scaling.deviation else np.zeros(len(steps))
    return _with_gaps(place, attribute, present, absent=scaling.absent)


def category_places(
    categories: tuple[object, ...], paths: tuple[tuple[str, ...], ...], *, missing: bool = False
) -> Reals:
    """Return a point for each category, and a last one for missing, at `coordinates`'s distances.

    Examples
    --------
    >>> paths = (("health",), ("health",), ("craft",))
    >>> places = category_places(("nurse", "doctor", "smith"), paths)
    >>> [round(float(np.sum((places[0] - place) ** 2)), 3) for place in places]
    [0.0, 0.5, 1.0]
    """
    if missing:
        categories, paths = (*categories, object()), (*paths, ()) if paths else ()
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


def _codes(steps: Integers, present: Present) -> Integers:
    """Return a code for every record: −1, the last place, for those that are missing."""
    codes = np.full(len(present), -1)
    codes[present] = steps
    return codes


def _width(attribute: AttributeSettings, records: int) -> int:
    """Return how many coordinates an attribute has in a table of so many records."""
    if isinstance(attribute, NumericSettings):
        return 1
    missing = attribute.records < records
    if attribute.kind == "ordinal":
        return 1 + missing
    return int(category_places(attribute.categories, attribute.paths, missing=missing).shape[1])
