"""A change of a plan that would help."""

from dataclasses import dataclass

from microveil.plan.plan import Plan


@dataclass(frozen=True)
class Change:
    """What to change, and what that would do.

    Attributes
    ----------
    what
        The change, as an instruction.
    effect
        What it does, before → after.
    plan
        The plan after it; None if no plan is known.
    """

    what: str
    effect: str
    plan: Plan | None = None

    def __str__(self) -> str:
        return f"{self.what}: {self.effect}"
