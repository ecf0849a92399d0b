"""What a linkage attack found: how many people's rows were picked."""

from dataclasses import dataclass, replace

import numpy as np

from microveil.compare.figures import Figure, Sample
from microveil.plan.scenarios import Scenario


@dataclass(frozen=True)
class Linked:
    """What an attacker found.

    Attributes
    ----------
    id
        Of the attack.
    share
        Share of the people attacked whose own record was picked. Where the pick is one of several
        equal records, it is the expected share: 1 in the number of them.
    low, high
        Hold the share among all people known with 95% confidence (Wilson); equal to `share` where
        all of them were attacked.
    attacked, known, records
        People attacked, people whose values the attacker knows, and records released.
    anew
        With how many times the epsilon a sample of the records was protected anew by the same
        plan, to try it on; None where it was tried on the release.
    """

    id: str
    share: float
    low: float
    high: float
    attacked: int
    known: int
    records: int
    anew: float | None = None

    @property
    def chance(self) -> float:
        """The share of people found by picking rows at random."""
        return 1 / self.records

    @property
    def luck(self) -> float:
        """The share that picking rows at random finds, or less, in 99 of 100 releases."""
        return luck(self.chance, self.attacked)


def luck(chance: float, tried: int) -> float:
    """Return the share of guesses that are right, or fewer, in 99 of 100 trials.

    Examples
    --------
    >>> luck(1 / 9, 9) * 9, luck(1 / 1_000, 1_000) * 1_000
    (4.0, 4.0)
    """
    from scipy.stats import binom

    return float(binom.ppf(0.99, tried, min(1.0, chance)) / tried)


def linked_share(id_: str, share: float, attacked: int, known: int, records: int) -> Linked:
    """Return a share of people found, with its interval where these are a sample."""
    low, high = (share, share) if attacked == known else wilson(share, attacked)
    return Linked(id_, share, low, high, attacked, known, records)


def tried_anew(found: Linked, records: int, times: float) -> Linked:
    """Return what was found in a sample of so many records, with so many times the epsilon."""
    low, high = wilson(found.share, found.attacked)
    return replace(found, low=low, high=high, known=records, records=records, anew=times)


def wilson(share: float, sampled: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval, by default of 95%, which says something when nobody was linked."""
    centre = share + z**2 / (2 * sampled)
    margin = z * np.sqrt(share * (1 - share) / sampled + z**2 / (4 * sampled**2))
    width = 1 + z**2 / sampled
    low, high = float((centre - margin) / width), float((centre + margin) / width)
    return min(share, max(0.0, low)), max(share, min(1.0, high))


def linkage_figure(linked: Linked, scenario: Scenario, proved: int | None) -> Figure:
    """Return how many were linked; `proved` is 1 in how many pooling allows at most.

    Where more happen to be linked than that, nobody can tell which of the links are right.
    """
    return Figure(
        linked.id,
        None if scenario == Scenario() else scenario.label,
        linked.share,
        {
            "chance": linked.chance,
            "luck": linked.luck,
            "known": scenario.known,
            "people": scenario.people,
        },
        sample_of(linked),
        None if proved is None else 1 / proved,
    )


def sample_of(linked: Linked) -> Sample | None:
    """Return what a share was estimated from; None if everybody was attacked."""
    if linked.attacked == linked.known:
        return None
    return Sample(linked.attacked, linked.known, linked.low, linked.high, linked.anew)
