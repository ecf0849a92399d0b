"""Peak memory and time of protecting a file: 100,000,000 × 6 float64, or what is said.

The published plan beside the recommended one: noise-optimal, isotonic, pooled 10 to a cluster. A
column at a time, and after `memory` the recommended one also in memory. Arguments: records, then
attributes.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

PART = 5_000_000
GIB = 2**30
COMMAND = """
import sys
from microveil import Confidential, Plan, protect, protect_file
attribute = Confidential(lower=0, upper=100_000_000, decimals=2)
attributes = dict.fromkeys(sys.argv[5:], attribute)
plan = {
    "published": Plan.published(epsilon=1.0, attributes=attributes),
    "recommended": Plan(epsilon=1.0, anonymity=10, attributes=attributes),
}[sys.argv[3]]
if sys.argv[4] == "in memory":
    protect(sys.argv[1], plan).write(sys.argv[2], overwrite=True)
else:
    protect_file(sys.argv[1], plan, sys.argv[2], overwrite=True)
"""


def make(path: Path, records: int, attributes: int) -> None:
    """Write a Parquet file of float64 columns, a part at a time."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        for first in range(0, records, PART):
            random = np.random.default_rng(first)
            size = min(PART, records - first)
            columns = {f"x{a}": random.lognormal(10, 1, size).round(2) for a in range(attributes)}
            pl.DataFrame(columns).write_parquet(Path(directory, f"{first:012d}.parquet"))
        pl.scan_parquet(directory).sink_parquet(path)


def main() -> None:
    """Make the file, and protect it by both plans."""
    sizes = [int(size) for size in sys.argv[1:] if size.isdigit()]
    records, attributes = [*sizes, *(100_000_000, 6)[len(sizes) :]]
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "big.parquet"), Path(directory, "out.parquet")
        make(source, records, attributes)
        print(
            f"{records:,} records × {attributes} float64, {records * attributes * 8 / GIB:.1f} GiB"
        )
        runs = [(plan, "a column at a time") for plan in ("published", "recommended")]
        runs += [("recommended", "in memory")] * ("memory" in sys.argv)
        for plan, how in runs:  # the larger peak last: it is that of all so far
            measure(source, target, plan, how, attributes)


def measure(source: Path, target: Path, plan: str, how: str, attributes: int) -> None:
    """Protect the file in a process of its own, and print what that took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    names = [f"x{a}" for a in range(attributes)]
    subprocess.run([sys.executable, "-c", COMMAND, source, target, plan, how, *names], check=True)
    seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    peak = used.ru_maxrss * 1024 / GIB
    print(f"{plan}, {how}: peak resident memory {peak:.2f} GiB, {seconds:.0f} s "
          f"({processor:.0f} s of processor time)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
