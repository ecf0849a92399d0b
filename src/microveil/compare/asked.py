"""What an evaluation is asked for: how values are compared, and how many people are attacked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from microveil.plan.uses import Use

Scale = Literal["std", "variance"]

NARROW = 0.1
"""In standard deviations: an interval narrower than this tells the value in it."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What to measure, and at what effort.

    Attributes
    ----------
    scale, rank_percent, deviations, quasi_identifiers, target, estimator, train, seed
        As for `evaluate`.
    uses
        Uses besides those of the plan.
    most_attacked
        People to look for by distance, drawn at random; None for everybody.
    most_assigned
        People to give rows of their own in tables too large to be looked at as a whole.
    most_by_structure
        Records up to which the attack by shared values is made on the release itself.
    """

    scale: Scale = "std"
    rank_percent: float = 1.0
    deviations: float = 0.1
    quasi_identifiers: Sequence[str] = ()
    target: Any = None
    estimator: Any = None
    train: float = 0.66
    uses: Sequence[Use] = ()
    most_attacked: int | None = 10_000
    most_assigned: int = 2_000
    most_by_structure: float = float("inf")
    seed: int = 0
