"""What a column seems to hold, from its name, type and values, and the role that follows.

A key that is masked as an amount is useless and harmful; an amount that is dropped can be brought
back by one line. So where a column may be a key, it is taken for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.attribute import Category
from microveil.core.grid import LARGEST_STEPS, MOST_DECIMALS, grid_of_decimals, observed_decimals
from microveil.plan.propose.headers import (
    Says,
    label_says_weight,
    says_education,
    says_sampling_weight,
    says_year,
    tokens,
    what_it_says,
)
from microveil.plan.propose.numbering import (
    are_of_one_length,
    are_years,
    is_numbered,
    is_surely_numbered,
    may_be_numbered,
)
from microveil.types import NOT_POLARS, Integers, Reals, UserTable

_FEWEST_VALUES = 3  # in a cluster
_MOST_CATEGORIES, _RECORDS_PER_CATEGORY = 50, 3
_MOST_NAMED_CATEGORIES = 200
_MOST_STEPS_OF_A_SCALE = 10
_MOST_CODES, _MOST_CODES_WITH_GAPS, _FEWEST_COUNTS = 12, 20, 5
_MOST_PEOPLE_OF_A_UNIT = 20
_MOST_WORDS = 4  # such as yes, no, refused and not known in a column called phone
_SHARE_IN_USE = 0.01
_FEWEST_YEARS, _MOST_YEARS, _MOST_YEARS_OF_ALL = 8, 20, 30  # at school: of the median, and of all
_WEIGHTS_OF_BODIES = ((20.0, 250.0), (400.0, 6_000.0))  # kilograms or pounds, grams at birth
_MASKED = "amounts or counts"
_KEEP, _MASK = 'role = "kept"', 'role = "confidential"'
_AS_CATEGORIES = 'role = "confidential", kind = "nominal"'
_MOST_WRITTEN_DECIMALS = 6  # those that people write; more come of computing
_DIGITS_OF_SPREAD = 4


class _Codes(NamedTuple):
    """How many codes a column may have to be masked as categories, and why it is."""

    most: int
    records_each: int
    why: str


_NAMED_CODES: dict[Says, _Codes] = {
    "place": _Codes(_MOST_CATEGORIES, _RECORDS_PER_CATEGORY, "its name suggests places"),
    "code": _Codes(_MOST_NAMED_CATEGORIES, 2, "its name suggests codes"),
    "category": _Codes(_MOST_NAMED_CATEGORIES, 2, "its name suggests codes"),
    "scale": _Codes(_MOST_STEPS_OF_A_SCALE, _RECORDS_PER_CATEGORY, "few values on a scale"),
}


class Described(NamedTuple):
    """What a file says of a column: labels of values, level of measurement, its own label."""

    labels: Mapping[Category, str] = {}
    measure: str | None = None
    label: str = ""


@dataclass(frozen=True)
class Proposal:
    """What becomes of a column: settings as a plan has them, and why.

    Attributes
    ----------
    settings
        The role, and what goes with it.
    why
        The reason, in a few words.
    from_data
        The settings that were taken from the data.
    remark
        What else to write beside the settings.
    instead
        The line of a plan that would release a column that is dropped.
    unclear
        Whether it is dropped because nothing says whether it holds keys or amounts.
    weighs
        Whether it holds sampling weights, which are published only where many persons share each.
    """

    settings: dict[str, Any]
    why: str
    from_data: tuple[str, ...] = ()
    remark: str = ""
    instead: str = ""
    unclear: bool = False
    weighs: bool = False

    @property
    def role(self) -> str:
        """The role."""
        return str(self.settings["role"])

    @property
    def masked(self) -> bool:
        """Whether it is a confidential attribute."""
        return self.role == "confidential"

    @property
    def ordered(self) -> bool:
        """Whether it holds numbers, dates or times to be masked."""
        return self.masked and self.settings.get("kind") in (None, "integer", "real")


_UNCLEAR = Proposal(
    {"role": "identifier"},
    "may be keys as well as amounts; masked, keys would be published",
    instead=_MASK,
    unclear=True,
)


@dataclass(frozen=True, eq=False)
class ColumnProfile:
    """A column and what is to be known of it before a role is proposed."""

    name: str
    column: pl.Series
    described: Described = field(default_factory=Described)

    @cached_property
    def plain(self) -> pl.Series:
        """The column under a plain name, since Polars takes ^x$ for a pattern."""
        return self.column.alias("column")

    @cached_property
    def values(self) -> pl.Series:
        """Those that are not missing."""
        return self.plain.drop_nulls()

    @cached_property
    def missing(self) -> int:
        """How many values are missing."""
        return self.column.null_count()

    @cached_property
    def distinct(self) -> int:
        """How many different values there are."""
        try:
            return self.values.n_unique()
        except pl.exceptions.PolarsError:  # of a nested type
            return len(self.values)

    @cached_property
    def says(self) -> Says | None:
        """What the name says."""
        return what_it_says(self.name)

    @cached_property
    def whole(self) -> Integers | None:
        """Values that are whole numbers of 64 bits; None if they are not."""
        if not self.values.dtype.is_numeric():
            return None
        whole = self.values.cast(pl.Int64, strict=False)
        exact = not whole.null_count() and bool(
            (whole.cast(self.values.dtype) == self.values).all()
        )
        return whole.to_numpy() if exact else None

    @cached_property
    def fractional(self) -> bool:
        """Whether some numbers are not whole; those that are not finite say nothing."""
        numbers = self.values.cast(pl.Float64).to_numpy()
        return bool((numbers[np.isfinite(numbers)] % 1 != 0).any())

    def has_few(self, most: int, *, records_each: int = _RECORDS_PER_CATEGORY) -> bool:
        """Whether there are few values, each in some records on average."""
        return 2 <= self.distinct <= min(most, len(self.values) // records_each)


def as_polars(table: UserTable) -> pl.DataFrame:
    """Return a table of any library as one of Polars, in which ordered categories stay ordered."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if isinstance(table, pl.DataFrame):
        return table
    frame = nw.from_native(table, eager_only=True)
    return pl.DataFrame({name: _column_of(frame[name]) for name in frame.columns})


def ordered_numbers(table: UserTable) -> dict[str, Described]:
    """Find ordered categories that are numbers, of which Polars knows no type."""
    if isinstance(table, pl.DataFrame | pl.LazyFrame):
        return {}
    types = nw.from_native(table, eager_only=True).schema.items()
    listed = {name: list(t.categories) for name, t in types if isinstance(t, nw.Enum)}
    whole = {name: values for name, values in listed.items() if all(map(_is_whole, values))}
    return {name: Described(measure="ordinal") for name, v in whole.items() if v == sorted(v)}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _column_of(column: "nw.Series[Any]") -> pl.Series:
    try:
        values = column.to_polars().alias(column.name)
    except NOT_POLARS:
        return pl.Series(column.name, column.to_list(), dtype=pl.Object)
    listed = list(getattr(column.dtype, "categories", ()))
    if isinstance(column.dtype, nw.Enum) and all(isinstance(word, str) for word in listed):
        return values.cast(pl.String).cast(pl.Enum(listed))
    return values


def propose_role(look: ColumnProfile) -> Proposal:
    """Propose a role for a column.

    Examples
    --------
    >>> propose_role(ColumnProfile("sex", pl.Series([1, 2, 2, 1, 2, 1]))).settings
    {'role': 'confidential', 'kind': 'nominal', 'categories': [1, 2]}
    """
    if not len(look.values):
        return _dropped("no values")
    if look.says != "key" and look.says != "person" and look.distinct == 1 and not look.missing:
        return Proposal({"role": "kept"}, "the same in every record")
    if len(look.values) < _FEWEST_VALUES:
        return _dropped("fewer than three values", look)
    dtype = look.column.dtype
    if dtype.is_temporal():
        return Proposal({"role": "confidential"}, "dates or times")
    if dtype == pl.Boolean:
        return Proposal(
            {"role": "confidential", "kind": "nominal", "categories": [False, True]}, "two values"
        )
    if dtype.is_numeric():
        return _of_numbers(look)
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _of_text(look)
    return _dropped(f"type {dtype}", look)


def _of_text(look: ColumnProfile) -> Proposal:
    if look.says == "person" or (look.says == "contact" and look.distinct > _MOST_WORDS):
        return _dropped("its name suggests a person", look)
    if look.says == "key" or (look.says == "unit" and look.distinct > _MOST_PEOPLE_OF_A_UNIT):
        return _key(look, "its name suggests a key")
    if isinstance(look.column.dtype, pl.Enum) and len(look.column.dtype.categories) > 1:
        listed = look.column.dtype.categories.to_list()
        return _categories(listed, "ordered categories", kind="ordinal")
    labelled = _labelled(look)
    if labelled is not None:
        return labelled
    named = look.says in ("code", "category", "place", "scale")
    if look.has_few(_MOST_NAMED_CATEGORIES if named else _MOST_CATEGORIES):
        seen = look.values.cast(pl.String).unique().sort().to_list()
        return _categories(seen, f"text of {look.distinct} values")
    return _dropped(_why_no_categories(look), look)


def _why_no_categories(look: ColumnProfile) -> str:
    if look.distinct == len(look.values):
        return "text, all different"
    return "a single text" if look.distinct == 1 else "text of many values"


def _of_numbers(look: ColumnProfile) -> Proposal:
    if is_sampling_weight(look):
        return Proposal({"role": "kept"}, "sampling weights", weighs=True)
    if look.fractional:
        return as_amount(look)
    if look.says in ("person", "contact") and look.distinct > _MOST_WORDS:
        return _dropped("its name suggests a person", look)
    if look.says == "key":
        return _key(look, "its name suggests a key")
    if look.whole is None:
        return _UNCLEAR if look.values.dtype.is_integer() else as_amount(look)
    labelled = _labelled(look)
    if labelled is not None:
        return labelled
    named_amount = look.says in ("measure", "scale")
    if _are_years_of_education(look, look.whole):
        return as_amount(look)
    if is_surely_numbered(look.whole) or (not named_amount and is_numbered(look.whole)):
        return _key(look, _why_numbered(look))
    return _of_whole_numbers(look, look.whole)


def _of_whole_numbers(look: ColumnProfile, whole: Integers) -> Proposal:
    named = _NAMED_CODES.get(look.says or "measure")
    if named is not None and look.has_few(named.most, records_each=named.records_each):
        return _codes(whole, named.why)
    if look.says in ("place", "code") or (look.says == "category" and are_of_one_length(whole)):
        return _dropped("too many codes", look)
    if look.says == "unit" and look.distinct > _MOST_PEOPLE_OF_A_UNIT:
        return _key(look, "its name suggests a key")
    if look.says != "measure" and _are_few_years(look, whole):
        return _codes(whole, "few years")
    why = _why_codes(look, whole)
    if why:
        return _codes(whole, why)
    if look.says not in ("measure", "scale") and may_be_numbered(whole):
        return _UNCLEAR
    return as_amount(look)


def _why_codes(look: ColumnProfile, whole: Integers) -> str:
    """Say why whole numbers seem to be codes of categories; empty if they do not."""
    if not look.has_few(_MOST_CODES_WITH_GAPS):
        return ""
    values, counts = np.unique(whole, return_counts=True)
    if len(values) == 2 and (look.says != "measure" or values[1] - values[0] == 1):
        return "two values"
    if look.says == "measure":
        return ""
    used = values[counts >= _SHARE_IN_USE * len(whole)]
    if len(used) > 1 and used[-1] - used[0] + 1 > len(used):
        return "few numbers with gaps"
    if len(values) > _MOST_CODES:
        return ""
    return "" if _are_counts(values, counts) else "few numbers"


def _are_counts(values: Integers, counts: Integers) -> bool:
    """Whether frequencies rise to a top and fall after it, as those of counts and marks do."""
    if len(values) < _FEWEST_COUNTS:
        return False
    top = int(np.argmax(counts))
    peaked = counts[top] > 2 * max(counts[0], counts[-1]) and len(values) > _FEWEST_COUNTS
    slack, steps = 2 * np.sqrt(counts[:-1] + counts[1:]), np.diff(counts)
    falls = np.all(steps[:top] >= -slack[:top]) and np.all(steps[top:] <= slack[top:])
    return bool((values[0] == 0 or peaked) and falls)


def _are_few_years(look: ColumnProfile, whole: Integers) -> bool:
    return says_year(look.name) and are_years(whole) and look.has_few(_MOST_CODES)


def _are_years_of_education(look: ColumnProfile, whole: Integers) -> bool:
    """Whether numbers are the years people went to school, and no codes of their degrees.

    Without years in the name, degrees would be coded by fewer or by lower numbers.
    """
    said = max(says_education(look.name), says_education(look.described.label))
    typical = _FEWEST_YEARS <= np.median(whole) <= _MOST_YEARS and look.distinct >= _FEWEST_COUNTS
    within = whole.min() >= 0 and whole.max() <= _MOST_YEARS_OF_ALL
    return bool(within and (said == 2 or (said == 1 and typical)))


def _why_numbered(look: ColumnProfile) -> str:
    return (
        "all different, like a key" if look.distinct == len(look.values) else "numbered like a key"
    )


def _key(look: ColumnProfile, why: str) -> Proposal:
    if look.says == "key" and _is_key_of_categories(look):
        if look.whole is not None:
            return _codes(look.whole, "its name suggests codes")
        seen = look.values.cast(pl.String).unique().sort().to_list()
        return _categories(seen, "its name suggests codes")
    most = int(look.values.value_counts()["count"].max())  # type: ignore[arg-type]
    repeated = (
        f"up to {most} records share one value: if it identifies persons or households, set unit "
        f"to it and records_per_person = {most}"
    )
    if look.missing:
        repeated += f"; first fill it in where it is missing, in {look.missing:,} records"
    return _dropped(why, look, repeated if most > 1 else "")


def _is_key_of_categories(look: ColumnProfile) -> bool:
    """Whether the name says what is numbered, and it is no person or unit, such as "region_id"."""
    others = "_".join(part for part in tokens(look.name) if what_it_says(part) != "key")
    return what_it_says(others) in ("category", "code") and look.has_few(_MOST_CATEGORIES)


def is_sampling_weight(look: ColumnProfile) -> bool:
    """Whether a column seems to hold sampling weights."""
    says, labelled = says_sampling_weight(look.name), label_says_weight(look.described.label)
    if labelled is not None:
        says = labelled
    smallest = look.values.min()
    if says is False or smallest is None or float(smallest) < 0 or look.distinct < 2:  # type: ignore[arg-type]
        return False
    if says is None:
        middle = float(look.values.cast(pl.Float64).median())  # type: ignore[arg-type]
        return not any(low <= middle <= high for low, high in _WEIGHTS_OF_BODIES)
    return True


def can_weigh(look: ColumnProfile) -> bool:
    """Whether every record has a finite number above 0, as a plan's sampling weight must."""
    weights = look.values.cast(pl.Float64)
    return not look.missing and bool((weights.is_finite() & (weights > 0)).all())


def _labelled(look: ColumnProfile) -> Proposal | None:
    """Propose categories where a file labels them, or says that they are; else None."""
    labels, measure = dict(look.described.labels), look.described.measure
    if not labels and measure not in ("nominal", "ordinal"):
        return None
    seen = set(look.values.unique().to_list())
    if look.whole is not None:
        seen = {int(value) for value in seen}
        labels = {v: label for v, label in labels.items() if isinstance(v, int)}
    others = seen - labels.keys()
    if others and (measure in (None, "scale") or not look.has_few(_MOST_CATEGORIES)):
        return None
    listed: list[Any] = sorted({*labels, *others})
    if len(listed) < 2:
        return None
    kind = "ordinal" if measure == "ordinal" else "nominal"
    return Proposal(
        {"role": "confidential", "kind": kind, "categories": listed},
        "labelled in the file" if labels else f"{kind} in the file",
        ("categories",) if others else (),
        ", ".join(f"{value} = {' '.join(label.split())}" for value, label in labels.items()),
    )


def _codes(whole: Integers, why: str) -> Proposal:
    return _categories(np.unique(whole).tolist(), why)


def _categories(listed: list[Category], why: str, kind: str = "nominal") -> Proposal:
    settings = {"role": "confidential", "kind": kind, "categories": listed}
    remark = (
        "list all that are possible"
        if kind == "ordinal"
        else 'list all that are possible; if they have an order, set kind = "ordinal"'
    )
    return Proposal(settings, why, ("categories",), remark)


def _dropped(why: str, look: ColumnProfile | None = None, remark: str = "") -> Proposal:
    instead = _MASK if look is not None and look.values.dtype.is_numeric() else _KEEP
    if look is not None and look.says in ("key", "person", "contact", "unit"):
        instead = _KEEP
    elif look is not None and look.has_few(len(look.values), records_each=2):
        instead = _AS_CATEGORIES
    return Proposal({"role": "identifier"}, why, (), remark, instead)


def as_amount(look: ColumnProfile) -> Proposal:
    """Propose to mask a column of numbers."""
    settings: dict[str, Any] = {"role": "confidential"}
    numbers = look.values.cast(pl.Float64).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    largest = float(np.abs(finite).max(initial=0.0))
    if look.values.dtype.is_integer():
        if largest > LARGEST_STEPS * grid_of_decimals(0).step:
            return Proposal(settings | {"resolution": 1.0}, "large numbers", ("resolution",))
        return Proposal(settings, _MASKED)
    if not len(finite):
        return Proposal(settings, _MASKED)
    if isinstance(look.values.dtype, pl.Decimal) and look.values.dtype.scale < MOST_DECIMALS:
        return Proposal(settings | {"decimals": look.values.dtype.scale}, _MASKED)
    decimals = _decimals(look.values, finite)
    while 1 < decimals < MOST_DECIMALS and not _fits(largest, decimals):
        decimals -= 1
    if decimals < MOST_DECIMALS and _fits(largest, decimals):
        return Proposal(settings | {"decimals": decimals}, _MASKED, ("decimals",))
    finest = int(np.ceil(np.log10(largest / LARGEST_STEPS))) + 1
    step = float(f"1e{max(-decimals, finest)}")
    return Proposal(settings | {"resolution": step}, _MASKED, ("resolution",))


def _fits(largest: float, decimals: int) -> bool:
    """Whether values of so many decimals fit their noise grid."""
    return largest <= LARGEST_STEPS * grid_of_decimals(decimals).step


def _decimals(values: pl.Series, finite: Reals) -> int:
    """Return how many decimals to write values with: as they have, or enough for their spread."""
    seen = observed_decimals(finite, single_precision=values.dtype == pl.Float32)
    if seen <= _MOST_WRITTEN_DECIMALS:
        return seen
    spread = float(np.median(np.abs(finite - np.median(finite)))) or float(np.std(finite))
    if not spread or not np.isfinite(spread):
        return seen
    return max(0, _DIGITS_OF_SPREAD - int(np.floor(np.log10(spread))))
