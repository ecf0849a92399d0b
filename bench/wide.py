"""Tables of few records and many columns: time for a proposal, its plan and the release.

Time should grow in proportion to the number of columns.
"""

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import numpy as np
import polars as pl

from microveil.plan.plan import Plan
from microveil.plan.propose.proposal import propose_plan
from microveil.release.protect import protect

RECORDS = 50
WIDTHS = (5, 300, 1_200, 10_000)  # the first one compiles
Result = TypeVar("Result")


def table(width: int) -> pl.DataFrame:
    """Make a table of real and whole numbers."""
    random = np.random.default_rng(0)
    reals = random.normal(size=(width, RECORDS)).round(2)
    wholes = random.integers(0, 100, (width, RECORDS))
    return pl.DataFrame({f"c{i}": reals[i] if i % 3 else wholes[i] for i in range(width)})


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return what came of it, and how many seconds it took."""
    start = perf_counter()
    return work(), perf_counter() - start


def main() -> None:
    """Print a line for each number of columns."""
    warnings.simplefilter("ignore")
    for width in WIDTHS:
        data = table(width)
        toml, proposing = timed(lambda data=data: propose_plan(data, "wide"))  # type: ignore[misc]
        plan, reading = timed(lambda toml=toml: Plan.from_toml(toml))  # type: ignore[misc]
        _, protecting = timed(lambda data=data, plan=plan: protect(data, plan, keep_order=True))  # type: ignore[misc]
        print(
            f"{RECORDS} records × {width:,} columns: proposal {proposing:.1f} s, "
            f"plan {reading:.1f} s, release {protecting:.1f} s"
        )


if __name__ == "__main__":
    main()
