"""A change of a plan that would help, as data."""

from dataclasses import dataclass
from typing import Literal

from microveil.plan.plan import Plan

ChangeKind = Literal["pool", "drop", "mask kept", "settings", "explore"]


@dataclass(frozen=True)
class Change:
    """What to change, and what that would do. `microveil.show.words` says it.

    Attributes
    ----------
    kind
        ``"pool"``: pool masked values, or in larger joint clusters. ``"drop"``: drop a column, make
        it coarser or mask it. ``"mask kept"``: mask the kept columns. ``"settings"``: change
        settings of the plan. ``"explore"``: no single change helps; compare other plans.
    names
        The columns or settings that change.
    measure
        The id of the measure that improves.
    before, after
        Its value before, and after as tried; `after` is None where it was not tried.
    most
        What is proved instead: nobody is found with a chance above 1 in this number.
    cost
        What is lost: the id of a measure, and its worst value before and after.
    plan, earlier
        The plan after the change, and before it; None where no plan is known.
    """

    kind: ChangeKind
    names: tuple[str, ...] = ()
    measure: str | None = None
    before: float | None = None
    after: float | None = None
    most: int | None = None
    cost: tuple[str, float, float] | None = None
    plan: Plan | None = None
    earlier: Plan | None = None
