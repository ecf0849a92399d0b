"""Joint clusters: groups of attributes in which a record has one cluster for all of them."""

from typing import Annotated, NotRequired, TypedDict, Unpack

from pydantic import Field

from microveil.plan.roles import Part


class GroupSettings(TypedDict):
    """What `Group` takes."""

    attributes: list[str] | tuple[str, ...]
    k: NotRequired[int | None]


class Group(Part):
    """Attributes clustered jointly, by MDAV over standardised values.

    Parameters
    ----------
    attributes
        Confidential attributes, each in one group only.
    k
        The least number of records in a cluster; by default the plan's.
    """

    attributes: Annotated[tuple[str, ...], Field(strict=False)]
    k: int | None = None

    def __init__(self, **settings: Unpack[GroupSettings]) -> None:
        super().__init__(**settings)


def from_names(value: object) -> object:
    """Let a list of names stand for a group."""
    return {"attributes": value} if isinstance(value, list | tuple) else value
