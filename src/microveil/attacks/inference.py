"""Attribute inference: guess one attribute of a person from all others."""

from collections.abc import Callable

import numpy as np

from microveil.attacks.subject import Controlled, PeopleTried, Scene, Subject
from microveil.types import Integers, Reals

CLOSE = 0.05
"""In standard deviations: a number guessed so well is disclosed."""

Guesses = Callable[[Scene, Reals], Reals]
"""How likely the guess of every secret of some records is right: records × secrets."""


def by_nearest_row(subject: Subject, seed: int) -> dict[int, Controlled]:
    """Guess each attribute from all others, by the nearest released row; return one for each.

    A number is guessed if it is within 0.05 standard deviations, a category if it is the same.
    Giomi and others (2022). Empty with a single attribute.
    """
    return inferred(subject, seed, _nearest)


def inferred(subject: Subject, seed: int, guesses: Guesses) -> dict[int, Controlled]:
    """Guess the secrets of people in a release and of the others, in both halves.

    A person counts once in each of the two groups, whatever the number of records. The control is
    the same guess about people outside the release, or the commonest released value for everybody,
    whichever is right more often.
    """
    scenes = subject.halves(seed)
    secrets = scenes[0].secrets
    if scenes[0].rows.shape[1] < 2:
        return {}
    inside, outside, common = (
        np.concatenate([_right(scene, scene.groups[of], guess) for scene in scenes])
        for of, guess in ((0, guesses), (1, guesses), (1, _commonest))
    )
    members, others = (
        np.concatenate([scene.groups[of].owner for scene in scenes]) for of in (0, 1)
    )
    found = {}
    for at, secret in enumerate(secrets):
        rate, tried = share_of_people(inside[:, at], members)
        controls = [share_of_people(each[:, at], others) for each in (outside, common)]
        control, tried_control = max(controls)
        if tried and tried_control:
            found[secret] = Controlled(rate, control, tried, tried_control)
    return found


def _right(scene: Scene, group: PeopleTried, guesses: Guesses) -> Reals:
    right = guesses(scene, group.values)
    return np.where(np.isnan(group.values[:, scene.secrets]), np.nan, right)


def share_of_people(right: Reals, owner: Integers) -> tuple[float, int]:
    """Return the mean over people of what is right of theirs, and how many people that are.

    Examples
    --------
    >>> share_of_people(np.array([1.0, 0.0, 1.0, np.nan]), np.array([7, 7, 8, 9]))
    (0.75, 2)
    """
    known = ~np.isnan(right)
    if not known.any():
        return 0.0, 0
    _, whose = np.unique(owner[known], return_inverse=True)
    each = np.bincount(whose, right[known]) / np.bincount(whose)
    return float(each.mean()), len(each)


def reach_of(scene: Scene, secret: int) -> float:
    """Return how far from the truth a guess may be."""
    values = scene.people[:, secret]
    present = values[~np.isnan(values)]
    return 0.0 if secret in scene.nominal or not len(present) else CLOSE * float(present.std())


def _commonest(scene: Scene, values: Reals) -> Reals:
    """Guess the released value that has most others within reach, for everybody."""
    right = np.zeros((len(values), len(scene.secrets)))
    for at, secret in enumerate(scene.secrets):
        rows, reach = np.sort(scene.rows[:, secret]), reach_of(scene, secret)
        rows = rows[~np.isnan(rows)]
        if len(rows):
            within = np.searchsorted(rows, rows + reach, "right") - np.searchsorted(
                rows, rows - reach
            )
            right[:, at] = np.abs(values[:, secret] - rows[np.argmax(within)]) <= reach
    return right


def _nearest(scene: Scene, values: Reals) -> Reals:
    return np.column_stack([_by_others(scene, values, secret) for secret in scene.secrets])


def _by_others(scene: Scene, values: Reals, secret: int) -> Reals:
    others = [a for a in range(values.shape[1]) if a != secret]
    near = scene.nearest(values, others)
    people, rows = np.nonzero(near)
    away = np.abs(scene.rows[rows, secret] - values[people, secret])
    right = np.bincount(people, away <= reach_of(scene, secret), minlength=len(values))
    chances: Reals = right / near.sum(axis=1)
    return chances
