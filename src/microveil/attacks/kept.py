"""Kept columns: known to the attacker beside the masked attributes, they tell pooled rows apart."""

from microveil.attacks.linked import sample_of
from microveil.attacks.nearest import link_to_nearest
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure
from microveil.plan.scenarios import Scenario


def kept_linkage_figure(seen: Examined, _: Scenario, asked: Asked) -> Figure | None:
    """Link people by masked attributes and kept columns; None if nothing is kept."""
    names = kept_columns(seen)
    if not names:
        return None
    both = Scenario(known=(*seen.pair.attributes, *names))
    linked = link_to_nearest(seen, both, asked.most_attacked, asked.seed)
    facts = {"chance": linked.chance, "luck": linked.luck}
    return Figure(
        "risk.linkage_with_kept", ", ".join(names), linked.share, facts, sample_of(linked)
    )


def kept_columns(seen: Examined) -> tuple[str, ...]:
    """Return the columns that were published as they are."""
    released = seen.given.table.columns
    return tuple(name for name in seen.planned.kept if name in released)
