"""Intruders who run the plan themselves, many times, and compare what comes out with what they see.

Both know the plan and a population; the seeds of their own runs are not that of the release.
"""

import numpy as np

from microveil.benchmarking.subject import Booleans, Outcome, Scene, Subject
from microveil.core.grid import Integers, Reals

SPLITS = 8
"""Random halves of the people; both halves of each are released."""

FALSE_ALARMS = 0.01
"""The share of people outside who may be taken for members."""

LEARNED, TRIED = 20, 40
"""Releases of each of two neighbouring tables that the attack learns on, and is tried on."""

_TELLING = 30
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
    intruder releases both tables many times, learns which ordered values tell them apart, and is
    tried on other releases. The control tosses a coin. Balle, Cherubin and Hayes (2022),
    "Reconstructing training data with informed adversaries", IEEE S&P, with two candidates; the
    audit's informed adversary is the same, see `microveil.auditing`.
    """
    here, there = _two_tables(subject)
    ours, theirs = (
        np.stack([_ordered(subject, chosen, _own_seed(seed, 2 * run + table))
                  for run in range(LEARNED + TRIED)])
        for table, chosen in enumerate((here, there))
    )  # fmt: skip
    ratios = _likelihood_ratios(ours[:LEARNED], theirs[:LEARNED], ours[LEARNED:], theirs[LEARNED:])
    right = np.mean([np.mean(np.sign(side) + 1) / 2 for side in (ratios[0], -ratios[1])])
    return Outcome("neighbour reconstruction", float(right), 0.5, 2 * TRIED)


def _two_tables(subject: Subject) -> tuple[Integers, Integers]:
    people = subject.people
    space = Scene(people, people, people, subject.nominal).space
    places = space.place(people, range(people.shape[1]))
    away = np.sum((places - places.mean(axis=0)) ** 2, axis=1)
    here = np.arange(len(people))
    there = here.copy()
    there[np.argmax(away)] = np.argmin(away)
    return here, there


def _ordered(subject: Subject, chosen: Integers, seed: int) -> Reals:
    """Return all released values, attribute by attribute in rising order: rows are shuffled."""
    rows = subject.release(chosen, seed)
    return np.nan_to_num(np.sort(rows, axis=0), nan=0.0).T.ravel()


def _likelihood_ratios(
    ours: Reals, theirs: Reals, first: Reals, second: Reals
) -> tuple[Reals, Reals]:
    """Add up, over the most telling values, how much likelier runs are of the first table.

    Every value is taken to be normal, with the mean and spread it has in the runs learned on.
    """
    means = [table.mean(axis=0) for table in (ours, theirs)]
    scale = np.abs(means[0]) + np.abs(means[1]) + 1e-9
    spreads = [table.var(axis=0) + (1e-9 * scale) ** 2 for table in (ours, theirs)]
    away = (means[0] - means[1]) ** 2
    telling = (spreads[0] + away) / spreads[1] + (spreads[1] + away) / spreads[0]
    best = np.argsort(telling)[-_TELLING:]

    def ratio(runs: Reals) -> Reals:
        logs = [
            -0.5 * np.log(spread[best]) - (runs[:, best] - mean[best]) ** 2 / (2 * spread[best])
            for mean, spread in zip(means, spreads, strict=True)
        ]
        total: Reals = np.clip(logs[0] - logs[1], -30, 30).sum(axis=1)
        return total

    return ratio(first), ratio(second)


def _own_seed(seed: int, number: int) -> int:
    """Give every shadow release a seed that no release under attack has."""
    return _NEVER_AGAIN * (seed + 1) + number
