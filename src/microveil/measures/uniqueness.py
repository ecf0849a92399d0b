"""Uniqueness: how many released records share some columns with no other.

Records are counted among all released ones.
"""

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items


def class_figures(seen: Examined, asked: Asked) -> Items:
    """Count records that share their quasi-identifiers in the release."""
    classes = seen.classes(asked.quasi_identifiers)
    names = ", ".join(asked.quasi_identifiers)
    yield Figure("risk.unique_records", names, classes.unique)
    facts = {"records": classes.records}
    yield Figure("risk.smallest_class", names, float(classes.smallest), facts)


def kept_figures(seen: Examined, _: Asked) -> Items:
    """Count the records that columns published as they are point to."""
    released = seen.given.table.columns
    names = [name for name in seen.planned.kept if name in released]
    if names:
        yield Figure("risk.unique_kept", ", ".join(names), seen.classes(names).unique)


def combination_figures(seen: Examined, _: Asked) -> Items:
    """Count the records whose masked values no other record shares as a whole."""
    masked = [name for name in seen.pair.attributes if name in seen.given.table.columns]
    if masked:
        yield Figure("risk.unique_combinations", None, seen.classes(masked).unique)
