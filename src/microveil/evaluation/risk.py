"""Risk: what someone who already knows a lot could learn from a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.grid import Integers, Reals
from microveil.core.tables import UserTable
from microveil.engines.memory import open_table
from microveil.errors import DataError
from microveil.evaluation.utility import check_records, ranks, standard_deviations

if TYPE_CHECKING:
    from scipy.spatial import KDTree

NARROW = 0.1
"""Clusters below this many standard deviations are narrow."""

_TIE = 1 + 1e-9
"""Distances this close are equal: they differ by rounding alone."""

_ROUGH = 5.0
"""How far from the nearest a rough search may end, as a multiple: fast, and mostly enough."""

_TIES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Linkage:
    """Share of records whose own masked record is the nearest one.

    `queried` of `records` were looked up; `low` and `high` hold the share of all of them with 95%
    confidence, and equal `share` when every record was looked up.
    """

    share: float
    chance: float
    queried: int
    records: int
    low: float
    high: float


def record_linkage(
    original: Reals,
    masked: Reals,
    *,
    places: tuple[Reals, Reals] | None = None,
    sample: int | None = 10_000,
    seed: int = 0,
) -> Linkage:
    """Link every original record to its nearest masked record.

    Distances are Euclidean over attributes divided by their standard deviations in the original.
    Categories take part too (as in Domingo-Ferrer and Torra 2001): those of an ordinal attribute as
    ranks in their order, which are numbers like others; those of a nominal one as points `places`
    at squared distance 1, as far apart as numbers that differ by a standard deviation.

    A record whose nearest distance is attained by t masked records, its own among them, counts
    1/t. Linking by chance succeeds for 1 in n. This is the worst case: someone who knows all the
    original values of these attributes.

    Parameters
    ----------
    original, masked
        Records × attributes, in the same order.
    places
        Of the same original and masked records: points of their nominal categories, taken as they
        are. Where these are all there is, `original` and `masked` have no columns.
    sample
        How many records to look up, chosen at random; each is compared with all n masked records.
        None looks up every record, which may take hours for a million records of 20 attributes.
    seed
        Of the choice of records.

    Examples
    --------
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> record_linkage(original, np.array([[1.0], [3.0], [8.5], [8.5]])).share
    0.625
    """
    placed = places or (original[:, :0], masked[:, :0])
    check_records(np.hstack([original, placed[0]]), np.hstack([masked, placed[1]]))
    if sample is not None and sample < 1:
        raise DataError(f"sample must be 1 or more, or None for every record, got {sample}")
    deviations = standard_deviations(original)
    scale = np.where(deviations > 0, deviations, 1.0)
    original = np.hstack([original / scale, placed[0]])
    masked = np.hstack([masked / scale, placed[1]])
    records = len(original)
    queried: Integers = np.arange(records)
    if sample is not None and sample < records:
        queried = np.sort(np.random.default_rng(seed).choice(records, sample, replace=False))
    chances = _chance_of_own(original[queried], masked[queried], masked)
    share = float(chances.mean())
    low, high = (share, share) if len(queried) == records else _interval(share, len(queried))
    return Linkage(share, 1 / records, len(queried), records, low, high)


def _chance_of_own(queries: Reals, own: Reals, masked: Reals) -> Reals:
    """1/t where a query's own masked record is among its t nearest, 0 where it is not."""
    from scipy.spatial import KDTree

    points, counts = np.unique(masked, axis=0, return_counts=True)
    tree = KDTree(points)
    away = np.linalg.norm(queries - own, axis=1)
    rough, _ = tree.query(queries, eps=_ROUGH, workers=-1)
    left = np.flatnonzero(away <= rough * _TIE)  # for all others something nearer was found
    distances, _ = tree.query(queries[left], workers=-1)
    left = left[away[left] <= distances * _TIE]
    chances = np.zeros(len(queries))
    chances[left] = 1 / _records_within(tree, counts, queries[left], away[left] * _TIE)
    return chances


def _records_within(tree: "KDTree", counts: Integers, queries: Reals, reach: Reals) -> Reals:
    """Count the masked records within reach of each query."""
    totals = np.empty(len(queries))
    for first in range(0, len(queries), _TIES_AT_ONCE):
        part = slice(first, first + _TIES_AT_ONCE)
        found = tree.query_ball_point(queries[part], reach[part], workers=-1)
        totals[part] = [counts[points].sum() for points in found]
    return totals


def _interval(share: float, sampled: int) -> tuple[float, float]:
    """Wilson's 95% interval, which still says something when no sampled record was linked."""
    z = 1.96
    centre = share + z**2 / (2 * sampled)
    margin = z * np.sqrt(share * (1 - share) / sampled + z**2 / (4 * sampled**2))
    width = 1 + z**2 / sampled
    low, high = float((centre - margin) / width), float((centre + margin) / width)
    return min(share, max(0.0, low)), max(share, min(1.0, high))


@dataclass(frozen=True)
class Disclosure:
    """Share of values that lie close to their masked value; `chance`: to anybody's."""

    share: float
    chance: float


def rank_disclosure(original: Reals, masked: Reals, *, percent: float = 1.0) -> Disclosure:
    """Share of original values within so many percent of the rank of their masked value.

    Higher is riskier. Values are ranked among the original ones, masked values among the masked
    ones, equal ones sharing the mean of their ranks; a value is disclosed if the two ranks differ
    by at most `percent` of the number of records.

    Examples
    --------
    >>> original, masked = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 40.0, 30.0, 20.0])
    >>> rank_disclosure(original, masked, percent=25)
    Disclosure(share=0.5, chance=0.625)
    """
    check_records(original[:, np.newaxis], masked[:, np.newaxis])
    ranked = ranks(np.column_stack([original, masked]))
    return _disclosure(ranked[:, 0], ranked[:, 1], percent / 100 * len(original))


def value_disclosure(original: Reals, masked: Reals, *, deviations: float = 0.1) -> Disclosure:
    """Share of original values within so many standard deviations of their masked value.

    Higher is riskier.

    Examples
    --------
    >>> original, masked = np.array([0.0, 2.0, 4.0]), np.array([0.0, 1.0, 1.0])
    >>> value_disclosure(original, masked, deviations=0.5).share
    0.6666666666666666
    """
    check_records(original[:, np.newaxis], masked[:, np.newaxis])
    deviation = float(standard_deviations(original[:, np.newaxis])[0])
    return _disclosure(original, masked, deviations * deviation)


def _disclosure(original: Reals, masked: Reals, reach: float) -> Disclosure:
    """Share of records, and of all pairs of an original and a masked value, within reach."""
    reach *= _TIE
    ordered = np.sort(original)
    above = np.searchsorted(ordered, masked + reach, side="right")
    below = np.searchsorted(ordered, masked - reach, side="left")
    return Disclosure(
        share=float(np.mean(np.abs(original - masked) <= reach)),
        chance=float(np.mean(above - below) / len(original)),
    )


@dataclass(frozen=True)
class Classes:
    """Classes of records that share their quasi-identifiers."""

    unique: float
    smallest: int
    records: int


def quasi_identifier_classes(table: UserTable, quasi_identifiers: Sequence[str]) -> Classes:
    """Share of unique records and size of the smallest class on some columns of a table.

    Columns may be of any type; a missing value is a value like any other.

    Examples
    --------
    >>> table = pl.DataFrame({"sex": ["f", "f", "m"], "region": [1, 1, 2]})
    >>> quasi_identifier_classes(table, ["sex", "region"])
    Classes(unique=0.3333333333333333, smallest=1, records=3)
    """
    frame = open_table(table)
    absent = [name for name in quasi_identifiers if name not in frame.columns]
    if absent or not quasi_identifiers:
        found = f"{absent[0]!r}, which is not there" if absent else "none"
        raise DataError(
            f"quasi-identifiers must be columns of the release, got {found} "
            f"(columns: {', '.join(frame.columns)})"
        )
    names = dict.fromkeys(quasi_identifiers)
    keys = {f"key {i}": nw.col(name) for i, name in enumerate(names)}
    sizes = frame.select(**keys).group_by(*keys).agg(records=nw.len())["records"].to_numpy()
    return Classes(float(np.sum(sizes == 1) / len(frame)), int(sizes.min()), len(frame))


@dataclass(frozen=True)
class Widths:
    """Cluster widths (max − min) in standard deviations, each cluster counted by its records."""

    median: float
    ninth_decile: float
    largest: float
    narrow: float


def cluster_widths(clusters: pl.DataFrame, deviations: Mapping[str, float]) -> dict[str, Widths]:
    """Measure what someone who knows all other records learns: level 3 of the certificate.

    Parameters
    ----------
    clusters
        The table of clusters in a `Detail`.
    deviations
        Standard deviations of the attributes to describe. Those that were masked without forming
        clusters are left out of the result.

    Examples
    --------
    >>> clusters = pl.DataFrame({"attribute": ["age", "age"], "records": [3, 4],
    ...                          "smallest": [20.0, 40.0], "largest": [30.0, 60.0]})
    >>> cluster_widths(clusters, {"age": 10.0})
    {'age': Widths(median=2.0, ninth_decile=2.0, largest=2.0, narrow=0.0)}
    """
    formed = clusters.drop_nulls(["smallest", "largest"])
    return {
        name: _widths(formed.filter(attribute=name), deviation)
        for name, deviation in deviations.items()
        if name in formed["attribute"]
    }


def _widths(clusters: pl.DataFrame, deviation: float) -> Widths:
    widths = (clusters["largest"] - clusters["smallest"]).to_numpy() / deviation
    of_records = np.repeat(widths, clusters["records"].to_numpy())
    median, ninth_decile = np.quantile(of_records, [0.5, 0.9], method="inverted_cdf")
    return Widths(
        median=float(median),
        ninth_decile=float(ninth_decile),
        largest=float(of_records.max()),
        narrow=float(np.mean(of_records < NARROW)),
    )


def without_noise(clusters: pl.DataFrame, attributes: Sequence[str]) -> dict[str, float]:
    """Share of records in clusters whose category is released without noise.

    No record of such a cluster could have changed what is released of it by being different, so
    noise hides none of it. Attributes masked without forming clusters are left out of the result.

    Parameters
    ----------
    clusters
        The table of clusters in a `Detail`.
    attributes
        Attributes of categories.

    Examples
    --------
    >>> clusters = pl.DataFrame({"attribute": ["sex", "sex"], "cluster": [0, 1],
    ...                          "records": [6, 4], "sensitivity": [0.0, 1.0]})
    >>> without_noise(clusters, ["sex"])
    {'sex': 0.6}
    """
    formed = clusters.drop_nulls("cluster")
    as_is = formed.filter(sensitivity=0)

    def records(clusters: pl.DataFrame, name: str) -> int:
        return int(clusters.filter(attribute=name)["records"].sum())

    return {
        name: records(as_is, name) / records(formed, name)
        for name in attributes
        if name in formed["attribute"]
    }
