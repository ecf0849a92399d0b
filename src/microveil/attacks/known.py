"""Two tables as an attacker meets them: by what is known of people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from microveil.compare.examined import Examined
from microveil.compare.paired_columns import MISSING, compare_numbers
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import column_of, polars_of
from microveil.errors import DataError
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.types import Integers, Reals

EVERYTHING = Scenario()
"""Someone who knows all masked attributes of everybody."""

KnownAs = Literal["number", "ordinal", "nominal", "exact"]


@dataclass(frozen=True, eq=False)
class Known:
    """What linkage attacks take: people × attributes in both tables, and of what kind these are."""

    original: Reals
    masked: Reals
    kinds: tuple[KnownAs, ...]

    @property
    def tables(self) -> tuple[Reals, Reals]:
        """The two tables."""
        return self.original, self.masked

    @property
    def given(self) -> dict[str, Any]:
        """Which attributes are nominal, and which are published as they are."""
        return {
            kind: [number for number, other in enumerate(self.kinds) if other == kind]
            for kind in ("nominal", "exact")
        }


def scenarios_of(
    pair: Pair, known: Sequence[str] | str = (), people: float = 1.0
) -> tuple[Scenario, ...]:
    """Return whom to try besides someone who knows everything: as asked for, and as planned."""
    names = (known,) if isinstance(known, str) else tuple(known)
    if not 0 < people <= 1:
        raise DataError(f"people must be a share above 0 and up to 1, got {people}")
    for name in names:
        for frame, where in ((pair.source, "original"), (pair.table, "release")):
            if name not in frame.columns:
                raise DataError(
                    f"known must name columns of original and release, got {name!r}, which is not "
                    f"in the {where} (columns: {', '.join(frame.columns)})"
                )
    hidden = {*pair.plan.names("pseudonym"), *pair.plan.shifted} if pair.plan else set()
    for name in hidden.intersection(names):
        raise DataError(
            f"known must name columns that can be known, got {name!r}, which nobody knows as it is "
            "in the release without the key; leave it out"
        )
    asked = Scenario(known=names or None, people=people)
    all_of_them = (asked, *(pair.plan.scenarios if pair.plan else ()))
    return tuple({x.label: x for x in all_of_them if x != EVERYTHING}.values())


def proved(plan: Plan | None, scenario: Scenario) -> int | None:
    """Return a number if pooling proves that nobody is found with a better chance than 1 in it."""
    if plan is None or plan.names("pseudonym") or plan.unit:
        return None  # records of a person can be told together, or units by their size
    names = set(plan.confidential if scenario.known is None else scenario.known)
    names -= set(plan.within)  # the same for all records of a joint cluster
    groups = (group for group in plan.pooled_groups if names <= set(group.attributes))
    return next((group.anonymity for group in groups), None)


def known_of(seen: Examined, scenario: Scenario) -> Known:
    """Take what is known out of the records that are looked at, which are paired."""
    return what_is_known(seen.pair if scenario.known is None else seen.given, scenario)


def what_is_known(pair: Pair, scenario: Scenario) -> Known:
    """Take what is known out of two tables whose records are aligned.

    Attributes that were neither masked nor derived are published as they are. Masked ones that were
    not compared are constant, and tell nobody apart.
    """
    names = pair.attributes if scenario.known is None else tuple(dict.fromkeys(scenario.known))
    constant = set(pair.plan.confidential if pair.plan else ()) - set(pair.attributes)
    columns = [_column(pair, name) for name in names if name not in constant]
    if not columns:
        nothing = np.zeros((len(pair.released), 1))
        return Known(nothing, nothing, ("number",))
    kinds, original, masked = zip(*columns, strict=True)
    return Known(np.column_stack(original), np.column_stack(masked), kinds)


def _column(pair: Pair, name: str) -> tuple[KnownAs, Reals, Reals]:
    if name in pair.numeric:
        at = pair.numeric.index(name)
        return "number", pair.matched[:, at], pair.released[:, at]
    for attribute in pair.categorical:
        if attribute.name == name:
            codes = with_gaps(attribute.original)[pair.positions]
            return attribute.kind, codes, with_gaps(attribute.released)
    if pair.plan is not None and name in pair.plan.derived:
        numbers = compare_numbers(name, column_of(pair.source, name), column_of(pair.table, name))
        return "number", numbers.original[pair.positions], numbers.released[pair.order]
    return "exact", *_as_they_are(pair, name)


def with_gaps(codes: Integers) -> Reals:
    """Return codes of categories with NaN where one is missing."""
    return np.where(codes == MISSING, np.nan, codes)


def _as_they_are(pair: Pair, name: str) -> tuple[Reals, Reals]:
    """Give the values of a column that is published as it is numbers, alike in both tables."""
    before, after = polars_of(pair.source[name]), polars_of(pair.table[name])
    try:
        both = pl.concat([column.cast(pl.String) for column in (before, after)])
    except pl.exceptions.PolarsError:
        raise DataError(
            f"known {name!r}: expected a column that can be compared as text; leave it out"
        ) from None
    codes = both.rank("dense").cast(pl.Float64).fill_null(np.nan).to_numpy()
    return codes[: len(before)][pair.positions], codes[len(before) :][pair.order]
