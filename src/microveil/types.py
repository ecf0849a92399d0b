"""Types that every package shares: arrays, tables of the user's kind, and progress."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]
Booleans = NDArray[np.bool_]

UserTable = Any
"""A table of the user's kind: a Polars or pandas DataFrame, a PyArrow Table, a Spark DataFrame.

Where a table is read, also the path of a file or a `Source`.
"""

UserColumn = Any
"""A column of such a table."""

Progress = Callable[[str, int, int], None]
"""Called as ``progress(what, done, total)`` while a long step runs."""

NOT_POLARS = (
    ArithmeticError, NotImplementedError, TypeError, ValueError,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
"""What is raised where a column holds values that Polars has no type for."""
