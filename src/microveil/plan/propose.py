"""Look at a table and write a commented plan that a person can edit.

Looking at the data has a price, so every proposal that depends on it is marked as such.
"""

import re
from dataclasses import dataclass
from importlib.metadata import version
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import tomlkit
from tomlkit.items import Table

from microveil.core.choices import DEFAULT_METHOD
from microveil.core.grid import (
    LARGEST_UNITS,
    MOST_DECIMALS,
    grid_of_decimals,
    grid_of_observed,
    observed_decimals,
)
from microveil.core.methods import METHODS
from microveil.errors import DataError
from microveil.plan.plan import RECOMMENDED
from microveil.plan.roles import is_pattern
from microveil.plan.toml import commented, texts

FROM_DATA = "(from the data)"

_IDENTIFYING_NAME = re.compile(r"(^|[\W_])(id|key|nr|no|number|ssn|uuid)$", re.IGNORECASE)
_MOST_COLUMNS_FOR_SUMS = 60


_MOST_CATEGORIES = 50
_LEAST_RECORDS_PER_CATEGORY = 5


@dataclass(frozen=True)
class _Proposal:
    settings: dict[str, Any]
    remark: str = ""

    @property
    def masked(self) -> bool:
        return bool(self.settings["role"] == "confidential")

    @property
    def ordered(self) -> bool:
        return self.masked and "kind" not in self.settings


def propose_plan(table: pl.DataFrame, name: str) -> str:
    """Write a plan for a table as commented TOML, usable unedited for iDP-CBLS.

    Numbers, dates and times are confidential, and so are Booleans and text of few categories;
    columns found to be the sum of two others are derived, and everything else is dropped: nothing
    is published as it is unless a person says so.

    Examples
    --------
    >>> from microveil.plan.sample import people
    >>> print(propose_plan(people(), "people.csv").splitlines()[-4])
    [attributes.income]
    """
    proposals = {column.name: _propose(column) for column in table}
    numeric = [n for n, p in proposals.items() if p.ordered and table[n].dtype.is_numeric()]
    proposals |= _sums(table, numeric)
    confidential = [name for name, p in proposals.items() if p.masked]
    if not confidential:
        raise DataError(
            f"{name}: no column holds what could be protected; if this is CSV whose columns or "
            "decimals were not recognised, give the delimiter and the decimal mark"
        )
    document = tomlkit.document()
    for line in _head(table, name):
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    _add_settings(document, table.select(table[name] for name in confidential), _marked(proposals))
    attributes = tomlkit.table(is_super_table=True)
    for column, proposal in proposals.items():
        attributes.add(column, _section(proposal))
    document.add("attributes", attributes)
    return tomlkit.dumps(document).rstrip() + "\n"


def _head(table: pl.DataFrame, name: str) -> list[str]:
    return [
        f"Plan for {name!a} ({table.height:,} records), proposed by microveil "
        f"{version('microveil')}. Read it, edit it, then:",
        "  microveil protect FILE --plan THIS_FILE -o protected.parquet",
        f"What was proposed by looking at the data is marked {FROM_DATA}: check it.",
        "lower and upper are left to you: declare what values are possible, from what is known",
        "without the data. Masked values stay within them.",
    ]


def _marked(proposals: dict[str, _Proposal]) -> list[str]:
    """List what will stand in the plan because of the data, for its certificate."""
    return [
        f"{column}: {setting}"
        for column, proposal in proposals.items()
        for setting in proposal.settings
        if setting not in ("role", "kind") and proposal.remark
    ]


def _add_settings(
    document: tomlkit.TOMLDocument, confidential: pl.DataFrame, marked: list[str]
) -> None:
    proposed = RECOMMENDED
    anonymity = max(2, min(proposed["anonymity"], confidential.height))
    with_nulls = sum(column.null_count() > 0 for column in confidential)
    others = ", ".join(f'"{name}"' for name, method in METHODS.items() if method.needs_domain)
    few = f" {FROM_DATA}: few records" if anonymity < proposed["anonymity"] else ""
    settings: dict[str, tuple[object, str]] = {
        "epsilon": (1.0, "privacy budget of a person, shared by the confidential attributes; "
                    "smaller protects more"),
        "method": (DEFAULT_METHOD, f"or {others}: those need lower and upper everywhere"),
        "anonymity": (anonymity, "nobody picks a person's row by these attributes with a better "
                      f"chance than 1 in as many; 0 does not pool{few}"),
        "pooling": (proposed["pooling"], "masked values change places at random within joint "
                    'clusters; "average" makes these alike'),
        "k": (proposed["k"], "the least number of records in a cluster of one attribute"),
        "partition": (proposed["partition"], 'clusters of least expected error; "fixed": of k'),
        "trim": (proposed["trim"], "share of a cluster left out at each end, for heavy tails"),
        "post": (proposed["post"], "masked values are put back in order"),
        "records_per_person": (1, "the most records one person has in the table"),
    }  # fmt: skip
    if with_nulls:
        comment = (
            f"{FROM_DATA}: {with_nulls} attribute(s) have missing values; they stay missing "
            '("drop" leaves their records out)'
        )
        settings["missing"] = ("keep", comment)
    for name, (value, comment) in settings.items():
        document.add(name, commented(value, comment))
    marked = [*marked, *(["missing"] if with_nulls else []), *(["anonymity"] if few else [])]
    if marked:
        said = "The certificate will say of these that they were taken from the data."
        document.add(tomlkit.comment(said))
        document.add("from_data", texts(marked))
    document.add(tomlkit.nl())


def _section(proposal: _Proposal) -> Table:
    section = tomlkit.table()
    if proposal.remark:
        section.add(tomlkit.comment(proposal.remark))
    for name, value in proposal.settings.items():
        section.add(name, value)
    if proposal.ordered:
        section.add(tomlkit.comment("lower ="))
        section.add(tomlkit.comment("upper ="))
    section.add(tomlkit.nl())
    return section


def _propose(column: pl.Series) -> _Proposal:
    name, column = column.name, column.alias("column")  # Polars takes ^x$ for a pattern
    values = column.drop_nulls()
    if len(values) < 3:
        remark = f"{FROM_DATA} fewer than three values, too few to form a cluster: dropped"
        return _Proposal({"role": "identifier"}, remark)
    if column.dtype in (pl.Date, pl.Datetime, pl.Time):
        return _Proposal({"role": "confidential"})
    if not column.dtype.is_integer() and not column.dtype.is_float():
        return _categories(values)
    if column.dtype.is_integer() and _looks_like_an_identifier(name, values):
        return _Proposal(
            {"role": "identifier"}, f"{FROM_DATA} a different value in every record: dropped"
        )
    return _confidential(values)


def _categories(values: pl.Series) -> _Proposal:
    settings = {"role": "confidential", "kind": "nominal"}
    if values.dtype == pl.Boolean:
        return _Proposal(settings | {"categories": [False, True]})
    if values.dtype in (pl.String, pl.Categorical, pl.Enum):
        seen = values.cast(pl.String).unique().sort().to_list()
        few = min(_MOST_CATEGORIES, len(values) // _LEAST_RECORDS_PER_CATEGORY)
        if 2 <= len(seen) <= few:
            remark = (
                f"{FROM_DATA} categories: list all that are possible; if they have an order, put "
                'them in it and set kind = "ordinal"'
            )
            return _Proposal(settings | {"categories": seen}, remark)
    return _Proposal(
        {"role": "identifier"},
        'neither a number nor one of few categories, so it is dropped; role = "kept" publishes it '
        "as it is, unprotected",
    )


def _looks_like_an_identifier(name: str, values: pl.Series) -> bool:
    if values.n_unique() < len(values) or len(values) < 2:
        return False
    spread = int(values.max()) - int(values.min())  # type: ignore[arg-type]
    return spread == len(values) - 1 or bool(_IDENTIFYING_NAME.search(name))


def _confidential(values: pl.Series) -> _Proposal:
    settings: dict[str, Any] = {"role": "confidential"}
    numbers = values.cast(pl.Float64).to_numpy()
    finite = numbers[np.isfinite(numbers)]
    largest = float(np.abs(finite).max(initial=0.0))
    if values.dtype.is_integer():
        if largest > LARGEST_UNITS * grid_of_decimals(0).step:
            return _Proposal(
                settings | {"resolution": 1.0}, f"{FROM_DATA} resolution: large values"
            )
        return _Proposal(settings)
    if not len(finite):
        return _Proposal(settings)
    single = values.dtype == pl.Float32
    decimals = observed_decimals(finite, single_precision=single)
    if decimals < MOST_DECIMALS and largest <= LARGEST_UNITS * grid_of_decimals(decimals).step:
        return _Proposal(settings | {"decimals": decimals}, f"{FROM_DATA} decimals")
    step = grid_of_observed(finite, single_precision=single).step
    return _Proposal(settings | {"resolution": step}, f"{FROM_DATA} resolution")


def _sums(table: pl.DataFrame, numeric: list[str]) -> dict[str, _Proposal]:
    """Find columns that are the sum of two others in every record, missing where a part is."""
    if len(numeric) > _MOST_COLUMNS_FOR_SUMS or table.height < 3:
        return {}
    plain = [name for name in numeric if not is_pattern(name)]
    columns = {name: table[name].cast(pl.Float64).to_numpy() for name in plain}
    columns = {name: values for name, values in columns.items() if _varies(values)}
    found: dict[str, _Proposal] = {}
    for one, other in combinations(columns, 2):
        total = columns[one] + columns[other]
        for name, values in columns.items():
            if {one, other, name} & found.keys() or name in (one, other):
                continue
            if _same(values[:8], total[:8]) and _same(values, total):
                found[name] = _Proposal(
                    {"role": "derived", "expression": f"{_quoted(one)} + {_quoted(other)}"},
                    f"{FROM_DATA} equal to this sum in every record",
                )
    return found


def _varies(values: np.typing.NDArray[np.float64]) -> bool:
    known = values[~np.isnan(values)]
    return bool(np.all(np.abs(known) < 1e300) and np.any(known != known[:1]))


def _same(one: np.typing.NDArray[np.float64], other: np.typing.NDArray[np.float64]) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
