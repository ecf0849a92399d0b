"""The roles of attributes: masked, dropped, kept or computed again."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import StrictBool, StrictInt, StrictStr, field_validator, model_validator

from microveil.core.attribute import AttributeKind, Category, NumericKind, TimeStep
from microveil.core.choices import MethodName
from microveil.core.methods import METHODS
from microveil.errors import PlanError, Problems
from microveil.plan.parts import PlanPart
from microveil.plan.settings import EMPTY, UNSET, Given, K, Setting
from microveil.plan.taxonomy import Tree, groups_at, leaf_paths, read_taxonomy

if TYPE_CHECKING:
    import polars as pl

_PART_OF_EXPRESSION = re.compile(r"""\w+|"(?:[^"]|"")*"|'(?:[^']|'')*'|[^\w\s]""")
_MOST_PARTS_OF_EXPRESSION = 500  # Polars takes minutes for some thousands, or ends the process

_MOST_DAYS = 36_500
_MOST_ATOMS = 20
Bound = float | datetime | date | time
_Categories = tuple[StrictBool | StrictInt | StrictStr, ...] | None
_Merged = Mapping[str, tuple[StrictBool | StrictInt | StrictStr, ...]]


def check_trim(trim: float | None) -> None:
    """Refuse a share that would leave nothing of a cluster."""
    if trim is not None and not 0 <= trim < 0.5:
        raise PlanError(
            f"trim must be 0 or more and below 0.5, got {trim:g}; use 0.1 to 0.25, or 0 for the "
            "paper's pre-processing",
            setting="trim",
        )


class Confidential(PlanPart):
    """An attribute that is masked: numbers, dates and times, or categories."""

    role: Literal["confidential"] = "confidential"
    kind: Annotated[AttributeKind | None, Setting(
        help="What the column holds, by default what its type says",
        more="In a CSV file its values decide. Categories need ``\"nominal\"`` or "
        "``\"ordinal\"``.",
    )] = None  # fmt: skip
    lower: Annotated[Bound | None, Setting(
        help="Smallest value the attribute could have, known without looking at the data",
        more="Dates and times have a date or a time, in TOML also as text such as "
        "``\"1992-12-31\"``. lower and upper are the domain, and masked values stay within it.",
    )] = None  # fmt: skip
    upper: Annotated[Bound | None, Setting(
        help="Largest value the attribute could have, known without looking at the data",
    )] = None  # fmt: skip
    categories: Annotated[Given[_Categories, Sequence[Category] | None], Setting(
        help="Categories that are possible: text, whole numbers, or true and false",
        more="Those of an ordinal attribute stand from the lowest to the highest.",
    )] = UNSET  # fmt: skip
    taxonomy: Annotated[Given[Tree | None, Mapping[str, object] | str | Path | None], Setting(
        help="Tree of the categories of a nominal attribute, so that similar ones share clusters",
        more="Nested tables, or the path of a CSV file with the columns parent and child.",
    )] = UNSET  # fmt: skip
    level: Annotated[int | None, Setting(
        help="Level of the taxonomy to whose groups categories are recoded before they are masked",
        more="1 is the level of the largest groups. The names of groups are text.",
    )] = None  # fmt: skip
    merge: Annotated[Given[_Merged | None, Mapping[str, Sequence[Category]] | None], Setting(
        help="Groups of categories that are recoded to one before they are masked, such as rare "
        "ones to \"other\"",
        more="The name of each group, which is text, and the categories it stands for. With a "
        "taxonomy, `level` does so.",
    )] = UNSET  # fmt: skip
    top: Annotated[Bound | None, Setting(
        help="Upper end of the domain, to which larger values are moved before they are masked",
        more="It replaces upper; values above upper are refused instead.",
    )] = None  # fmt: skip
    bottom: Annotated[Bound | None, Setting(
        help="Lower end of the domain, to which smaller values are moved before they are masked",
        more="It replaces lower.",
    )] = None  # fmt: skip
    round_to: Annotated[float | None, Setting(
        help="Number to whose multiples values are rounded before they are masked",
    )] = None  # fmt: skip
    method: Annotated[MethodName | None, Setting(
        help="Method for this attribute, by default the plan's",
    )] = None  # fmt: skip
    k: Annotated[K | None, Setting(
        help="Minimum number of records in a cluster of this attribute, by default the plan's",
    )] = None  # fmt: skip
    trim: Annotated[float | None, Setting(
        help="Share of a cluster of this attribute left out at each end, by default the plan's",
    )] = None  # fmt: skip
    budget_share: Annotated[float, Setting(
        help="Share of epsilon, relative to the shares of the other confidential attributes",
    )] = 1.0  # fmt: skip
    decimals: Annotated[int | None, Setting(
        help="Number of decimals of a real attribute, to which masked values are rounded",
    )] = None  # fmt: skip
    resolution: Annotated[float | Literal["data"] | None, Setting(
        help="Grid step of an attribute without a domain, by default 2^−20",
        more="It is rounded down to a power of two. ``\"data\"`` takes it from the last decimal "
        "and the largest value in the column: it warns, and the certificate says so.",
    )] = None  # fmt: skip
    time_step: Annotated[TimeStep | None, Setting(
        help="Time step to which masked dates and times are rounded, by default a day for dates "
        "and a second for times",
    )] = None  # fmt: skip
    log_scale: Annotated[bool, Setting(
        help="Whether a synthetic release counts small numbers in finer steps than large ones",
        more="For amounts with a long tail, such as incomes and turnovers.",
    )] = False  # fmt: skip
    atoms: Annotated[Given[tuple[float, ...], Sequence[float]], Setting(
        help="Numbers that a synthetic release counts by themselves, such as a frequent 0",
        more="At most 20, from lower to upper.",
    )] = EMPTY  # fmt: skip
    sampling_weight: Annotated[bool, Setting(
        help="Whether this is the sampling weight, published masked",
        more="`evaluate` weighs estimates of the release by its masked values. They stay "
        "above 0, at `lower` or at the smallest number of its decimals.",
    )] = False  # fmt: skip
    per_unit: Annotated[bool, Setting(
        help="Whether all records of a unit have the same value, which is then masked once",
        more="The plan's `unit` says which records belong to one unit.",
    )] = False  # fmt: skip

    @property
    def has_domain(self) -> bool:
        """Whether both ends of the domain, or all categories, are declared."""
        if self.is_category:
            return bool(self.declared_categories)
        return self.lower is not None and self.upper is not None

    @property
    def numeric_kind(self) -> NumericKind | None:
        """Whether it holds whole or real numbers; None if that is not declared."""
        return self.kind if self.kind in ("integer", "real") else None

    @property
    def is_category(self) -> bool:
        """Whether the attribute holds categories."""
        return self.kind in ("nominal", "ordinal")

    @property
    def declared_categories(self) -> tuple[Category, ...]:
        """The categories in the order in which they are clustered; empty if not declared.

        They are those that `level` or `merge` makes of them.
        """
        if self.merge:
            texts = (str(category) for category in self._own_categories)
            return tuple(dict.fromkeys(self.recoded.get(text, text) for text in texts))
        return tuple(dict.fromkeys(self.recoded.values())) or self._own_categories

    @property
    def _own_categories(self) -> tuple[Category, ...]:
        """The categories as the column has them."""
        if self.taxonomy is not None:
            return tuple(leaf_paths(self.taxonomy))
        return self.categories or ()

    @property
    def recoded(self) -> dict[str, str]:
        """What becomes of categories, as text, before they are masked; of others nothing."""
        if self.merge:
            return {str(one): name for name, merged in self.merge.items() for one in merged}
        if self.taxonomy is None or self.level is None:
            return {}
        groups = groups_at(self.taxonomy, self.level)
        return {str(category): path[-1] for category, path in groups.items()}

    @property
    def category_paths(self) -> tuple[tuple[str, ...], ...]:
        """The groups of the taxonomy that each of the categories is in; empty without one."""
        if self.taxonomy is None:
            return ()
        if self.level is None:
            return tuple(leaf_paths(self.taxonomy).values())
        groups = groups_at(self.taxonomy, self.level).values()
        return tuple(path[:-1] for path in dict.fromkeys(groups))

    @property
    def has_text_categories(self) -> bool:
        """Whether categories are declared as text; those of a taxonomy may yet be numbers."""
        return bool(self.categories) and isinstance(self.categories[0], str)  # type: ignore[index]

    @model_validator(mode="before")
    @classmethod
    def _coded_ends(cls, settings: dict[str, object]) -> dict[str, object]:
        """Let top and bottom be the ends of the domain."""
        ends = {"upper": settings.get("top"), "lower": settings.get("bottom")}
        return {**{end: to for end, to in ends.items() if to is not None}, **settings}

    @field_validator("taxonomy", mode="before")
    @classmethod
    def _read_taxonomy(cls, taxonomy: object) -> object:
        return read_taxonomy(taxonomy) if isinstance(taxonomy, str | Path) else taxonomy

    @field_validator("merge", mode="before")
    @classmethod
    def _read_merge(cls, merge: object) -> object:
        if not isinstance(merge, Mapping):
            return merge
        return {
            name: tuple(group) if isinstance(group, list) else group
            for name, group in merge.items()
        }

    @field_validator("lower", "upper", "top", "bottom", mode="before")
    @classmethod
    def _read_moment(cls, bound: object) -> object:
        return _moment_of_text(bound) if isinstance(bound, str) else bound

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = Problems()
        for name in ("lower", "upper", "budget_share", "resolution", "top", "bottom", "round_to"):
            with problems:
                self._check_number(name)
        with problems:
            check_trim(self.trim)
        for check in (
            self._check_ends,
            self._check_coded_ends,
            self._check_decimals,
            self._check_resolution,
            self._check_clusters,
            self._check_kind,
            self._check_categories,
            self._check_merge,
            self._check_sampling_weight,
            self._check_atoms,
        ):
            with problems:
                check()
        problems.raise_found()
        return self

    def _check_number(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, int | float):
            return
        if not math.isfinite(value):
            raise PlanError(f"{name} must be a finite number, got {value}", setting=name)
        if name in ("budget_share", "resolution", "round_to") and value <= 0:
            raise PlanError(f"{name} must be above 0, got {value}", setting=name)

    def _check_ends(self) -> None:
        lower, upper = self.lower, self.upper
        if lower is None or upper is None or not (_is_finite(lower) and _is_finite(upper)):
            return
        try:
            in_order = _moment(lower) < _moment(upper)  # type: ignore[operator]
        except TypeError:
            raise PlanError(
                "lower and upper must both be numbers, both dates or both times; change one",
                setting="lower",
            ) from None
        if not in_order:
            raise PlanError(
                f"lower must be below upper, got lower = {lower} and upper = {upper}",
                setting="lower",
            )

    def _check_coded_ends(self) -> None:
        for coded, end in (("top", "upper"), ("bottom", "lower")):
            if getattr(self, coded) is not None and getattr(self, coded) != getattr(self, end):
                raise PlanError(
                    f"{coded} is the {end} end of the domain, got another {end}; remove {end}",
                    setting=end,
                )

    def _check_decimals(self) -> None:
        if self.decimals is not None and not 0 <= self.decimals <= 15:
            raise PlanError(
                f"decimals must be from 0 to 15, got {self.decimals}", setting="decimals"
            )
        if self.decimals and self.kind == "integer":
            raise PlanError(
                'decimals are for kind = "real"; remove decimals or change kind', setting="decimals"
            )

    def _check_resolution(self) -> None:
        if self.resolution is not None and self.has_domain:
            raise PlanError(
                "resolution has no effect with lower and upper; remove it",
                setting="resolution",
            )
        if self.resolution is not None and self.decimals is not None:
            raise PlanError(
                "resolution and decimals exclude each other; remove one of them",
                setting="resolution",
            )

    def _check_clusters(self) -> None:
        if self.k is not None and self.method and not METHODS[self.method].clustered:
            raise PlanError(
                f"method {self.method} forms no clusters; remove k or choose another method",
                setting="k",
            )

    def _check_kind(self) -> None:
        """Refuse settings of numbers for categories, and of categories for numbers."""
        if not self.is_category:
            for name in ("categories", "taxonomy", "level", "merge"):
                if getattr(self, name) is not None:
                    raise PlanError(
                        f'{name} needs kind = "nominal" or "ordinal"; set kind', setting="kind"
                    )
            return
        problems = Problems()
        for name in (
            "top", "bottom", "lower", "upper", "decimals", "resolution", "time_step", "trim",
            "round_to", "atoms", "log_scale",
        ):  # fmt: skip
            value = getattr(self, name)
            with problems:
                if value is not None and value is not False and value != ():
                    raise PlanError(
                        f"{name} is for numbers, but kind is {self.kind}; remove it", setting=name
                    )
        problems.raise_found()

    def _check_categories(self) -> None:
        if not self.is_category:
            return
        if self.kind == "ordinal" and (self.categories is None or self.taxonomy is not None):
            raise PlanError(
                'kind = "ordinal" needs its order: declare categories from the lowest to the '
                "highest, and no taxonomy",
                setting="categories",
            )
        self._check_level()
        declared = self._own_categories
        if self.categories is not None and set(self.categories) != set(declared):
            missing = len(set(self.categories) ^ set(declared))
            raise PlanError(
                f"categories and the taxonomy's leaves must be the same, found {missing} that are "
                "in one only; remove categories, or complete the taxonomy",
                setting="categories",
            )
        if self.categories is not None or self.taxonomy is not None:
            self._check_list(self.categories or declared)
            self._check_list(self.declared_categories)

    def _check_level(self) -> None:
        if self.level is not None and (self.taxonomy is None or self.level < 1):
            raise PlanError(
                "level must be 1 or more and needs a taxonomy; declare a taxonomy, or remove level",
                setting="level",
            )

    def _check_merge(self) -> None:
        if not self.merge:
            return
        merged = [category for group in self.merge.values() for category in group]
        unknown = set(merged) - set(self.categories or ())
        if self.taxonomy is not None or unknown or len(set(merged)) < len(merged):
            raise PlanError(
                "merge lists some of the declared categories, each in one group, and needs no "
                "taxonomy; declare categories, list each once, or use level with a taxonomy",
                setting="merge",
            )

    def _check_sampling_weight(self) -> None:
        if not self.sampling_weight:
            return
        if self.is_category:
            raise PlanError(
                f"a sampling weight is a number, but kind is {self.kind}; remove sampling_weight",
                setting="sampling_weight",
            )
        if self.lower is not None and not (isinstance(self.lower, int | float) and self.lower > 0):
            raise PlanError(
                "a masked sampling weight must stay positive, so its lower must be above 0; "
                "declare the smallest weight there could be, or remove lower",
                setting="lower",
            )

    def _check_atoms(self) -> None:
        lower, upper = self.lower, self.upper
        numbers = isinstance(lower, int | float) and isinstance(upper, int | float)
        wrong = not numbers or any(not lower <= one <= upper for one in self.atoms)  # type: ignore[operator]
        if self.atoms and (
            wrong or len(set(self.atoms)) < len(self.atoms) or len(self.atoms) > _MOST_ATOMS
        ):
            raise PlanError(
                f"atoms must be at most {_MOST_ATOMS} different numbers from lower to upper; "
                "correct them",
                setting="atoms",
            )
        if self.log_scale and not numbers:
            raise PlanError(
                "log_scale is for numbers with lower and upper; declare both, or remove it",
                setting="log_scale",
            )

    def _check_list(self, categories: tuple[Category, ...]) -> None:
        problem = None
        if len(categories) < 2:
            problem = f"must be two or more, got {len(categories)}"
        elif len({type(category) for category in categories}) > 1:
            problem = "must all be text, all whole numbers or all true and false"
        elif any(isinstance(c, int) and not -(2**63) <= c < 2**63 for c in categories):
            problem = "that are whole numbers must fit into 64 bits"
        elif len(set(categories)) < len(categories):
            problem = "must differ, found one twice; remove it"
        if problem:
            raise PlanError(f"categories {problem}", setting="categories")


class Identifier(PlanPart):
    """An attribute that identifies a person: dropped."""

    role: Literal["identifier"] = "identifier"


class Kept(PlanPart):
    """An attribute that is published as it is; the certificate lists it as unprotected."""

    role: Literal["kept"] = "kept"


class SamplingWeight(PlanPart):
    """The sampling weight: how many people each record stands for, published as it is.

    `evaluate` weights its estimates by it. A plan can have one. To mask it, make the attribute
    confidential with ``sampling_weight=True``.
    """

    role: Literal["sampling_weight"] = "sampling_weight"


class Pseudonym(PlanPart):
    """An identifier replaced by a random text, the same for the same person in every table.

    It is computed from the value, as text, with the key file that `protect` is given. Records of a
    person can be linked with each other by it, and the certificate says so.
    """

    role: Literal["pseudonym"] = "pseudonym"


class Shifted(PlanPart):
    """Dates or times that move by one secret number of days per person, and are not masked.

    The plan's only pseudonym says whose dates they are. Intervals between the dates of a person
    stay as they are, and ε does not cover them.
    """

    role: Literal["shifted"] = "shifted"
    shift: Literal["per-unit"] = "per-unit"
    days: Annotated[int, Setting(
        help="Largest number of days by which dates move, either way; each number is as likely",
        more="182, the default, is half a year.",
    )] = 182  # fmt: skip

    @field_validator("days")
    @classmethod
    def _some_days(cls, days: int) -> int:
        if not 1 <= days <= _MOST_DAYS:
            raise PlanError(
                f"days must be from 1 to {_MOST_DAYS:,}, got {days}; 182 is half a year",
                setting="days",
            )
        return days


class Derived(PlanPart):
    """An attribute computed again after masking, so that totals still add up."""

    role: Literal["derived"] = "derived"
    expression: Annotated[str, Setting(
        help="SQL expression over released attributes, such as ``wages + other``",
        more="Polars parses it; it is never run as Python. Names with spaces stand in double "
        "quotes. Numbers added to a date, and differences of dates, count days.",
    )]  # fmt: skip

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

        _check_size(expression)
        try:
            about = pl.sql_expr(expression).meta
            names, patterns = about.root_names(), about.has_multiple_outputs()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            raise PlanError(
                f"not an SQL expression Polars can parse: {expression!r}", setting="expression"
            ) from None
        if patterns:
            raise PlanError(
                'an expression cannot name an attribute "*" or one from "^" to "$", which Polars '
                f"takes for patterns of names, got {expression!r}; rename the column",
                setting="expression",
            )
        if not names:
            raise PlanError(
                f"an expression must name at least one attribute, got {expression!r}",
                setting="expression",
            )
        return expression


def is_pattern(name: str) -> bool:
    """Whether Polars takes a name for a pattern of names."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def _check_size(expression: str) -> None:
    parts = sum(1 for _ in _PART_OF_EXPRESSION.finditer(expression))
    if parts > _MOST_PARTS_OF_EXPRESSION:
        raise PlanError(
            f"an expression may have {_MOST_PARTS_OF_EXPRESSION:,} names, numbers and signs, found "
            f"{parts:,}; write a shorter one, or make the attribute confidential",
            setting="expression",
        )


def _is_finite(bound: Bound) -> bool:
    return not isinstance(bound, int | float) or math.isfinite(bound)


def _moment(bound: Bound) -> Bound:
    """Let a date stand for its midnight, so that it can be compared with a time."""
    return datetime.combine(bound, time()) if type(bound) is date else bound


def _moment_of_text(text: str) -> Bound | str:
    """Read a date or a time from ISO text such as "1992-12-31"; leave other text as it is."""
    readings: tuple[Callable[[str], Bound], ...] = (
        date.fromisoformat,
        datetime.fromisoformat,
        time.fromisoformat,
    )
    for read in readings if {"-", ":"} & set(text) else ():
        with suppress(ValueError):
            return read(text)
    return text
