"""Peak memory of protecting a million records × ten attributes from the command line."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

RECORDS, ATTRIBUTES = 1_000_000, 10
MIB = 2**20


def make(path: Path) -> int:
    """Write a table of reals and integers; return its size in memory."""
    random = np.random.default_rng(1)
    columns: dict[str, object] = {}
    for number in range(ATTRIBUTES // 2):
        columns[f"real{number}"] = random.lognormal(3, 1, RECORDS).round(2)
        columns[f"integer{number}"] = random.integers(0, 100_000, RECORDS)
    table = pl.DataFrame(columns)
    table.write_parquet(path)
    return int(table.estimated_size())


def main() -> None:
    """Print the peak resident memory of the command, and what is left without the table."""
    with tempfile.TemporaryDirectory() as directory:
        source, target = Path(directory, "in.parquet"), Path(directory, "out.parquet")
        table = make(source)
        plan = Path(directory, "plan.toml")
        microveil = str(Path(sys.executable).with_name("microveil"))
        subprocess.run([microveil, "plan", source, "-o", plan, "-q"], check=True)
        start = time.perf_counter()
        command: list[str | Path] = [
            microveil,
            "protect",
            source,
            "--plan",
            plan,
            "-o",
            target,
            "--detail",
            "-q",
        ]
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{RECORDS:,} records × {ATTRIBUTES} attributes, iDP-CBLS, k = 10, with detail")
    print(f"table in memory        {table / MIB:8.0f} MiB")
    print(f"peak of the command    {peak / MIB:8.0f} MiB")
    print(f"above the table        {(peak - table) / MIB:8.0f} MiB")
    print(f"wall time              {seconds:8.1f} s")


if __name__ == "__main__":
    main()
