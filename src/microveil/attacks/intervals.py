"""Interval disclosure: read a value off between the masked values beside a person's own."""

import numpy as np

from microveil.attacks.subject import Controlled, Subject
from microveil.compare.asked import NARROW
from microveil.types import Reals


def interval_disclosure(subject: Subject, seed: int) -> Controlled | None:
    """Take from a person's row, for every number, the interval between the masked values beside it.

    In individual ranking an original value lies between the centroids of the clusters around its
    own. It is disclosed if the interval has it and is narrower than a tenth of a standard
    deviation. The attacker is given the person's own row; the control has somebody else's.
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
    return Controlled(float(rate), float(control), tried, tried)


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
