"""Intruders to try a release on: what they know, and of how many people."""

from typing import TYPE_CHECKING, Annotated, TypedDict, Unpack

from pydantic import Field

from microveil.errors import PlanError, Problems
from microveil.plan.roles import Part, did_you_mean

if TYPE_CHECKING:
    from microveil.plan.plan import Plan


class ScenarioSettings(TypedDict, total=False):
    """What `Scenario` takes."""

    name: str
    known: list[str] | tuple[str, ...] | None
    people: float


class Scenario(Part):
    """What someone may know who looks for people in a release.

    It says nothing about the release, changes nothing in it and is not on its certificate:
    `evaluate` and `verdict` count how many of the people known are found.

    Parameters
    ----------
    name
        What to call it; by default what is known.
    known
        Attributes whose original values are known; by default all confidential ones. A kept
        attribute, which is published as it is, rules out all records with another value.
    people
        Share of the people in the table whose values are known.
    """

    name: str = ""
    known: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    people: float = 1.0

    def __init__(self, **settings: Unpack[ScenarioSettings]) -> None:
        super().__init__(**settings)

    @property
    def label(self) -> str:
        """What to call it."""
        return self.name or f"knows {self.knowledge}"

    @property
    def knowledge(self) -> str:
        """What is known, in words.

        Examples
        --------
        >>> Scenario(known=["age", "region"], people=0.5).knowledge
        'age and region of 50% of the people'
        """
        *before, last = self.known or ("all masked attributes",)
        what = f"{', '.join(before)} and {last}" if before else last
        return what if self.people == 1 else f"{what} of {100 * self.people:.3g}% of the people"


def check_scenarios(plan: "Plan") -> None:
    """Refuse scenarios of what is not released, of nothing or of nobody."""
    problems = Problems()
    for number, scenario in enumerate(plan.scenarios):
        with problems:
            _check_known(plan, scenario)
        with problems:
            _check_people(plan, number)
    problems.raise_found()


def _check_people(plan: "Plan", number: int) -> None:
    scenario = plan.scenarios[number]
    if not 0 < scenario.people <= 1:
        raise PlanError(
            f"scenarios: people must be a share above 0 and up to 1, got {scenario.people}",
            setting="scenarios",
        )
    if scenario.label in [other.label for other in plan.scenarios[:number]]:
        raise PlanError(
            f"scenarios: two are called {scenario.label!r}; give each a name of its own",
            setting="scenarios",
        )


def _check_known(plan: "Plan", scenario: Scenario) -> None:
    if scenario.known is None:
        return
    if not scenario.known:
        raise PlanError(
            "scenarios: known must name attributes, got none; leave it out for all that are masked",
            setting="scenarios",
        )
    for name in scenario.known:
        if name not in plan.attributes:
            close = did_you_mean(name, plan.attributes)
            raise PlanError(f"scenarios: no attribute {name!r}{close}", setting="scenarios")
        if plan.attributes[name].role == "identifier":
            raise PlanError(
                "an identifier is not released, so knowing it finds nobody there; leave it out of "
                "scenarios",
                attribute=name,
                setting="scenarios",
            )
        if plan.attributes[name].role in ("pseudonym", "shifted"):
            raise PlanError(
                "nobody knows what it is in the release without the key; leave it out of scenarios",
                attribute=name,
                setting="scenarios",
            )
