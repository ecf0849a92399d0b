"""What a table will be used for: estimates, tables of counts, regressions and models.

A use has a text form: ``mean income by region``, ``total wages``, ``share sex = female by ward``,
``median income``, ``quantile 0.9 income``, ``table region, age(10)``, ``wage ~ age + education``,
``predict died``. Nothing in it is ever run.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, model_validator

from microveil.errors import PlanError, Problems
from microveil.plan.parts import PlanPart, did_you_mean
from microveil.plan.roles import Confidential
from microveil.plan.settings import EMPTY, Given, Names, Setting
from microveil.plan.toml import inline
from microveil.plan.use_text import settings_of_text

UseKind = Literal["mean", "total", "share", "quantile", "table", "regression", "predict"]

Wanted = Literal["numbers", "bands", "groups", "numbers or groups", "anything"]

_ESTIMATES = ("mean", "total", "share", "quantile")
_HELD: Mapping[str, Wanted] = {
    "mean": "numbers", "total": "numbers", "quantile": "numbers", "share": "groups",
    "regression": "numbers or groups", "predict": "anything",
}  # fmt: skip
"""What the attributes hold that a use is of and predicts from; only models take dates too."""

_NO_BANDS: Mapping[str, float] = MappingProxyType({})
_Names = Annotated[
    Given[tuple[str, ...], Names | str],
    BeforeValidator(lambda given: (given,) if isinstance(given, str) else given),
]
_PLAIN = re.compile(r"[^\W\d]\w*")


class Use(PlanPart):
    """Something a release will be used for: an estimate, a table of counts, a regression, a model.

    It changes nothing in the release, and the certificate does not mention it: `evaluate` and
    `verdict` compute it from original and release, and usefulness is graded by it.

    Examples
    --------
    >>> from microveil import Use
    >>> print(Use.mean("income", by="region"), Use.parse("table sex, age(10)").bands, sep="; ")
    mean income by region; {'age': 10.0}
    """

    kind: Annotated[UseKind, Setting(
        help="What is computed",
        more="In a TOML file it is the key that `of` stands behind: ``mean = \"income\"``, "
        "``regression = \"wage ~ age + education\"``, ``table = [\"region\", \"sex\"]``.",
    )]  # fmt: skip
    of: Annotated[str | None, Setting(
        help="The attribute it is computed of, regressed or predicted; a table has none",
    )] = None  # fmt: skip
    by: Annotated[_Names, Setting(
        help="Attributes to group by, each combination of their values by itself",
    )] = EMPTY  # fmt: skip
    bands: Annotated[Mapping[str, float], Setting(
        help="Width of the bands into which numbers are grouped, and dates in years, by attribute",
        more="``{\"age\": 10}`` groups by 0 to 9, 10 to 19 and so on; in text ``age(10)``.",
    )] = {}  # fmt: skip
    category: Annotated[str | None, Setting(
        help="The category a share is of, by default each, and of true and false true",
    )] = None  # fmt: skip
    at: Annotated[float | None, Setting(
        help="Which quantile, from 0 to 1: 0.5 is the median",
    )] = None  # fmt: skip
    predictors: Annotated[_Names, Setting(
        help="What a regression or a model predicts from; a model without any from all others",
    )] = EMPTY  # fmt: skip

    @classmethod
    def mean(cls, of: str, *, by: str | Names = (), bands: Mapping[str, float] = _NO_BANDS) -> Self:
        """Make a use of the mean of an attribute, by groups if any are given."""
        return cls(kind="mean", of=of, by=by, bands=bands)

    @classmethod
    def total(
        cls, of: str, *, by: str | Names = (), bands: Mapping[str, float] = _NO_BANDS
    ) -> Self:
        """Make a use of the total of an attribute, by groups if any are given."""
        return cls(kind="total", of=of, by=by, bands=bands)

    @classmethod
    def share(
        cls,
        of: str,
        category: str | None = None,
        *,
        by: str | Names = (),
        bands: Mapping[str, float] = _NO_BANDS,
    ) -> Self:
        """Make a use of the share of a category, or of each, by groups if any are given."""
        return cls(kind="share", of=of, category=category, by=by, bands=bands)

    @classmethod
    def quantile(
        cls,
        of: str,
        at: float,
        *,
        by: str | Names = (),
        bands: Mapping[str, float] = _NO_BANDS,
    ) -> Self:
        """Make a use of a quantile of an attribute, by groups if any are given."""
        return cls(kind="quantile", of=of, at=at, by=by, bands=bands)

    @classmethod
    def table(cls, *by: str, bands: Mapping[str, float] = _NO_BANDS) -> Self:
        """Make a use of counts: how many records there are of each combination of values."""
        return cls(kind="table", by=by, bands=bands)

    @classmethod
    def regression(cls, formula: str) -> Self:
        """Make a use of a regression, written as ``wage ~ age + education``.

        It is linear, and logistic of an attribute that is true or false. Categories have a term
        each.
        """
        return cls(**settings_of_text(formula, regression=True))

    @classmethod
    def model(cls, of: str, *, predictors: str | Names = ()) -> Self:
        """Make a use of a model that predicts an attribute from others, by default from all."""
        return cls(kind="predict", of=of, predictors=predictors)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a use from its text form.

        Raises
        ------
        PlanError
            With what was expected, what was found, and at which character.

        Examples
        --------
        >>> Use.parse("quantile 0.9 income by region").at
        0.9
        """
        return cls(**settings_of_text(text))

    def __str__(self) -> str:
        """Write it in its text form, which `parse` reads."""
        groups = ", ".join(map(self._group, self.by))
        others = map(quoted_name, self.predictors)
        match self.kind:
            case "table":
                return f"table {groups}"
            case "regression":
                return f"{quoted_name(self.of or '')} ~ {' + '.join(others)}"
            case "predict":
                return self._with("from", ", ".join(others))
            case _:
                return self._with("by", groups)

    def _with(self, word: str, names: str) -> str:
        """Write what is computed, and of what others."""
        at = "" if self.at in (None, 0.5) else f" {self.at!r}"
        kind = "median" if self.at == 0.5 else self.kind
        is_ = "" if self.category is None else f" = {_quoted(self.category)}"
        others = f" {word} {names}" if names else ""
        return f"{kind}{at} {quoted_name(self.of or '')}{is_}{others}"

    def _group(self, name: str) -> str:
        width = self.bands.get(name)
        return quoted_name(name) + ("" if width is None else f"({width:.17g})")

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it names."""
        own = () if self.of is None else (self.of,)
        return tuple(dict.fromkeys((*own, *self.by, *self.predictors)))

    def to_settings(self) -> dict[str, Any]:
        """Return it as a table of TOML: the first key is what is computed."""
        settings = self.model_dump(exclude_defaults=True, exclude={"kind", "of", "predictors"})
        if self.bands:
            settings["bands"] = inline(self.bands)
        if self.kind == "table":
            return {"table": list(settings.pop("by")), **settings}
        if self.kind == "regression":
            return {"regression": str(self)}
        others = {"predictors": list(self.predictors)} if self.predictors else {}
        return {self.kind: self.of, **settings, **others}

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = Problems()
        for check in (self._check_names, self._check_bands, self._check_own):
            with problems:
                check()
        problems.raise_found()
        return self

    def _check_names(self) -> None:
        if (self.of is None) != (self.kind == "table"):
            raise _wrong(f"{self.kind} {'takes no' if self.of else 'needs an'} attribute to be of")
        needs = {"table": self.by, "regression": self.predictors}.get(self.kind, "none")
        if not needs:
            raise _wrong(f"a {self.kind} needs one attribute or more")
        if self.by and self.kind in ("regression", "predict"):
            raise _wrong(f"{self.kind} has no groups; remove by")
        if self.predictors and self.kind not in ("regression", "predict"):
            raise _wrong("only regression and predict have predictors; use by for groups")
        for names in (self.by, self.predictors):
            named = [*names, *([] if self.of is None else [self.of])]
            if twice := next((name for name in named if named.count(name) > 1), None):
                raise _wrong(f"{twice!r} is named twice; name it once")

    def _check_bands(self) -> None:
        for name, width in self.bands.items():
            if name not in self.by:
                raise _wrong(f"bands of {name!r}, which is not grouped by; add it to by")
            if not math.isfinite(width) or width <= 0:
                raise _wrong(f"bands of {name!r} must be a number above 0, got {width}")

    def _check_own(self) -> None:
        if self.kind == "quantile" and not (self.at is not None and 0 < self.at < 1):
            raise _wrong(f"a quantile is at a number above 0 and below 1, got {self.at}")
        if self.kind != "quantile" and self.at is not None:
            raise _wrong("only a quantile has at; remove it")
        if self.kind != "share" and self.category is not None:
            raise _wrong("only a share has a category; remove it")


def _wrong(problem: str) -> PlanError:
    return PlanError(f"uses: {problem}", setting="uses")


def quoted_name(name: str) -> str:
    """Write a name as text forms have it, in double quotes where it is not a plain word.

    Examples
    --------
    >>> quoted_name("income"), quoted_name("net pay"), quoted_name("by")
    ('income', '"net pay"', '"by"')
    """
    plain = _PLAIN.fullmatch(name) and name not in ("by", "from")
    return name if plain else '"' + name.replace('"', '""') + '"'


def _quoted(category: str) -> str:
    return category if _PLAIN.fullmatch(category) else "'" + category.replace("'", "''") + "'"


def use_from(given: object) -> object:
    """Let text stand for a use, and the kind for a key: what it is of stands behind it."""
    if isinstance(given, str):
        return Use.parse(given)
    if not isinstance(given, Mapping) or "kind" in given:
        return given
    kinds = [kind for kind in (*_ESTIMATES, "table", "regression", "predict") if kind in given]
    if len(kinds) != 1:
        raise _wrong(
            "each has one of the keys mean, total, share, quantile, table, regression and predict, "
            f"found {', '.join(kinds) or 'none'}"
        )
    (kind,) = kinds
    others = {name: value for name, value in given.items() if name != kind}
    if kind == "regression" and isinstance(given[kind], str):
        return Use.regression(given[kind])
    return {"kind": kind, ("by" if kind == "table" else "of"): given[kind], **others}


def check_uses(uses: Sequence[Use], attributes: Mapping[str, Any]) -> None:
    """Refuse uses of what is not released, of numbers that are categories, and the reverse.

    Parameters
    ----------
    uses
        The uses of a plan.
    attributes
        The roles of its attributes.
    """
    problems = Problems()
    for use in uses:
        for name, wanted in wanted_by(use):
            with problems:
                _check_column(use, name, wanted, attributes)
    problems.raise_found()


def wanted_by(use: Use) -> Iterator[tuple[str, Wanted]]:
    """Say what each attribute of a use must hold."""
    if use.of is not None:
        yield use.of, _HELD[use.kind]
    yield from ((name, "bands" if name in use.bands else "groups") for name in use.by)
    yield from ((name, _HELD[use.kind]) for name in use.predictors)


def _check_column(use: Use, name: str, wanted: Wanted, attributes: Mapping[str, Any]) -> None:
    if name not in attributes:
        raise refused_use(use, f"no attribute {name!r}{did_you_mean(name, attributes)}")
    attribute = attributes[name]
    if attribute.role in ("identifier", "pseudonym"):
        raise refused_use(
            use, f"{name!r} is a{'n' * (attribute.role == 'identifier')} {attribute.role}; name "
            "attributes that are released"
        )  # fmt: skip
    if isinstance(attribute, Confidential):
        check_holds(use, name, wanted, categories=attribute.is_category)


def check_holds(use: Use, name: str, wanted: Wanted, *, categories: bool, times: str = "") -> None:
    """Refuse a mean of categories, groups of numbers without bands, and times but in models."""
    if times and wanted != "anything":
        raise refused_use(
            use, f"{name!r} holds {times}, which only a model can take; name numbers or categories"
        )
    if wanted in ("numbers", "bands") and categories:
        instead = f"group by it without bands, or take the share of {quoted_name(name)}"
        raise refused_use(use, f"{name!r} holds categories; {instead}")
    if wanted == "groups" and not categories:
        raise refused_use(
            use, f"{name!r} holds numbers; group them into bands, such as {quoted_name(name)}(10)"
        )


def refused_use(use: Use, problem: str) -> PlanError:
    """Say what is wrong with a use of a plan."""
    return PlanError(f"use {str(use)!r}: {problem}", setting="uses")
