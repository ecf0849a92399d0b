"""Risk: what someone who already knows a lot could learn from a release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.compare.asked import NARROW
from microveil.compare.estimates import standard_deviations
from microveil.core.attribute import MOSTLY
from microveil.measures.distances import check_records, ranks
from microveil.types import Integers, Reals

_TIE = 1 + 1e-9
"""Distances this close are equal: they differ by rounding alone."""


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
    records = clusters["records"].to_numpy()
    median, ninth_decile = quantiles_of_records(widths, records, (0.5, 0.9))
    return Widths(
        median=median,
        ninth_decile=ninth_decile,
        largest=float(widths.max()),
        narrow=float(records[widths < NARROW].sum() / records.sum()),
    )


def quantiles_of_records(values: Reals, records: Integers, shares: Sequence[float]) -> list[float]:
    """Return quantiles of values each of which stands for so many records.

    Examples
    --------
    >>> quantiles_of_records(np.array([2.0, 1.0]), np.array([1, 9]), [0.5, 0.9, 0.95])
    [1.0, 1.0, 2.0]
    """
    order = np.argsort(values)
    up_to = np.cumsum(records[order])
    at = np.searchsorted(up_to, np.array(shares) * up_to[-1] * (1 - 1e-12))
    return [float(value) for value in values[order][at]]


def without_noise(
    clusters: pl.DataFrame | pl.LazyFrame, attributes: Sequence[str]
) -> dict[str, float]:
    """Share of records in clusters whose value or category is released without noise.

    No record of such a cluster could have changed what is released of it by being different, so
    noise hides none of it. Attributes masked without forming clusters are left out of the result.

    Parameters
    ----------
    clusters
        The table of clusters in a `Detail`.
    attributes
        Attributes of any kind.

    Examples
    --------
    >>> clusters = pl.DataFrame({"attribute": ["sex", "sex"], "cluster": [0, 1],
    ...                          "records": [6, 4], "sensitivity": [0.0, 1.0],
    ...                          "scale": [None, None]})
    >>> without_noise(clusters, ["sex"])
    {'sex': 0.6}
    """
    as_is = pl.coalesce("scale", "sensitivity") == 0
    records = pl.col("records")
    formed = clusters.lazy().drop_nulls("cluster").group_by("attribute")
    shares = formed.agg(records.filter(as_is).sum() / records.sum()).collect()
    found = dict(shares.iter_rows())
    return {name: found[name] for name in attributes if name in found}


def too_few_share(
    clusters: pl.DataFrame | pl.LazyFrame, enough: Mapping[str, int]
) -> dict[str, tuple[int, float]]:
    """Count the values that go out without noise, and fewer than enough persons have.

    And the share of values which few persons have, and which noise leaves as they were in more than
    half of all releases, by rounding or at an end of the domain. Of attributes that form clusters.

    Parameters
    ----------
    clusters
        The table of clusters in a `Detail`.
    enough
        For each attribute how many must have a value that goes out without noise.

    Examples
    --------
    >>> clusters = pl.DataFrame({"attribute": ["born"] * 3, "cluster": [0, 1, 2],
    ...                          "records": [3, 30, 7], "sensitivity": [0.0, 0.0, 0.1],
    ...                          "scale": [0.0, 0.0, 0.5], "shared_by": [3, 10, 7],
    ...                          "unmoved": [1.0, 1.0, 0.6]})
    >>> too_few_share(clusters, {"born": 10})
    {'born': (3, 0.175)}
    """
    wanted = pl.DataFrame({"attribute": [*enough], "enough": [*enough.values()]})
    records, as_is = pl.col("records"), pl.coalesce("scale", "sensitivity") == 0
    few = pl.col("shared_by") < pl.col("enough")
    stay = ~as_is & few & (pl.col("unmoved") > MOSTLY)
    if "shared_by" not in clusters.lazy().collect_schema():  # written by an earlier version
        return {}
    formed = clusters.lazy().drop_nulls("cluster").join(wanted.lazy(), "attribute")
    found = formed.group_by("attribute").agg(
        records.filter(as_is & few).sum().alias("exact"),
        (records.filter(stay).sum() / records.sum()).alias("unmoved"),
    )
    rows = {name: (exact, unmoved) for name, exact, unmoved in found.collect().iter_rows()}
    return {name: rows[name] for name in enough if name in rows}


def distinct_values(codes: Integers, label: Integers) -> Integers:
    """Count the different values in each joint cluster (l-diversity).

    Examples
    --------
    >>> distinct_values(np.array([7, 7, 1, 2]), np.array([0, 0, 1, 1]))
    array([1, 2])
    """
    pairs = np.unique(np.column_stack([label, codes]), axis=0)
    return np.bincount(pairs[:, 0])


def distances_to_all(codes: Integers, label: Integers, *, ordered: bool) -> Reals:
    """How far the values in each joint cluster are distributed from those of all (t-closeness).

    The earth mover's distance: between values in order, neighbours of m being 1/(m − 1) apart, or
    between categories without order, all 1 apart. Codes are from 0 on.

    Examples
    --------
    >>> codes, label = np.array([0, 1, 2, 3]), np.array([0, 0, 1, 1])
    >>> distances_to_all(codes, label, ordered=True)
    array([0.33333333, 0.33333333])
    >>> distances_to_all(codes, label, ordered=False)
    array([0.5, 0.5])
    """
    _, codes = np.unique(codes, return_inverse=True)
    values = int(codes.max()) + 1
    if values == 1:
        return np.zeros(int(label.max()) + 1)
    return _moved_in_order(codes, label, values) if ordered else _moved(codes, label, values)


def _moved(codes: Integers, label: Integers, values: int) -> Reals:
    """Half the sum of differences between the shares of each category."""
    size, all_shares = np.bincount(label), np.bincount(codes) / len(codes)
    pairs, counts = np.unique(label * values + codes, return_counts=True)
    cluster, category = np.divmod(pairs, values)
    shares = counts / size[cluster]
    here = np.abs(shares - all_shares[category]) - all_shares[category]
    moved: Reals = (1 + np.bincount(cluster, here)) / 2
    return moved


def _moved_in_order(codes: Integers, label: Integers, values: int) -> Reals:
    """Sum up differences between distribution functions, over stretches where a cluster's is flat.

    There its height h meets the rising one of all records, F, at most once: Σ |h − F| is a
    difference of sums of F on both sides of that place.
    """
    below = np.cumsum(np.bincount(codes)) / len(codes)
    sums = np.append(0.0, np.cumsum(below))
    order = np.lexsort((codes, label))
    size = np.bincount(label)
    ends = np.cumsum(size)
    member = np.arange(len(codes)) - np.repeat(ends - size, size)
    start = codes[order]
    stop = np.append(start[1:], values - 1)
    stop[ends - 1] = values - 1
    height = (member + 1) / np.repeat(size, size)
    first = start[ends - size]
    before = _area(np.zeros(len(size)), np.zeros_like(first), first, below, sums)
    after = np.bincount(label[order], _area(height, start, stop, below, sums))
    moved: Reals = (before + after) / (values - 1)
    return moved


def _area(height: Reals, start: Integers, stop: Integers, below: Reals, sums: Reals) -> Reals:
    """Sum |height − below| over positions from start to before stop."""
    meets = np.clip(np.searchsorted(below, height), start, np.maximum(start, stop))
    left = height * (meets - start) - (sums[meets] - sums[start])
    right = sums[np.maximum(start, stop)] - sums[meets] - height * (np.maximum(start, stop) - meets)
    area: Reals = left + right
    return area
