"""ColumnProfile at a table and write a commented plan that a person can edit.

Looking at the data has a price, so every proposal that depends on it is marked as such.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import combinations
from types import MappingProxyType

import numpy as np
import polars as pl
import tomlkit
from tomlkit.items import Table

from microveil.core.choices import DEFAULT_METHOD, DateOrder
from microveil.errors import DataError
from microveil.plan.propose.columns import (
    ColumnProfile,
    Described,
    Proposal,
    as_polars,
    propose_role,
)
from microveil.plan.propose.rare import merging_rare
from microveil.plan.roles import is_pattern
from microveil.plan.settings import RECOMMENDED, PlanSettings, declared_in
from microveil.plan.toml import commented, inline, texts
from microveil.types import UserTable

FROM_DATA = "(from the data)"

_MOST_COLUMNS_FOR_SUMS = 60
_DONE = {
    "identifier": "dropped: ",
    "kept": "published as it is: ",
    "sampling_weight": "published as it is: ",
}


@dataclass(frozen=True)
class Proposed:
    """A plan as commented TOML, and for every column what was seen of it and what was proposed."""

    toml: str
    columns: Mapping[str, tuple[ColumnProfile, Proposal]]


def propose_plan(
    table: UserTable,
    name: str,
    described: Mapping[str, Described] = MappingProxyType({}),
) -> str:
    """Write a plan for a table as commented TOML, usable unedited for iDP-CBLS.

    Numbers, dates and times are confidential, and so are Booleans and text or codes of few
    categories; columns found to be the sum of two others are derived. Keys, and what names people,
    are dropped. Only what is the same in every record, and sampling weights, are kept as they are.

    Examples
    --------
    >>> from microveil.plan.sample import people
    >>> print(propose_plan(people(), "people.csv").splitlines()[-4])
    [attributes.income]
    """
    return propose(table, name, described).toml


def propose(
    table: UserTable,
    name: str,
    described: Mapping[str, Described] = MappingProxyType({}),
    *,
    na: Sequence[str] = (),
    dates: DateOrder | None = None,
) -> Proposed:
    """ColumnProfile at every column of a table, and write a plan for it.

    Parameters
    ----------
    table, name
        The table, and what its file is called.
    described
        What the file says of some columns besides their values.
    na, dates
        How the file was read, which the plan keeps.
    """
    table, plain = as_polars(table), Described()
    looks = {c.name: ColumnProfile(c.name, c, described.get(c.name, plain)) for c in table}
    proposals = _one_weight({column: propose_role(look) for column, look in looks.items()})
    proposals = {name: merging_rare(one, table[name]) for name, one in proposals.items()}
    numeric = [n for n, p in proposals.items() if p.ordered and table[n].dtype.is_numeric()]
    proposals |= _sums(table, numeric)
    confidential = [name for name, p in proposals.items() if p.masked]
    if not confidential:
        raise DataError(
            f"{name}: no column can be protected: all seem to be keys, free text or constants; if "
            "the columns or decimals of a CSV file were not recognised, give the delimiter and the "
            "decimal mark"
        )
    document = tomlkit.document()
    for line in _head(table, name):
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    reading: dict[str, object] = {"na": texts(na)} if na else {}
    reading |= {"dates": dates} if dates else {}
    masked = table.select(table[name] for name in confidential)
    _add_settings(document, masked, reading, _marked(proposals))
    attributes = tomlkit.table(is_super_table=True)
    for column, proposal in proposals.items():
        attributes.add(column, _section(proposal))
    document.add("attributes", attributes)
    toml = tomlkit.dumps(document).rstrip() + "\n"
    return Proposed(toml, {column: (looks[column], p) for column, p in proposals.items()})


def _one_weight(proposals: dict[str, Proposal]) -> dict[str, Proposal]:
    """Let the first sampling weight be the plan's; others are kept as they are."""
    _, *others = [name for name, p in proposals.items() if p.role == "sampling_weight"] or [""]
    kept = {
        name: replace(proposals[name], settings={"role": "kept"}, why="further sampling weights")
        for name in others
    }
    return {**proposals, **kept}


def _head(table: pl.DataFrame, name: str) -> list[str]:
    return [
        f"Plan for {name!a} ({table.height:,} records), proposed by microveil "
        f"{version('microveil')}. Read it, edit it, then:",
        "  microveil protect FILE --plan THIS_FILE -o protected.parquet",
        f"What was proposed by looking at the data is marked {FROM_DATA}: check it.",
        "Declare lower and upper yourself: the values that are possible, from what is known",
        "without the data. Masked values stay within them.",
    ]


def _marked(proposals: dict[str, Proposal]) -> list[str]:
    """List what will stand in the plan because of the data, for its certificate."""
    return [f"{column}: {setting}" for column, p in proposals.items() for setting in p.from_data]


def _add_settings(
    document: tomlkit.TOMLDocument,
    confidential: pl.DataFrame,
    reading: Mapping[str, object],
    marked: list[str],
) -> None:
    """Write the plan's settings, each with what its declaration says of it."""
    anonymity = max(2, min(RECOMMENDED["anonymity"], confidential.height))
    remarks = {}
    if anonymity < RECOMMENDED["anonymity"]:
        remarks["anonymity"] = "few records"
    settings = {
        **reading,
        "epsilon": 1.0,
        "method": DEFAULT_METHOD,
        **RECOMMENDED,
        "anonymity": anonymity,
        "records_per_person": 1,
    }
    with_nulls = sum(column.null_count() > 0 for column in confidential)
    if with_nulls:
        settings["missing"] = "keep"
        remarks["missing"] = f"{with_nulls} attribute(s) have missing values"
    comments = {declared.name: declared.comment for declared in declared_in(PlanSettings)}
    for name, value in settings.items():
        remark = f"; {FROM_DATA}: {remarks[name]}" if name in remarks else ""
        document.add(name, commented(value, comments[name] + remark))
    if marked or remarks:
        said = "The certificate will say that these were taken from the data."
        document.add(tomlkit.comment(said))
        document.add("from_data", texts([*marked, *remarks]))
    document.add(tomlkit.nl())


def _section(proposal: Proposal) -> Table:
    section = tomlkit.table()
    for line in _comments(proposal):
        section.add(tomlkit.comment(line))
    for name, value in proposal.settings.items():
        section.add(name, inline(value) if isinstance(value, dict) else value)
    if proposal.ordered:
        section.add(tomlkit.comment("lower ="))
        section.add(tomlkit.comment("upper ="))
    section.add(tomlkit.nl())
    return section


def _comments(proposal: Proposal) -> list[str]:
    """Say why, unless it is masked for no other reason than that it is a column of numbers."""
    taken = ", ".join(setting for setting in proposal.from_data)
    marked = f"{FROM_DATA} {taken}" if taken else ""
    if proposal.ordered:
        return [marked] if marked else []
    if proposal.role == "derived":
        return [f"{FROM_DATA} {proposal.why}"]
    what = _DONE.get(proposal.role, "")
    remark = f"; {proposal.remark}" if proposal.remark else ""
    lines = [f"{marked}: {proposal.why}{remark}" if marked else f"{what}{proposal.why}{remark}"]
    if proposal.instead:
        lines.append(f"instead: {proposal.instead}")
    return lines


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
