"""Groups of attributes whose masked values are pooled in the same joint clusters."""

from typing import Annotated

from microveil.core.choices import Pooling
from microveil.plan.parts import PlanPart
from microveil.plan.settings import List, Setting


class Group(PlanPart):
    """Attributes that are pooled in the same joint clusters."""

    attributes: Annotated[List, Setting(
        help="Confidential attributes of the group, each in one group only",
    )]  # fmt: skip
    anonymity: Annotated[int | None, Setting(
        help="Minimum number of records in a joint cluster, by default the plan's",
        more="0 leaves the attributes as they are masked.",
    )] = None  # fmt: skip
    pooling: Annotated[Pooling | None, Setting(
        help="How masked values are pooled in joint clusters, by default as the plan says",
    )] = None  # fmt: skip


def from_names(value: object) -> object:
    """Let a list of names stand for a group."""
    return {"attributes": value} if isinstance(value, list | tuple) else value
