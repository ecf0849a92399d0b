"""How many people a row is hidden among: the more there are, the more it may be at no loss."""

from microveil.plan.settings import RECOMMENDED

_CROWDS = {2_000: 50, 0: RECOMMENDED["anonymity"]}
"""The crowd from so many persons on, measured in bench/crowds.py."""


def crowd_of(persons: int) -> int:
    """Return how many of so many persons to hide a row among.

    Examples
    --------
    >>> [crowd_of(persons) for persons in (7, 100, 1_999, 2_000, 1_000_000)]
    [7, 25, 25, 50, 50]
    """
    crowd: int = next(crowd for least, crowd in _CROWDS.items() if persons >= least)
    return max(2, min(crowd, persons))
