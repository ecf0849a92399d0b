"""What all pieces of a plan have in common: strict, frozen, and clear about what is wrong."""

import difflib
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from microveil.errors import MicroveilError, PlanError, all_of
from microveil.plan.settings import declared_in

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class PlanPart(BaseModel):
    """A frozen, strict piece of a plan that reports all its problems as a `PlanError`.

    Its docstring gets a section of parameters from the settings that it declares.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    prefix: ClassVar[str] = ""
    gone: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **settings: object) -> None:
        try:
            super().__init__(**{name: _plain(value) for name, value in settings.items()})
        except ValidationError as error:
            raise all_of(_problems(type(self), error)) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401 - as pydantic has it
        super().__pydantic_init_subclass__(**options)
        wrapped = textwrap.TextWrapper(
            96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
        entries = [f"{name}\n{wrapped.fill(setting.text)}" for name, _, setting in declared_in(cls)]
        if cls.__doc__ and entries:
            parameters = "\n".join(["Parameters", "----------", *entries])
            summary, *sections = re.split(r"\n\n(?=\w+\n-+\n)", inspect.cleandoc(cls.__doc__))
            cls.__doc__ = "\n\n".join([summary, parameters, *sections])


def _plain(value: object) -> object:
    """Take NumPy's numbers for numbers, lists for tuples and paths for text."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return str(value) if isinstance(value, Path) else value


def close_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name nearest to a wrong one, whatever its case; None if none is near."""
    by_case = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(name.casefold(), list(by_case), n=1)
    return by_case[close[0]] if close else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to a wrong one."""
    close = close_name(name, known)
    return "" if close is None else f"; did you mean {close!r}?"


def _problems(model: type[PlanPart], error: ValidationError) -> list[MicroveilError]:
    """Say the problems that pydantic found in the project's own form; unknown keys go first."""
    details = error.errors(include_url=False)
    details.sort(key=lambda detail: detail["type"] != "extra_forbidden")
    meant = {
        close_name(str(detail["loc"][0]), model.model_fields)
        for detail in details
        if detail["type"] == "extra_forbidden"
    }
    found: list[MicroveilError] = []
    said: set[tuple[int | str, ...]] = set()
    for detail in details:
        place = detail["loc"][:2] if detail["loc"][:1] == ("attributes",) else detail["loc"][:1]
        by_another_name = detail["type"] == "missing" and place[0] in meant
        if detail["type"] == "value_error" or not (by_another_name or place in said):
            found += _problems_in(model, detail)
        said.add(place)  # a value of several types has a detail for each
    return found


def _problems_in(model: type[PlanPart], detail: "ErrorDetails") -> Iterator[PlanError]:
    place = [str(part) for part in detail["loc"]]
    setting = place[0] if place else None
    attribute = place[1] if setting == "attributes" and len(place) > 1 else None
    own = detail["ctx"]["error"] if detail["type"] == "value_error" else None
    if not isinstance(own, PlanError):
        setting = "role" if attribute else setting
        yield _problem(model, _in_words(model, detail, setting), attribute, setting)
        return
    for part in own.problems:  # raised by a validator, or by a part of this one
        about = part.attribute or attribute
        yield _problem(model, part.message, about, part.setting if about or not place else setting)


def _problem(
    model: type[PlanPart], message: str, attribute: str | None, setting: str | None
) -> PlanError:
    text = message if attribute else model.prefix + message
    return PlanError(text, attribute=attribute, setting=setting)


def _in_words(model: type[PlanPart], problem: "ErrorDetails", setting: str | None) -> str:
    if problem["type"] == "value_error":
        return str(problem["ctx"]["error"])
    if problem["type"] == "extra_forbidden":
        if setting is not None and setting in model.gone:
            return model.gone[setting]
        return f"unknown key {setting!r}{did_you_mean(str(setting), model.model_fields)}"
    if problem["type"] == "missing":
        return f"{setting} is missing; add it"
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return (
            "role must be confidential, identifier, kept, derived, sampling_weight, pseudonym or "
            "shifted"
        )
    expected = problem["msg"].replace("Input should be", "must be")
    if setting in ("lower", "upper"):
        expected = "must be a number, or a date or time such as 1992-12-31"
    return f"{setting} {expected}, got {problem['input']!r}"
