"""Spark on this machine's cores beside the memory engine: time, growth, shuffled and driver bytes.

From a Parquet file to a protected Parquet file, iDP-CBLS, k = 10, secure noise. Arguments: numbers
of records, by default 2,000,000 and 20,000,000.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import SparkSession

from microveil import Plan, protect
from microveil.engines.spark.session import open_session

ATTRIBUTES, K = 4, 10
MIB = 2**20
PLAN = Plan(
    epsilon=1.0,
    k=K,
    attributes={
        f"x{number}": {"role": "confidential", "decimals": 2} for number in range(ATTRIBUTES)
    },
)


def make(path: Path, records: int) -> None:
    """Write a table of reals with two decimals: skewed, normal, uniform and heavily tied."""
    random = np.random.default_rng(1)
    shapes = (
        random.lognormal(3, 1, records),
        random.normal(0, 100, records),
        random.uniform(0, 1000, records),
        random.integers(0, 100, records).astype(np.float64),
    )
    columns = {f"x{number}": shape.round(2) for number, shape in enumerate(shapes)}
    pl.DataFrame(columns).write_parquet(path, row_group_size=MIB)


def seconds(work: Callable[[], object]) -> float:
    """Time a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def figures(spark: SparkSession) -> dict[str, int]:
    """Add up what all stages so far have shuffled, spilled and sent to the driver."""
    context: Any = spark.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, None)
    names = ("shuffleWriteBytes", "diskBytesSpilled", "resultSize", "numTasks")
    every = [stages.apply(number) for number in range(stages.size())]
    return {name: sum(getattr(stage, name)() for stage in every) for name in names}


def measure(spark: SparkSession, records: int) -> float:
    """Run both engines once and print their figures; return Spark's seconds."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "in.parquet")
        make(source, records)
        memory = seconds(lambda: protect(source, PLAN).write(f"{directory}/memory.parquet"))
        before = figures(spark)
        frame = spark.read.parquet(str(source))
        cluster = seconds(lambda: protect(frame, PLAN).write(f"{directory}/spark.parquet"))
    used = {name: value - before[name] for name, value in figures(spark).items()}
    shuffled = used["shuffleWriteBytes"]
    print(f"{records:,} records × {ATTRIBUTES} attributes, iDP-CBLS, k = {K}")
    for name, took in (("memory", memory), ("Spark", cluster)):
        print(f"  {name:<10}{took:8.1f} s {records / took / 1e6:8.2f} million records a second")
    print(f"  shuffled  {shuffled / MIB:8.0f} MiB, {shuffled / records / ATTRIBUTES:.1f} per value")
    print(f"  spilled   {used['diskBytesSpilled'] / MIB:8.0f} MiB")
    print(f"  to driver {used['resultSize'] / MIB:8.1f} MiB from {used['numTasks']:,} tasks")
    return cluster


def main() -> None:
    """Measure tables of growing size."""
    sizes = [int(size) for size in sys.argv[1:]] or [2_000_000, 20_000_000]
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 6g pyspark-shell")
    spark = open_session("local[2]")
    measure(spark, 100_000)  # to warm up
    took = [measure(spark, size) for size in sizes]
    spark.stop()
    print(f"{sizes[0]:,} → {sizes[-1]:,} records: {took[-1] / took[0]:.1f} times Spark's time")


if __name__ == "__main__":
    main()
