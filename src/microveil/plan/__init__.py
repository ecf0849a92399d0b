"""What the user wants, checked in itself."""

from microveil.plan.groups import Group
from microveil.plan.plan import Plan
from microveil.plan.roles import (
    Confidential,
    Derived,
    Identifier,
    Kept,
    Pseudonym,
    SamplingWeight,
    Shifted,
)
from microveil.plan.scenarios import Scenario

__all__ = [
    "Confidential",
    "Derived",
    "Group",
    "Identifier",
    "Kept",
    "Plan",
    "Pseudonym",
    "SamplingWeight",
    "Scenario",
    "Shifted",
]
