"""Look at many releases of one table for what they must not show."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum, auto
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microveil.lab.audit.models import Model, Published, fingerprints
from microveil.types import Integers, Reals


class Flaw(StrEnum):
    """What releases must not show; the last two never, the others no more often than by chance."""

    NOISE_SIZE = auto()
    SAME_SIGN = auto()
    DEPENDENT_ATTRIBUTES = auto()
    REPEATED_NOISE = auto()
    EXACT_CENTROIDS = auto()
    INSIDE_RANGE = auto()
    TOO_FEW_ALIKE = auto()
    OTHER_CLUSTERS = auto()


Alternative = Literal["two-sided", "greater", "less"]
_STATISTICS: dict[Flaw, tuple[tuple[str, ...], Alternative]] = {
    Flaw.NOISE_SIZE: (("size", "tail"), "two-sided"),
    Flaw.SAME_SIGN: (("sign",), "greater"),
    Flaw.EXACT_CENTROIDS: (("exact",), "greater"),
    Flaw.INSIDE_RANGE: (("outside",), "less"),
}
CHECKS = len(_STATISTICS) + 2

_DRAWS_PER_RELEASE = 20
_VALUES_PER_BATCH = 500_000
_PERMUTATIONS = 999


@dataclass(frozen=True)
class Check:
    """Something that releases were searched for.

    Attributes
    ----------
    looked_for
        The flaw.
    p_value
        The probability, at most, that releases as they should be look like it as much as these do;
        None where they never do.
    where
        The attributes that show it: something is broken.
    """

    looked_for: Flaw
    p_value: float | None
    where: tuple[str, ...]

    @property
    def broken(self) -> bool:
        """Whether it was found."""
        return bool(self.where)


@dataclass(frozen=True, eq=False)
class Observed:
    """What some clusters of an attribute published in many releases, and should publish."""

    name: str
    model: Model
    clusters: Integers
    published: Published


@dataclass(frozen=True, eq=False)
class _Compared:
    """Statistics and fingerprints of releases, and of as many times more draws from the model."""

    name: str
    here: dict[str, Reals]
    drawn: dict[str, Reals]
    fingerprints: tuple[NDArray[np.uint64], NDArray[np.uint64]]


def check_releases(
    tables: Sequence[Sequence[Observed]], alarm: float, random: np.random.Generator
) -> tuple[Check, ...]:
    """Compare releases with draws from what they should be.

    If they are as they should be, anything is found with probability `alarm` at most.

    Parameters
    ----------
    tables
        For each table its attributes. Repeated noise is looked for in all tables, the rest in the
        first one.
    alarm
        The probability of a false alarm, of all checks together.
    random
        Draws from the model.
    """
    compared = [[_compare(one, random) for one in table] for table in tables]
    level = alarm / CHECKS
    checks = [
        _check_statistics(looked_for, *statistics, compared[0], level)
        for looked_for, statistics in _STATISTICS.items()
    ]
    checks.append(_check_attributes(compared[0], level))
    checks.append(_check_releases([one for table in compared for one in table], level, random))
    return tuple(checks)


def _compare(seen: Observed, random: np.random.Generator) -> _Compared:
    """Draw from the model in batches, and keep of them what is compared."""
    model, clusters = seen.model, seen.clusters
    wanted = _DRAWS_PER_RELEASE * len(seen.published)
    batch = max(1, _VALUES_PER_BATCH // max(1, len(clusters)))
    statistics, prints = [], []
    for done in range(0, wanted, batch):
        drawn = model.draw(min(batch, wanted - done), clusters, random)
        statistics.append(model.statistics(drawn, clusters))
        prints.append(fingerprints(drawn))
    return _Compared(
        name=seen.name,
        here=model.statistics(seen.published, clusters),
        drawn={name: np.concatenate([s[name] for s in statistics]) for name in statistics[0]},
        fingerprints=(fingerprints(seen.published), np.concatenate(prints)),
    )


def _check_statistics(
    looked_for: Flaw,
    names: tuple[str, ...],
    alternative: Alternative,
    table: Sequence[_Compared],
    level: float,
) -> Check:
    """Compare statistics, which are one number per release; Bonferroni's correction."""
    found = {
        (one.name, name): _differ(one.here[name], one.drawn[name], alternative)
        for one in table
        for name in names
        if name in one.here
    }
    corrected = {key: min(1.0, p * len(found)) for key, p in found.items()}
    where = dict.fromkeys(attribute for (attribute, _), p in corrected.items() if p < level)
    return Check(looked_for, min(corrected.values(), default=1.0), tuple(where))


def _differ(here: Reals, drawn: Reals, alternative: Alternative) -> float:
    """Test whether one sample is larger or smaller, by Mann and Whitney, or different, by Smirnov.

    Both samples are of independent runs, so the tests hold however a run's values depend on each
    other.
    """
    from scipy.stats import ks_2samp, mannwhitneyu

    if here.min() == here.max() == drawn.min() == drawn.max():
        return 1.0
    other_way = {"greater": "less", "less": "greater", "two-sided": "two-sided"}  # of distributions
    tests = (
        mannwhitneyu(here, drawn, alternative=alternative, method="asymptotic"),
        ks_2samp(here, drawn, alternative=other_way[alternative], method="asymp"),
    )
    return min(1.0, 2 * min(float(test.pvalue) for test in tests))


def _check_attributes(table: Sequence[_Compared], level: float) -> Check:
    """Test whether the noise of first clusters is independent of each other, by Fisher's test.

    The same words give the first cluster that has noise the same sign in every attribute; later
    ones take different numbers of words. Whether noise is above its mean shows the sign.
    """
    from scipy.stats import fisher_exact

    values = {one.name: one.here["first"] for one in table if "first" in one.here}
    above = {name: first > first.mean() for name, first in values.items()}
    first = {name: signs for name, signs in above.items() if 0 < signs.mean() < 1}
    pairs = list(combinations(first, 2))
    if not pairs:
        return Check(Flaw.DEPENDENT_ATTRIBUTES, 1.0, ())
    alike = np.abs(np.atleast_2d(np.corrcoef(np.stack(list(first.values())))))
    pair = pairs[int(np.argmax(alike[np.triu_indices(len(first), k=1)]))]
    one, two = (first[name] for name in pair)
    table_of_signs = [[np.sum(a & b) for b in (two, ~two)] for a in (one, ~one)]
    p = min(1.0, float(fisher_exact(table_of_signs).pvalue) * len(pairs))
    return Check(Flaw.DEPENDENT_ATTRIBUTES, p, pair if p < level else ())


def _check_releases(
    compared: Sequence[_Compared], level: float, random: np.random.Generator
) -> Check:
    """Count pairs of releases that agree in an attribute, and as many draws in their place.

    Releases and draws are alike if all is well: which of them are called releases is a matter of
    chance. So the numbers of pairs, each in units of its deviation, are added up over attributes
    and compared with those of other choices.
    """
    total, where = np.zeros(1 + _PERMUTATIONS), dict[str, None]()
    for one in compared:
        pairs = _pairs(*one.fingerprints, random)
        deviation = pairs.std()
        if deviation > 0:
            scores = (pairs - pairs.mean()) / deviation
            total += scores
            where |= {one.name: None} if scores[0] == scores.max() else {}
    p = float(np.mean(total >= total[0]))
    return Check(Flaw.REPEATED_NOISE, p, tuple(where) if p < level else ())


def _pairs(
    here: NDArray[np.uint64], drawn: NDArray[np.uint64], random: np.random.Generator
) -> Reals:
    """Count pairs of one fingerprint among releases, then among as many of all at random."""
    _, class_of = np.unique(np.concatenate([here, drawn]), return_inverse=True)
    sizes, own = np.bincount(class_of), np.bincount(class_of[: len(here)])
    repeated = sizes > 1
    colours = [*sizes[repeated].tolist(), int(np.sum(~repeated))]
    chosen = random.multivariate_hypergeometric(
        colours, len(here), size=_PERMUTATIONS, method="marginals"
    )[:, :-1]
    counts = [np.sum(own * (own - 1) // 2), *np.sum(chosen * (chosen - 1) // 2, axis=1)]
    return np.array(counts, dtype=np.float64)
