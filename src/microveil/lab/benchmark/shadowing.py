"""Intruders who run the plan themselves, many times, and compare what comes out with what they see.

Both know the plan and a population; the seeds of their own runs are not that of the release.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microveil.lab.benchmark.subject import Outcome, Scene, Subject
from microveil.types import Booleans, Integers, Reals

SPLITS = 8
"""Random halves of the people; both halves of each are released."""

FALSE_ALARMS = 0.01
"""The share of people outside who may be taken for members."""

LEARNED, TRIED = 20, 30
"""Releases of each of two neighbouring tables that the attack learns on, and is tried on."""

_TELLING = 10  # numbers that are looked at
_ENDS = 5  # values at each end of an attribute
_DECISIVE = 0.9  # by how much shares of releases differ
_CERTAIN = 10.0
_NEVER_AGAIN = 1_000_003


def membership_inference(subject: Subject, seed: int) -> Outcome:
    """Tell from a release whether a person is in the table, by shadow releases with and without.

    The sign is how near the nearest row is, compared for every person with releases of other
    tables that hold the person and that do not. The rate is that of members recognised while 1% of
    the others are taken for members. Carlini, Chien, Nasr, Song, Terzis and Tramèr (2022),
    "Membership inference attacks from first principles", IEEE S&P; on releases of tables Stadler,
    Oprisanu and Troncoso (2022), "Synthetic data: anonymisation groundhog day", USENIX Security.
    """
    inside, signs = _shadows(subject, seed)
    scores = _calibrated(inside, signs)
    members, others = scores[inside], scores[~inside]
    threshold = np.quantile(others, 1 - FALSE_ALARMS)
    return Outcome(
        "membership inference",
        float(np.mean(members > threshold)),
        float(np.mean(others > threshold)),
        len(subject.people),
        auc=_area(members, others),
    )


def _shadows(subject: Subject, seed: int) -> tuple[Booleans, Reals]:
    """Release random halves; return who was in each, and how near everybody's nearest row is."""
    from scipy.spatial import KDTree

    people = len(subject.people)
    inside, signs = np.zeros((2 * SPLITS, people), dtype=np.bool_), np.zeros((2 * SPLITS, people))
    for number in range(2 * SPLITS):
        order = np.random.default_rng([seed, number // 2]).permutation(people)
        chosen = np.sort(order[: people // 2] if number % 2 else order[people // 2 :])
        rows = subject.release(chosen, _own_seed(seed, number))
        space = Scene(rows, rows, rows, subject.nominal).space
        every = range(rows.shape[1])
        away, _ = KDTree(space.place(rows, every)).query(space.place(subject.people, every))
        inside[number, chosen] = True
        signs[number] = -np.log(away + 1e-6)
    return inside, signs


def _calibrated(inside: Booleans, signs: Reals) -> Reals:
    """Compare every sign with those of the same person in other releases, with and without."""
    scores = np.zeros_like(signs)
    for number in range(len(signs)):
        rest = np.arange(len(signs)) != number
        with_, without = (_moments(signs[rest], which[rest]) for which in (inside, ~inside))
        spread = (with_[1] + without[1]) / 2
        spread = spread + spread.mean() + 1e-12  # of few releases: drawn to that of all
        middle = (with_[0] + without[0]) / 2
        scores[number] = (signs[number] - middle) * (with_[0] - without[0]) / spread
    return scores


def _moments(signs: Reals, which: Booleans) -> tuple[Reals, Reals]:
    number = np.maximum(which.sum(axis=0), 1)
    mean = np.sum(signs * which, axis=0) / number
    return mean, np.sum((signs - mean) ** 2 * which, axis=0) / number


def _area(members: Reals, others: Reals) -> float:
    """Return the chance that a member scores higher than somebody else; ties count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, members, "left") + np.searchsorted(ordered, members, "right")
    return float(np.mean(below) / 2 / len(others))


def neighbour_reconstruction(subject: Subject, seed: int) -> Outcome:
    """Tell which of two values a person has, knowing every other record, the plan and the two.

    The person is the one farthest from all, who may also be like the one nearest to the middle. The
    intruder is given which row is whose, releases both tables many times, learns what tells them
    apart, and is tried on other releases. The control tosses a coin. Balle, Cherubin and Hayes
    (2022), "Reconstructing training data with informed adversaries", IEEE S&P, with two candidates;
    `microveil.lab.audit` has the same adversary, who is not given the rows.
    """
    known = _Known.of(subject)
    there = known.here.copy()
    there[known.person] = known.like
    runs = range(LEARNED + TRIED)
    ours, theirs = (
        [known.look(subject.release(chosen, _own_seed(seed, 2 * run + table))) for run in runs]
        for table, chosen in enumerate((known.here, there))
    )
    ratio = _likelihood_ratio(ours[:LEARNED], theirs[:LEARNED])
    right = [[np.sign(ratio(look)) for look in ours[LEARNED:]],
             [-np.sign(ratio(look)) for look in theirs[LEARNED:]]]  # fmt: skip
    return Outcome("neighbour reconstruction", float(np.mean(right) + 1) / 2, 0.5, 2 * TRIED)


Look = tuple[Reals, Booleans]
"""Of one release: numbers that may tell, and which people next to each other share a value."""


@dataclass(frozen=True, eq=False)
class _Known:
    """What the intruder knows: the table, whom it is about, and who else this may be like.

    `order` has the others for each attribute by their original values.
    """

    here: Integers
    person: int
    like: int
    order: Integers

    @classmethod
    def of(cls, subject: Subject) -> "_Known":
        people = subject.people
        space = Scene(people, people, people, subject.nominal).space
        places = space.place(people, range(people.shape[1]))
        away = np.sum((places - places.mean(axis=0)) ** 2, axis=1)
        here, person = np.arange(len(people)), int(np.argmax(away))
        order = np.argsort(np.delete(people, person, axis=0), axis=0, kind="stable")
        order += order >= person
        return cls(here, person, int(np.argmin(away)), order)

    def look(self, rows: Reals) -> Look:
        """Take what may tell: the person's row, means, extremes, and who shares values."""
        ranked = np.sort(rows, axis=0)
        parts = [rows[self.person], rows.mean(axis=0), ranked[:_ENDS], ranked[-_ENDS:]]
        numbers = np.nan_to_num(np.concatenate([part.ravel() for part in parts]), nan=0.0)
        beside = np.take_along_axis(rows, self.order, axis=0)
        return numbers, (beside[1:] == beside[:-1]).ravel()


def _likelihood_ratio(ours: list[Look], theirs: list[Look]) -> Callable[[Look], float]:
    """Learn to say how much likelier a release is of the first table than of the second.

    Numbers are taken to follow Laplace distributions, of which the most telling count. Who shares
    values counts where that is nearly certain in one table and nearly ruled out in the other.
    """
    numbers = [np.stack([look[0] for look in looks]) for looks in (ours, theirs)]
    shares = [np.mean([look[1] for look in looks], axis=0) for looks in (ours, theirs)]
    centres = [np.median(table, axis=0) for table in numbers]
    size = np.abs(centres[0]) + np.abs(centres[1]) + 1e-9
    widths = [np.abs(table - centre).mean(axis=0) + 1e-9 * size
              for table, centre in zip(numbers, centres, strict=True)]  # fmt: skip
    away = np.abs(centres[0] - centres[1])
    telling = (widths[0] + away) / widths[1] + (widths[1] + away) / widths[0]
    best = np.argsort(telling)[-_TELLING:]
    decisive = np.abs(shares[0] - shares[1]) > _DECISIVE

    def ratio(look: Look) -> float:
        logs = [
            -np.log(width[best]) - np.abs(look[0][best] - centre[best]) / width[best]
            for centre, width in zip(centres, widths, strict=True)
        ]
        by_numbers = float(np.clip(logs[0] - logs[1], -_CERTAIN, _CERTAIN).sum())
        nearer = [np.abs(look[1][decisive] - share[decisive]) for share in shares]
        return by_numbers + _CERTAIN * float(np.sum(nearer[1] - nearer[0]))

    return ratio


def _own_seed(seed: int, number: int) -> int:
    """Give every shadow release a seed that no release under attack has."""
    return _NEVER_AGAIN * (seed + 1) + number
