"""Closeness: how many original values lie close to their masked value."""

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure, Items, NotComputed
from microveil.compare.pairing import deviation
from microveil.measures import disclosure_risk

_BOTH = ("risk.rank_disclosure", "risk.value_disclosure")


def closeness_figures(seen: Examined, asked: Asked) -> Items:
    """Compare values one by one: how closely masked values give them away."""
    if not seen.pair.numeric:
        yield NotComputed(_BOTH, "no_numbers")
    for name, values, masked in seen.pair.columns():
        if not deviation(values):
            yield NotComputed(_BOTH, "constant_where_both", name)
            continue
        by_rank = disclosure_risk.rank_disclosure(values, masked, percent=asked.rank_percent)
        of_rank = {"chance": by_rank.chance, "percent": asked.rank_percent}
        yield Figure("risk.rank_disclosure", name, by_rank.share, of_rank)
        by_value = disclosure_risk.value_disclosure(values, masked, deviations=asked.deviations)
        facts: dict[str, Fact] = {
            "chance": by_value.chance,
            "deviations": asked.deviations,
            "microseconds": seen.pair.span(name, asked.deviations),
        }
        yield Figure("risk.value_disclosure", name, by_value.share, facts)
