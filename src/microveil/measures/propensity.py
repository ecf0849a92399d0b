"""Propensity: how well a model tells masked from original records by all attributes together."""

from microveil.compare.asked import Asked
from microveil.compare.encoding import encoded
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.pairing import complete
from microveil.errors import DataError
from microveil.measures import distances


def propensity_figures(seen: Examined, _: Asked) -> Items:
    """Tell masked from original records, categories encoded."""
    original, released = map(complete, encoded(seen.pair))
    try:
        told_apart = distances.propensity(original, released)
    except DataError:
        yield NotComputed(("utility.pmse", "utility.pmse_ratio"), "too_few_complete_in_one")
        return
    share = len(released) / (len(original) + len(released))
    yield Figure("utility.pmse", None, told_apart.pmse, {"largest": share * (1 - share)})
    yield Figure("utility.pmse_ratio", None, told_apart.ratio)
