"""Neighbour reconstruction: tell two values of a person apart, knowing every other record."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microveil.attacks.subject import Controlled, Coordinates, Subject, seed_of_shadow
from microveil.types import Booleans, Integers, Reals

LEARNED, TRIED = 20, 30
"""Releases of each of two neighbouring tables that the attack learns on, and is tried on."""

_TELLING = 10  # numbers that are looked at
_ENDS = 5  # values at each end of an attribute
_DECISIVE = 0.9  # by how much shares of releases differ
_CERTAIN = 10.0

_Look = tuple[Reals, Booleans]
"""Of one release: numbers that may tell, and which people next to each other share a value."""


def neighbour_reconstruction(subject: Subject, seed: int) -> Controlled:
    """Tell which of two values a person has, knowing every other record, the plan and the two.

    The person is the one farthest from all, who may also be like the one nearest to the middle. The
    attacker is given which row is whose, releases both tables many times, learns what tells them
    apart, and is tried on other releases. The control tosses a coin. Balle, Cherubin and Hayes
    (2022), "Reconstructing training data with informed adversaries", IEEE S&P, with two candidates;
    `microveil.lab.audit` has the same attacker, who is not given the rows.
    """
    known = _Known.of(subject)
    there = known.here.copy()
    there[known.person] = known.like
    runs = range(LEARNED + TRIED)
    ours, theirs = (
        [
            known.look(subject.release(chosen, seed_of_shadow(seed, 2 * run + table)).rows)
            for run in runs
        ]
        for table, chosen in enumerate((known.here, there))
    )
    ratio = _likelihood_ratio(ours[:LEARNED], theirs[:LEARNED])
    right = [[np.sign(ratio(look)) for look in ours[LEARNED:]],
             [-np.sign(ratio(look)) for look in theirs[LEARNED:]]]  # fmt: skip
    return Controlled(float(np.mean(right) + 1) / 2, 0.5, 2 * TRIED)


@dataclass(frozen=True, eq=False)
class _Known:
    """What the attacker knows: the table, whom it is about, and who else this may be like.

    `order` has the others for each attribute by their original values.
    """

    here: Integers
    person: int
    like: int
    order: Integers

    @classmethod
    def of(cls, subject: Subject) -> "_Known":
        people = subject.people
        space = Coordinates(people, subject.nominal)
        places = space.place(people, range(people.shape[1]))
        away = np.sum((places - places.mean(axis=0)) ** 2, axis=1)
        here, person = np.arange(len(people)), int(np.argmax(away))
        order = np.argsort(np.delete(people, person, axis=0), axis=0, kind="stable")
        order += order >= person
        return cls(here, person, int(np.argmin(away)), order)

    def look(self, rows: Reals) -> _Look:
        """Take what may tell: the person's row, means, extremes, and who shares values."""
        ranked = np.sort(rows, axis=0)
        parts = [rows[self.person], rows.mean(axis=0), ranked[:_ENDS], ranked[-_ENDS:]]
        numbers = np.nan_to_num(np.concatenate([part.ravel() for part in parts]), nan=0.0)
        beside = np.take_along_axis(rows, self.order, axis=0)
        return numbers, (beside[1:] == beside[:-1]).ravel()


def _likelihood_ratio(ours: list[_Look], theirs: list[_Look]) -> Callable[[_Look], float]:
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

    def ratio(look: _Look) -> float:
        logs = [
            -np.log(width[best]) - np.abs(look[0][best] - centre[best]) / width[best]
            for centre, width in zip(centres, widths, strict=True)
        ]
        by_numbers = float(np.clip(logs[0] - logs[1], -_CERTAIN, _CERTAIN).sum())
        nearer = [np.abs(look[1][decisive] - share[decisive]) for share in shares]
        return by_numbers + _CERTAIN * float(np.sum(nearer[1] - nearer[0]))

    return ratio
