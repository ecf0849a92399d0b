"""Membership inference: tell from a release whether a person is in the table."""

import numpy as np

from microveil.attacks.subject import Controlled, Coordinates, Subject, seed_of_shadow
from microveil.types import Booleans, Reals

SPLITS = 8
"""Random halves of the people; both halves of each are released."""

FALSE_ALARMS = 0.01
"""The share of people outside who may be taken for members."""


def membership_inference(subject: Subject, seed: int) -> Controlled:
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
    return Controlled(
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
        rows = subject.release(chosen, seed_of_shadow(seed, number)).rows
        space = Coordinates(rows, subject.nominal)
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
