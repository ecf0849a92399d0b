"""Singling out: find conditions that one person alone meets."""

from collections.abc import Callable
from functools import partial

import numpy as np

from microveil.attacks.subject import Controlled, Scene, Subject
from microveil.types import Booleans, Integers, Reals

_ATTEMPTS, _TRIES = 500, 20
_MOST_IN_A_CONDITION = 6


def singled_out(subject: Subject, seed: int) -> Controlled:
    """Find conditions that one person alone meets, by conditions that one released row meets.

    A condition is about some attributes of a row at random: as high as there or higher if the value
    is in the upper half, else as low or lower; of a category, the same. One that no other row
    meets, unless it is equal, is tried on the people in the release and, as a control, on as many
    outside it; where none is found in 20 tries, the attempt has failed. Both halves are released.
    Giomi and others (2022), after Cohen and Nissim (2020), "Towards formalizing the GDPR's notion
    of singling out", PNAS 117(15).
    """
    random = np.random.default_rng(seed)
    scenes = subject.halves(seed)
    rate, control = np.mean([_found(scene, random) for scene in scenes], axis=0)
    tried = min(2 * _ATTEMPTS, len(np.unique(subject.owner)))  # about one row they are one
    return Controlled(float(rate), float(control), tried, tried)


def _found(scene: Scene, random: np.random.Generator) -> Reals:
    """Return in how many of the attempts one person in the release, or outside, was found."""
    found, middle = np.zeros(2), np.nanmedian(scene.rows, axis=0)
    for _ in range(_ATTEMPTS):
        meets = _condition(scene, middle, random)
        if meets is not None:
            found += [_one_person(meets(group.values), group.owner) for group in scene.groups]
    return found / _ATTEMPTS


def _one_person(met: Booleans, owner: Integers) -> bool:
    whose = owner[met]
    return len(whose) > 0 and bool((whose == whose[0]).all())


def _condition(
    scene: Scene, middle: Reals, random: np.random.Generator
) -> Callable[[Reals], Booleans] | None:
    """Look for a condition that one released row alone meets."""
    for _ in range(_TRIES):
        row = scene.rows[random.integers(len(scene.rows))]
        width = random.integers(1, min(_MOST_IN_A_CONDITION, len(row)) + 1)
        chosen = random.choice(len(row), width, replace=False)
        meets = partial(_meets, row=row, chosen=chosen, high=row > middle, nominal=scene.nominal)
        if _only_one(scene.rows[meets(scene.rows)]):
            return meets
    return None


def _meets(
    table: Reals, *, row: Reals, chosen: Integers, high: Booleans, nominal: tuple[int, ...]
) -> Booleans:
    met = np.ones(len(table), dtype=np.bool_)
    for a in chosen.tolist():
        if a in nominal:
            met &= table[:, a] == row[a]
        else:
            met &= table[:, a] >= row[a] if high[a] else table[:, a] <= row[a]
    return met


def _only_one(rows: Reals) -> bool:
    return len(rows) > 0 and bool(np.all((rows == rows[0]) | np.isnan(rows)))
