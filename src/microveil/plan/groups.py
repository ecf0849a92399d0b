"""Groups of attributes whose masked values are pooled in the same joint clusters."""

from typing import Annotated, NotRequired, TypedDict, Unpack

from pydantic import Field

from microveil.core.choices import Pooling
from microveil.plan.roles import Part


class GroupSettings(TypedDict):
    """What `Group` takes."""

    attributes: list[str] | tuple[str, ...]
    anonymity: NotRequired[int | None]
    pooling: NotRequired[Pooling | None]


class Group(Part):
    """Attributes that are pooled in the same joint clusters.

    Parameters
    ----------
    attributes
        Confidential attributes, each in one group only.
    anonymity
        The least number of records in a joint cluster; by default the plan's. 0 leaves the
        attributes as they are masked.
    pooling
        ``"exchange"`` or ``"average"``; by default the plan's.
    """

    attributes: Annotated[tuple[str, ...], Field(strict=False)]
    anonymity: int | None = None
    pooling: Pooling | None = None

    def __init__(self, **settings: Unpack[GroupSettings]) -> None:
        super().__init__(**settings)


def from_names(value: object) -> object:
    """Let a list of names stand for a group."""
    return {"attributes": value} if isinstance(value, list | tuple) else value
