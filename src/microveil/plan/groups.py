"""Joint clusters: groups of attributes in which a record has one cluster for all of them."""

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from microveil.core.methods import GUARANTEES, METHODS, methods_that
from microveil.plan.roles import Part, did_you_mean, where

if TYPE_CHECKING:
    from microveil.plan.plan import Plan


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

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - also takes lists and paths
        super().__init__(**settings)


def from_names(value: object) -> object:
    """Let a list of names stand for a group."""
    return {"attributes": value} if isinstance(value, list | tuple) else value


def check_groups(plan: "Plan") -> None:
    """Refuse groups that name an attribute wrongly, or promise what joint clusters cannot keep."""
    if plan.groups and plan.partition == "joint":
        raise ValueError('partition = "joint" is one group of everything; remove it or the groups')
    seen: set[str] = set()
    for group in plan.joint_groups:
        if not group.attributes:
            raise ValueError("a group must name attributes, got none")
        for name in group.attributes:
            if name not in plan.attributes:
                known = plan.confidential
                raise ValueError(f"groups: no attribute {name!r}{did_you_mean(name, known)}")
            if name not in plan.confidential:
                raise ValueError(
                    f"{where(name)}: only confidential attributes are clustered, but its role is "
                    f"{plan.attributes[name].role}; leave it out of the group"
                )
            if name in seen:
                raise ValueError(f"{where(name)}: named twice in groups; leave it in one place")
            seen.add(name)
            _check_member(plan, name)


def _check_member(plan: "Plan", name: str) -> None:
    method = METHODS[plan.method_of(name)]
    if plan.confidential[name].k is not None:
        raise ValueError(f"{where(name)}: in a group, k is that of the group; remove its own")
    if not method.promise.survives_data:
        others = methods_that(lambda other: other.promise.survives_data)
        raise ValueError(
            f"{where(name)}: joint clusters follow the data, which voids the claim of "
            f"{method.name}; use {others} in a group"
        )
    if plan.k_of(name) == "auto":
        raise ValueError(f'{where(name)}: k = "auto" is for attributes by themselves; give the '
                         "group a number for k")  # fmt: skip
    if not GUARANTEES[plan.guarantee].allows_chosen_clusters:
        raise ValueError(
            f"{where(name)}: one record can move many joint clusters, which re-clustering cannot "
            'cover; use guarantee = "fixed-clusters", or leave it out of groups'
        )
