"""Types of what users hand in, of which microveil asks for no more than its libraries do."""

from typing import Any

UserTable = Any
"""A table of the user's kind: a Polars or pandas DataFrame, a PyArrow Table, a Spark DataFrame.

Where a table is read, also the path of a file or a `Source`.
"""

UserColumn = Any
"""A column of such a table."""
