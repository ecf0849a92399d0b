"""Every attack of the benchmark, and who makes it."""

from collections.abc import Callable

from microveil.lab.benchmark.inferring import (
    attribute_inference,
    interval_disclosure,
    linkability,
    singling_out,
)
from microveil.lab.benchmark.linking import nearest_linkage, one_to_one_linkage, structure_linkage
from microveil.lab.benchmark.shadowing import membership_inference, neighbour_reconstruction
from microveil.lab.benchmark.subject import Outcome, Subject

Attack = Callable[[Subject, int], Outcome | None]

ATTACKS: tuple[Attack, ...] = (
    nearest_linkage,
    one_to_one_linkage,
    structure_linkage,
    interval_disclosure,
    attribute_inference,
    singling_out,
    linkability,
    membership_inference,
    neighbour_reconstruction,
)

INFORMED = "neighbour reconstruction"
"""The attack of someone who knows every record but one; all others know people's values."""
