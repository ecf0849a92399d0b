"""What becomes of an attribute: masked, dropped, kept or recomputed."""

import difflib
import math
from collections.abc import Iterable
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from microveil.core.attribute import Category, Kind, Unit
from microveil.core.choices import MethodName
from microveil.core.methods import METHODS
from microveil.errors import PlanError
from microveil.plan.taxonomy import Tree, leaf_paths, read_taxonomy

if TYPE_CHECKING:
    import polars as pl

K = int | Literal["auto"]
Bound = float | datetime | date | time


class Part(BaseModel):
    """A frozen, strict piece of a plan that reports its first problem as a `PlanError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    prefix: ClassVar[str] = ""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - also takes lists and paths
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}
        try:
            super().__init__(**plain)
        except ValidationError as error:
            raise PlanError(_first_problem(type(self), error)) from None


class Confidential(Part):
    """An attribute that is masked: numbers, dates and times, or categories.

    Parameters
    ----------
    kind
        ``"integer"`` or ``"real"``, by default what the column is; or for categories ``"nominal"``
        or ``"ordinal"``.
    lower, upper
        The domain: the values this attribute could take, known without looking at the data. For
        dates and times they are dates and times.
    categories
        The domain of categories: text, whole numbers or true/false values; of an ordinal
        attribute from the lowest to the highest.
    taxonomy
        For a nominal attribute: a tree of categories as nested tables, or the path of a CSV file
        with the columns parent and child. Near categories then share clusters.
    method, k
        This attribute's own, instead of the plan's.
    weight
        Share of ε in proportion to the other attributes' weights.
    decimals
        How many decimals a real attribute has. Masked values are rounded to as many.
    resolution
        Grid step for an attribute without a domain, rounded down to a power of two.
    unit
        Of times: what masked values are rounded to; by default whole seconds, and days for dates.
    """

    role: Literal["confidential"] = "confidential"
    kind: Kind | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    categories: Annotated[
        tuple[StrictBool | StrictInt | StrictStr, ...] | None, Field(strict=False)
    ] = None
    taxonomy: Tree | None = None
    method: MethodName | None = None
    k: K | None = None
    weight: float = 1.0
    decimals: int | None = None
    resolution: float | None = None
    unit: Unit | None = None

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - also takes lists and paths
        super().__init__(**settings)

    @property
    def has_domain(self) -> bool:
        """Whether both ends of the domain, or all categories, are declared."""
        if self.is_category:
            return bool(self.declared_categories)
        return self.lower is not None and self.upper is not None

    @property
    def is_category(self) -> bool:
        """Whether the attribute holds categories."""
        return self.kind in ("nominal", "ordinal")

    @property
    def declared_categories(self) -> tuple[Category, ...]:
        """The categories in the order in which they are clustered; empty if not declared."""
        if self.taxonomy is not None:
            return tuple(leaf_paths(self.taxonomy))
        return self.categories or ()

    @property
    def has_text_categories(self) -> bool:
        """Whether categories are declared as text; those of a taxonomy may yet be numbers."""
        return bool(self.categories) and isinstance(self.categories[0], str)  # type: ignore[index]

    @field_validator("taxonomy", mode="before")
    @classmethod
    def _read_taxonomy(cls, taxonomy: object) -> object:
        return read_taxonomy(taxonomy) if isinstance(taxonomy, str | Path) else taxonomy

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("lower", "upper", "weight", "resolution"):
            value = getattr(self, name)
            if isinstance(value, int | float) and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value}")
        for name in ("weight", "resolution"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        if self.lower is not None and self.upper is not None:
            self._check_ends(self.lower, self.upper)
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise ValueError(f"decimals must be from 0 to 15, got {self.decimals}")
        return self

    def _check_ends(self, lower: Bound, upper: Bound) -> None:
        try:
            in_order = _moment(lower) < _moment(upper)  # type: ignore[operator]
        except TypeError:
            raise ValueError("lower and upper must both be numbers, dates or times") from None
        if not in_order:
            raise ValueError(f"lower must be below upper, got lower = {lower} and upper = {upper}")

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        if self.resolution is not None and self.has_domain:
            raise ValueError("resolution has no effect beside lower and upper; remove one of them")
        if self.resolution is not None and self.decimals is not None:
            raise ValueError("resolution and decimals exclude each other; remove one of them")
        if self.decimals is not None and self.kind == "integer":
            raise ValueError('decimals are for kind = "real"; remove decimals or change kind')
        if self.k is not None and self.method and not METHODS[self.method].clustered:
            raise ValueError(
                f"method {self.method} forms no clusters; remove k or choose another method"
            )
        return self

    @model_validator(mode="after")
    def _check_categories(self) -> Self:
        if not self.is_category:
            for name in ("categories", "taxonomy"):
                if getattr(self, name) is not None:
                    raise ValueError(f'{name} are for kind = "nominal" or "ordinal"; set kind')
            return self
        for name in ("lower", "upper", "decimals", "resolution", "unit"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name} is for numbers, but kind is {self.kind}; remove it")
        if self.kind == "ordinal" and (self.categories is None or self.taxonomy is not None):
            raise ValueError(
                'kind = "ordinal" needs its order: declare categories from the lowest to the '
                "highest, and no taxonomy"
            )
        declared = self.declared_categories
        if self.categories is not None and set(self.categories) != set(declared):
            missing = len(set(self.categories) ^ set(declared))
            raise ValueError(
                f"categories and the taxonomy's leaves must be the same, found {missing} that are "
                "in one only; remove categories, or complete the taxonomy"
            )
        if self.categories is not None or self.taxonomy is not None:
            self._check_list(self.categories or declared)
        return self

    def _check_list(self, categories: tuple[Category, ...]) -> None:
        if len(categories) < 2:
            raise ValueError(f"categories must be two or more, got {len(categories)}")
        if len({type(category) for category in categories}) > 1:
            raise ValueError("categories must all be text, all whole numbers or all true and false")
        if len(set(categories)) < len(categories):
            raise ValueError("categories must differ, found the same one twice; remove one")


class Identifier(Part):
    """An attribute that points at a person: dropped."""

    role: Literal["identifier"] = "identifier"


class Kept(Part):
    """An attribute published as it is. The certificate lists it as unprotected."""

    role: Literal["kept"] = "kept"


class Derived(Part):
    """An attribute recomputed after masking, so that totals still add up.

    Parameters
    ----------
    expression
        SQL over attributes that are released, e.g. ``'wages + other'``. Polars parses it;
        it is never run as Python. Names with spaces stand in double quotes.
    """

    role: Literal["derived"] = "derived"
    expression: str

    @property
    def parsed(self) -> "pl.Expr":
        """The expression as Polars understands it."""
        import polars as pl

        return pl.sql_expr(self.expression)

    @property
    def inputs(self) -> frozenset[str]:
        """The attributes it is computed from."""
        return frozenset(self.parsed.meta.root_names())

    @field_validator("expression")
    @classmethod
    def _parses(cls, expression: str) -> str:
        import polars as pl

        try:
            names = pl.sql_expr(expression).meta.root_names()
        except pl.exceptions.PolarsError:
            raise ValueError(f"not an SQL expression Polars can parse: {expression!r}") from None
        if not names:
            raise ValueError(f"an expression must name at least one attribute, got {expression!r}")
        return expression


def _moment(bound: Bound) -> Bound:
    """Let a date stand for its midnight, so that it can be compared with a time."""
    return datetime.combine(bound, time()) if type(bound) is date else bound


def where(name: str) -> str:
    """Name an attribute in a message."""
    return f"attribute {name!r}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to a wrong one."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _first_problem(model: type[Part], error: ValidationError) -> str:
    """Say the first problem pydantic found in the project's own form; unknown keys go first."""
    problems = error.errors(include_url=False)
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in problem["loc"]]
    key = place[0] if place else ""
    prefix = model.prefix
    if key == "attributes" and len(place) > 1:
        prefix = f"plan, {where(place[1])}: "
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
        return f"plan, {message}" if message.startswith("attribute '") else prefix + message
    if problem["type"] == "extra_forbidden":
        return f"{prefix}unknown key {key!r}{did_you_mean(key, model.model_fields)}"
    if problem["type"] == "missing":
        return f"{prefix}{key} is missing; add it"
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"{prefix}role must be confidential, identifier, kept or derived"
    subject = "" if prefix.startswith("plan,") else f"{key} "
    expected = problem["msg"].replace("Input should be", "must be")
    return f"{prefix}{subject}{expected}, got {problem['input']!r}"
