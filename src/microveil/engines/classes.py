"""Classes of records that share some columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.engines.dtypes import comparable
from microveil.engines.memory import open_table
from microveil.errors import DataError
from microveil.types import UserTable


@dataclass(frozen=True)
class Classes:
    """Classes of records that share their quasi-identifiers."""

    unique: float
    smallest: int
    records: int

    @property
    def counts(self) -> tuple[int, int, int]:
        """Records that are alone in their class, those of the smallest class, and all."""
        return round(self.unique * self.records), self.smallest, self.records


def quasi_identifier_classes(table: UserTable, quasi_identifiers: Sequence[str]) -> Classes:
    """Share of unique records and size of the smallest class on some columns of a table.

    Columns may be of any type; a missing value is a value like any other.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"sex": ["f", "f", "m"], "region": [1, 1, 2]})
    >>> quasi_identifier_classes(table, ["sex", "region"])
    Classes(unique=0.3333333333333333, smallest=1, records=3)
    """
    frame = open_table(table)
    absent = [name for name in quasi_identifiers if name not in frame.columns]
    if absent or not quasi_identifiers:
        found = f"{absent[0]!r}, which is not there" if absent else "none"
        raise DataError(
            f"quasi-identifiers must be columns of the release, got {found} "
            f"(columns: {', '.join(frame.columns)})"
        )
    names = dict.fromkeys(quasi_identifiers)
    keys = [comparable(frame[name], name) for name in names]
    classes = pl.DataFrame([key.alias(f"{place}") for place, key in enumerate(keys)])
    sizes = classes.group_by(classes.columns).len("records")["records"].to_numpy()
    return Classes(float(np.sum(sizes == 1) / len(frame)), int(sizes.min()), len(frame))


Count = Callable[[Sequence[str]], Classes]
"""Counts the released records that share some columns."""
