"""Missing values: what the plan says of them, and whether enough others are left."""

from microveil.errors import DataError
from microveil.plan.plan import Plan


def check_missing(plan: Plan, name: str, *, nulls: int, records: int, k: int) -> None:
    """Refuse missing values that the plan has no policy for, and too few values for a cluster."""
    if nulls and plan.missing == "error":
        raise DataError(
            f'{nulls:,} of {records:,} values are missing; set missing = "keep" (nulls stay null) '
            'or "drop" (their records are left out)',
            attribute=name,
            setting="missing",
        )
    if records - nulls < k:
        raise DataError(
            f"k must be at most the number of records with a value, found {records - nulls:,} "
            f"records for k = {k}; choose a smaller k",
            attribute=name,
            setting="k",
        )


def all_missing(name: str) -> DataError:
    """Say that an attribute has nothing to mask."""
    return DataError(
        "every value is missing; make its role identifier", attribute=name, setting="role"
    )
