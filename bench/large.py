"""Peak memory of protecting a file: 100,000,000 × 6 float64, or as many records as are said.

The published plan beside the recommended one: noise-optimal, isotonic, pooled 10 to a cluster.
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

ATTRIBUTES = 6
PART = 5_000_000
GIB = 2**30
COMMAND = """
import sys
from microveil import Confidential, Plan
from microveil.release.protect_file import protect_file
attribute = Confidential(lower=0, upper=100_000_000, decimals=2)
attributes = dict.fromkeys(sys.argv[4:], attribute)
plan = {
    "published": Plan(epsilon=1.0, attributes=attributes),
    "recommended": Plan.recommended(epsilon=1.0, anonymity=10, attributes=attributes),
}[sys.argv[3]]
protect_file(sys.argv[1], plan, sys.argv[2], overwrite=True)
"""


def make(path: Path, records: int) -> None:
    """Write a Parquet file of float64 columns, a part at a time."""
    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        for first in range(0, records, PART):
            random = np.random.default_rng(first)
            size = min(PART, records - first)
            columns = {f"x{a}": random.lognormal(10, 1, size).round(2) for a in range(ATTRIBUTES)}
            pl.DataFrame(columns).write_parquet(Path(directory, f"{first:012d}.parquet"))
        pl.scan_parquet(directory).sink_parquet(path)


def main() -> None:
    """Make the file, and protect it by both plans."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000_000
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "big.parquet"), Path(directory, "out.parquet")
        make(source, records)
        print(
            f"{records:,} records × {ATTRIBUTES} float64, {records * ATTRIBUTES * 8 / GIB:.1f} GiB"
        )
        for plan in ("published", "recommended"):  # the larger peak last: it is that of all so far
            measure(source, target, plan)


def measure(source: Path, target: Path, plan: str) -> None:
    """Protect the file in a process of its own, and print what that took."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    names = [f"x{a}" for a in range(ATTRIBUTES)]
    subprocess.run([sys.executable, "-c", COMMAND, source, target, plan, *names], check=True)
    seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(f"{plan:<12} peak resident memory {used.ru_maxrss * 1024 / GIB:6.2f} GiB {seconds:6.0f} s"
          f" ({processor:.0f} s of processor time)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
