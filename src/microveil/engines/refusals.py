"""Errors that every engine raises while it masks."""

from collections.abc import Sequence

from microveil.errors import DataError


def pooled_wrongly(attributes: Sequence[str], found: str) -> DataError:
    """Say that pooling did not come out as promised."""
    return DataError(f"pooling {', '.join(attributes)}: {found}; nothing was released")


def no_pseudonym(attribute: str) -> DataError:
    """Say that there are no pseudonyms for these values."""
    return DataError(
        "a pseudonym is of text or whole numbers, found other values; convert it to text "
        "first, the same in all tables",
        attribute=attribute,
        setting="role",
    )


def no_person(attribute: str, person: str, unknown: int) -> DataError:
    """Say that dates cannot move with people who are missing."""
    return DataError(
        f"its dates move with the person, and {person!r} is missing in {unknown:,} records "
        "that have a date; leave these out, or drop the attribute",
        attribute=attribute,
        setting="role",
    )


def leaves_the_calendar(attribute: str, outside: int) -> DataError:
    """Say that dates cannot be moved that far."""
    return DataError(
        f"{outside:,} of its dates would leave the calendar when they are moved; a date "
        "that stands for none, such as the last of the year 9999, would also tell how far "
        "those of its person were moved: make such dates missing first",
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
