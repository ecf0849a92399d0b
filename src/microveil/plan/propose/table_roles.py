"""What becomes of the columns of a table together: whose records they are, weights, and sums."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from microveil.plan.propose.columns import ColumnProfile, Proposal, as_amount, propose_role
from microveil.plan.propose.numbering import LARGE, are_long, are_years, go_together
from microveil.plan.propose.shared_keys import SharedKey, find_shared_key
from microveil.plan.propose.weights import settle_weights
from microveil.plan.roles import is_pattern

_MOST_COLUMNS_FOR_SUMS = 60
_FEWEST_PAIRS, _MOST_PAIRS = 20, 20_000


@dataclass(frozen=True)
class TableRoles:
    """What was proposed for the columns of a table.

    Attributes
    ----------
    proposals
        The proposal for each column.
    key
        The column that says whose records they are, if several records are of one unit.
    strata
        The columns that clusters do not cross.
    """

    proposals: dict[str, Proposal]
    key: SharedKey | None
    strata: tuple[str, ...]


def propose_roles(table: pl.DataFrame, looks: Mapping[str, ColumnProfile]) -> TableRoles:
    """Propose a role for every column of a table."""
    proposals = _cleared(looks, {name: propose_role(look) for name, look in looks.items()})
    key = find_shared_key(looks, proposals)
    persons = np.arange(table.height)
    if key is not None:
        proposals[key.name] = _unit(key, proposals[key.name])
        persons = key.of_records
    proposals, strata = settle_weights(looks, proposals, persons)
    numeric = [
        name
        for name, p in proposals.items()
        if p.ordered and not p.weighs and table[name].dtype.is_numeric()
    ]
    proposals |= _sums(table, numeric)
    same = key.same if key else ()
    proposals |= {name: _once(p) for name, p in proposals.items() if name in same and p.masked}
    return TableRoles(proposals, key, strata)


def _cleared(
    looks: Mapping[str, ColumnProfile], proposals: dict[str, Proposal]
) -> dict[str, Proposal]:
    """Mask numbers that may be keys where they rise and fall with amounts, as keys do not."""
    amounts = [
        looks[name] for name, p in proposals.items() if p.ordered and _is_amount(looks[name])
    ]
    return {
        name: as_amount(looks[name])
        if p.unclear and any(_go_together(looks[name], amount) for amount in amounts)
        else p
        for name, p in proposals.items()
    }


def _go_together(look: ColumnProfile, amount: ColumnProfile) -> bool:
    """Whether a column rises and falls with another, though not because the file is sorted."""
    if (
        look.whole is None
        or are_long(look.whole)
        or look.plain.is_sorted()
        or look.plain.is_sorted(descending=True)
    ):
        return False
    pairs = pl.DataFrame({"one": look.plain, "other": amount.plain}).drop_nulls()
    pairs = pairs.gather_every(1 + pairs.height // _MOST_PAIRS)
    if pairs.height < _FEWEST_PAIRS:
        return False
    one, other = (pairs[name].cast(pl.Float64).to_numpy() for name in pairs.columns)
    return go_together(one, other)


def _is_amount(look: ColumnProfile) -> bool:
    """Whether numbers surely are amounts: with decimals, or large and no years."""
    if not look.column.dtype.is_numeric() or look.whole is None:
        return look.column.dtype.is_numeric()
    return bool(np.median(look.whole) >= LARGE and not are_years(look.whole))


def _unit(key: SharedKey, proposal: Proposal) -> Proposal:
    """Drop the column that says whose records they are."""
    shared = f"{key.units:,} units of up to {key.most:,} records"
    why = f"says which records belong together: {shared}"
    return replace(proposal, settings={"role": "identifier"}, why=why, remark="", instead="",
                   from_data=())  # fmt: skip


def _once(proposal: Proposal) -> Proposal:
    """Mask an attribute once for each unit."""
    return replace(
        proposal,
        settings=proposal.settings | {"per_unit": True},
        from_data=(*proposal.from_data, "per_unit"),
        why=f"{proposal.why}; the same in all records of a unit",
    )


def _sums(table: pl.DataFrame, numeric: list[str]) -> dict[str, Proposal]:
    """Find columns that are the sum of two others in every record, missing where a part is."""
    if len(numeric) > _MOST_COLUMNS_FOR_SUMS or table.height < 3:
        return {}
    plain = [name for name in numeric if not is_pattern(name)]
    columns = {name: table[name].cast(pl.Float64).to_numpy() for name in plain}
    columns = {name: values for name, values in columns.items() if _varies(values)}
    found: dict[str, Proposal] = {}
    for one, other in combinations(columns, 2):
        total = columns[one] + columns[other]
        for name, values in columns.items():
            if {one, other, name} & found.keys() or name in (one, other):
                continue
            if _same(values[:8], total[:8]) and _same(values, total):
                expression = f"{_quoted(one)} + {_quoted(other)}"
                found[name] = Proposal(
                    {"role": "derived", "expression": expression},
                    "equal to this sum in every record",
                    ("expression",),
                )
    return found


def _varies(values: np.typing.NDArray[np.float64]) -> bool:
    known = values[~np.isnan(values)]
    return bool(np.all(np.abs(known) < 1e300) and np.any(known != known[:1]))


def _same(one: np.typing.NDArray[np.float64], other: np.typing.NDArray[np.float64]) -> bool:
    return bool(np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
