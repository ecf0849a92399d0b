"""Intruders who learn something of a person, and a control group they should learn it of as well.

Singling out, linkability and inference are the three criteria of the Article 29 Working Party's
opinion 05/2014 on anonymisation techniques. Here as Giomi and others (2022) attack them: the
release is made of one half of the people, and whatever succeeds as often with the other half is
what the release tells of everybody.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from microveil.lab.benchmark.subject import Outcome, Scene, Subject, nearest
from microveil.measures.disclosure_risk import NARROW
from microveil.types import Booleans, Integers, Reals

CLOSE = 0.05
"""In standard deviations: a number guessed so well is disclosed."""

MOST_PEOPLE = 500
"""People attacked in each of the two halves."""

_ATTEMPTS, _TRIES = 500, 20
_MOST_IN_A_CONDITION = 6


def interval_disclosure(subject: Subject, seed: int) -> Outcome | None:
    """Take from a person's row, for every number, the interval between the masked values beside it.

    In individual ranking an original value lies between the centroids of the clusters around its
    own. It is disclosed if the interval has it and is narrower than a tenth of a standard
    deviation. The intruder is given the person's own row; the control has somebody else's.
    Domingo-Ferrer, Mateo-Sanz, Oganian and Torres (2002), "On the security of microaggregation with
    individual ranking: analytical attacks", IJUFKS 10(5). None without numbers.
    """
    scene = subject.whole(seed)
    numbers = [a for a in range(scene.rows.shape[1]) if a not in scene.nominal]
    if not numbers:
        return None
    others = np.random.default_rng(seed).permutation(len(scene.rows))
    shares = [
        [_disclosed(scene.people[:, a], rows[:, a]) for a in numbers]
        for rows in (scene.rows, scene.rows[others])
    ]
    rate, control = np.mean(shares, axis=1)
    tried = len(scene.people)
    return Outcome("interval disclosure", float(rate), float(control), tried, tried)


def _disclosed(values: Reals, masked: Reals) -> float:
    """Share of values inside the narrow interval that the masked values beside theirs leave."""
    both = ~np.isnan(values) & ~np.isnan(masked)
    values, masked = values[both], masked[both]
    if not len(values) or np.ptp(values) == 0:
        return 0.0
    seen, place = np.unique(masked, return_inverse=True)
    ends = np.concatenate([[-np.inf], seen, [np.inf]])
    low, high = ends[place], ends[place + 2]
    narrow = high - low < NARROW * values.std()
    return float(np.mean(narrow & (low <= values) & (values <= high)))


def attribute_inference(subject: Subject, seed: int) -> Outcome | None:
    """Guess each attribute from all others, by the nearest released row.

    A number is guessed if it is within 0.05 standard deviations, a category if it is the same.
    Giomi and others (2022). None with a single attribute.
    """
    scene = subject.half(seed)
    attributes = range(scene.rows.shape[1])
    if len(attributes) < 2:
        return None
    people, outside = _both(scene, seed)
    guessed = [[_inferred(scene, group, a) for a in attributes] for group in (people, outside)]
    rate, control = (float(np.mean(shares)) for shares in guessed)
    return Outcome("attribute inference", rate, control, len(people), len(outside))


def _inferred(scene: Scene, group: Reals, secret: int) -> float:
    others = [a for a in range(group.shape[1]) if a != secret]
    near = nearest(scene.space.place(group, others), scene.space.place(scene.rows, others))
    values = group[:, secret, np.newaxis]
    away = np.abs(scene.rows[:, secret] - values)
    reach = 0.0 if secret in scene.nominal else CLOSE * _deviation(scene.people[:, secret])
    right = away <= reach
    known = ~np.isnan(values[:, 0])
    chances = (near & right).sum(axis=1) / near.sum(axis=1)
    return float(chances[known].mean()) if known.any() else 0.0


def linkability(subject: Subject, seed: int) -> Outcome | None:
    """Link what two sources know of a person: both lead to the same released row.

    The attributes are parted in two at random, and the nearest rows by each part looked for. Giomi
    and others (2022), with one neighbour. None with a single attribute.
    """
    scene = subject.half(seed)
    order = np.random.default_rng(seed).permutation(scene.rows.shape[1])
    if len(order) < 2:
        return None
    parts = order[: len(order) // 2], order[len(order) // 2 :]
    groups = _both(scene, seed)
    rate, control = (_linkable(scene, group, parts) for group in groups)
    return Outcome("linkability", rate, control, len(groups[0]), len(groups[1]))


def _linkable(scene: Scene, group: Reals, parts: tuple[Integers, Integers]) -> float:
    one, two = (
        nearest(scene.space.place(group, part), scene.space.place(scene.rows, part))
        for part in parts
    )
    same = (one & two).sum(axis=1) / one.sum(axis=1) / two.sum(axis=1)
    return float(same.mean())


def singling_out(subject: Subject, seed: int) -> Outcome:
    """Find conditions that one person alone meets, by conditions that one released row meets.

    A condition is about some attributes of a row at random: as high as there or higher if the value
    is in the upper half, else as low or lower; of a category, the same. One that no other row
    meets, unless it is equal, is tried on the people in the release and, as a control, on as many
    outside it; where none is found in 20 tries, the attempt has failed. Giomi and others (2022),
    after Cohen and Nissim (2020), "Towards formalizing the GDPR's notion of singling out", PNAS
    117(15).
    """
    scene, random = subject.half(seed), np.random.default_rng(seed)
    groups = scene.people, scene.outside[: len(scene.people)]
    found = np.zeros(2)
    for _ in range(_ATTEMPTS):
        meets = _condition(scene, random)
        if meets is not None:
            found += [np.count_nonzero(meets(group)) == 1 for group in groups]
    rate, control = found / _ATTEMPTS
    return Outcome("singling out", float(rate), float(control), _ATTEMPTS, _ATTEMPTS)


def _condition(scene: Scene, random: np.random.Generator) -> Callable[[Reals], Booleans] | None:
    """Look for a condition that one released row alone meets."""
    middle = np.nanmedian(scene.rows, axis=0)
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


def _both(scene: Scene, seed: int) -> tuple[Reals, Reals]:
    """Draw as many people from the release as from outside it."""
    random = np.random.default_rng(seed)
    number = min(MOST_PEOPLE, len(scene.people), len(scene.outside))
    people, outside = (
        group[random.choice(len(group), number, replace=False)]
        for group in (scene.people, scene.outside)
    )
    return people, outside


def _deviation(values: Reals) -> float:
    present = values[~np.isnan(values)]
    return float(present.std()) if len(present) else 0.0
