"""The plan: what is done to each attribute, for which ε. Frozen, validated, TOML in and out."""

import difflib
import graphlib
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import tomli_w
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    ValidationError,
    field_validator,
    model_validator,
)

from microveil.errors import FileError, PlanError
from microveil.methods import METHODS, Guarantee, MethodName

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["integer", "real"]
Missing = Literal["error", "keep", "drop"]
Post = Literal["none", "isotonic"]


class _Part(BaseModel):
    """A frozen, strict piece of a plan that reports its first problem as a `PlanError`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - pydantic checks each of them
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}
        try:
            super().__init__(**plain)
        except ValidationError as error:
            raise PlanError(_first_problem(type(self), error)) from None


class _Frozen(Mapping[str, "Confidential | Identifier | Kept | Derived"]):
    """A mapping that cannot be changed, but can be copied and pickled."""

    def __init__(self, items: Mapping[str, "Confidential | Identifier | Kept | Derived"]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> "Confidential | Identifier | Kept | Derived":
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class Confidential(_Part):
    """A numeric attribute that is masked.

    Parameters
    ----------
    kind
        ``"integer"`` or ``"real"``; by default what the column is.
    lower, upper
        The domain: the values this attribute could take, known without looking at the data.
    method, k
        This attribute's own, instead of the plan's.
    weight
        Share of ε in proportion to the other attributes' weights.
    decimals
        How many decimals a real attribute has. Masked values are rounded to as many.
    resolution
        Grid step for an attribute without a domain, rounded down to a power of two.
    """

    role: Literal["confidential"] = "confidential"
    kind: Kind | None = None
    lower: float | None = None
    upper: float | None = None
    method: MethodName | None = None
    k: int | None = None
    weight: float = 1.0
    decimals: int | None = None
    resolution: float | None = None

    @property
    def has_domain(self) -> bool:
        """Whether both ends of the domain are declared."""
        return self.lower is not None and self.upper is not None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("lower", "upper", "weight", "resolution"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value}")
        for name in ("weight", "resolution"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            raise ValueError(
                f"lower must be below upper, got lower = {self.lower} and upper = {self.upper}"
            )
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise ValueError(f"decimals must be from 0 to 15, got {self.decimals}")
        return self

    @model_validator(mode="after")
    def _check_contradictions(self) -> Self:
        if self.resolution is not None and self.has_domain:
            raise ValueError("resolution has no effect beside lower and upper; remove one of them")
        if self.resolution is not None and self.decimals is not None:
            raise ValueError("resolution and decimals exclude each other; remove one of them")
        if self.decimals is not None and self.kind == "integer":
            raise ValueError('decimals are for kind = "real"; remove decimals or change kind')
        if self.k is not None and self.method == "DP":
            raise ValueError("method DP forms no clusters; remove k or choose another method")
        return self


class Identifier(_Part):
    """An attribute that points at a person: dropped."""

    role: Literal["identifier"] = "identifier"


class Kept(_Part):
    """An attribute published as it is. The certificate lists it as unprotected."""

    role: Literal["kept"] = "kept"


class Derived(_Part):
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


def _from_role(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


Attribute = Annotated[
    Annotated[Confidential | Identifier | Kept | Derived, Discriminator("role")],
    BeforeValidator(_from_role),
]
Attributes = Annotated[
    Mapping[str, Attribute],
    AfterValidator(_Frozen),
    PlainSerializer(lambda attributes: dict(attributes)),
]


class Plan(_Part):
    """What is done to each attribute of a table, for which ε.

    Parameters
    ----------
    epsilon
        The privacy budget of a person, shared between the confidential attributes.
    method
        ``"DP"``, ``"DP-UM"``, ``"iDP-LS"`` or ``"iDP-CBLS"``.
    k
        Records in a cluster; the last cluster takes the remainder.
    guarantee
        ``"fixed-clusters"``, the paper's: ε holds while clusters stay as they are; or
        ``"re-clustered"``: ε holds when one record changes and clusters are formed again.
    post
        ``"isotonic"``: put masked centroids back in rising order, which costs no budget.
    missing
        ``"error"``; ``"keep"``: nulls stay null and the others are clustered without them;
        ``"drop"``: records with a null in a confidential attribute are left out.
    records_per_person
        The most records one person has. Each record's budget is epsilon divided by it.
    domain_from_data
        Read undeclared domains from the data. For DP and DP-UM this voids the claim, so it must be
        said here; it warns and is written on the certificate.
    from_data
        What else was taken from the data when the plan was made; copied to the certificate.
    attributes
        For every column its role: `Confidential`, `Identifier`, `Kept` or `Derived`, or the role's
        name alone.

    Examples
    --------
    >>> plan = Plan(epsilon=1.0, attributes={
    ...     "name": "identifier",
    ...     "region": "kept",
    ...     "wages": Confidential(lower=0, upper=500_000),
    ...     "other": "confidential",
    ...     "total": Derived(expression="wages + other"),
    ... })
    >>> plan.method, plan.k
    ('iDP-CBLS', 10)
    >>> Plan.from_toml(plan.to_toml()) == plan
    True
    """

    epsilon: float
    method: MethodName = "iDP-CBLS"
    k: int = 10
    guarantee: Guarantee = "fixed-clusters"
    post: Post = "none"
    missing: Missing = "error"
    records_per_person: int = 1
    domain_from_data: bool = False
    from_data: Annotated[tuple[str, ...], Field(strict=False)] = ()
    attributes: Attributes

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 - also takes roles by name
        super().__init__(**settings)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not math.isfinite(self.epsilon) or self.epsilon <= 0:
            raise ValueError(f"epsilon must be a finite number above 0, got {self.epsilon}")
        if self.records_per_person < 1:
            raise ValueError(f"records_per_person must be 1 or more, got {self.records_per_person}")
        if not self.confidential:
            raise ValueError("attributes must hold at least one of role confidential, got none")
        if self.k < 1:
            raise ValueError(f"k must be 1 or more, got {self.k}")
        for name in self.confidential:
            self._check_method(name)
        self._check_derived()
        return self

    def _check_method(self, name: str) -> None:
        attribute, method, k = (
            self.confidential[name],
            METHODS[self.method_of(name)],
            self.k_of(name),
        )
        if k < method.least_k:
            raise ValueError(
                f"{_where(name)}: k must be {method.least_k} or more for {method.name}, got {k}"
            )
        if (
            self.guarantee == "re-clustered"
            and self.records_per_person > 1
            and method.promise == "iDP"
        ):
            raise ValueError(
                f'{_where(name)}: with guarantee = "re-clustered", {method.name} covers one record '
                f"per person, got records_per_person = {self.records_per_person}; use DP-UM or DP"
            )
        from_data_voids = method.needs_domain and method.promise == "DP"
        if from_data_voids and not attribute.has_domain and not self.domain_from_data:
            raise ValueError(
                f"{_where(name)}: {method.name} needs a declared domain, got "
                f"lower = {attribute.lower} and upper = {attribute.upper}; declare both from what "
                "is known without the data, or choose iDP-CBLS, which needs none "
                "(domain_from_data = true reads them from the data and voids the DP claim)"
            )

    def _check_derived(self) -> None:
        released = {name for name, a in self.attributes.items() if a.role != "identifier"}
        for name, derived in self.derived.items():
            unknown = sorted(derived.inputs - released)
            if unknown:
                dropped = unknown[0] in self.attributes
                raise ValueError(
                    f"{_where(name)}: the expression names {unknown[0]!r}, "
                    f"{'an identifier' if dropped else 'which is not in the plan'}; "
                    "name only attributes that are released"
                )
        try:
            _ = self.derivation_order
        except graphlib.CycleError:
            raise ValueError(
                f"attribute {next(iter(self.derived))!r}: derived attributes must not be computed "
                "from each other in a circle"
            ) from None

    @property
    def confidential(self) -> dict[str, Confidential]:
        """The attributes that are masked."""
        return {n: a for n, a in self.attributes.items() if isinstance(a, Confidential)}

    @property
    def derived(self) -> dict[str, Derived]:
        """The attributes that are recomputed."""
        return {n: a for n, a in self.attributes.items() if isinstance(a, Derived)}

    def names(self, role: str) -> tuple[str, ...]:
        """Names of the attributes of one role, in plan order."""
        return tuple(name for name, a in self.attributes.items() if a.role == role)

    @property
    def derivation_order(self) -> tuple[str, ...]:
        """Derived attributes, each after those it is computed from."""
        graph = {name: derived.inputs for name, derived in self.derived.items()}
        return tuple(n for n in graphlib.TopologicalSorter(graph).static_order() if n in graph)

    def method_of(self, attribute: str) -> MethodName:
        """Return the attribute's own method, or the plan's."""
        return self.confidential[attribute].method or self.method

    def k_of(self, attribute: str) -> int:
        """Return the attribute's own k, or the plan's; 1 where the method forms no clusters."""
        own = self.confidential[attribute].k
        if not METHODS[self.method_of(attribute)].clustered:
            return 1
        return self.k if own is None else own

    def replace(self, **settings: Any) -> "Plan":  # noqa: ANN401 - pydantic checks each of them
        """Return a copy of the plan with some settings changed, checked again."""
        current = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**current, **settings})

    @classmethod
    def from_toml(cls, text: str) -> "Plan":
        """Read a plan from TOML text."""
        try:
            settings = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PlanError(f"plan: not valid TOML: {error}") from None
        return cls(**settings)

    def to_toml(self) -> str:
        """Write the plan as TOML text; settings left at their defaults are left out."""
        settings = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name in ("epsilon", "method", "k") or name in self._changed()
        }
        del settings["attributes"]
        attributes = {
            name: {"role": attribute.role, **attribute.model_dump(exclude_defaults=True)}
            for name, attribute in self.attributes.items()
        }
        return tomli_w.dumps({**settings, "attributes": attributes})

    def _changed(self) -> frozenset[str]:
        return frozenset(
            name
            for name, field in type(self).model_fields.items()
            if field.is_required() or getattr(self, name) != field.default
        )

    @classmethod
    def read(cls, path: str | Path) -> "Plan":
        """Read a plan from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError as error:
            raise FileError(f"plan {path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise FileError(f"plan {path}: expected UTF-8 text; save it as UTF-8") from None
        return cls.from_toml(text)


def plan_for_columns(
    columns: Iterable[str],
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    domains: Mapping[str, tuple[float, float]] = MappingProxyType({}),
    **settings: Any,  # noqa: ANN401 - pydantic checks each of them
) -> Plan:
    """Make a plan in which every column not dropped or kept is confidential.

    Examples
    --------
    >>> plan = plan_for_columns(["name", "age"], drop=["name"], epsilon=1)
    >>> plan.names("confidential")
    ('age',)
    """
    base: dict[str, object] = {name: Confidential() for name in columns}
    return Plan(attributes=override(base, drop=drop, keep=keep, domains=domains), **settings)


def override(
    attributes: Mapping[str, object],
    *,
    drop: Iterable[str] = (),
    keep: Iterable[str] = (),
    domains: Mapping[str, tuple[float, float]] = MappingProxyType({}),
) -> dict[str, object]:
    """Return the attributes with some of them dropped, kept or given a domain instead."""
    changed = dict(attributes)
    both = sorted(set(drop) & set(keep))
    if both:
        raise PlanError(f"drop and keep {both[0]!r}: an attribute is either dropped or kept")
    for option, names in (("drop", drop), ("keep", keep), ("domain", domains)):
        for name in names:
            if name not in changed:
                raise PlanError(
                    f"{option} {name!r}: no such attribute{_did_you_mean(name, changed)}"
                )
    changed |= {name: Identifier() for name in drop} | {name: Kept() for name in keep}
    for name, (lower, upper) in domains.items():
        attribute = changed[name]
        if not isinstance(attribute, Confidential):
            raise PlanError(f"domain {name!r}: only a confidential attribute has a domain")
        settings = attribute.model_dump(exclude_defaults=True, exclude={"resolution"})
        changed[name] = {**settings, "role": "confidential", "lower": lower, "upper": upper}
    return changed


def _where(name: str) -> str:
    return f"attribute {name!r}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _first_problem(model: type[BaseModel], error: ValidationError) -> str:
    """Say the first problem pydantic found in the project's own form; unknown keys go first."""
    problems = error.errors(include_url=False)
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in problem["loc"]]
    key = place[0] if place else ""
    prefix = "plan: " if model is Plan else ""
    if key == "attributes" and len(place) > 1:
        prefix = f"plan, {_where(place[1])}: "
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
        return f"plan, {message}" if message.startswith("attribute '") else prefix + message
    if problem["type"] == "extra_forbidden":
        return f"{prefix}unknown key {key!r}{_did_you_mean(key, model.model_fields)}"
    if problem["type"] == "missing":
        return f"{prefix}{key} is missing; add it"
    if problem["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"{prefix}role must be confidential, identifier, kept or derived"
    subject = "" if prefix.startswith("plan,") else f"{key} "
    expected = problem["msg"].replace("Input should be", "must be")
    return f"{prefix}{subject}{expected}, got {problem['input']!r}"
