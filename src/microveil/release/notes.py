"""What weakens the guarantee of a release: facts, and the one text of each.

Some are warned of when a plan meets its table; all of them are on the certificate.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field

from microveil.core.attribute import AttributeSettings, CategorySettings, NumericSettings
from microveil.core.choices import MethodName
from microveil.core.methods import METHODS, methods_that
from microveil.errors import PrivacyWarning, few, warn
from microveil.plan.plan import Plan

NoteKind = Literal[
    "domain-from-data", "categories-from-data", "grid-from-data", "type-from-data",
    "shared-clusters", "exact-categories", "exact-weights", "settings-from-data", "rules-kept",
    "clusters-from-data", "delta-too-large", "too-few-records",
    "synthetic-rules",
]  # fmt: skip

Item = TypeVar("Item")
Many = Annotated[tuple[Item, ...], FailFast()]
"""Of a certificate: the first wrong item ends its reading; 6 MB of them took 12 GB of errors."""

_VOID = "which voids the claim of differential privacy"
_OBSERVED: dict[NoteKind, str] = {
    "domain-from-data": "so the guarantee covers only values inside the observed range",
    "categories-from-data": "so the guarantee covers only the observed categories",
}
_TEXTS: dict[NoteKind, str] = {
    "domain-from-data": "the domain was read from the data, {effect}; declare lower and upper",
    "categories-from-data": "the categories were read from the data, {effect}; declare categories",
    "grid-from-data": "the noise grid was read from the data, where the last decimal and the "
    "largest value decide it; declare decimals, resolution or a domain",
    "type-from-data": "whether values are whole or real numbers, or how many decimals they have, "
    "was read from the data, {effect}; declare kind or decimals from what you know without the "
    "data",
    "shared-clusters": "{method} covers one record per cluster, so a person with {records} records "
    "is covered only if no two of them share a cluster; name the column that says whose records "
    "they are as unit, or use {others}",
    "exact-categories": "iDP publishes the category of every cluster whose records clearly "
    "agree, so most records keep their true category; to hide it, use {others}; to hide whose it "
    "is, set anonymity = 10",
    "exact-weights": "sampling weights are published unchanged, and a weight that few records "
    "share reveals their stratum or household; check the verdict, or mask it "
    '(role = "confidential", sampling_weight = true)',
    "settings-from-data": "read from the data when the plan was made: {settings}",
    "rules-kept": "masked values that broke a rule were changed as little as needed to keep it: "
    "record by record, from the record's masked values and unchanged published values, and from "
    "nothing else. This is post-processing, so every statement about epsilon and pooling still "
    "holds. A record can still break a rule if no masked values within the domains keep it",
    "clusters-from-data": "the data decided where clusters begin and end",
    "delta-too-large": "delta is above 1/(10 · records), so that with this probability the release "
    "may tell everything about a person; declare a smaller delta",
    "synthetic-rules": "rows that broke a rule were changed as little as needed to keep it, each "
    "by itself, which costs no budget. A row can still break a rule if no values within the "
    "domains keep it",
    "too-few-records": "there are so few records for epsilon that the release is mostly noise; use "
    "a larger epsilon, fewer attributes, or more records",
}
NOT_WARNED: tuple[NoteKind, ...] = ("settings-from-data", "rules-kept", "clusters-from-data")
"""Notes that nobody is warned of."""

_MOST_NAMED = 8


class Note(BaseModel):
    """Something that weakens the guarantee, or that its reader should know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: NoteKind
    attributes: Annotated[
        Many[str], Field(description="that it is about; none: it is about the release")
    ] = ()
    method: Annotated[
        MethodName | None, Field(description="of these attributes, if the note depends on it")
    ] = None
    records_per_person: Annotated[
        int | None, Field(description="the most there are, if the note depends on it")
    ] = None
    settings: Annotated[
        Many[str], Field(description="settings of the plan that were read from the data")
    ] = ()


def message_of(note: Note, most: int | None = None) -> str:
    """Return the text of a note, which names the first few of its attributes, or all of them.

    Examples
    --------
    >>> message_of(Note(kind="clusters-from-data", attributes=("age",)))
    "attribute 'age': the data decided where clusters begin and end"
    """
    names = [repr(name) for name in note.attributes]
    about = f"attribute{'s' if len(names) > 1 else ''} {few(names, most or len(names))}: "
    survives = note.method is not None and METHODS[note.method].promise.survives_data
    text = _TEXTS[note.kind].format(
        effect=_OBSERVED.get(note.kind) if survives else _VOID,
        method=note.method,
        records=note.records_per_person,
        settings=", ".join(note.settings),
        others=_others(note.kind),
    )
    return f"{about if names else ''}{text}"


def warn_of(notes: Sequence[Note]) -> None:
    """Warn of what weakens the guarantee, once for all attributes of which it is so."""
    for note in notes:
        if note.kind not in NOT_WARNED:
            warn(message_of(note, _MOST_NAMED), PrivacyWarning)


def notes_of_plan(
    plan: Plan, attributes: Sequence[AttributeSettings], *, keeps_rules: bool
) -> tuple[Note, ...]:
    """Find what there is to note about a resolved plan."""
    records = plan.records_per_person
    notes = [
        *_by_method("domain-from-data", filter(_domain_read, attributes)),
        *_by_method("categories-from-data", filter(_categories_read, attributes)),
        *_on("grid-from-data", filter(_grid_read, attributes)),
        *_by_method("type-from-data", filter(_type_read, attributes)),
        *_by_method("shared-clusters", filter(shares_clusters, attributes), records),
        *_on("exact-categories", (m for m in attributes if _publishes_agreement(m, plan))),
        *_on("clusters-from-data", (m for m in attributes if m.chosen_from_data)),
    ]
    if plan.names("sampling_weight"):
        notes.append(Note(kind="exact-weights", attributes=plan.names("sampling_weight")))
    if plan.from_data:
        notes.append(Note(kind="settings-from-data", settings=tuple(plan.from_data)))
    if keeps_rules:
        notes.append(Note(kind="rules-kept"))
    return tuple(notes)


def _on(kind: NoteKind, attributes: Iterable[AttributeSettings]) -> list[Note]:
    names = tuple(settings.name for settings in attributes)
    return [Note(kind=kind, attributes=names)] if names else []


def _by_method(
    kind: NoteKind, attributes: Iterable[AttributeSettings], records: int | None = None
) -> list[Note]:
    """Note something once for all attributes of a method."""
    alike: dict[MethodName, list[str]] = {}
    for settings in attributes:
        alike.setdefault(settings.method.name, []).append(settings.name)
    return [
        Note(kind=kind, attributes=tuple(names), method=method, records_per_person=records)
        for method, names in alike.items()
    ]


def shares_clusters(settings: AttributeSettings) -> bool:
    """Whether several records of a person in one cluster void the bound."""
    if isinstance(settings, CategorySettings) or settings.persons == 1:
        return False
    return not settings.method.covers_shared_clusters


def _domain_read(settings: AttributeSettings) -> bool:
    return isinstance(settings, NumericSettings) and settings.domain_source == "data"


def _categories_read(settings: AttributeSettings) -> bool:
    return isinstance(settings, CategorySettings) and settings.domain_source == "data"


def _grid_read(settings: AttributeSettings) -> bool:
    if not isinstance(settings, NumericSettings):
        return False
    return settings.grid_source == "data" and settings.domain_source != "data"


def _type_read(settings: AttributeSettings) -> bool:
    if not isinstance(settings, NumericSettings):
        return False
    return settings.type_from_data and not settings.method.promise.survives_data


def _publishes_agreement(settings: AttributeSettings, plan: Plan) -> bool:
    pooled = {name for group in plan.pooled_groups for name in group.attributes}
    return (
        isinstance(settings, CategorySettings)
        and settings.method.promise.publishes_agreement
        and settings.name not in pooled
    )


def _others(kind: NoteKind) -> str:
    """Name the methods of which it is not so."""
    if kind == "exact-categories":
        return methods_that(lambda other: not other.promise.publishes_agreement)
    return methods_that(lambda other: other.clustered and other.covers_shared_clusters)
