"""ColumnProfile at a table and write a commented plan that a person can edit.

Looking at the data has a price, so every proposal that depends on it is marked as such.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import polars as pl
import tomlkit
from tomlkit.items import Table

from microveil.core.choices import DEFAULT_METHOD, DateOrder
from microveil.errors import DataError
from microveil.plan.fields import PlanFields
from microveil.plan.propose.columns import (
    ColumnProfile,
    Described,
    Proposal,
    as_polars,
    ordered_numbers,
)
from microveil.plan.propose.crowd import crowd_of
from microveil.plan.propose.purposes import proposed_known, proposed_uses
from microveil.plan.propose.rare import merging_rare
from microveil.plan.propose.shared_keys import SharedKey
from microveil.plan.propose.table_roles import FOUND, TableRoles, propose_roles
from microveil.plan.settings import RECOMMENDED, PlanSettings, declared_in
from microveil.plan.toml import commented, inline, texts
from microveil.plan.uses import Use, check_uses
from microveil.types import UserTable

FROM_DATA = "(from the data)"

_SCENARIOS = "What an attacker could know of a person. Releases are tested against it too."
_USES = "What the release will be used for. Usefulness is graded by it; the release is the same."

_DONE = {
    "identifier": "dropped: ",
    "kept": "published as it is: ",
    "sampling_weight": "published as it is: ",
}


@dataclass(frozen=True)
class Proposed:
    """A plan as commented TOML, and what it was made of.

    Attributes
    ----------
    toml
        The plan.
    columns
        For every column what was seen of it, and what was proposed.
    key
        The column that says which records belong to one unit; None if no unit was found.
    rules
        What every record keeps, and the release keeps therefore.
    """

    toml: str
    columns: Mapping[str, tuple[ColumnProfile, Proposal]]
    key: SharedKey | None
    rules: tuple[str, ...]


def propose_plan(
    table: UserTable,
    name: str,
    described: Mapping[str, Described] = MappingProxyType({}),
) -> str:
    """Write a plan for a table as commented TOML, usable unedited for iDP-CBLS.

    Numbers, dates and times are confidential, and so are Booleans and text or codes of few
    categories; columns found to be the sum of others are derived, and orders that every record
    keeps are rules. Keys, and what names people, are dropped, and so is what may be a key. The
    column that says which records belong to one unit is the plan's `unit`. Only what is the same in
    every record is kept as it is, and sampling weights that ten persons or more share each.

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
    unit: str | None = FOUND,
    known: Sequence[str] | None = None,
    uses: Sequence[Use] | None = None,
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
    unit
        The column that says whose records they are, None if none does; by default it is found.
    known, uses
        What an attacker may know of a person, and what the release will be used for; by default
        they are proposed.
    """
    described = {**ordered_numbers(table), **described}
    table, plain = as_polars(table), Described()
    looks = {c.name: ColumnProfile(c.name, c, described.get(c.name, plain)) for c in table}
    seen = _without_rare(propose_roles(table, looks, unit), table)
    proposals = seen.proposals
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
    _add_settings(document, masked, reading, seen)
    attributes = tomlkit.table(is_super_table=True)
    for column, proposal in proposals.items():
        attributes.add(column, _section(proposal))
    plan = PlanFields(**tomllib.loads(tomlkit.dumps({**document, "attributes": attributes})))
    known = proposed_known(plan) if known is None else known
    uses = proposed_uses(plan, table) if uses is None else uses
    check_uses(uses, plan.attributes)
    _add_tables(document, _SCENARIOS, "scenarios", [{"known": list(known)}] if known else [])
    _add_tables(document, _USES, "uses", [use.to_settings() for use in uses])
    document.add("attributes", attributes)
    toml = tomlkit.dumps(document).rstrip() + "\n"
    columns = {column: (looks[column], p) for column, p in proposals.items()}
    return Proposed(toml, columns, seen.key, seen.rules)


def _add_tables(
    document: tomlkit.TOMLDocument, comment: str, name: str, tables: Sequence[Mapping[str, Any]]
) -> None:
    """Write a list of tables, the first under a comment; nothing if it is empty."""
    if not tables:
        return
    written = tomlkit.aot()
    for number, settings in enumerate(tables):
        table = tomlkit.table()
        if not number:
            table.add(tomlkit.comment(comment))
        for key, value in settings.items():
            table.add(key, value)
        written.append(table)
    document.add(name, written)


def _without_rare(seen: TableRoles, table: pl.DataFrame) -> TableRoles:
    """Merge categories that few persons have, or few units where there are some."""
    persons = pl.int_range(table.height, eager=True) if seen.key is None else table[seen.key.name]
    proposals = {n: merging_rare(one, table[n], persons) for n, one in seen.proposals.items()}
    return replace(seen, proposals=proposals)


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
    seen: TableRoles,
) -> None:
    """Write the plan's settings, each with what its declaration says of it."""
    key, marked = seen.key, _marked(seen.proposals)
    persons = key.units if key else confidential.height
    anonymity = crowd_of(persons)
    remarks = {}
    if anonymity < RECOMMENDED["anonymity"]:
        remarks["anonymity"] = "few records"
    settings = {
        **reading,
        "epsilon": 1.0,
        "method": DEFAULT_METHOD,
        **RECOMMENDED,
        "anonymity": anonymity,
        "records_per_person": key.most if key else 1,
    }
    if key is not None:
        settings |= {"unit": key.name}
        remarks |= {"records_per_person": "the most found; declare the most there can be"}
        remarks |= {"unit": "several records share a value"}
    if seen.strata:
        settings |= {"within": list(seen.strata)}
        remarks |= {"within": "published, and shared by ten persons or more each"}
    with_nulls = sum(column.null_count() > 0 for column in confidential)
    if with_nulls:
        settings["missing"] = "keep"
        remarks["missing"] = f"{with_nulls} attribute(s) have missing values"
    comments = {declared.name: declared.comment for declared in declared_in(PlanSettings)}
    for name, value in settings.items():
        if name == "unit":
            for line in _about_unit(seen):
                document.add(tomlkit.comment(line))
        remark = f"; {FROM_DATA}: {remarks[name]}" if name in remarks else ""
        document.add(name, commented(value, comments[name] + remark))
    if seen.rules:
        document.add(
            tomlkit.comment(f"{FROM_DATA} These hold in every record; the release keeps them.")
        )
        document.add("rules", commented(texts(seen.rules), comments["rules"]))
        remarks["rules"] = ""
    if marked or remarks:
        said = "The certificate will say that these were taken from the data."
        document.add(tomlkit.comment(said))
        document.add("from_data", texts([*marked, *remarks]))
    document.add(tomlkit.nl())


def _about_unit(seen: TableRoles) -> Iterator[str]:
    """Say what was found, and what to write where it is not so."""
    assert seen.key is not None  # noqa: S101 - there is a unit
    yield f"{FROM_DATA} {seen.key.units:,} units were found, of up to {seen.key.most:,} records."
    yield "If another column says which records belong to one person or household, name it; if"
    yield "no person has several records, set records_per_person = 1, and remove unit and per_unit."


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
        said = [f"{proposal.why}; {proposal.remark}"] if proposal.remark else []
        return [*said, marked] if marked else said
    if proposal.role == "derived":
        return [f"{FROM_DATA} {proposal.why}"]
    what = _DONE.get(proposal.role, "")
    remark = f"; {proposal.remark}" if proposal.remark else ""
    lines = [f"{marked}: {proposal.why}{remark}" if marked else f"{what}{proposal.why}{remark}"]
    if proposal.instead:
        lines.append(f"instead: {proposal.instead}")
    return lines
