"""What a certificate says of each attribute in a few words, so that sentences need not name all."""

from collections.abc import Sequence

from microveil.release.certificate import Certificate, Exposure
from microveil.release.guarantees import ConditionKind
from microveil.release.notes import Note, message_of
from microveil.show.words.numbers import listed

MOST_NAMED = 3
"""So many attributes are named in a sentence; of more it names the mark in the table."""

MARK_COLUMNS = ("attribute", "not protected", "read from the data", "bounds")
"""The head of the table of marks."""

BY_ATTRIBUTE = "By attribute"
"""The section that has what sentences do not name."""

_EMPTY = "–"

_SHOWN: dict[str, str] = {
    "kept-values": "published as it is",
    "strata-of-clusters": "stratum",
    "records-of-units": "records of units",
    "records-of-persons": "records of persons",
    "threads-of-persons": "records of persons",
    "intervals-of-dates": "intervals of dates",
    "missing-values": "missing values",
    "missing-per-joint-cluster": "number missing",
    "shared-values": "shared values",
    "values-of-joint-clusters": "values of joint clusters",
    "exact-values": "exact values",
    "exact-values-but-trimmed": "exact values but trimmed",
    "exact-categories": "exact categories",
    "values-by-chance": "true values by chance",
    "labels": "labels",
    "missing-codes": "missing codes",
    "missing-codes-moved": "number of missing codes",
    "missing-codes-averaged": "most frequent missing code",
}
_READ: dict[str, str] = {
    "domain-from-data": "domain",
    "categories-from-data": "categories",
    "grid-from-data": "noise grid",
    "type-from-data": "type",
    "clusters-from-data": "clusters",
}
_BOUNDS: dict[ConditionKind, str] = {
    "noise-scales-fixed": "noise scales fixed",
    "observed-range-only": "observed range only",
    "observed-categories-only": "observed categories only",
    "noise-grid-unchanged": "noise grid unchanged",
    "re-clustering-only": "re-clustering only",
    "one-record-per-cluster": "one record per cluster",
    "no-differential-privacy": "no differential privacy",
    "clusters-from-data": "clusters follow the data",
    "clusters-of-units": "clusters of units",
    "shared-values-visible": "shared values visible",
    "category-visible": "category visible",
}


def bound_mark(kind: ConditionKind, level: int) -> str:
    """Return the mark of a condition of a level; empty if it has none."""
    return f"{_BOUNDS[kind]}, level {level}" if kind in _BOUNDS else ""


def named(names: Sequence[str], mark: str, certificate: Certificate) -> str:
    """Name a few attributes, or count many and say how the table marks them."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    if set(names) == {a.name for a in certificate.attributes}:
        return "all masked attributes"
    return f"{len(names):,} attributes (by attribute: {mark})" if mark else ", ".join(names)


def names_of(one: Exposure | Note, among: Sequence[Exposure | Note], of: Certificate) -> str:
    """Name the attributes of an entry: by their mark where no other entry has it."""
    alone = sum(other.kind == one.kind for other in among) == 1
    return named(one.attributes, {**_READ, **_SHOWN}.get(one.kind, "") if alone else "", of)


def noted_of(note: Note, certificate: Certificate) -> str:
    """Say a note; settings of many attributes stand in the table."""
    own = tuple(setting for setting in note.settings if ": " not in setting)
    of = len(note.settings) - len(own)
    if of > MOST_NAMED:
        told = f"{of} settings of attributes ({BY_ATTRIBUTE.lower()})"
        note = note.model_copy(update={"settings": (*own, told)})
    marked = names_of(note, certificate.notes, certificate)
    if marked == ", ".join(note.attributes):
        return message_of(note)
    return f"{marked}: {message_of(note.model_copy(update={'attributes': ()}))}"


def by_attribute(certificate: Certificate) -> dict[str, list[str]]:
    """Say of each attribute in a line what the table of marks has; nothing if it is empty."""
    lines = [
        f"{name}: {'; '.join(f'{head}: {told}' for head, told in _told(cells))}."
        for name, *cells in mark_rows(certificate)
    ]
    return {BY_ATTRIBUTE: lines} if lines else {}


def _told(cells: Sequence[str]) -> list[tuple[str, str]]:
    heads = zip(MARK_COLUMNS[1:], (cell.replace("; ", ", ") for cell in cells), strict=True)
    return [(head, cell) for head, cell in heads if cell != _EMPTY]


def mark_rows(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return a row for every attribute that anything is said of: what `MARK_COLUMNS` names."""
    marks = _marks(certificate)
    return [
        (name, *("; ".join(dict.fromkeys(column)) or _EMPTY for column in columns))
        for name, columns in marks.items()
    ]


def _marks(certificate: Certificate) -> dict[str, tuple[list[str], list[str], list[str]]]:
    """Collect the marks of every attribute, in the order of the table."""
    order = [a.name for a in certificate.attributes]
    found: dict[str, tuple[list[str], list[str], list[str]]] = {n: ([], [], []) for n in order}

    def put(names: Sequence[str], column: int, mark: str) -> None:
        for name in names:
            if mark:
                found.setdefault(name, ([], [], []))[column].append(mark)

    for exposure in certificate.not_protected:
        put(exposure.attributes, 0, _SHOWN.get(exposure.kind, ""))
    for note in certificate.notes:
        put(note.attributes, 1, _READ.get(note.kind, ""))
        for setting in note.settings:
            name, _, what = setting.rpartition(": ")
            put([name] if name else [], 1, what)
    for kind in _BOUNDS:
        by_level = {level.level: level.about(kind) for level in certificate.levels}
        for name in dict.fromkeys(name for names in by_level.values() for name in names):
            at = [str(level) for level, names in by_level.items() if name in names]
            levels = f"level{'s' if len(at) > 1 else ''} {listed(at)}"
            put([name], 2, f"{_BOUNDS[kind]}, {levels}")
    return {name: columns for name, columns in found.items() if any(columns)}
