"""Everything that is wrong with a plan at once, and on which lines of its file."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from microveil.errors import (
    DataError,
    FileError,
    MicroveilError,
    PlanError,
    Problems,
    all_of,
)
from microveil.plan.fields import PlanFields
from microveil.plan.taxonomy import read_taxonomy
from microveil.plan.toml import key_lines

Made = TypeVar("Made", bound=PlanFields)

_NEEDED: dict[str, object] = {"epsilon": 1.0}
_ABOUT_ATTRIBUTES = ("groups", "scenarios", "uses")
_RESTS_ON = {"per_unit": "unit"}
"""Settings of attributes that are wrong only for want of one of the plan's."""


_MOST_ROUNDS = 20
"""What is left out of one problem may bring another back, which is no reason to go on for ever."""


def plan_and_problems(
    make: Callable[..., Made], settings: Mapping[str, Any]
) -> tuple[Made | None, list[MicroveilError]]:
    """Make a plan of what is right in its settings, and return it with all that is wrong.

    Some problems are seen only once others are fixed. So what is wrong is left out, and the rest is
    looked at again, until a plan comes of it, or nothing (None).

    Examples
    --------
    >>> attributes = {"age": {"role": "confidential", "lowr": 0}, "name": "identifier"}
    >>> from microveil import Plan
    >>> plan, problems = plan_and_problems(Plan, {"epsilon": -1.0, "attributes": attributes})
    >>> [(problem.attribute, problem.setting) for problem in problems]
    [('age', 'lowr'), (None, 'epsilon')]
    >>> plan.names("confidential")
    ('age',)
    """
    left, found = _with_taxonomies(settings)
    for _ in range(_MOST_ROUNDS):
        problems = Problems()
        with problems:
            return make(**left), found
        some_wrong = any(problem.attribute is not None for problem in found)
        new = [p for p in problems.found if not (some_wrong and _is_of_none_left(p))]
        found += not_said(new, found, settings)
        before, left = left, _without(left, problems.found)
        if left == before:
            break
    return None, found


def _with_taxonomies(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[MicroveilError]]:
    """Read taxonomies that are given as paths; leave out those that cannot be read."""
    left, problems = dict(settings), Problems()
    attributes = settings.get("attributes")
    for name in attributes if isinstance(attributes, Mapping) else ():
        path = _settings_of(left, name).get("taxonomy")
        if isinstance(path, str):
            tree = None
            with problems:
                tree = _taxonomy_at(path, name)
            changed = {**_settings_of(left, name), "taxonomy": tree}
            left["attributes"] = {**left["attributes"], name: changed}
    return left, problems.found


def _taxonomy_at(path: str, attribute: str) -> object:
    try:
        return read_taxonomy(path)
    except FileError as error:
        raise PlanError(
            f"{error}; correct the path or the file", attribute=attribute, setting="taxonomy"
        ) from None


def _is_of_none_left(problem: MicroveilError) -> bool:
    """Whether it only says that no attribute is left that is right and confidential."""
    return problem.attribute is None and problem.setting == "attributes"


def not_said(
    problems: Collection[MicroveilError],
    said: Collection[MicroveilError],
    settings: Mapping[str, Any],
) -> list[MicroveilError]:
    """Return problems that are not merely what comes of others that were said already.

    Of an attribute that has one already only those count that are about a setting it was given, or
    about none.
    """
    wrong = {problem.attribute for problem in said} - {None}
    of_plan = {problem.setting for problem in said if problem.attribute is None} - {None}
    return [
        problem
        for problem in problems
        if _RESTS_ON.get(problem.setting or "") not in of_plan
        and (
            problem.attribute not in wrong
            or problem.setting in (None, *_settings_of(settings, problem.attribute))
        )
    ]


def _settings_of(settings: Mapping[str, Any], attribute: str | None) -> Mapping[str, Any]:
    attributes = settings.get("attributes")
    own = attributes.get(attribute) if isinstance(attributes, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _without(settings: dict[str, Any], problems: Collection[MicroveilError]) -> dict[str, Any]:
    """Leave out the settings that problems are about."""
    left = {**_NEEDED, **settings}
    attributes = left["attributes"] if isinstance(left.get("attributes"), Mapping) else {}
    for problem in problems:
        if problem.attribute is not None and _is_plans(problem, settings):
            left.pop(problem.setting or "", None)
        elif problem.attribute is not None:
            own = _attribute_without(attributes.get(problem.attribute), problem.setting)
            attributes = {**attributes, problem.attribute: own}
        elif problem.setting in settings and problem.setting not in ("attributes", *_NEEDED):
            left.pop(problem.setting, None)
        else:
            left |= _NEEDED
            left = {n: value for n, value in left.items() if n not in _ABOUT_ATTRIBUTES}
    return {**left, "attributes": attributes} if attributes else left


def _is_plans(problem: MicroveilError, settings: Mapping[str, Any]) -> bool:
    """Whether a problem of an attribute comes of a setting of the plan, not of its own."""
    return problem.setting in settings and problem.setting not in (
        *_NEEDED,
        *_settings_of(settings, problem.attribute),
    )


def _attribute_without(attribute: object, setting: str | None) -> object:
    """Leave out one setting of an attribute; all but its role; at last do not protect it."""
    if not isinstance(attribute, Mapping):
        return "kept" if attribute == "confidential" else "confidential"
    if setting in attribute and setting not in ("role", "expression"):
        return {name: value for name, value in attribute.items() if name != setting}
    return "confidential" if len(attribute) > 1 or setting == "role" else "kept"


def plan_from(make: Callable[..., Made], settings: Mapping[str, Any]) -> Made:
    """Make a plan of settings, or raise everything that is wrong with them."""
    plan, found = plan_and_problems(make, settings)
    if plan is None or found:
        raise all_of(found)
    return plan


@contextmanager
def located(text: str | None, *, elsewhere: Collection[str] = ()) -> Iterator[None]:
    """Say of errors about a plan on which lines of its text they are; without one, leave them.

    Settings of the plan that were given `elsewhere`, as options are, have no line.
    """
    try:
        yield
    except (PlanError, DataError) as error:
        if text is None:
            raise
        lines = key_lines(text)
        for name in elsewhere:
            lines.pop((name,), None)
        problems = [p.at_line(_line_of(p, lines)) for p in error.problems]
        raise all_of(sorted(problems, key=lambda p: p.line or math.inf)) from None


def _line_of(problem: MicroveilError, lines: Mapping[tuple[str, ...], int]) -> int | None:
    """Return the line of the setting a problem is about, or else that of its attribute."""
    setting = problem.setting or ""
    if problem.attribute is None:
        return lines.get((setting,))
    own = ("attributes", problem.attribute)
    return lines.get((*own, setting)) or lines.get((setting,)) or lines.get(own)
