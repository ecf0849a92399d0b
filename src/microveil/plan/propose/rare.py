"""Rare categories: what few persons have is merged before it is masked."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from microveil.core.attribute import CROWD, Category
from microveil.plan.propose.columns import Proposal

_OTHER = "other"


def merging_rare(proposal: Proposal, values: pl.Series, persons: pl.Series) -> Proposal:
    """Propose to merge categories that too few persons have: into other ones, or neighbours.

    As it is where none are rare, or nothing would be left to tell apart.

    Examples
    --------
    >>> settings = {"role": "confidential", "kind": "nominal", "categories": ["a", "b", "c", "d"]}
    >>> values = pl.Series([*"aaaaaaaaaa" * 2, *"bbbbbbbbbbbbcccd"])
    >>> merging_rare(Proposal(settings, ""), values, pl.int_range(36, eager=True)).settings["merge"]
    {'other': ['b', 'c', 'd']}
    """
    listed = proposal.settings.get("categories")
    if not proposal.masked or not listed:
        return proposal
    held_by = pl.DataFrame({"value": values, "person": persons}).drop_nulls("value").unique()
    counts = dict(held_by.group_by("value").len().iter_rows())
    held = {c: counts.get(str(c) if isinstance(c, str) else c, 0) for c in listed}
    if all(count >= CROWD or not count for count in held.values()):
        return proposal
    ordinal = proposal.settings.get("kind") == "ordinal"
    groups = _neighbours(held) if ordinal else _rarest(held)
    names = {_name_of(group, listed, ordinal=ordinal): group for group in groups if len(group) > 1}
    if len(groups) < 2 or not names:
        return replace(proposal, remark=f"some are rarer than {CROWD}; {proposal.remark}")
    return replace(
        proposal,
        settings={**proposal.settings, "merge": names},
        from_data=tuple(dict.fromkeys([*proposal.from_data, "categories", "merge"])),
        remark=f"rarer than {CROWD} are merged; {proposal.remark}".removesuffix("; "),
    )


def _rarest(held: dict[Category, int]) -> list[list[Category]]:
    """Put rare categories together, and further ones until the group is no longer rare."""
    ascending = sorted(held, key=lambda category: held[category])
    most, together = 0, 0
    while most < len(ascending) and (held[ascending[most]] < CROWD or 0 < together < CROWD):
        together += held[ascending[most]]
        most += 1
    rare = set(ascending[:most])
    return [[c for c in held if c in rare], *([c] for c in held if c not in rare)]


def _neighbours(held: dict[Category, int]) -> list[list[Category]]:
    """Put neighbours together from the lowest on, until no group is rare."""
    groups: list[list[Category]] = [[]]
    together = 0
    for category, count in held.items():
        if together >= CROWD:
            groups.append([])
            together = 0
        groups[-1].append(category)
        together += count
    if together < CROWD and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return groups


def _name_of(group: Sequence[Category], listed: Sequence[Category], *, ordinal: bool) -> str:
    """Name a group as no category is named."""
    name = f"{group[0]} to {group[-1]}" if ordinal else _OTHER
    taken = {str(category) for category in listed} - {str(category) for category in group}
    while name in taken:
        name += "*"
    return name
