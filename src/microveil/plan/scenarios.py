"""Attackers to test a release against: what they know, and about how many people."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from microveil.errors import PlanError, Problems
from microveil.plan.parts import PlanPart, did_you_mean
from microveil.plan.settings import UNSET, Given, Names, Setting


class Scenario(PlanPart):
    """What an attacker may know who looks for people in a release.

    It changes nothing in the release, and the certificate does not mention it: `evaluate` and
    `verdict` count how many of the known people the attacker finds.
    """

    name: Annotated[str, Setting(
        help="Name of the scenario, by default what is known",
    )] = ""  # fmt: skip
    known: Annotated[Given[tuple[str, ...] | None, Names | None], Setting(
        help="Attributes whose original values the attacker knows, by default all confidential "
        "ones",
        more="A kept attribute, which is published as it is, rules out all records with another "
        "value.",
    )] = UNSET  # fmt: skip
    people: Annotated[float, Setting(
        help="Share of the people in the table whose values the attacker knows",
    )] = 1.0  # fmt: skip

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


def check_scenarios(scenarios: Sequence[Scenario], roles: Mapping[str, str]) -> None:
    """Refuse scenarios about nothing, about nobody, or about what is not released.

    Parameters
    ----------
    scenarios
        The scenarios of a plan.
    roles
        The role of each of its attributes.
    """
    problems, labels = Problems(), set[str]()
    for scenario in scenarios:
        with problems:
            _check_known(scenario, roles)
        with problems:
            _check_people(scenario, labels)
        labels.add(scenario.label)
    problems.raise_found()


def _check_people(scenario: Scenario, labels: set[str]) -> None:
    if not 0 < scenario.people <= 1:
        raise PlanError(
            f"scenarios: people must be a share above 0 and up to 1, got {scenario.people}",
            setting="scenarios",
        )
    if scenario.label in labels:
        raise PlanError(
            f"scenarios: names must differ, found {scenario.label!r} twice; rename one of them",
            setting="scenarios",
        )


def _check_known(scenario: Scenario, roles: Mapping[str, str]) -> None:
    if scenario.known is None:
        return
    if not scenario.known:
        raise PlanError(
            "scenarios: known must name attributes, got none; leave it out for all masked ones",
            setting="scenarios",
        )
    for name in scenario.known:
        if name not in roles:
            close = did_you_mean(name, roles)
            raise PlanError(f"scenarios: no attribute {name!r}{close}", setting="scenarios")
        if roles[name] == "identifier":
            raise PlanError(
                "an identifier is not released, so knowing it finds nobody; remove it from "
                "scenarios",
                attribute=name,
                setting="scenarios",
            )
        if roles[name] in ("pseudonym", "shifted"):
            raise PlanError(
                "an attacker cannot know its released value without the key file; remove it from "
                "scenarios",
                attribute=name,
                setting="scenarios",
            )
