"""Errors that every engine raises while it masks."""

from collections.abc import Sequence

from microveil.errors import DataError, PlanError


def pooled_wrongly(attributes: Sequence[str], found: str) -> DataError:
    """Say that pooling did not come out as promised."""
    return DataError(f"pooling {', '.join(attributes)}: {found}; nothing was released")


def history_of_too_few(attribute: str) -> DataError:
    """Say that pseudonyms did not come out as promised."""
    return pooled_wrongly([attribute], "some pseudonyms share their history with too few")


def no_pseudonym(attribute: str) -> DataError:
    """Say that there are no pseudonyms for these values."""
    return DataError(
        "pseudonyms replace text or whole numbers, found other values; convert the column to text "
        "first, the same way in all tables",
        attribute=attribute,
        setting="role",
    )


def no_person(attribute: str, person: str, unknown: int) -> DataError:
    """Say that dates cannot move with people who are missing."""
    return DataError(
        f"its dates are shifted with the person, but {person!r} is missing in {unknown:,} records "
        "that have a date; remove these records, or drop the attribute",
        attribute=attribute,
        setting="role",
    )


def leaves_the_calendar(attribute: str, outside: int) -> DataError:
    """Say that dates cannot be moved that far."""
    return DataError(
        f"{outside:,} of its dates would fall outside the calendar when shifted; a placeholder "
        "such as 31 December 9999 would also reveal how far its person's dates were shifted: make "
        "such dates missing first",
        attribute=attribute,
        setting="role",
    )


def no_finite_result(attribute: str, undefined: int, records: int) -> DataError:
    """Say that a derived attribute cannot be computed everywhere."""
    return DataError(
        f"its expression has no finite result in {undefined:,} of {records:,} records (a division "
        "by zero?); change the expression",
        attribute=attribute,
        setting="expression",
    )


def no_lasting_clusters() -> PlanError:
    """Say that joint clusters that last are not kept on Spark."""
    return PlanError(
        "joint clusters that last are kept on one machine, not on Spark; protect the table without "
        "Spark, or without --joint and with pseudonyms of another key",
        setting="joint",
    )
