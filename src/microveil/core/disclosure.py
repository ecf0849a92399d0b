"""Classical disclosure risk as formulas: individual, global and household risk, l-diversity.

Conventions are those of sdcMicro.
"""

from dataclasses import dataclass

import numpy as np

from microveil.types import Integers, Reals

_ALMOST_ALL = 1e-4
"""Share of people outside the sample below which a series is exact, and the logarithm is not."""


def individual_risk(shared: Integers, population: Reals) -> Reals:
    """Chance that the record of a person who is looked for by keys is found (Benedetti–Franconi).

    Parameters
    ----------
    shared
        How many records share the keys, f.
    population
        How many people of the population are estimated to, F: with p = f/F the unknown number is
        negative binomial, and the risk is the mean of its inverse. From f = 3 on that is
        approximated; where F is no more than f it is 1/f.

    Examples
    --------
    >>> individual_risk(np.array([1, 2, 3, 4]), np.array([10.0, 40.0, 60.0, 4.0])).round(6)
    array([0.255843, 0.044333, 0.02439 , 0.25    ])
    """
    sampled = np.minimum(shared / population, 1.0)
    outside = 1 - sampled
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = sampled / outside
        alone = -odds * np.log(sampled)
        two = odds + odds**2 * np.log(sampled)
    nearly = sampled - sampled**2 * (1 / 2 + outside / 3 + outside**2 / 4)
    two = np.where(outside < _ALMOST_ALL, nearly, two)
    more = sampled / (shared - outside)
    risk = np.select(
        [population <= shared, shared == 1, shared == 2], [1 / shared, alone, two], more
    )
    return np.asarray(risk, np.float64)


def risk_threshold(risk: Reals, max_global_risk: float) -> float | None:
    """Individual risk above which records must be brought down to it for a low enough global risk.

    None if the global risk is low enough as it is; 0 if no record's risk is.

    Examples
    --------
    >>> risk_threshold(np.array([1.0, 0.25, 0.25, 0.25, 0.25]), 0.3)
    0.25
    """
    allowed = max_global_risk * len(risk)
    if risk.sum() < allowed:
        return None
    levels, counts = np.unique(risk, return_counts=True)
    levels, counts = levels[::-1], counts[::-1]
    above = np.cumsum(counts) - counts
    below = np.cumsum((levels * counts)[::-1])[::-1]
    low = (below + levels * above < allowed) & (above > 0)
    return float(levels[np.argmax(low)]) if low.any() else 0.0


def household_risk(risk: Reals, household: Integers) -> Reals:
    """Chance for each record that anyone in the household is found: 1 − Π (1 − risk).

    Households are numbered from 0 on; −1 for a record without one, which is one by itself.

    Examples
    --------
    >>> household_risk(np.array([0.5, 0.1, 0.2]), np.array([0, 0, -1])).round(6).tolist()
    [0.55, 0.55, 0.2]
    """
    with np.errstate(divide="ignore"):
        missed = np.log1p(-risk)
    together = household >= 0
    shared: Reals = risk.copy()
    sums = np.bincount(household[together], missed[together])
    shared[together] = -np.expm1(sums[household[together]])
    return shared


def conspicuous(risk: Reals) -> int:
    """Count records whose risk is above 0.1 and above the median by three deviations (MAD)."""
    median = np.median(risk)
    deviation = 1.4826 * np.median(np.abs(risk - median))
    return int(np.sum((risk > median + 3 * deviation) & (risk > 0.1)))


@dataclass(frozen=True, eq=False)
class ClassDiversity:
    """How different the values are in each class of records that share their keys.

    Attributes
    ----------
    distinct
        How many values there are.
    entropy
        exp of their entropy: as many equally frequent values would have it.
    recursive
        The largest l for which the class is recursively (c, l)-diverse.
    """

    distinct: Integers
    entropy: Reals
    recursive: Integers


def class_diversity(codes: Integers, label: Integers, recursion: float = 2.0) -> ClassDiversity:
    """Measure l-diversity in three ways. Codes and labels of classes are from 0 on.

    Examples
    --------
    >>> found = class_diversity(np.array([0, 0, 1, 2, 5]), np.array([0, 0, 0, 0, 1]))
    >>> found.distinct.tolist(), found.entropy.round(4).tolist(), found.recursive.tolist()
    ([3, 1], [2.8284, 1.0], [2, 1])
    """
    values = int(codes.max()) + 1
    pairs, counts = np.unique(label * values + codes, return_counts=True)
    order = np.lexsort((-counts, pairs // values))
    counts, class_ = counts[order], (pairs // values)[order]
    size, distinct = np.bincount(label), np.bincount(class_)
    share = counts / size[class_]
    entropy = np.exp(-np.bincount(class_, share * np.log(share)))
    first = np.cumsum(distinct) - distinct
    not_before = np.cumsum(size)[class_] - (np.cumsum(counts) - counts)
    further = recursion * not_before > counts[first][class_]
    further[first] = False
    return ClassDiversity(distinct, entropy, 1 + np.bincount(class_, further).astype(np.int64))
