"""What becomes of the columns of a table together: whose records they are, weights, and sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from microveil.plan.propose.columns import ColumnProfile, Proposal, as_amount, propose_role
from microveil.plan.propose.held import Sum, find_orders, find_sums, in_rules
from microveil.plan.propose.numbering import LARGE, are_long, are_years, go_together
from microveil.plan.propose.places import coarsened
from microveil.plan.propose.shared_keys import SharedKey, chosen_key, find_shared_key
from microveil.plan.propose.weights import settle_weights
from microveil.plan.roles import is_pattern

FOUND: Any = object()
"""Stands for the unit that is found in the table."""

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
    rules
        What every record keeps, and masked values would not.
    """

    proposals: dict[str, Proposal]
    key: SharedKey | None
    strata: tuple[str, ...]
    rules: tuple[str, ...]


def propose_roles(
    table: pl.DataFrame, looks: Mapping[str, ColumnProfile], unit: str | None = FOUND
) -> TableRoles:
    """Propose a role for every column of a table, whose units are found, or said to be those."""
    proposals = _cleared(looks, {name: propose_role(look) for name, look in looks.items()})
    proposals |= coarsened(looks, proposals)
    key = _key(unit, looks, proposals)
    persons = np.arange(table.height)
    if key is not None:
        proposals[key.name] = _unit(key, proposals[key.name])
        persons = key.of_records
    proposals, strata = settle_weights(looks, proposals, persons)
    amounts = [
        name for name, p in proposals.items() if p.ordered and not p.weighs and not is_pattern(name)
    ]
    sums = find_sums(table, amounts)
    same = key.same if key else ()
    proposals |= {name: _once(p) for name, p in proposals.items() if name in same and p.masked}
    proposals |= {one.total: _derived(one) for one in sums if one.missing_alike}
    return TableRoles(proposals, key, strata, _rules(table, amounts, sums, same))


def _key(
    unit: str | None, looks: Mapping[str, ColumnProfile], proposals: Mapping[str, Proposal]
) -> SharedKey | None:
    if unit is FOUND:
        return find_shared_key(looks, proposals)
    return None if unit is None else chosen_key(unit, looks, proposals)


def _derived(found: Sum) -> Proposal:
    """Compute a total again from its masked parts."""
    return Proposal(
        {"role": "derived", "expression": " + ".join(map(_quoted, found.parts))},
        "equal to this sum in every record",
        ("expression",),
    )


def _rules(
    table: pl.DataFrame, amounts: list[str], sums: Sequence[Sum], same: Sequence[str]
) -> tuple[str, ...]:
    """Propose rules for orders and for totals that are not derived.

    Attributes that are masked once for each unit are compared among themselves.
    """
    parts = {one.total: one.parts for one in sums if one.missing_alike}
    kinds = {name: {part in same for part in parts.get(name, [name])} for name in amounts}
    compared = [name for name in amounts if len(parts.get(name, "ab")) > 1]
    orders = [
        f"{in_rules(one)} <= {in_rules(other)}"
        for one, other in find_orders(table, compared)
        if len(kinds[one] | kinds[other]) == 1
    ]
    totals = [
        one.rule
        for one in sums
        if not one.missing_alike
        and len(set().union(*(kinds[n] for n in (one.total, *one.parts)))) == 1
    ]
    return (*orders, *totals)


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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
