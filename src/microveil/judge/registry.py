"""Every measure and attack by its id, in the order in which people read them."""

from difflib import get_close_matches

from microveil.attacks.attack_rows import ATTACKS
from microveil.compare.figures import About, Measure
from microveil.errors import DataError
from microveil.measures.measure_rows import FAMILIES

_ROWS: tuple[Measure, ...] = (
    *ATTACKS.values(),
    *(row for family in FAMILIES for row in family.measures),
)

MEASURES = {
    row.id: row
    for topic in ("uses", "utility", "risk", "learning")
    for row in _ROWS
    if row.topic == topic
}
"""Every measure and attack by its id: of uses, then of what is left, of risk, and of learning."""

ABOUT: dict[About, str] = {
    "table": "the whole table",
    "attribute": "an attribute",
    "pair": 'two attributes, given as "a × b"',
    "columns": 'columns, given as "a, b"',
    "class": 'a class, given as "target = class"',
    "scenario": "the whole table, or a scenario, given by its name",
    "rule": "a rule, as the plan has it",
    "use": 'a use and a group, given as "mean income by region: North"',
}
"""What figures are about, and how that is given to `Evaluation.value`."""


def check_measure(measure: str) -> None:
    """Refuse an id that no measure has."""
    if measure in MEASURES:
        return
    names = {name: row.id for row in MEASURES.values() for name in (row.label.lower(), row.id)}
    close = get_close_matches(measure.lower(), names, n=1)
    meant = f"; did you mean {names[close[0]]!r}?" if close else ""
    raise DataError(f"no measure has the id {measure!r}{meant} (ids: {', '.join(MEASURES)})")
